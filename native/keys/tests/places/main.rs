//! The crate through its public API, as the filter uses it.

mod config;
mod envelope;
mod extract;
mod minted;
mod websocket;

use belay_keys::{HeaderView, RouteConfig};
use serde_json::{Value, json};

/// Headers by name, in order.
struct Headers<'h>(&'h [(&'h str, &'h str)]);

impl HeaderView for Headers<'_> {
    fn header(&self, name: &str, index: usize) -> Option<&[u8]> {
        self.0
            .iter()
            .filter(|(key, _)| *key == name)
            .nth(index)
            .map(|(_, value)| value.as_bytes())
    }
}

/// A route with these places, all else plain.
fn route(keys: &Value) -> RouteConfig {
    let config = json!({
        "service": "world", "guarded": true, "keys": keys, "no_key": "refuse",
        "park_ms": 12_000, "replay_bytes": 65_536,
    });
    RouteConfig::parse(config.to_string().as_bytes()).expect("a good route")
}
