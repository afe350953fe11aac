//! The JSON configurations of the module, checked whole and compiled once
//! (docs/reference/module-config.md). Unknown members are refused.

mod route;

use std::fmt;
use std::net::SocketAddr;

use crate::members::Members;

pub(crate) use route::Place;
pub use route::{NoKey, PLACES_MAX, RouteConfig};

const NAME_BYTES_MAX: usize = 128;
const SERVICE_BYTES_MAX: usize = 128;
const PATH_BYTES_MAX: usize = 4096;
const HOUR_MS: u32 = 3_600_000;

/// What is wrong with a configuration: which member, and what to change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// `keys[0].template`; empty: the whole.
    pub member: String,
    pub problem: String,
}

impl ConfigError {
    pub(crate) fn new(member: &str, problem: impl Into<String>) -> ConfigError {
        ConfigError {
            member: member.into(),
            problem: problem.into(),
        }
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let member = if self.member.is_empty() {
            "the configuration"
        } else {
            &self.member
        };
        write!(out, "{member} {}", self.problem)
    }
}

impl std::error::Error for ConfigError {}

/// Bootstrap extension `belay`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BootstrapConfig {
    pub coordinator: SocketAddr,
    pub name: String,
    pub pool: String,
    /// Longest wait of the start for the first complete snapshot, in ms.
    pub max_wait_ms: u32,
    pub token_file: Option<String>,
    /// Envoy's code and heap go to huge pages, where the kernel has them.
    pub huge_pages: bool,
}

impl BootstrapConfig {
    /// # Errors
    /// The first member that breaks docs/reference/module-config.md.
    pub fn parse(json: &[u8]) -> Result<BootstrapConfig, ConfigError> {
        let mut members = Members::parse(json)?;
        let coordinator = members.text("coordinator", NAME_BYTES_MAX)?;
        let coordinator: SocketAddr = coordinator.parse().map_err(|_| {
            members.error(
                "coordinator",
                format!("must be IP:PORT (no host name), not {coordinator:?}"),
            )
        })?;
        let config = BootstrapConfig {
            coordinator,
            name: members.text("name", NAME_BYTES_MAX)?,
            pool: members.text("pool", NAME_BYTES_MAX)?,
            max_wait_ms: members.whole("max_wait_ms", 0, HOUR_MS)?,
            token_file: members.optional_text("token_file", PATH_BYTES_MAX)?,
            huge_pages: members.flag_or("huge_pages", false)?,
        };
        members.end()?;
        Ok(config)
    }
}

/// How keys stand in access logs (C7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyLogging {
    Hash,
    Plain,
}

/// Downstream HTTP filter `belay.edge`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EdgeConfig {
    pub access_log: bool,
    pub key_in_logs: KeyLogging,
}

impl EdgeConfig {
    /// # Errors
    /// The first member that breaks docs/reference/module-config.md.
    pub fn parse(json: &[u8]) -> Result<EdgeConfig, ConfigError> {
        let mut members = Members::parse(json)?;
        let access_log = members.flag_or("access_log", false)?;
        let key_in_logs = match members
            .optional_text("key_in_logs", NAME_BYTES_MAX)?
            .as_deref()
        {
            None | Some("hash") => KeyLogging::Hash,
            Some("plain") => KeyLogging::Plain,
            Some(other) => {
                let problem = format!("must be \"hash\" or \"plain\", not {other:?}");
                return Err(members.error("key_in_logs", problem));
            }
        };
        members.end()?;
        Ok(EdgeConfig {
            access_log,
            key_in_logs,
        })
    }
}

/// LB policy `belay.lb`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LbConfig {
    pub service: String,
    pub guarded: bool,
}

impl LbConfig {
    /// # Errors
    /// The first member that breaks docs/reference/module-config.md.
    pub fn parse(json: &[u8]) -> Result<LbConfig, ConfigError> {
        let (service, guarded) = parse_service(json)?;
        Ok(LbConfig { service, guarded })
    }
}

/// Upstream HTTP filter `belay.attempt`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttemptConfig {
    pub service: String,
    pub guarded: bool,
}

impl AttemptConfig {
    /// # Errors
    /// The first member that breaks docs/reference/module-config.md.
    pub fn parse(json: &[u8]) -> Result<AttemptConfig, ConfigError> {
        let (service, guarded) = parse_service(json)?;
        Ok(AttemptConfig { service, guarded })
    }
}

fn parse_service(json: &[u8]) -> Result<(String, bool), ConfigError> {
    let mut members = Members::parse(json)?;
    let service = members.text("service", SERVICE_BYTES_MAX)?;
    let guarded = members.flag("guarded")?;
    members.end()?;
    Ok((service, guarded))
}
