use belay_keys::{Framing, Key, Progress, Reason};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::{Headers, route};

fn varint(mut value: u64) -> Vec<u8> {
    let mut out = Vec::new();
    while value > 127 {
        out.push(u8::try_from(value & 127).expect("seven bits") | 128);
        value >>= 7;
    }
    out.push(u8::try_from(value).expect("seven bits"));
    out
}

fn tag(field: u32, kind: u8) -> Vec<u8> {
    varint(u64::from(field) << 3 | u64::from(kind))
}

fn bytes(field: u32, value: &[u8]) -> Vec<u8> {
    [tag(field, 2), varint(value.len() as u64), value.to_vec()].concat()
}

fn envelope(marker: &str, player: &str) -> Vec<u8> {
    let version = [tag(2, 0), varint(1)].concat();
    [
        bytes(1, marker.as_bytes()),
        version,
        bytes(3, b"app"),
        bytes(5, player.as_bytes()),
    ]
    .concat()
}

fn place() -> Value {
    json!({ "from": "envelope", "field": 0, "marker": "belay1", "use": "player" })
}

/// Feeds the body in portions of `size`.
fn scan_in(place: &Value, framing: Framing, body: &[u8], size: usize) -> Progress {
    let mut scanner = route(&json!([place]))
        .envelope_scanner(framing)
        .expect("an envelope");
    for chunk in body.chunks(size) {
        scanner.feed(chunk);
    }
    scanner.finish()
}

/// Whole and byte by byte, which must agree.
fn scan(place: &Value, framing: Framing, body: &[u8]) -> Progress {
    let whole = scan_in(place, framing, body, usize::MAX);
    assert_eq!(scan_in(place, framing, body, 1), whole);
    whole
}

fn plain(body: &[u8]) -> Progress {
    scan(&place(), Framing::Plain, body)
}

fn found(key: &str) -> Progress {
    Progress::Found(Key::parse(key.as_bytes()).expect("a good key"))
}

const BROKEN: Progress = Progress::Broken(Reason::BadEnvelope);

#[test]
fn c1_the_envelope_is_found_among_other_fields() {
    let body = [
        [tag(1, 0), varint(u64::MAX)].concat(),
        bytes(2, b"text that is no protobuf"),
        [tag(3, 1), vec![0; 8]].concat(),
        [
            tag(4, 3),
            bytes(9, &envelope("belay1", "in a group")),
            tag(4, 4),
        ]
        .concat(),
        bytes(5, &envelope("other", "p0")),
        bytes(6, &bytes(1, &envelope("belay1", "too deep"))),
        bytes(12, &envelope("belay1", "p1")),
        bytes(13, &envelope("belay1", "p2")),
    ]
    .concat();
    assert_eq!(plain(&body), found("p1"));
    let stated = json!({ "from": "envelope", "field": 13, "marker": "belay1", "use": "player" });
    assert_eq!(scan(&stated, Framing::Plain, &body), found("p2"));
}

#[test]
fn c1_ids_may_stand_before_the_marker_and_the_last_counts() {
    let inner = [
        bytes(5, b"first"),
        bytes(5, b"last"),
        bytes(1, b"belay1"),
        tag(9, 5),
        vec![0; 4],
    ];
    assert_eq!(plain(&bytes(1, &inner.concat())), found("last"));
}

#[test]
fn c1_ids_are_joined_and_numbers_are_yours() {
    let joined = json!({
        "from": "envelope", "field": 0, "marker": "belay1", "use": ["player", "app"],
    });
    assert_eq!(
        scan(&joined, Framing::Plain, &bytes(1, &envelope("belay1", "p"))),
        found("p/app")
    );
    let slash = bytes(1, &envelope("belay1", "p/q"));
    assert_eq!(
        scan(&joined, Framing::Plain, &slash),
        Progress::Broken(Reason::BadKey)
    );
    let numbers = json!({
        "from": "envelope", "field": 0, "marker": "m", "use": "server",
        "numbers": { "marker": 100, "server": 1 },
    });
    let body = bytes(7, &[bytes(100, b"m"), bytes(1, b"s-1")].concat());
    assert_eq!(scan(&numbers, Framing::Plain, &body), found("s-1"));
}

#[test]
fn without_an_envelope_there_is_no_key() {
    for body in [
        &b""[..],
        &bytes(1, b""),
        &bytes(1, &envelope("belay2", "p")),
        &bytes(1, b"belay1"),
    ] {
        assert_eq!(plain(body), Progress::NotFound, "{body:?}");
    }
    let without_player = [bytes(1, b"belay1"), bytes(3, b"app")].concat();
    let body = [
        bytes(1, &without_player),
        bytes(2, &envelope("belay1", "p")),
    ]
    .concat();
    assert_eq!(plain(&body), Progress::NotFound);
}

#[test]
fn broken_bodies_are_told_apart() {
    let whole = bytes(12, &envelope("belay1", "player"));
    for cut in 1..whole.len() {
        assert_eq!(plain(&whole[..cut]), BROKEN, "cut at {cut}");
    }
    let marked = [bytes(1, b"belay1"), vec![0xff; 4]].concat();
    for body in [
        &[0xff; 11][..], // a varint without end
        &[0],            // field 0
        &[0x0e],         // wire type 6
        &tag(1, 3),      // a group without end
        &tag(1, 4),      // an end without group
        &[tag(1, 3), tag(2, 4)].concat(),
        &[tag(1, 2), varint(1 << 31)].concat(),
        &bytes(1, &marked),
        &bytes(1, &[bytes(1, b"belay1"), tag(5, 2), varint(100)].concat()),
    ] {
        assert_eq!(plain(body), BROKEN, "{body:?}");
    }
    let bad_id = bytes(1, &[bytes(1, b"belay1"), bytes(5, b"\xff")].concat());
    assert_eq!(plain(&bad_id), Progress::Broken(Reason::BadKey));
    let long_id = bytes(1, &[bytes(1, b"belay1"), bytes(5, &[b'p'; 257])].concat());
    assert_eq!(plain(&long_id), Progress::Broken(Reason::BadKey));
}

#[test]
fn hostile_bodies_end_early() {
    let end = |body: &[u8]| {
        let mut scanner = route(&json!([place()]))
            .envelope_scanner(Framing::Plain)
            .expect("one");
        scanner.feed(body)
    };
    // A field that reaches beyond the limit ends the search at its length.
    assert_eq!(
        end(&[tag(1, 2), varint(5_000_000)].concat()),
        Progress::NotFound
    );
    assert_eq!(end(&tag(1, 3).repeat(10_000)), BROKEN);
    let mut nested = Vec::new();
    for _ in 0..10_000 {
        nested.splice(0..0, [tag(1, 2), varint(nested.len() as u64)].concat());
    }
    assert_eq!(end(&nested), Progress::NotFound);
    // An envelope in every field: those of others are passed, the first of ours counts.
    let many = [
        bytes(3, &envelope("belay2", "x")).repeat(200),
        bytes(4, &envelope("belay1", "p")),
    ];
    assert_eq!(end(&many.concat()), found("p"));
    assert_eq!(
        end(&bytes(3, &envelope("belay2", "x")).repeat(2000)),
        Progress::NotFound
    );
}

#[test]
fn the_limit_is_kept_to_the_byte() {
    let body = bytes(12, &envelope("belay1", "player"));
    for (limit, outcome) in [
        (body.len(), found("player")),
        (body.len() - 1, Progress::NotFound),
    ] {
        let config = json!({
            "service": "w", "guarded": true, "keys": [place()], "no_key": "refuse",
            "park_ms": 1, "replay_bytes": 1, "envelope_bytes": limit,
        });
        let route = belay_keys::RouteConfig::parse(config.to_string().as_bytes()).expect("route");
        for size in [1, 7, body.len()] {
            let mut scanner = route.envelope_scanner(Framing::Plain).expect("an envelope");
            body.chunks(size)
                .for_each(|chunk| drop(scanner.feed(chunk)));
            assert_eq!(scanner.finish(), outcome, "limit {limit}");
        }
    }
}

#[test]
fn a_grpc_prefix_is_skipped_and_bounds_the_message() {
    let grpc = |flag: u8, length: usize, message: &[u8]| {
        let length = u32::try_from(length).expect("small").to_be_bytes();
        scan(
            &place(),
            Framing::Grpc,
            &[&[flag], &length[..], message].concat(),
        )
    };
    let body = bytes(12, &envelope("belay1", "p"));
    let length = body.len();
    assert_eq!(grpc(0, length, &body), found("p"));
    assert_eq!(grpc(1, length, &body), BROKEN);
    assert_eq!(grpc(0, length + 1, &body), found("p"));
    assert_eq!(grpc(0, length - 1, &body), BROKEN);
    assert_eq!(grpc(0, 0, b""), Progress::NotFound);
    // Only the first message of a stream is searched.
    assert_eq!(
        grpc(0, 0, &[&[0; 5], &body[..]].concat()),
        Progress::NotFound
    );
    assert_eq!(scan(&place(), Framing::Grpc, &[0, 0, 0]), BROKEN);
    assert_eq!(scan(&place(), Framing::Grpc, b""), Progress::NotFound);
    assert_eq!(
        Framing::of_content_type(b"Application/grpc+proto"),
        Framing::Grpc
    );
    assert_eq!(
        Framing::of_content_type(b"application/protobuf"),
        Framing::Plain
    );
}

#[test]
fn a_compressed_body_is_refused_before_it_is_read() {
    let of = |headers: &[(&str, &str)]| Framing::of(&Headers(headers));
    let grpc = ("content-type", "application/grpc");
    assert_eq!(of(&[]), Ok(Framing::Plain));
    assert_eq!(
        of(&[grpc, ("content-encoding", "Identity")]),
        Ok(Framing::Grpc)
    );
    assert_eq!(
        of(&[("content-encoding", "gzip")]),
        Err(Reason::BadEnvelope)
    );
}

/// A message of random fields, with envelopes among them.
fn message() -> impl Strategy<Value = Vec<u8>> {
    let field = prop_oneof![
        (1_u32..20, any::<u64>())
            .prop_map(|(field, value)| [tag(field, 0), varint(value)].concat()),
        (1_u32..20, proptest::collection::vec(any::<u8>(), 0..40))
            .prop_map(|(field, value)| bytes(field, &value)),
        (1_u32..20, "(belay1|belay2)", "[a-z]{0,20}")
            .prop_map(|(field, marker, player)| bytes(field, &envelope(&marker, &player))),
        (1_u32..20).prop_map(|field| [tag(field, 3), tag(field, 4)].concat()),
    ];
    proptest::collection::vec(field, 0..8).prop_map(|fields| fields.concat())
}

proptest! {
    #[test]
    fn portions_change_nothing(body in message(), cut in any::<prop::sample::Index>(), size in 1_usize..50) {
        let place = place();
        prop_assert!(!matches!(scan(&place, Framing::Plain, &body), BROKEN));
        let body = &body[..cut.index(body.len() + 1)];
        let whole = scan_in(&place, Framing::Plain, body, usize::MAX);
        prop_assert_eq!(scan_in(&place, Framing::Plain, body, size), whole);
    }

    #[test]
    fn garbage_in_portions_changes_nothing(
        body in proptest::collection::vec(any::<u8>(), 0..200),
        size in 1_usize..20,
        grpc in any::<bool>(),
    ) {
        let framing = if grpc { Framing::Grpc } else { Framing::Plain };
        let whole = scan_in(&place(), framing, &body, usize::MAX);
        prop_assert_eq!(scan_in(&place(), framing, &body, size), whole);
    }
}
