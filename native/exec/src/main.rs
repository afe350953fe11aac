//! `belay-exec`: runs a command and proves when no process of it is left (S8).
//!
//! `belay run` starts it and holds the other end of a socket pair. It is the sub-reaper of everything
//! that the command starts, so daemons that left their parent and their session become its children,
//! and «no child» means «no process of the command». Should `belay run` die, it ends the command and
//! tells the coordinator itself.
//!
//! | module | does |
//! | --- | --- |
//! | [`args`] | the command line |
//! | [`control`] | lines of JSON from and to `belay run` |
//! | [`supervisor`] | the loop: signals, deaths, orders, the end |
//! | [`descendants`] | finds and signals processes |
//! | [`death_notice`] | Hello and Died to the coordinator |
//! | [`inherited`] | the only `unsafe`: an inherited descriptor, the child before `exec` |

#![deny(unsafe_code)]

mod args;
mod control;
mod death_notice;
mod descendants;
mod inherited;
mod supervisor;

use std::io::Write as _;
use std::process::ExitCode;

/// Exit status for a command line that cannot be understood (`EX_USAGE` of sysexits).
const EX_USAGE: u8 = 64;

fn main() -> ExitCode {
    let args = match args::Args::parse(std::env::args_os().skip(1)) {
        Ok(args) => args,
        Err(problem) => {
            say(&format!("{problem}\n{}", args::USAGE));
            return ExitCode::from(EX_USAGE);
        }
    };
    match supervisor::run(&args) {
        Ok(status) => ExitCode::from(status),
        Err(failure) => {
            say(&failure.message);
            ExitCode::from(failure.status)
        }
    }
}

/// To standard error, which may be closed.
fn say(message: &str) {
    let _ = writeln!(std::io::stderr(), "belay-exec: {message}");
}
