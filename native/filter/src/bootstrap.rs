//! The bootstrap extension: feed thread, gate, metrics.

use crate::abi::{Bootstrap, Level, Timer, huge_pages, is_validation_mode, log};
use crate::delay::Delay;
use crate::metrics::Exported;
use crate::process::{self, Process};
use crate::wakers::{FeedWaker, Wakers};
use belay_keys::BootstrapConfig;
use belay_owner::{Limits, Proxy, ProxyConfig};
use std::sync::Arc;

/// The main thread's event: the gate opens.
pub const READY: u64 = 1;

/// How long a metric may lag behind.
const FLUSH_MS: u64 = 500;

/// Largest token file.
const TOKEN_BYTES_MAX: usize = 4096;

pub struct Extension {
    exported: Exported,
    timer: Timer,
}

impl Extension {
    /// Starts the feed. `None`, after a line in the log: Envoy does not start.
    pub fn start(envoy: &Bootstrap, config: &str) -> Option<Self> {
        let extension = Self {
            exported: Exported::define(envoy),
            timer: envoy.timer(),
        };
        match prepare(config) {
            Ok(_) if is_validation_mode() => envoy.signal_init_complete(),
            Ok((config, huge_pages)) => {
                if huge_pages {
                    adopt_huge_pages();
                }
                if let Err(problem) = start(envoy, config) {
                    log(
                        Level::Error,
                        &format!("belay: the feed cannot start: {problem}"),
                    );
                    return None;
                }
                extension.timer.start(FLUSH_MS);
            }
            Err(problem) => {
                log(
                    Level::Error,
                    &format!("belay: bootstrap extension: {problem}"),
                );
                return None;
            }
        }
        Some(extension)
    }

    /// The feed thread has something for the main thread.
    pub fn scheduled(envoy: &Bootstrap, event: u64) {
        if event == READY {
            log(
                Level::Info,
                "belay: the first snapshot is there, or its wait is over: open",
            );
            envoy.signal_init_complete();
        }
    }

    pub fn timer_fired(&self, envoy: &Bootstrap) {
        if let Some(process) = process::get() {
            let stats = process.proxy.stats();
            self.exported
                .flush(envoy, &process.metrics, &stats, crate::entry::panics());
        }
        self.timer.start(FLUSH_MS);
    }

    /// Ends and joins all threads of ours.
    pub fn shutdown() {
        if let Some(process) = process::get() {
            process.proxy.stop();
            process.delay.stop();
            process.wakers.forget_main();
        }
    }
}

/// Never needed, so a machine without them is no fault.
fn adopt_huge_pages() {
    let said = match huge_pages::adopt() {
        Ok(bytes) => format!("{} MiB of Envoy are in huge pages", bytes >> 20),
        Err(why) => format!("no huge pages: {why}"),
    };
    log(Level::Info, &format!("belay: {said}"));
}

/// What to start, and whether huge pages are wanted.
fn prepare(config: &str) -> Result<(ProxyConfig, bool), String> {
    let config =
        BootstrapConfig::parse(config.as_bytes()).map_err(|problem| problem.to_string())?;
    let token = config
        .token_file
        .as_deref()
        .map_or(Ok(String::new()), read_token)?;
    let huge_pages = config.huge_pages;
    let proxy = ProxyConfig {
        coordinator: config.coordinator,
        name: config.name,
        pool: config.pool,
        token,
        software: concat!("belay ", env!("CARGO_PKG_VERSION"), " envoy 1.40").into(),
        zone: String::new(),
        max_wait_ms: u64::from(config.max_wait_ms),
        workers: 0,
        limits: Limits::default(),
    };
    Ok((proxy, huge_pages))
}

fn read_token(path: &str) -> Result<String, String> {
    let token = std::fs::read_to_string(path)
        .map_err(|problem| format!("token_file {path} cannot be read: {problem}"))?;
    let token = token.trim();
    if token.is_empty() || token.len() > TOKEN_BYTES_MAX {
        return Err(format!(
            "token_file {path} must hold 1 to {TOKEN_BYTES_MAX} bytes"
        ));
    }
    Ok(token.to_owned())
}

fn start(envoy: &Bootstrap, config: ProxyConfig) -> Result<(), String> {
    let wakers = Wakers::new(envoy.scheduler());
    let delay = Delay::start(Arc::clone(&wakers)).map_err(|problem| problem.to_string())?;
    let proxy = Proxy::start(config, Arc::new(FeedWaker(Arc::clone(&wakers))))
        .map_err(|problem| problem.to_string())?;
    let process = Process {
        proxy,
        wakers,
        delay,
        metrics: Arc::default(),
    };
    process::set(process).map_err(|second| {
        second.proxy.stop();
        second.delay.stop();
        "the bootstrap extension stands twice in the configuration".to_owned()
    })
}
