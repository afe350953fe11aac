//! An accepted WebSocket: closed with 4421 after the message in hand when its key moves (M2, W2).

use super::{Edge, Route};
use crate::abi::{Body, BodyStatus, Stream};
use crate::headers::{EPOCH, INCARNATION, RequestHeaders};
use crate::metrics::Outcome;
use crate::process;
use crate::wakers::Event;
use belay_keys::{FrameScanner, Key, close_frame};
use belay_owner::{Opened, StreamKind};

/// The server's direction of a socket.
pub(super) struct Socket {
    frames: FrameScanner,
    state: State,
    /// 4421 unless the service says otherwise.
    close_code: u16,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Open,
    /// To be closed at the end of the message in hand.
    Closing,
    /// Our close frame is out; what the server still says is dropped.
    Closed,
}

impl Edge {
    /// The server accepted the handshake: from here on the feed may end the socket.
    pub(super) fn accepted(&self, stream: &mut Stream, route: &Route) {
        let (Some(service), Some(process)) = (route.known.service(), process::get()) else {
            return;
        };
        // Not a server of ours, or the waiting room: nothing to follow.
        let Some(incarnation) = stream.request_number(INCARNATION) else {
            return;
        };
        let epoch = stream.request_number(EPOCH).unwrap_or(0);
        let id = self.wake_id(stream, process);
        let key = self.key.borrow();
        let key = key.as_ref().map_or(&[][..], Key::as_bytes);
        let opened = service.open(key, epoch, incarnation, id, StreamKind::WebSocket);
        let socket = Socket {
            frames: FrameScanner::new(),
            state: State::Open,
            close_code: route.config.close_code,
        };
        self.socket.replace(Some(Box::new(socket)));
        if opened == Opened::Moved {
            // The close must follow the 101, so it takes the way of every other event.
            process.wakers.send(id, Event::CloseMoved);
        }
    }

    /// Bytes of the server.
    pub(super) fn socket_data(&self, stream: &mut Stream) -> BodyStatus {
        let mut kept = Vec::new();
        {
            let mut socket = self.socket.borrow_mut();
            let Some(socket) = &mut *socket else {
                return BodyStatus::Continue;
            };
            let mut cut = None;
            let mut before = 0;
            for slice in stream.body(Body::ReceivedResponse) {
                let boundaries = socket.frames.feed(slice);
                if socket.state == State::Closing {
                    kept.extend_from_slice(slice);
                    if let Some(end) = boundaries.message_end {
                        cut = Some(before + end);
                    }
                    before += slice.len();
                }
            }
            match (socket.state, cut) {
                (State::Open, _) | (State::Closing, None) => return BodyStatus::Continue,
                (State::Closing, Some(end)) => {
                    kept.truncate(end);
                    kept.extend_from_slice(&close_frame(socket.close_code, "moved"));
                    socket.state = State::Closed;
                }
                (State::Closed, _) => {}
            }
        }
        let size = stream.body_size(Body::ReceivedResponse);
        stream.drain_body(Body::ReceivedResponse, size);
        if !kept.is_empty() {
            stream.append_body(Body::ReceivedResponse, &kept);
            self.finish_later();
        }
        BodyStatus::Continue
    }

    /// Ends the stream in its own turn: a body hook can write the last bytes, but not the end.
    fn finish_later(&self) {
        self.count(Outcome::Closed, "closed");
        if let (Some(wakeable), Some(process)) = (&*self.wakeable.borrow(), process::get()) {
            process.wakers.send(wakeable.id, Event::Finish);
        }
    }

    /// The feed has something about this stream.
    pub(super) fn socket_event(&self, stream: &mut Stream, event: Event) {
        if self.socket.borrow().is_none() {
            return;
        }
        match event {
            Event::CloseMoved => self.close_moved(stream),
            Event::Finish => {
                self.forget_wakeable();
                stream.send_response_data(b"", true);
            }
            Event::Reset(_) => {
                self.forget_wakeable();
                stream.reset("belay_ownership_lost");
            }
            _ => {}
        }
    }

    fn close_moved(&self, stream: &mut Stream) {
        let close_code = {
            let mut socket = self.socket.borrow_mut();
            let Some(socket) = &mut *socket else { return };
            if socket.state != State::Open {
                return;
            }
            if !socket.frames.at_message() {
                socket.state = State::Closing;
                return;
            }
            socket.state = State::Closed;
            socket.close_code
        };
        self.count(Outcome::Closed, "closed");
        self.forget_wakeable();
        stream.send_response_data(&close_frame(close_code, "moved"), true);
    }
}
