//! Minted keys: portions of a body change nothing, and headers are read without a fault.
#![no_main]

use std::sync::LazyLock;

use belay_keys::{HeaderView, Mint, MintedPlace, RouteConfig};
use libfuzzer_sys::fuzz_target;

static PLACES: LazyLock<[MintedPlace; 3]> = LazyLock::new(|| {
    [
        r#"{"from":"json","path":"$.a[1]['b']"}"#,
        r#"{"from":"body","pattern":"id=([a-z0-9]+)"}"#,
        r#"{"from":"cookie","name":"sid"}"#,
    ]
    .map(|minted| {
        let config = format!(
            r#"{{"service":"s","guarded":false,"keys":[],"minted":{minted},"no_key":"balance",
                "park_ms":1,"replay_bytes":1}}"#
        );
        let route = RouteConfig::parse(config.as_bytes()).expect("a good route");
        route.minted.expect("a minted place")
    })
});

/// Every line is a `set-cookie`.
struct Lines<'d>(&'d [u8]);

impl HeaderView for Lines<'_> {
    fn header(&self, _name: &str, index: usize) -> Option<&[u8]> {
        self.0.split(|&byte| byte == b'\n').nth(index)
    }
}

fn read(place: &MintedPlace, body: &[u8], size: usize) -> Option<Mint> {
    let mut reader = place.reader()?;
    for chunk in body.chunks(size) {
        reader.feed(chunk, false);
    }
    let outcome = reader.feed(b"", true);
    assert_ne!(outcome, Mint::NeedMore);
    Some(outcome)
}

fuzz_target!(|data: &[u8]| {
    let Some((&size, body)) = data.split_first() else {
        return;
    };
    for place in PLACES.iter() {
        let _ = place.find(&Lines(body));
        let whole = read(place, body, usize::MAX);
        assert_eq!(read(place, body, usize::from(size).max(1)), whole);
    }
});
