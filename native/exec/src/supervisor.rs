//! The loop around the command: signals are passed on, deaths are told, orders are obeyed, and when
//! the process that watches is gone, everything is ended.

use std::os::fd::AsFd as _;
use std::process::Command;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::prctl;
use nix::sys::signal::{SigSet, SigmaskHow, Signal, kill};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{Pid, getppid, setpgid};
use serde_json::json;

use crate::args::Args;
use crate::control::{Control, Order, Session, Target};
use crate::{death_notice, descendants, inherited, say};

/// Passed on to the command.
const FORWARDED: [Signal; 7] = [
    Signal::SIGTERM,
    Signal::SIGINT,
    Signal::SIGHUP,
    Signal::SIGQUIT,
    Signal::SIGUSR1,
    Signal::SIGUSR2,
    Signal::SIGWINCH,
];
/// How often SIGKILL is repeated: a process may fork while the list is made.
const KILL_AGAIN: Duration = Duration::from_millis(20);
/// Most reads of orders before signals and deaths are looked at again.
const READS_MAX: usize = 64;
/// As shells have it.
const STATUS_NOT_FOUND: u8 = 127;
const STATUS_NOT_STARTED: u8 = 126;
/// Nothing was started: this program could not do its part (`EX_OSERR` of sysexits).
const STATUS_OS_ERROR: u8 = 71;
/// The command was ended by a real-time signal, whose number `nix` does not tell.
const STATUS_UNKNOWN: i32 = 255;

/// Why the command did not run, and the exit status that says so.
pub struct Failure {
    pub message: String,
    pub status: u8,
}

impl From<Errno> for Failure {
    fn from(why: Errno) -> Failure {
        Failure {
            message: format!("a system call failed: {why}"),
            status: STATUS_OS_ERROR,
        }
    }
}

/// Runs the command until no process of it is left; returns its exit status, 128 + signal.
pub fn run(args: &Args) -> Result<u8, Failure> {
    let control = inherited::take_control(args.control_fd).map_err(|why| Failure {
        message: format!("--control-fd {} cannot be used: {why}", args.control_fd),
        status: STATUS_OS_ERROR,
    })?;
    let watcher = getppid();
    prctl::set_child_subreaper(true)?;
    // Beside the end of the control stream, which a leaked copy of its other end would hold back.
    // SIGCHLD wakes the loop, and the loop looks who its parent is.
    prctl::set_pdeathsig(Signal::SIGCHLD)?;
    // Ctrl-C in a terminal is for the watching process alone: it drains before it ends the command.
    // A session leader has its own group anyway.
    let _ = setpgid(Pid::from_raw(0), Pid::from_raw(0));
    let mut wanted: SigSet = FORWARDED.into_iter().collect();
    wanted.add(Signal::SIGCHLD);
    let mask = wanted.thread_swap_mask(SigmaskHow::SIG_BLOCK)?;
    let signals = SignalFd::with_flags(&wanted, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)?;

    let mut control = Control::new(control);
    let command = start(args, mask).inspect_err(|failure| {
        control.tell(&json!({ "event": "failed", "message": failure.message }));
    })?;
    control.tell(&json!({ "event": "started", "pid": command.as_raw() }));
    let supervisor = Supervisor {
        control,
        signals,
        watcher,
        command: Some(command),
        status: STATUS_UNKNOWN,
        session: None,
        phase: Phase::Watched,
        grace: args.grace,
    };
    supervisor.run(args.notice)
}

fn start(args: &Args, mask: SigSet) -> Result<Pid, Failure> {
    use std::os::unix::process::CommandExt as _;
    let mut command = Command::new(&args.program);
    command.args(&args.arguments).process_group(0);
    inherited::prepare_child(&mut command, mask);
    // The child is reaped with all others, by its id alone.
    let child = command.spawn().map_err(|why| Failure {
        message: format!("{} did not start: {why}", args.program.display()),
        status: match why.kind() {
            std::io::ErrorKind::NotFound => STATUS_NOT_FOUND,
            _ => STATUS_NOT_STARTED,
        },
    })?;
    i32::try_from(child.id())
        .map(Pid::from_raw)
        .map_err(|_| Errno::ERANGE.into())
}

enum Phase {
    Watched,
    /// Nobody watches; SIGTERM was sent, SIGKILL follows at `kill_at` and after.
    Orphaned {
        kill_at: Instant,
    },
}

struct Supervisor {
    control: Control,
    signals: SignalFd,
    /// The process that watches.
    watcher: Pid,
    /// Until it is reaped; after that its id may be anybody's.
    command: Option<Pid>,
    status: i32,
    session: Option<Session>,
    phase: Phase,
    grace: Duration,
}

impl Supervisor {
    fn run(mut self, notice: Duration) -> Result<u8, Failure> {
        // Ends when no child is left, which SIGKILL brings about once nobody watches.
        while self.reap()? {
            self.wait()?;
            self.pass_signals()?;
            if let Phase::Watched = self.phase
                && getppid() != self.watcher
            {
                // Its last words first: the session may be among them.
                self.obey();
                self.become_orphan();
            }
            if let Phase::Orphaned { kill_at } = self.phase
                && Instant::now() >= kill_at
            {
                descendants::signal_all(Signal::SIGKILL);
                self.phase = Phase::Orphaned {
                    kill_at: Instant::now() + KILL_AGAIN,
                };
            }
        }
        match self.phase {
            Phase::Watched => self.control.tell(&json!({ "event": "empty" })),
            Phase::Orphaned { .. } => self.announce(notice),
        }
        Ok(u8::try_from(self.status).unwrap_or(u8::MAX))
    }

    /// Until a signal, an order, or the time to kill.
    fn wait(&mut self) -> Result<(), Failure> {
        let timeout = match self.phase {
            Phase::Watched => PollTimeout::NONE,
            Phase::Orphaned { kill_at } => {
                let left = kill_at.saturating_duration_since(Instant::now());
                // Rounded up, or the last millisecond is spent turning.
                PollTimeout::try_from(left.as_millis() + 1).unwrap_or(PollTimeout::MAX)
            }
        };
        let watched = matches!(self.phase, Phase::Watched);
        let mut waiting = [
            PollFd::new(self.signals.as_fd(), PollFlags::POLLIN),
            PollFd::new(self.control.as_fd(), PollFlags::POLLIN),
        ];
        let count = if watched { 2 } else { 1 };
        match poll(&mut waiting[..count], timeout) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(why) => return Err(why.into()),
        }
        if watched && waiting[1].any().unwrap_or(true) {
            self.obey();
        }
        Ok(())
    }

    fn obey(&mut self) {
        for _ in 0..READS_MAX {
            let arrived = self.control.read();
            for order in arrived.orders {
                match order {
                    Ok(Order::Kill(signal, target)) => self.signal(signal, target),
                    Ok(Order::Session(session)) => self.session = Some(session),
                    Err(problem) => {
                        self.control
                            .tell(&json!({ "event": "problem", "message": problem }));
                    }
                }
            }
            if arrived.ended {
                return self.become_orphan();
            }
            if !arrived.more {
                return;
            }
        }
    }

    fn pass_signals(&mut self) -> Result<(), Failure> {
        while let Some(info) = self.signals.read_signal()? {
            let number = i32::try_from(info.ssi_signo).unwrap_or_default();
            match Signal::try_from(number) {
                Ok(Signal::SIGCHLD) | Err(_) => {}
                Ok(signal) => self.signal(signal, Target::Command),
            }
        }
        Ok(())
    }

    fn signal(&self, signal: Signal, target: Target) {
        match (self.command, target) {
            (Some(command), Target::Command) => {
                // It is not reaped, so the id is its own; a dead one does not mind.
                let _ = kill(command, signal);
            }
            _ => descendants::signal_all(signal),
        }
    }

    fn become_orphan(&mut self) {
        if let Phase::Orphaned { .. } = self.phase {
            return;
        }
        descendants::signal_all(Signal::SIGTERM);
        // A stopped process gets it only when it goes on.
        descendants::signal_all(Signal::SIGCONT);
        self.phase = Phase::Orphaned {
            kill_at: Instant::now() + self.grace,
        };
    }

    /// Takes every death; `false`: no process of the command is left.
    fn reap(&mut self) -> Result<bool, Failure> {
        loop {
            let any_kind = WaitPidFlag::WNOHANG | WaitPidFlag::__WALL;
            match waitpid(Pid::from_raw(-1), Some(any_kind)) {
                Ok(WaitStatus::Exited(pid, code)) => self.died(pid, code),
                Ok(WaitStatus::Signaled(pid, signal, _)) => self.died(pid, 128 + signal as i32),
                Ok(WaitStatus::StillAlive) => return Ok(true),
                Ok(_) | Err(Errno::EINTR) => {}
                Err(Errno::ECHILD) => return Ok(false),
                // Somebody was reaped whose signal has no name in `nix`. Was it the command?
                Err(Errno::EINVAL) => {
                    if let Some(command) = self.command
                        && kill(command, None) == Err(Errno::ESRCH)
                    {
                        self.died(command, STATUS_UNKNOWN);
                    }
                }
                Err(why) => return Err(why.into()),
            }
        }
    }

    fn died(&mut self, pid: Pid, status: i32) {
        if self.command == Some(pid) {
            self.command = None;
            self.status = status;
            if let Phase::Watched = self.phase {
                self.control
                    .tell(&json!({ "event": "exited", "status": status }));
            }
        }
    }

    fn announce(&self, limit: Duration) {
        let Some(session) = &self.session else { return };
        if let Err(why) = death_notice::send(session, self.status, limit) {
            say(&format!(
                "the coordinator was not told that the server ended: {why}"
            ));
        }
    }
}
