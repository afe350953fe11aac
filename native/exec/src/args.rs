//! The command line.

use std::ffi::{OsStr, OsString};
use std::os::fd::RawFd;
use std::time::Duration;

pub const USAGE: &str = "\
usage: belay-exec --control-fd N [--grace-ms MS] [--notice-ms MS] -- COMMAND [ARGUMENT...]
  --control-fd N  inherited socket to the process that watches; its end ends the command
  --grace-ms MS   from SIGTERM to SIGKILL once that process is gone (5000)
  --notice-ms MS  longest try to tell the coordinator of the death (10000)";

const GRACE_MS: u64 = 5000;
const NOTICE_MS: u64 = 10_000;
const TIME_MS_MAX: u64 = 3_600_000;

#[derive(Debug, PartialEq, Eq)]
pub struct Args {
    pub control_fd: RawFd,
    pub grace: Duration,
    pub notice: Duration,
    pub program: OsString,
    pub arguments: Vec<OsString>,
}

impl Args {
    /// Fails with a sentence that says what is wrong.
    pub fn parse(mut words: impl Iterator<Item = OsString>) -> Result<Args, String> {
        let mut control_fd = None;
        let (mut grace_ms, mut notice_ms) = (GRACE_MS, NOTICE_MS);
        loop {
            let word = words.next().ok_or("-- and a command are missing")?;
            match word.to_str() {
                Some("--") => break,
                Some("--control-fd") => {
                    control_fd = Some(number(&word, words.next().as_deref(), 3, 1 << 20)?);
                }
                Some("--grace-ms") => {
                    grace_ms = number(&word, words.next().as_deref(), 0, TIME_MS_MAX)?;
                }
                Some("--notice-ms") => {
                    notice_ms = number(&word, words.next().as_deref(), 0, TIME_MS_MAX)?;
                }
                _ => {
                    return Err(format!(
                        "there is no option {}; a command stands after --",
                        word.display()
                    ));
                }
            }
        }
        let control_fd = control_fd.ok_or("--control-fd is missing")?;
        Ok(Args {
            control_fd: control_fd
                .try_into()
                .map_err(|_| "--control-fd is too large")?,
            grace: Duration::from_millis(grace_ms),
            notice: Duration::from_millis(notice_ms),
            program: words.next().ok_or("a command is missing after --")?,
            arguments: words.collect(),
        })
    }
}

fn number(name: &OsStr, value: Option<&OsStr>, min: u64, max: u64) -> Result<u64, String> {
    value
        .and_then(|value| value.to_str()?.parse().ok())
        .filter(|number| (min..=max).contains(number))
        .ok_or_else(|| {
            format!(
                "{} needs a whole number from {min} to {max}",
                name.display()
            )
        })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::Args;

    fn parse(line: &str) -> Result<Args, String> {
        Args::parse(line.split_whitespace().map(Into::into))
    }

    #[test]
    fn options_end_at_the_two_dashes() {
        let args = parse("--grace-ms 10 --control-fd 3 -- sh -c --grace-ms").expect("good");
        assert_eq!(
            (args.control_fd, args.grace),
            (3, Duration::from_millis(10))
        );
        assert_eq!(args.notice, Duration::from_secs(10));
        assert_eq!((args.program, args.arguments.len()), ("sh".into(), 2));
    }

    #[test]
    fn a_bad_line_says_why() {
        for (line, why) in [
            ("", "are missing"),
            ("--control-fd 3 --", "a command is missing"),
            ("-- true", "--control-fd is missing"),
            ("--control-fd 2 -- true", "from 3"),
            ("--control-fd", "needs a whole number"),
            ("--grace-ms -1 -- true", "needs a whole number"),
            ("true", "no option"),
        ] {
            assert!(parse(line).expect_err(line).contains(why), "{line}");
        }
    }
}
