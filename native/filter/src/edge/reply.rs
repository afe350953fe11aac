//! The answer on its way to the client.

use super::{Edge, Phase};
use crate::abi::{HeadersStatus, Map, Stream};
use crate::answer::Reply;
use crate::headers::{Answered, EPOCH, INCARNATION, REASON, RequestHeaders};
use crate::last_pick;
use belay_keys::{KeyLogging, Reason};
use belay_owner::Answer;
use core::fmt::Write;
use sha2::{Digest, Sha256};

/// Bytes of the hash that stands for a key in access logs (C7).
const HASH_BYTES: usize = 8;

impl Edge {
    pub(super) fn answer(&self, stream: &mut Stream, end: bool) -> HeadersStatus {
        last_pick::clear();
        let Some(route) = self.route.get() else {
            return HeadersStatus::Continue;
        };
        if self.phase.get() == Phase::Answered {
            return HeadersStatus::Continue;
        }
        if let Some(reason) = self.local_reply.take() {
            self.answered(reason);
            Reply::of(reason).rewrite(stream);
            self.log(stream);
            return HeadersStatus::Continue;
        }
        let answered = Answered::of(stream);
        if answered.is_refused {
            // The router may not try again: its tries are used up, or the body is too large (R5).
            self.reply(stream, Reply::of(self.refused_reason()));
            return HeadersStatus::StopIteration;
        }
        self.log(stream);
        if answered.is_upgrade {
            self.accepted(stream, route);
        }
        match &route.config.minted {
            Some(minted) if self.key.borrow().is_none() && self.outcome.get() == "no_key" => {
                self.look_for_minted(stream, minted, end)
            }
            _ => HeadersStatus::Continue,
        }
    }

    /// Envoy answers by itself; some of its answers need a reason of ours.
    pub(super) fn envoy_answers(&self, details: &[u8]) {
        if self.phase.get() == Phase::Passing {
            self.local_reply.set(reason_of_details(details));
        }
    }

    /// Fields of the access log, written only where it is on.
    pub(super) fn log(&self, stream: &mut Stream) {
        let (true, Some(route)) = (self.settings.config.access_log, self.route.get()) else {
            return;
        };
        let given = stream.header(Map::Response, REASON).map(<[u8]>::to_vec);
        let outcome = given.as_deref().unwrap_or(self.outcome.get().as_bytes());
        stream.set_metadata("outcome", outcome);
        if let Some(key) = &*self.key.borrow() {
            let text = match self.settings.config.key_in_logs {
                KeyLogging::Plain => key.as_str().to_owned(),
                KeyLogging::Hash => key_hash(&route.config.service, key.as_bytes()),
            };
            stream.set_metadata("key", text.as_bytes());
            if let Some(Answer::Owner(pick)) = route
                .known
                .service()
                .map(|service| service.lookup(key.as_bytes()))
            {
                let addressed = stream.request_number(INCARNATION);
                if addressed == Some(pick.server.incarnation) {
                    stream.set_metadata("owner", pick.server.id.as_bytes());
                }
            }
        }
        if let Some(epoch) = stream.request_header(EPOCH).map(<[u8]>::to_vec) {
            stream.set_metadata("epoch", &epoch);
        }
    }
}

/// The first 16 hex digits of SHA-256 over service, a zero byte and the key.
fn key_hash(service: &str, key: &[u8]) -> String {
    let hash = Sha256::new()
        .chain_update(service)
        .chain_update([0])
        .chain_update(key)
        .finalize();
    let mut text = String::with_capacity(2 * HASH_BYTES);
    for byte in hash.iter().take(HASH_BYTES) {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// The reason behind an answer of Envoy's own, by its response code details.
fn reason_of_details(details: &[u8]) -> Option<Reason> {
    const RESET: &str = "upstream_reset_before_response_started{";
    let details = core::str::from_utf8(details).ok()?;
    if details == "request_payload_exceeded_retry_buffer_limit" {
        return Some(Reason::TooLargeToResend);
    }
    if details == "no_healthy_upstream" {
        return Some(Reason::NoServer);
    }
    let reset = details.strip_prefix(RESET)?;
    let unsent = [
        "connection_failure",
        "remote_connection_failure",
        "local_connection_failure",
        "connection_timeout",
        "overflow",
    ];
    // R3: nothing was sent, or nobody can say what became of it.
    Some(if unsent.iter().any(|why| reset.starts_with(why)) {
        Reason::NoServer
    } else {
        Reason::OutcomeUnknown
    })
}

#[cfg(test)]
mod tests {
    use super::{key_hash, reason_of_details};
    use belay_keys::Reason;

    #[test]
    fn c7_the_hash_of_a_key_depends_on_its_service() {
        assert_eq!(key_hash("world", b"p1").len(), 16);
        assert_ne!(key_hash("world", b"p1"), key_hash("other", b"p1"));
    }

    #[test]
    fn r3_a_reset_before_the_answer_is_an_unknown_outcome() {
        let reason = |text: &str| reason_of_details(text.as_bytes());
        let reset = "upstream_reset_before_response_started{connection_termination}";
        assert_eq!(reason(reset), Some(Reason::OutcomeUnknown));
        let refused = "upstream_reset_before_response_started{remote_connection_failure|x}";
        assert_eq!(reason(refused), Some(Reason::NoServer));
        assert_eq!(reason("via_upstream"), None);
    }
}
