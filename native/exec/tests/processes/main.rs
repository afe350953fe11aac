//! The program around real processes: shells, daemons, signals, and a watching process that is killed.

mod supervised;

use std::io::Read as _;
use std::net::{TcpListener, TcpStream};
use std::os::unix::process::ExitStatusExt as _;
use std::time::Duration;

use belay_proto::v1::frame::Body;
use belay_proto::v1::{DeathProof, Died, Frame, Role, ServerEnded};
use belay_proto::{Decoder, encode};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::json;

use supervised::{Options, Supervised, Watcher, within};

const SECRET: &str = "00112233445566778899aabbccddeeff";

fn sh(script: &str) -> Supervised {
    Supervised::start(&Options::default(), &["sh", "-c", script])
}

#[test]
fn s8_the_status_of_the_command_is_passed_on_and_nothing_is_left() {
    for (script, status) in [("exit 7", 7), ("kill -TERM $$", 143), ("true", 0)] {
        let mut run = sh(script);
        assert_eq!(run.event()["event"], "started");
        assert_eq!(run.event(), json!({ "event": "exited", "status": status }));
        assert_eq!(run.event(), json!({ "event": "empty" }));
        assert_eq!(run.wait().code(), Some(status));
    }
}

#[test]
fn a_command_that_does_not_start_is_told() {
    let mut run = Supervised::start(&Options::default(), &["/nonexistent/program"]);
    assert_eq!(run.event()["event"], "failed");
    assert_eq!(run.wait().code(), Some(127));
    let mut run = Supervised::start(&Options::default(), &["/etc/passwd"]);
    assert_eq!(run.event()["event"], "failed");
    assert_eq!(run.wait().code(), Some(126));
}

#[test]
fn the_command_has_our_standard_streams_and_not_the_control_stream() {
    let mut run = sh("read line; echo got $line; readlink /proc/$$/fd/*; exit 0");
    run.write_line("hello");
    assert_eq!(run.line(), "got hello");
    let open = run.rest_of_output();
    assert!(
        open.contains("pipe:") && !open.contains(&run.control_link),
        "{open}"
    );
    assert_eq!(run.wait().code(), Some(0));
}

#[test]
fn signals_are_passed_on_and_the_command_starts_with_none_blocked() {
    let mut run =
        sh("trap 'echo usr1' USR1; trap 'exit 42' TERM; echo ready; while :; do sleep 0.01; done");
    assert_eq!(run.line(), "ready");
    run.signal(Signal::SIGUSR1);
    assert_eq!(run.line(), "usr1");
    run.signal(Signal::SIGTERM);
    assert_eq!(run.wait().code(), Some(42));
}

#[test]
fn orders_kill_the_command_and_bad_ones_are_told() {
    let mut run = sh("trap 'exit 9' INT; echo ready; while :; do sleep 0.01; done");
    assert_eq!(run.line(), "ready");
    assert_eq!(run.event()["event"], "started");
    run.order("nonsense");
    assert_eq!(run.event()["event"], "problem");
    run.order(&json!({ "do": "kill", "signal": "INT" }).to_string());
    assert_eq!(run.event()["status"], 9);
    assert_eq!(run.wait().code(), Some(9));
}

#[test]
fn s8_h16_a_daemon_that_left_its_session_still_counts() {
    let mut run = sh("(setsid sh -c 'echo $$; exec sleep 1000' &); exit 3");
    let daemon = Pid::from_raw(run.line().parse().expect("a process id"));
    assert_eq!(run.event()["event"], "started");
    assert_eq!(run.event(), json!({ "event": "exited", "status": 3 }));
    assert_eq!(kill(daemon, None), Ok(()));
    run.order(&json!({ "do": "kill", "signal": "KILL", "to": "all" }).to_string());
    assert_eq!(run.event(), json!({ "event": "empty" }));
    assert_eq!(run.wait().code(), Some(3));
    assert!(kill(daemon, None).is_err());
}

#[test]
fn s8_the_end_of_the_control_stream_ends_the_command() {
    let mut run = sh("trap 'echo term; exit 5' TERM; echo ready; while :; do sleep 0.01; done");
    assert_eq!(run.line(), "ready");
    run.close_control();
    assert_eq!(run.line(), "term");
    assert_eq!(run.wait().code(), Some(5));
}

#[test]
fn s8_whoever_ignores_sigterm_is_killed_after_the_grace() {
    let options = Options {
        grace_ms: 50,
        ..Options::default()
    };
    let script = "trap '' TERM; (setsid sh -c 'echo up; while :; do sleep 0.01; done' &); kill -STOP $$; while :; do sleep 0.01; done";
    let mut run = Supervised::start(&options, &["sh", "-c", script]);
    assert_eq!(run.line(), "up");
    run.close_control();
    assert_eq!(run.wait().code(), Some(137));
    assert_eq!(run.rest_of_output(), "");
}

#[test]
fn s8_a_stopped_command_may_end_by_itself() {
    let mut run = sh("trap 'exit 6' TERM; echo ready; while :; do sleep 0.01; done");
    assert_eq!(run.line(), "ready");
    run.order(&json!({ "do": "kill", "signal": "STOP" }).to_string());
    run.close_control();
    assert_eq!(run.wait().code(), Some(6));
}

#[test]
fn s8_killed_itself_it_takes_the_command_along() {
    let mut run = sh("echo ready; exec sleep 1000");
    assert_eq!(run.line(), "ready");
    run.signal(Signal::SIGKILL);
    assert_eq!(run.wait().signal(), Some(9));
    // Its end proves that nobody holds standard output any more.
    assert_eq!(run.rest_of_output(), "");
}

#[test]
fn a_bad_command_line_shows_the_usage() {
    let output = std::process::Command::new(supervised::PROGRAM)
        .args(["--control-fd", "99", "--", "true"])
        .output()
        .expect("it runs");
    assert_eq!(output.status.code(), Some(71));
    let output = std::process::Command::new(supervised::PROGRAM)
        .output()
        .expect("it runs");
    assert_eq!(output.status.code(), Some(64));
    assert!(String::from_utf8_lossy(&output.stderr).contains("usage: belay-exec"));
}

fn session(listener: &TcpListener) -> String {
    let coordinator = listener.local_addr().expect("an address").to_string();
    json!({
        "do": "session", "coordinator": coordinator, "incarnation": "18014398509481985",
        "secret": SECRET, "token": "t",
    })
    .to_string()
}

/// Reads Hello and Died from a connection and answers.
fn coordinate(mut stream: TcpStream) -> (i32, Died) {
    let mut decoder = Decoder::new();
    let mut bodies = Vec::new();
    let mut chunk = [0; 1024];
    while bodies.len() < 2 {
        let length = stream.read(&mut chunk).expect("a frame");
        assert_ne!(length, 0, "closed after {} frames", bodies.len());
        decoder.push(&chunk[..length]);
        while let Some(frame) = decoder.next_frame().expect("a frame") {
            bodies.push(frame.body.expect("a body"));
        }
    }
    let (Body::Hello(hello), Body::Died(died)) = (bodies.remove(0), bodies.remove(0)) else {
        panic!("not Hello and Died")
    };
    assert_eq!((hello.protocol_version, hello.process_id.len()), (1, 16));
    assert_eq!(hello.token, "t");
    let end = ServerEnded {
        incarnation: died.incarnation,
    };
    let mut answer = Vec::new();
    encode(
        &Frame {
            body: Some(Body::ServerEnded(end)),
        },
        &mut answer,
    )
    .expect("a frame");
    std::io::Write::write_all(&mut stream, &answer).expect("the answer is taken");
    // It hangs up once it has read the answer.
    assert_eq!(stream.read(&mut chunk).expect("an end"), 0);
    (hello.role, died)
}

#[test]
fn s8_killed_belay_run_its_command_ends_and_the_coordinator_is_told() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let script =
        "trap '' TERM; (setsid sh -c 'echo up; exec sleep 1000' &); while :; do sleep 0.01; done";
    let mut watcher = Watcher::start(script, &session(&listener));
    assert_eq!(watcher.line(), "up");
    watcher.kill();
    let (role, died, listener) = within(Duration::from_secs(10), move || {
        // The first connection breaks: the notice is sent again.
        drop(listener.accept().expect("a connection"));
        let (role, died) = coordinate(listener.accept().expect("a second connection").0);
        (role, died, listener)
    });
    assert_eq!(role, i32::from(Role::Server));
    assert_eq!(
        (died.incarnation, died.exit_status),
        (18_014_398_509_481_985, 137)
    );
    assert_eq!(died.proof, i32::from(DeathProof::Subreaper));
    assert_eq!(died.secret.len(), 16);
    assert_eq!(watcher.rest_of_output(), "");
    // One answer is enough.
    listener.set_nonblocking(true).expect("a listener");
    assert!(listener.accept().is_err());
}

#[test]
fn a_coordinator_that_is_away_is_not_waited_for_for_ever() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let order = session(&listener);
    drop(listener);
    let options = Options {
        notice_ms: 300,
        ..Options::default()
    };
    let mut run = Supervised::start(
        &options,
        &["sh", "-c", "read line; echo $line; exec sleep 1000"],
    );
    run.order(&order);
    run.write_line("ready");
    assert_eq!(run.line(), "ready");
    run.close_control();
    assert_eq!(run.wait().code(), Some(143));
}

/// No test: the process that `Watcher` starts and kills.
#[test]
#[ignore = "runs inside another test"]
fn watcher_process() {
    supervised::watch_until_killed();
}
