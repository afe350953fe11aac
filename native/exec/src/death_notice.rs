//! Tells the coordinator that the command is dead and no process of it is left, when `belay run` is
//! not there to say so (S8).

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::net::TcpStream;
use std::thread::sleep;
use std::time::{Duration, Instant};

use belay_proto::v1::frame::Body;
use belay_proto::v1::{DeathProof, Died, Frame, Hello, Role};
use belay_proto::{Decoder, encode};

use crate::control::Session;

const PROTOCOL_VERSION: u32 = 1;
/// Longest wait for one connection or answer.
const ANSWER_MS_MAX: u64 = 2000;
const RETRY_MS: u64 = 200;
const PROCESS_ID_BYTES: usize = 16;

/// Why one try did not end with the coordinator's word.
enum Failure {
    /// Trying again may help.
    Later(String),
    /// The coordinator refused.
    Refused(String),
}

impl From<io::Error> for Failure {
    fn from(why: io::Error) -> Failure {
        Failure::Later(why.to_string())
    }
}

/// Returns when the coordinator has said that the incarnation has ended. Tries again until `limit`
/// has passed; then S3 ends the incarnation all the same, only later.
pub fn send(session: &Session, exit_status: i32, limit: Duration) -> Result<(), String> {
    let deadline = Instant::now() + limit;
    loop {
        let why = match try_once(session, exit_status, deadline) {
            Ok(()) => return Ok(()),
            Err(Failure::Refused(why)) => return Err(why),
            Err(Failure::Later(why)) => why,
        };
        if deadline.saturating_duration_since(Instant::now()) <= Duration::from_millis(RETRY_MS) {
            return Err(why);
        }
        sleep(Duration::from_millis(RETRY_MS));
    }
}

fn try_once(session: &Session, exit_status: i32, deadline: Instant) -> Result<(), Failure> {
    let left = || {
        let left = deadline.saturating_duration_since(Instant::now());
        // A time-out of 0 is refused by the socket.
        left.clamp(
            Duration::from_millis(1),
            Duration::from_millis(ANSWER_MS_MAX),
        )
    };
    let mut stream = TcpStream::connect_timeout(&session.coordinator, left())?;
    stream.set_write_timeout(Some(left()))?;
    stream.write_all(&opening(session, exit_status)?)?;
    let mut decoder = Decoder::new();
    let mut chunk = [0; 4096];
    while Instant::now() < deadline {
        stream.set_read_timeout(Some(left()))?;
        let length = stream.read(&mut chunk)?;
        if length == 0 {
            return Err(Failure::Later(
                "the coordinator closed the connection".into(),
            ));
        }
        decoder.push(&chunk[..length]);
        while let Some(frame) = decoder
            .next_frame()
            .map_err(|why| Failure::Refused(format!("the coordinator sent {why}")))?
        {
            if ended(session, frame)? {
                return Ok(());
            }
        }
    }
    Err(Failure::Later(
        "the coordinator did not answer in time".into(),
    ))
}

fn opening(session: &Session, exit_status: i32) -> Result<Vec<u8>, Failure> {
    let mut process_id = vec![0; PROCESS_ID_BYTES];
    File::open("/dev/urandom")?.read_exact(&mut process_id)?;
    let hello = Hello {
        protocol_version: PROTOCOL_VERSION,
        role: Role::Server.into(),
        name: "belay-exec".into(),
        process_id,
        token: session.token.clone(),
        software: concat!("belay-exec ", env!("CARGO_PKG_VERSION")).into(),
        ..Hello::default()
    };
    let died = Died {
        incarnation: session.incarnation,
        secret: session.secret.clone(),
        proof: DeathProof::Subreaper.into(),
        exit_status,
    };
    let mut bytes = Vec::new();
    for body in [Body::Hello(hello), Body::Died(died)] {
        encode(&Frame { body: Some(body) }, &mut bytes)
            .map_err(|why| Failure::Refused(why.to_string()))?;
    }
    Ok(bytes)
}

/// Whether the frame says that the incarnation has ended, by this notice or before it.
fn ended(session: &Session, frame: Frame) -> Result<bool, Failure> {
    match frame.body {
        Some(Body::ServerEnded(end)) => Ok(end.incarnation == session.incarnation),
        Some(Body::ServerExpired(end)) if end.incarnation == session.incarnation => {
            match end.reason.as_str() {
                "wrong-secret" => Err(Failure::Refused("the secret is wrong".into())),
                _ => Ok(true),
            }
        }
        Some(Body::Problem(problem)) => {
            let text = format!("{}: {}", problem.code, problem.message);
            Err(if problem.retry_after_ms > 0 {
                Failure::Later(text)
            } else {
                Failure::Refused(text)
            })
        }
        _ => Ok(false),
    }
}
