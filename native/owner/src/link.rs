//! The feed thread: one TCP connection to the coordinator after another, driving the machine.
//! Nothing here decides.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use belay_proto::v1::Ping;
use belay_proto::v1::frame::Body;
use mio::{Events, Poll, Token};

use crate::clock::now_ms;
use crate::connection::{Connection, SOCKET};
use crate::machine::{Broken, Effect, Machine};
use crate::process_state::Shared;
use crate::proxy::random_id;
use crate::waker::{Level, Waker};

pub(crate) const BELL: Token = Token(1);

const BACK_OFF_MS_MIN: u64 = 50;
const BACK_OFF_MS_MAX: u64 = 1_000;
/// For the connection to stand and the Welcome to come.
const GREET_MS_MAX: u64 = 3_000;
const PING_MS: u64 = 1_000;
/// Three pings unanswered: the connection is lost (a half-open one says nothing).
const SILENCE_MS_MAX: u64 = 3_500;
/// For the goodbye to leave the process.
const GOODBYE_MS_MAX: u64 = 500;
/// Read from the socket before anything else gets its turn.
const READ_BYTES_MAX: usize = 1 << 20;

pub(crate) struct Link {
    poll: Poll,
    machine: Machine,
    shared: Arc<Shared>,
    waker: Arc<dyn Waker>,
    coordinator: SocketAddr,
    connection: Option<Connection>,
    failures: u32,
    connect_at: u64,
    nonce: u32,
    random: u64,
    buffer: Box<[u8]>,
}

impl Link {
    pub fn new(
        poll: Poll,
        machine: Machine,
        shared: Arc<Shared>,
        waker: Arc<dyn Waker>,
        coordinator: SocketAddr,
        seed: u64,
    ) -> Link {
        Link {
            poll,
            machine,
            shared,
            waker,
            coordinator,
            connection: None,
            failures: 0,
            connect_at: 0,
            nonce: 0,
            random: seed | 1,
            buffer: vec![0; 64 << 10].into_boxed_slice(),
        }
    }

    /// Runs until `Signal::stop`. A fault of ours costs the connection and all belief, never the
    /// thread.
    pub fn run(mut self) {
        while std::panic::catch_unwind(AssertUnwindSafe(|| self.follow())).is_err() {
            self.waker
                .log(Level::Error, "a fault in the feed thread: it starts over");
            let process_id = random_id();
            self.machine
                .start_over(process_id.as_ref().copied().unwrap_or_default(), now_ms());
            self.close("a fault of the proxy");
            if process_id.is_err() {
                // Under an old or common name we would owe what we no longer know: no belief is
                // left.
                self.waker.log(
                    Level::Error,
                    "no random bytes for a new process id: the feed ends",
                );
                return;
            }
            // Not at once again, whatever it was.
            let mut events = Events::with_capacity(1);
            let _ = self
                .poll
                .poll(&mut events, Some(Duration::from_millis(BACK_OFF_MS_MAX)));
        }
    }

    fn follow(&mut self) {
        let mut events = Events::with_capacity(16);
        loop {
            let now = now_ms();
            let timeout = Duration::from_millis(self.wake_at(now).saturating_sub(now));
            if let Err(error) = self.poll.poll(&mut events, Some(timeout))
                && error.kind() != ErrorKind::Interrupted
            {
                self.waker.log(
                    Level::Error,
                    &format!("the feed thread cannot poll: {error}"),
                );
            }
            let (mut readable, mut writable) = (false, false);
            for event in events.iter().filter(|event| event.token() == SOCKET) {
                readable |= event.is_readable() || event.is_read_closed() || event.is_error();
                writable |= event.is_writable() || event.is_write_closed() || event.is_error();
            }
            if readable || writable {
                self.socket_ready(readable, writable);
            }
            let taken = self.shared.signal.take();
            if taken.stop {
                self.say_goodbye();
                return;
            }
            self.machine.on_taken(now_ms(), taken);
            self.tick();
            self.carry_out();
        }
    }

    fn wake_at(&self, now: u64) -> u64 {
        let at = self.machine.wake_at(now);
        match &self.connection {
            None => at.min(self.connect_at),
            Some(connection) if connection.welcomed => at.min(connection.pinged_at + PING_MS),
            Some(connection) => at.min(connection.opened_at + GREET_MS_MAX),
        }
    }

    fn tick(&mut self) {
        let now = now_ms();
        self.machine.on_tick(now);
        match &mut self.connection {
            None if now >= self.connect_at => self.connect(now),
            None => {}
            Some(connection) => {
                let silent = if connection.welcomed {
                    now.saturating_sub(connection.heard_at) > SILENCE_MS_MAX
                } else {
                    now.saturating_sub(connection.opened_at) > GREET_MS_MAX
                };
                if silent {
                    self.close("the coordinator does not answer");
                } else if connection.welcomed && now >= connection.pinged_at + PING_MS {
                    connection.pinged_at = now;
                    self.nonce = self.nonce.wrapping_add(1);
                    let nonce = self.nonce;
                    self.send(Body::Ping(Ping { nonce }));
                    self.flush();
                }
            }
        }
    }

    fn connect(&mut self, now: u64) {
        match Connection::open(self.coordinator, self.poll.registry(), now) {
            Ok(connection) => self.connection = Some(connection),
            Err(error) => self.failed(&format!("cannot connect to the coordinator: {error}")),
        }
    }

    fn socket_ready(&mut self, readable: bool, writable: bool) {
        let Some(connection) = &mut self.connection else {
            return;
        };
        if writable {
            match connection.establish() {
                Ok(true) => {
                    self.machine.connected();
                    self.carry_out();
                }
                Ok(false) => self.flush(),
                Err(error) => {
                    self.close(&format!("cannot connect: {error}"));
                    return;
                }
            }
        }
        if readable && let Err(why) = self.read() {
            self.close(&why);
        }
    }

    fn read(&mut self) -> Result<(), String> {
        let mut total = 0;
        while total < READ_BYTES_MAX {
            let Some(connection) = self.connection.as_mut().filter(|open| open.established) else {
                return Ok(());
            };
            let filled = connection.fill(&mut self.buffer);
            let Some(count) = filled.map_err(|error| format!("reading failed: {error}"))? else {
                return Ok(());
            };
            connection.heard_at = now_ms();
            self.shared
                .counters
                .heard
                .store(connection.heard_at, Ordering::Relaxed);
            total += count;
            self.frames()?;
        }
        // The others had to wait; the rest comes next time.
        let registry = self.poll.registry();
        let rearmed = self
            .connection
            .as_mut()
            .map_or(Ok(()), |open| open.rearm(registry));
        rearmed.map_err(|error| format!("cannot poll the socket: {error}"))
    }

    fn frames(&mut self) -> Result<(), String> {
        loop {
            let Some(connection) = &mut self.connection else {
                return Ok(());
            };
            let frame = connection.next_frame().map_err(|error| error.to_string())?;
            let Some(frame) = frame else {
                return Ok(());
            };
            let Some(body) = frame.body else {
                return Err("a frame that this version does not know".to_owned());
            };
            let welcome = matches!(body, Body::Welcome(_));
            self.machine
                .on_frame(now_ms(), body)
                .map_err(|Broken(why)| why)?;
            if welcome {
                connection.welcomed = true;
                self.failures = 0;
            }
            self.carry_out();
        }
    }

    fn carry_out(&mut self) {
        for effect in self.machine.take_effects() {
            match effect {
                Effect::Send(body) => self.send(body),
                Effect::Wake(stream, event) => self.waker.wake(stream, event),
                Effect::Ready => self.waker.ready(),
                Effect::Log(level, message) => self.waker.log(level, &message),
            }
        }
        self.flush();
    }

    /// Without a connection there is nobody to tell: the machine says it anew on the next one.
    fn send(&mut self, body: Body) {
        if let Some(connection) = &mut self.connection
            && let Err(error) = connection.queue(body)
        {
            self.waker
                .log(Level::Error, &format!("a frame was not sent: {error}"));
        }
    }

    fn flush(&mut self) {
        match self.connection.as_mut().map_or(Ok(0), Connection::flush) {
            Ok(left) if left > self.shared.limits.write_bytes => {
                self.close("the coordinator does not read");
            }
            Ok(_) => {}
            Err(error) => self.close(&format!("writing failed: {error}")),
        }
    }

    fn close(&mut self, why: &str) {
        if let Some(connection) = self.connection.take() {
            connection.close(self.poll.registry());
        }
        self.machine.disconnected(now_ms());
        self.failed(&format!(
            "lost the coordinator at {}: {why}",
            self.coordinator
        ));
        // What was to be sent is void; the rest counts.
        self.carry_out();
    }

    fn failed(&mut self, message: &str) {
        let step = BACK_OFF_MS_MIN << self.failures.min(5);
        let most = step.min(BACK_OFF_MS_MAX);
        // Half of it is chance, so that proxies do not come all at once.
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.connect_at = now_ms() + most / 2 + self.random % (most / 2 + 1);
        let level = if self.failures.is_multiple_of(30) {
            Level::Warn
        } else {
            Level::Debug
        };
        self.failures += 1;
        self.waker.log(level, message);
    }

    fn say_goodbye(&mut self) {
        if !self.machine.goodbye() {
            return;
        }
        self.carry_out();
        let until = now_ms() + GOODBYE_MS_MAX;
        let mut events = Events::with_capacity(4);
        while let Some(connection) = &mut self.connection {
            let left_ms = until.saturating_sub(now_ms());
            if left_ms == 0 || matches!(connection.flush(), Ok(0) | Err(_)) {
                return;
            }
            if self
                .poll
                .poll(&mut events, Some(Duration::from_millis(left_ms)))
                .is_err()
            {
                return;
            }
        }
    }
}
