//! Starts the program with a control stream, reads with a deadline, leaves nothing behind.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::net::UnixStream;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::{Mutex, PoisonError, mpsc};
use std::thread;
use std::time::Duration;

use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

pub const PROGRAM: &str = env!("CARGO_BIN_EXE_belay-exec");

/// Longest wait for anything; only a fault takes that long.
const WAIT_MAX: Duration = Duration::from_secs(20);

/// The control stream is inheritable for a moment: no other process may be started then.
static STARTING: Mutex<()> = Mutex::new(());

/// What the closure gives, or a panic after the time.
pub fn within<T: Send + 'static>(limit: Duration, act: impl FnOnce() -> T + Send + 'static) -> T {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || sender.send(act()));
    receiver.recv_timeout(limit).expect("in time")
}

pub struct Options {
    pub grace_ms: u32,
    pub notice_ms: u32,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            grace_ms: 5000,
            notice_ms: 5000,
        }
    }
}

pub struct Supervised {
    child: Child,
    control: Option<BufReader<UnixStream>>,
    output: Option<BufReader<ChildStdout>>,
    /// What /proc shows for the program's end of the control stream.
    pub control_link: String,
}

impl Supervised {
    pub fn start(options: &Options, command: &[&str]) -> Supervised {
        Supervised::start_with(options, command, Stdio::piped())
    }

    fn start_with(options: &Options, command: &[&str], output: Stdio) -> Supervised {
        let (ours, theirs) = UnixStream::pair().expect("a socket pair");
        ours.set_read_timeout(Some(WAIT_MAX)).expect("a time-out");
        let guard = STARTING.lock().unwrap_or_else(PoisonError::into_inner);
        fcntl(&theirs, FcntlArg::F_SETFD(FdFlag::empty())).expect("inheritable");
        let mut child = Command::new(PROGRAM)
            .args(["--control-fd", &theirs.as_raw_fd().to_string()])
            .args(["--grace-ms", &options.grace_ms.to_string()])
            .args(["--notice-ms", &options.notice_ms.to_string(), "--"])
            .args(command)
            .stdin(Stdio::piped())
            .stdout(output)
            .spawn()
            .expect("it starts");
        let link = std::fs::read_link(format!("/proc/self/fd/{}", theirs.as_raw_fd()));
        let control_link = link.expect("an open descriptor").display().to_string();
        drop(theirs);
        drop(guard);
        let output = child.stdout.take().map(BufReader::new);
        Supervised {
            child,
            control: Some(BufReader::new(ours)),
            output,
            control_link,
        }
    }

    /// The next event.
    pub fn event(&mut self) -> Value {
        let control = self.control.as_mut().expect("an open control stream");
        let mut line = String::new();
        control.read_line(&mut line).expect("an event in time");
        serde_json::from_str(&line).expect("JSON")
    }

    pub fn order(&mut self, line: &str) {
        let control = self.control.as_mut().expect("an open control stream");
        control
            .get_mut()
            .write_all(format!("{line}\n").as_bytes())
            .expect("it is taken");
    }

    pub fn close_control(&mut self) {
        self.control = None;
    }

    pub fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.child.id()).expect("a process id");
        kill(Pid::from_raw(pid), signal).expect("it runs");
    }

    pub fn write_line(&mut self, line: &str) {
        let input = self.child.stdin.as_mut().expect("standard input");
        input
            .write_all(format!("{line}\n").as_bytes())
            .expect("it is taken");
    }

    /// The next line that the command printed.
    pub fn line(&mut self) -> String {
        read_line(&mut self.output)
    }

    /// What is printed until nobody holds standard output any more.
    pub fn rest_of_output(&mut self) -> String {
        read_rest(&mut self.output)
    }

    /// Its end.
    pub fn wait(&mut self) -> ExitStatus {
        let (sender, receiver) = mpsc::channel();
        thread::scope(|scope| {
            let child = &mut self.child;
            scope.spawn(move || sender.send(child.wait()));
            receiver
                .recv_timeout(WAIT_MAX)
                .expect("in time")
                .expect("a status")
        })
    }
}

impl Drop for Supervised {
    fn drop(&mut self) {
        // After a failed test: the end of the control stream ends the command.
        self.control = None;
    }
}

/// A process that starts the program, as `belay run` does, and can be killed.
pub struct Watcher {
    child: Child,
    output: Option<BufReader<ChildStdout>>,
}

impl Watcher {
    /// Runs `sh -c script` below a watching process that has given `order`.
    pub fn start(script: &str, order: &str) -> Watcher {
        let guard = STARTING.lock().unwrap_or_else(PoisonError::into_inner);
        let mut child = Command::new(std::env::current_exe().expect("this test"))
            .args([
                "--exact",
                "watcher_process",
                "--ignored",
                "--nocapture",
                "--quiet",
            ])
            .env("WATCHER_SCRIPT", script)
            .env("WATCHER_ORDER", order)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("it starts");
        drop(guard);
        let mut output = child.stdout.take().map(BufReader::new);
        // What the test runner prints first.
        while read_line(&mut output) != "watching" {}
        Watcher { child, output }
    }

    pub fn line(&mut self) -> String {
        read_line(&mut self.output)
    }

    pub fn rest_of_output(&mut self) -> String {
        read_rest(&mut self.output)
    }

    pub fn kill(&mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("a status");
    }
}

/// The body of the watching process.
pub fn watch_until_killed() {
    let script = std::env::var("WATCHER_SCRIPT").expect("a script");
    let order = std::env::var("WATCHER_ORDER").expect("an order");
    println!("\nwatching");
    let options = Options {
        grace_ms: 50,
        ..Options::default()
    };
    let mut run = Supervised::start_with(&options, &["sh", "-c", &script], Stdio::inherit());
    run.order(&order);
    // Ends when the test does, if nobody kills this before.
    let _ = std::io::stdin().read(&mut [0]);
}

fn read_line(output: &mut Option<BufReader<ChildStdout>>) -> String {
    let mut reader = output.take().expect("standard output");
    let (line, reader) = within(WAIT_MAX, move || {
        let mut line = String::new();
        reader.read_line(&mut line).expect("a line");
        (line, reader)
    });
    assert!(
        line.ends_with('\n'),
        "standard output has ended with {line:?}"
    );
    *output = Some(reader);
    line.trim_end().into()
}

fn read_rest(output: &mut Option<BufReader<ChildStdout>>) -> String {
    let mut reader = output.take().expect("standard output");
    within(WAIT_MAX, move || {
        let mut rest = String::new();
        reader.read_to_string(&mut rest).expect("text");
        rest
    })
}
