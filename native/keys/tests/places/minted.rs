use belay_keys::minted::MintProblem;
use belay_keys::{Key, KeyProblem, Mint, MintedPlace, RouteConfig};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::Headers;

fn place(minted: &Value) -> MintedPlace {
    let config = json!({
        "service": "agents", "guarded": false, "keys": [], "no_key": "balance",
        "park_ms": 1, "replay_bytes": 0, "minted": minted,
    });
    let route = RouteConfig::parse(config.to_string().as_bytes()).expect("a good route");
    route.minted.expect("a minted place")
}

fn found(key: &str) -> Mint {
    Mint::Found(Key::parse(key.as_bytes()).expect("a good key"))
}

/// Feeds the body in portions of `size`.
fn read(place: &MintedPlace, body: &[u8], size: usize) -> Mint {
    assert_eq!(place.find(&Headers(&[])), Mint::NeedMore);
    let mut reader = place.reader().expect("a place in the body");
    for chunk in body.chunks(size) {
        reader.feed(chunk, false);
    }
    reader.feed(b"", true)
}

#[test]
fn a_header_carries_the_key() {
    let place = place(&json!({ "from": "header", "name": "Mcp-Session-Id" }));
    assert!(place.reader().is_none());
    let name = "mcp-session-id";
    assert_eq!(
        place.find(&Headers(&[(name, "abc"), (name, "abc")])),
        found("abc")
    );
    assert_eq!(place.find(&Headers(&[(name, "")])), Mint::Absent);
    assert_eq!(place.find(&Headers(&[])), Mint::Absent);
    let conflict = Mint::Bad(MintProblem::Conflict);
    assert_eq!(place.find(&Headers(&[(name, "a"), (name, "b")])), conflict);
    let long = "k".repeat(257);
    let too_long = Mint::Bad(MintProblem::NoKey(KeyProblem::TooLong));
    assert_eq!(place.find(&Headers(&[(name, &long)])), too_long);
}

#[test]
fn a_cookie_carries_the_key() {
    let place = place(&json!({ "from": "cookie", "name": "sid" }));
    let headers = [
        ("set-cookie", "other=1; Path=/"),
        ("set-cookie", "sid=x=1 ; HttpOnly; sid=2"),
    ];
    assert_eq!(place.find(&Headers(&headers)), found("x=1"));
    assert_eq!(
        place.find(&Headers(&[("set-cookie", "sid=; Max-Age=0")])),
        Mint::Absent
    );
}

#[test]
fn json_is_final_as_soon_as_the_value_is_complete() {
    let place = place(&json!({ "from": "json", "path": "$.session.id" }));
    let mut reader = place.reader().expect("in the body");
    assert_eq!(
        reader.feed(br#"{"session":{"x":[1,2],"id":"s"#, false),
        Mint::NeedMore
    );
    assert_eq!(reader.feed(br#"1","#, false), found("s1"));
    assert_eq!(reader.feed(b"garbage", true), found("s1"));
    assert_eq!(read(&place, br#"{"session":{"id":7}}"#, 1), found("7"));
    assert_eq!(read(&place, br#"{"session":{}}"#, 1), Mint::Absent);
    let late = format!(r#"{{"pad":"{}","session":{{"id":"x"}}}}"#, "p".repeat(1024));
    assert_eq!(read(&place, late.as_bytes(), 100), Mint::Absent);
}

#[test]
fn a_pattern_is_tried_once_on_the_first_kilobyte() {
    let place = place(&json!({ "from": "body", "pattern": "id=([a-z0-9]+)" }));
    assert_eq!(read(&place, b"hello id=abc9 bye", 1), found("abc9"));
    assert_eq!(read(&place, b"nothing", 3), Mint::Absent);
    let mut reader = place.reader().expect("in the body");
    assert_eq!(reader.feed(b"id=ab", false), Mint::NeedMore);
    assert_eq!(
        reader.feed(&[b'c'; 2000], false),
        Mint::Bad(MintProblem::NoKey(KeyProblem::TooLong))
    );
}

proptest! {
    #[test]
    fn portions_change_nothing(
        body in r#"(id=|\{"session": ?\{|"id":"?|[a-z0-9"}]){0,12}"#,
        pad in 0_usize..1100,
        size in 1_usize..40,
    ) {
        for minted in [
            json!({ "from": "json", "path": "$.session.id" }),
            json!({ "from": "body", "pattern": "id=([a-z0-9]*)" }),
        ] {
            let place = place(&minted);
            let body = [" ".repeat(pad).as_bytes(), body.as_bytes()].concat();
            prop_assert_eq!(read(&place, &body, size), read(&place, &body, usize::MAX));
        }
    }
}
