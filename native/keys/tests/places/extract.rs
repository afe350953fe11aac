use belay_keys::{Extraction, Reason};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::{Headers, route};

/// The key and the path that the server sees, or what was found instead.
fn extract(keys: &Value, headers: &[(&str, &str)]) -> Result<(String, String), Extraction> {
    let view = Headers(headers);
    let path = headers
        .iter()
        .find(|(name, _)| *name == ":path")
        .map_or("/", |(_, path)| path);
    match route(keys).extract(&view) {
        Extraction::Key { key, strip } => {
            let out = strip.map_or(path.as_bytes().to_vec(), |strip| {
                strip.apply(path.as_bytes()).to_vec()
            });
            Ok((key.as_str().into(), String::from_utf8(out).expect("UTF-8")))
        }
        other => Err(other),
    }
}

fn key(keys: &Value, headers: &[(&str, &str)]) -> Option<String> {
    match extract(keys, headers) {
        Ok((key, _)) => Some(key),
        Err(Extraction::None) => None,
        Err(other) => panic!("{other:?}"),
    }
}

fn reason(keys: &Value, headers: &[(&str, &str)]) -> Reason {
    match extract(keys, headers) {
        Err(Extraction::Error(reason)) => reason,
        other => panic!("{other:?}"),
    }
}

fn every_place() -> Value {
    json!([
        { "from": "path", "template": "/s/{key}" },
        { "from": "header", "name": "X-Player-Id" },
        { "from": "cookie", "name": "sid" },
        { "from": "query", "name": "room" },
        { "from": "host", "template": "{key}.play.example.com" },
    ])
}

#[test]
fn each_place_gives_the_key() {
    let keys = every_place();
    assert_eq!(
        extract(&keys, &[(":path", "/s/a%2Fb/x?q")]),
        Ok(("a/b".into(), "/x?q".into()))
    );
    assert_eq!(
        key(&keys, &[("x-player-id", " p 1 ")]).as_deref(),
        Some("p 1")
    );
    assert_eq!(
        key(&keys, &[("x-player-id", "100%25")]).as_deref(),
        Some("100%25")
    );
    assert_eq!(
        key(&keys, &[("cookie", "a=b; sid=s1;c=d")]).as_deref(),
        Some("s1")
    );
    assert_eq!(
        key(&keys, &[("cookie", "a=b"), ("cookie", "sid=s=2")]).as_deref(),
        Some("s=2")
    );
    assert_eq!(
        key(&keys, &[(":path", "/x?a=1&room=r%201+")]).as_deref(),
        Some("r 1+")
    );
    assert_eq!(
        key(&keys, &[(":path", "/x?%72oom=r")]).as_deref(),
        Some("r")
    );
    assert_eq!(
        key(&keys, &[(":authority", "Ab.play.example.com:80")]).as_deref(),
        Some("ab")
    );
    assert_eq!(
        key(
            &keys,
            &[(":path", "/x"), (":authority", "play.example.com")]
        ),
        None
    );
}

#[test]
fn strip_false_keeps_the_path() {
    let keys = json!([{ "from": "path", "template": "/{key}", "strip": false }]);
    assert_eq!(
        extract(&keys, &[(":path", "/doc/x?q")]),
        Ok(("doc".into(), "/doc/x?q".into()))
    );
    let keys = json!([{ "from": "path", "template": "/{key...}", "strip": false }]);
    assert_eq!(
        extract(&keys, &[(":path", "/doc/x?q")]),
        Ok(("doc/x".into(), "/doc/x?q".into()))
    );
}

#[test]
fn equal_values_agree_and_different_ones_conflict() {
    let keys = every_place();
    let same = [
        (":path", "/s/k?room=k"),
        ("x-player-id", "k"),
        ("x-player-id", "k"),
    ];
    assert_eq!(extract(&keys, &same), Ok(("k".into(), "/?room=k".into())));
    for other in [
        [(":path", "/s/k"), ("x-player-id", "other")],
        [("x-player-id", "k"), ("x-player-id", "other")],
        [("cookie", "sid=k; sid=other"), (":path", "/")],
        [(":path", "/?room=k&room=other"), ("cookie", "")],
        [(":path", "/?room=k&roo%6d=other"), ("cookie", "")],
        [(":path", "/s/k"), (":authority", "other.play.example.com")],
    ] {
        assert_eq!(reason(&keys, &other), Reason::KeyConflict, "{other:?}");
    }
}

#[test]
fn an_empty_value_is_an_absent_one() {
    let keys = every_place();
    let empty = [
        (":path", "/s/?room="),
        ("x-player-id", " "),
        ("cookie", "sid="),
        ("x-player-id", ""),
    ];
    assert_eq!(key(&keys, &empty), None);
}

#[test]
fn what_is_no_key_is_refused() {
    let keys = every_place();
    let long = "k".repeat(257);
    for bad in [
        (":path", "/s/%zz"),
        (":path", "/s/%00"),
        (":path", "/x?room=%c3"),
        ("x-player-id", "a\u{85}b"),
        ("x-player-id", &long),
    ] {
        assert_eq!(reason(&keys, &[bad]), Reason::BadKey, "{bad:?}");
    }
}

#[test]
fn of_several_templates_the_first_that_matches_counts() {
    let keys = json!([
        { "from": "path", "template": "/s/{key}" },
        { "from": "path", "template": "/{key}", "strip": false },
        { "from": "host", "template": "{key}.a.b" },
        { "from": "host", "template": "k.{key}.b" },
    ]);
    assert_eq!(
        extract(&keys, &[(":path", "/s/k")]),
        Ok(("k".into(), "/".into()))
    );
    assert_eq!(
        extract(&keys, &[(":path", "/t/k")]),
        Ok(("t".into(), "/t/k".into()))
    );
    assert_eq!(key(&keys, &[(":authority", "k.a.b")]).as_deref(), Some("k"));
}

#[test]
fn a_server_is_named_outright() {
    let keys = json!([
        { "from": "header", "name": "x-player-id" },
        { "from": "path", "template": "/{server}" },
    ]);
    let find =
        |path, player| route(&keys).extract(&Headers(&[(":path", path), ("x-player-id", player)]));
    let Extraction::Server {
        id,
        strip: Some(strip),
    } = find("/world-1/x", "\0bad")
    else {
        panic!("no server")
    };
    let path = strip.apply(b"/world-1/x");
    assert_eq!((id.as_str(), &path[..]), ("world-1", &b"/x"[..]));
    for never in ["/a%20b", "/%zz", "/a@b"] {
        assert_eq!(find(never, "p"), Extraction::Error(Reason::ServerUnknown));
    }
    assert!(matches!(
        find("/", "p"),
        Extraction::Key { strip: None, .. }
    ));
}

#[test]
fn the_body_is_read_only_if_no_other_place_gave_a_key() {
    let keys = json!([
        { "from": "envelope", "field": 0, "marker": "belay1", "use": "player" },
        { "from": "header", "name": "x-player-id" },
    ]);
    assert_eq!(key(&keys, &[("x-player-id", "p")]).as_deref(), Some("p"));
    assert_eq!(extract(&keys, &[]), Err(Extraction::NeedBody));
}

proptest! {
    #[test]
    fn any_request_gives_a_key_or_a_reason(
        path in "/(s/)?[a-z%0-9?&=/#.]{0,30}",
        cookie in "[a-z=; %]{0,20}",
        host in "[a-zA-Z.:\\[\\]]{0,20}(\\.play\\.example\\.com)?",
    ) {
        let headers = [(":path", &*path), ("cookie", &*cookie), (":authority", &*host)];
        match route(&every_place()).extract(&Headers(&headers)) {
            Extraction::Key { key, .. } => prop_assert!(!key.as_str().is_empty()),
            Extraction::None => {}
            Extraction::Error(reason) => {
                prop_assert!(matches!(reason, Reason::BadKey | Reason::KeyConflict));
            }
            other => prop_assert!(false, "{:?}", other),
        }
    }
}

/// What `belay explain` is tested with too.
#[test]
fn vectors_shared_with_explain_are_kept() {
    let text = include_str!("../../../../proto/testdata/places.json");
    let cases: Vec<Value> = serde_json::from_str(text).expect("places.json");
    for case in &cases {
        let mut headers = vec![
            (":path", case["path"].as_str().unwrap_or("/")),
            (
                ":authority",
                case["authority"].as_str().unwrap_or("localhost"),
            ),
        ];
        for header in case["headers"].as_array().into_iter().flatten() {
            let text = |at: usize| header[at].as_str().expect("a string");
            headers.push((text(0), text(1)));
        }
        let seen = |strip: Option<belay_keys::Strip>| {
            let path = headers[0].1.as_bytes();
            let path = strip.map_or(path.to_vec(), |strip| strip.apply(path).to_vec());
            String::from_utf8(path).expect("UTF-8")
        };
        let mut found = match route(&case["keys"]).extract(&Headers(&headers)) {
            Extraction::Key { key, strip } => json!({ "key": key.as_str(), "path": seen(strip) }),
            Extraction::Server { id, strip } => {
                json!({ "server": id.as_str(), "path": seen(strip) })
            }
            Extraction::NeedBody => json!({ "needBody": true }),
            Extraction::None => json!({ "none": true }),
            Extraction::Error(reason) => json!({ "reason": reason.code() }),
        };
        if let (None, Some(members)) = (case["expect"].get("path"), found.as_object_mut()) {
            members.remove("path");
        }
        assert_eq!(found, case["expect"], "{case}");
    }
}
