//! The closed set of reasons that Belay answers with (`proto/testdata/reasons.json`).

/// Why Belay itself answers a request. Stands in `x-belay-reason`, metrics and access logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Reason {
    NoKey,
    BadKey,
    KeyConflict,
    BadEnvelope,
    ServerUnknown,
    ServerGone,
    UnknownKey,
    NoServer,
    Full,
    NoSnapshot,
    ServiceUnknown,
    LeaseOver,
    CoordinatorSilent,
    Moving,
    ParkFull,
    Refused,
    TooLargeToResend,
    OutcomeUnknown,
    MintConflict,
    MintUnconfirmed,
    Internal,
}

/// What a reason means on the wire.
struct Row {
    code: &'static str,
    http: u16,
    grpc: u8,
    retry_after_ms: u32,
    says: &'static str,
}

const fn row(
    code: &'static str,
    http: u16,
    grpc: u8,
    retry_after_ms: u32,
    says: &'static str,
) -> Row {
    Row {
        code,
        http,
        grpc,
        retry_after_ms,
        says,
    }
}

impl Reason {
    /// Every reason, in the order of the JSON table: `Reason::ALL[r.index()] == r`.
    pub const ALL: [Reason; 21] = [
        Reason::NoKey,
        Reason::BadKey,
        Reason::KeyConflict,
        Reason::BadEnvelope,
        Reason::ServerUnknown,
        Reason::ServerGone,
        Reason::UnknownKey,
        Reason::NoServer,
        Reason::Full,
        Reason::NoSnapshot,
        Reason::ServiceUnknown,
        Reason::LeaseOver,
        Reason::CoordinatorSilent,
        Reason::Moving,
        Reason::ParkFull,
        Reason::Refused,
        Reason::TooLargeToResend,
        Reason::OutcomeUnknown,
        Reason::MintConflict,
        Reason::MintUnconfirmed,
        Reason::Internal,
    ];

    /// Position in [`Reason::ALL`], for arrays of counters.
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }

    /// The code in `x-belay-reason`, kebab-case.
    #[must_use]
    pub const fn code(self) -> &'static str {
        self.row().code
    }

    /// HTTP status. A service may choose another one for `unknown-key`.
    #[must_use]
    pub const fn http_status(self) -> u16 {
        self.row().http
    }

    /// `grpc-status` of the answer to a gRPC request.
    #[must_use]
    pub const fn grpc_status(self) -> u8 {
        self.row().grpc
    }

    /// When trying again makes sense, in ms; 0: no Retry-After.
    #[must_use]
    pub const fn retry_after_ms(self) -> u32 {
        self.row().retry_after_ms
    }

    /// One sentence for people, without anything taken from the request (C7).
    #[must_use]
    pub const fn says(self) -> &'static str {
        self.row().says
    }

    /// The reason of a code; `None` if there is no such code.
    #[must_use]
    pub fn from_code(code: &str) -> Option<Reason> {
        Reason::ALL.into_iter().find(|reason| reason.code() == code)
    }

    const fn row(self) -> &'static Row {
        &ROWS[self.index()]
    }
}

/// In the order of [`Reason::ALL`].
static ROWS: [Row; Reason::ALL.len()] = [
    row(
        "no-key",
        400,
        3,
        0,
        "the request has no key in any of the places that the service file names",
    ),
    row(
        "bad-key",
        400,
        3,
        0,
        "the key is not 1-256 bytes of UTF-8 without control characters, or its encoding is broken",
    ),
    row(
        "key-conflict",
        400,
        3,
        0,
        "two places of the request give different keys",
    ),
    row(
        "bad-envelope",
        400,
        3,
        0,
        "the protobuf body is broken, or compressed, so the envelope cannot be read",
    ),
    row(
        "server-unknown",
        404,
        5,
        0,
        "no server of this id was ever registered for the service",
    ),
    row(
        "server-gone",
        503,
        14,
        0,
        "the server of this id is gone; its state is gone with it",
    ),
    row(
        "unknown-key",
        404,
        5,
        0,
        "the service mints its keys, and nobody has this one",
    ),
    row(
        "no-server",
        503,
        14,
        1000,
        "no server of the service is active",
    ),
    row(
        "full",
        503,
        14,
        1000,
        "every active server of the service is at its capacity",
    ),
    row(
        "no-snapshot",
        503,
        14,
        1000,
        "this proxy has not yet received a complete snapshot from the coordinator",
    ),
    row(
        "service-unknown",
        503,
        14,
        1000,
        "the coordinator does not know the service (yet)",
    ),
    row(
        "lease-over",
        503,
        14,
        1000,
        "the proxy may no longer believe what it knows: the coordinator is silent for longer than the lease",
    ),
    row(
        "coordinator-silent",
        503,
        14,
        1000,
        "the key has no known owner and the coordinator does not answer",
    ),
    row(
        "moving",
        503,
        14,
        1000,
        "the key was on the move for longer than the request may be parked",
    ),
    row(
        "park-full",
        503,
        14,
        1000,
        "too many requests are parked at this proxy",
    ),
    row(
        "refused",
        503,
        14,
        1000,
        "the servers refused the request more often than it may be sent again",
    ),
    row(
        "too-large-to-resend",
        503,
        14,
        1000,
        "the server refused the request and its body is larger than the replay buffer",
    ),
    row(
        "outcome-unknown",
        503,
        14,
        0,
        "ownership was lost after the request reached a handler: it may or may not have taken effect",
    ),
    row(
        "mint-conflict",
        502,
        14,
        0,
        "the server minted a key that another server owns",
    ),
    row(
        "mint-unconfirmed",
        503,
        14,
        1000,
        "the coordinator did not confirm the minted key in time; the answer is withheld",
    ),
    row(
        "internal",
        500,
        13,
        0,
        "a fault in Belay itself; the log of the proxy has the details",
    ),
];

#[cfg(test)]
mod tests {
    use super::Reason;

    #[test]
    fn the_table_is_the_one_in_the_test_data() {
        let text = include_str!("../../../proto/testdata/reasons.json");
        let rows: Vec<serde_json::Value> = serde_json::from_str(text).expect("reasons.json");
        assert_eq!(rows.len(), Reason::ALL.len());
        for (row, reason) in rows.iter().zip(Reason::ALL) {
            assert_eq!(row["code"], reason.code());
            assert_eq!(row["http"], reason.http_status(), "{}", reason.code());
            assert_eq!(row["grpc"], reason.grpc_status(), "{}", reason.code());
            assert_eq!(
                row["retryAfterMs"],
                reason.retry_after_ms(),
                "{}",
                reason.code()
            );
            assert_eq!(row["says"], reason.says(), "{}", reason.code());
            assert_eq!(Reason::from_code(reason.code()), Some(reason));
            assert_eq!(Reason::ALL[reason.index()], reason);
        }
        assert_eq!(Reason::from_code("nonsense"), None);
    }
}
