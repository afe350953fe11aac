//! Answers that Belay makes itself.

use crate::abi::{Map, Stream};
use crate::headers::{REASON, REFUSED, STATUS, is_grpc};
use belay_keys::Reason;
use belay_owner::Refusal;

/// The reason that a client reads for a refusal of the owner map.
#[must_use]
pub fn reason_of(refusal: Refusal) -> Reason {
    Reason::from_code(refusal.code()).unwrap_or(Reason::Internal)
}

/// An answer to a client: a reason of the closed table, and what a service may change about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply {
    pub reason: Reason,
    pub status: u16,
    pub retry_after_ms: u32,
}

impl Reply {
    #[must_use]
    pub fn of(reason: Reason) -> Self {
        Self {
            reason,
            status: reason.http_status(),
            retry_after_ms: reason.retry_after_ms(),
        }
    }

    /// A refusal of the owner map, with the wait that the coordinator named, if any.
    #[must_use]
    pub fn refusal(refusal: Refusal, retry_after_ms: u32) -> Self {
        let reply = Self::of(reason_of(refusal));
        Self {
            retry_after_ms: reply.retry_after_ms.max(retry_after_ms),
            ..reply
        }
    }

    /// Answers instead of a server. gRPC clients get a trailers-only answer: without `grpc-status`
    /// Envoy would turn any of ours into success.
    pub fn send(self, stream: &mut Stream) {
        let code = self.reason.code();
        let retry_after = self.retry_after();
        let mut headers: Vec<(&str, &[u8])> = vec![(REASON, code.as_bytes())];
        if let Some(seconds) = &retry_after {
            headers.push(("retry-after", seconds.as_bytes()));
        }
        let text = format!("{code}: {}\n", self.reason.says());
        if is_grpc(stream) {
            let mut status = itoa::Buffer::new();
            headers.push((
                "grpc-status",
                status.format(self.reason.grpc_status()).as_bytes(),
            ));
            headers.push(("grpc-message", text.trim_end().as_bytes()));
            stream.send_response(200, &headers, b"", code);
        } else {
            stream.send_response(u32::from(self.status), &headers, text.as_bytes(), code);
        }
    }

    /// Turns headers that are already on their way to the client into this answer's. The body stays.
    pub fn rewrite(self, stream: &mut Stream) {
        stream.remove_header(Map::Response, REFUSED.as_bytes());
        stream.set_header(Map::Response, REASON, self.reason.code().as_bytes());
        if let Some(seconds) = self.retry_after() {
            stream.set_header(Map::Response, "retry-after", seconds.as_bytes());
        }
        let mut number = itoa::Buffer::new();
        if stream.header(Map::Response, "grpc-status").is_some() {
            let status = number.format(self.reason.grpc_status()).as_bytes();
            stream.set_header(Map::Response, "grpc-status", status);
        } else {
            stream.set_header(Map::Response, STATUS, number.format(self.status).as_bytes());
        }
    }

    fn retry_after(self) -> Option<String> {
        (self.retry_after_ms > 0).then(|| self.retry_after_ms.div_ceil(1000).to_string())
    }
}
