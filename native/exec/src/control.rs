//! Lines of JSON from and to the process that watches.
//!
//! Out: `{"event":"started","pid":…}`, `{"event":"failed","message":…}` (the command did not start),
//! `{"event":"exited","status":…}` (the command itself; 128 + signal), `{"event":"empty"}` (no process
//! of it is left: the proof of S8, and the last event), `{"event":"problem","message":…}`.
//!
//! In: `{"do":"kill","signal":"TERM","to":"command"|"all"}`, `{"do":"session","coordinator":"ip:port",
//! "incarnation":"123","secret":"hex","token":"…"}`.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::str::FromStr as _;

use nix::sys::signal::Signal;
use serde_json::Value;

/// Longest line of the watching process.
const LINE_BYTES_MAX: usize = 64 * 1024;

/// Who gets a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// The command itself while it runs, else everything that is left of it.
    Command,
    /// Every process of the command.
    All,
}

/// What names this server to the coordinator.
#[derive(Clone, PartialEq, Eq)]
pub struct Session {
    pub coordinator: SocketAddr,
    pub incarnation: u64,
    pub secret: Vec<u8>,
    pub token: String,
}

#[derive(PartialEq, Eq)]
pub enum Order {
    Kill(Signal, Target),
    /// Replaces the one before.
    Session(Session),
}

/// What arrived: orders, or sentences about lines that are none.
#[derive(Default)]
pub struct Arrived {
    pub orders: Vec<Result<Order, String>>,
    /// The watching process is gone.
    pub ended: bool,
    /// Reading again may give more.
    pub more: bool,
}

pub struct Control {
    stream: File,
    line: Vec<u8>,
}

impl Control {
    pub fn new(stream: File) -> Control {
        Control {
            stream,
            line: Vec::new(),
        }
    }

    /// One event. That nobody reads it shows at the next [`Control::read`].
    pub fn tell(&mut self, event: &Value) {
        let _ = self.stream.write_all(format!("{event}\n").as_bytes());
    }

    /// What one read gives; it does not wait.
    pub fn read(&mut self) -> Arrived {
        let mut arrived = Arrived::default();
        let mut chunk = [0; 4096];
        match self.stream.read(&mut chunk) {
            Ok(0) => arrived.ended = true,
            Ok(length) => {
                arrived.more = true;
                self.split(&chunk[..length], &mut arrived);
            }
            Err(why)
                if matches!(
                    why.kind(),
                    io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
                ) => {}
            Err(_) => arrived.ended = true,
        }
        arrived
    }

    fn split(&mut self, chunk: &[u8], arrived: &mut Arrived) {
        for part in chunk.split_inclusive(|&byte| byte == b'\n') {
            self.line.extend_from_slice(part);
            if self.line.len() > LINE_BYTES_MAX {
                // Whoever sends this is not `belay run`; as if it were gone.
                arrived.ended = true;
                return;
            }
            if part.ends_with(b"\n") {
                arrived.orders.push(parse(&self.line));
                self.line.clear();
            }
        }
    }
}

impl AsFd for Control {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

fn parse(line: &[u8]) -> Result<Order, String> {
    let order: Value = serde_json::from_slice(line).map_err(|why| format!("no JSON: {why}"))?;
    match order["do"].as_str() {
        Some("kill") => parse_kill(&order),
        Some("session") => parse_session(&order).map(Order::Session),
        _ => Err("\"do\" must be \"kill\" or \"session\"".into()),
    }
}

fn parse_kill(order: &Value) -> Result<Order, String> {
    let name = text(order, "signal")?;
    let long = if name.starts_with("SIG") {
        name.into()
    } else {
        format!("SIG{name}")
    };
    let signal = Signal::from_str(&long).map_err(|_| format!("there is no signal {name:?}"))?;
    match order["to"].as_str() {
        None | Some("command") => Ok(Order::Kill(signal, Target::Command)),
        Some("all") => Ok(Order::Kill(signal, Target::All)),
        Some(other) => Err(format!(
            "\"to\" must be \"command\" or \"all\", not {other:?}"
        )),
    }
}

fn parse_session(order: &Value) -> Result<Session, String> {
    Ok(Session {
        coordinator: text(order, "coordinator")?
            .parse()
            .map_err(|_| "\"coordinator\" must be IP:PORT")?,
        incarnation: text(order, "incarnation")?
            .parse()
            .map_err(|_| "\"incarnation\" must be a decimal number in a string")?,
        secret: from_hex(text(order, "secret")?).ok_or("\"secret\" must be hex digits")?,
        token: order["token"].as_str().unwrap_or_default().into(),
    })
}

fn text<'o>(order: &'o Value, name: &str) -> Result<&'o str, String> {
    order[name]
        .as_str()
        .ok_or_else(|| format!("{name:?} must be a string"))
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digits: Vec<u32> = text
        .chars()
        .map(|digit| digit.to_digit(16))
        .collect::<Option<_>>()?;
    let pairs = digits.chunks_exact(2);
    if digits.is_empty() || !pairs.remainder().is_empty() {
        return None;
    }
    pairs
        .map(|pair| u8::try_from(pair[0] << 4 | pair[1]).ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{Order, Session, Signal, Target, from_hex, parse};

    #[test]
    fn orders_are_read() {
        let kill = |line: &str| match parse(line.as_bytes()) {
            Ok(Order::Kill(signal, target)) => (signal, target),
            _ => panic!("{line}"),
        };
        assert_eq!(
            kill(r#"{"do":"kill","signal":"TERM"}"#),
            (Signal::SIGTERM, Target::Command)
        );
        let all = r#"{"do":"kill","signal":"SIGKILL","to":"all"}"#;
        assert_eq!(kill(all), (Signal::SIGKILL, Target::All));
        let line = r#"{"do":"session","coordinator":"[::1]:8801","incarnation":"18446744073709551615",
            "secret":"00fF","token":"t"}"#;
        let session = Session {
            coordinator: "[::1]:8801".parse().expect("an address"),
            incarnation: u64::MAX,
            secret: vec![0, 255],
            token: "t".into(),
        };
        assert!(matches!(parse(line.as_bytes()), Ok(Order::Session(read)) if read == session));
    }

    #[test]
    fn a_bad_line_says_why() {
        for (line, why) in [
            ("kill", "no JSON"),
            ("[]", "\"do\""),
            (r#"{"do":"kill"}"#, "\"signal\" must be"),
            (r#"{"do":"kill","signal":"NONE"}"#, "no signal"),
            (r#"{"do":"kill","signal":"TERM","to":1.5}"#, ""),
            (
                r#"{"do":"kill","signal":"TERM","to":"some"}"#,
                "\"to\" must be",
            ),
            (r#"{"do":"session","coordinator":"localhost:1"}"#, "IP:PORT"),
            (
                r#"{"do":"session","coordinator":"127.0.0.1:1","incarnation":1}"#,
                "must be a string",
            ),
        ] {
            match parse(line.as_bytes()) {
                Err(problem) => assert!(problem.contains(why), "{line}: {problem}"),
                Ok(_) => assert!(why.is_empty(), "{line}"),
            }
        }
    }

    #[test]
    fn hex_has_pairs_of_digits() {
        assert_eq!(from_hex("0aF0"), Some(vec![10, 240]));
        for bad in ["", "0", "0g", "€€"] {
            assert_eq!(from_hex(bad), None);
        }
    }
}
