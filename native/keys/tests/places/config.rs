use belay_keys::{
    AttemptConfig, BootstrapConfig, ConfigError, EdgeConfig, KeyLogging, LbConfig, NoKey,
    RouteConfig,
};
use proptest::prelude::*;
use serde_json::Value;

fn vectors() -> Value {
    let text = include_str!("../../../../proto/testdata/module-config.json");
    serde_json::from_str(text).expect("module-config.json")
}

fn parse(kind: &str, json: &[u8]) -> Result<(), ConfigError> {
    match kind {
        "bootstrap" => BootstrapConfig::parse(json).map(drop),
        "edge" => EdgeConfig::parse(json).map(drop),
        "route" => RouteConfig::parse(json).map(drop),
        "lb" => LbConfig::parse(json).map(drop),
        "attempt" => AttemptConfig::parse(json).map(drop),
        other => panic!("no such configuration: {other}"),
    }
}

#[test]
fn vectors_are_kept() {
    let all = vectors();
    let kinds = all.as_object().expect("an object");
    assert_eq!(kinds.len(), 5);
    for (kind, cases) in kinds {
        for config in cases["valid"].as_array().expect("valid") {
            assert_eq!(
                parse(kind, config.to_string().as_bytes()),
                Ok(()),
                "{config}"
            );
        }
        for case in cases["invalid"].as_array().expect("invalid") {
            let error = parse(kind, case["config"].to_string().as_bytes()).expect_err("invalid");
            assert_eq!(case["member"], error.member, "{case}: {error}");
            let says = case["says"].as_str().expect("says");
            assert!(error.problem.contains(says), "{case}: {error}");
        }
    }
}

#[test]
fn defaults_are_the_documented_ones() {
    let route = RouteConfig::parse(
        br#"{"service":"s","guarded":false,"keys":[],"no_key":"balance","park_ms":1,"replay_bytes":2}"#,
    )
    .expect("route");
    assert_eq!(
        (route.unknown_key_status, route.envelope_bytes),
        (404, 16_384)
    );
    assert_eq!(
        (route.park_ms, route.replay_bytes, route.no_key),
        (1, 2, NoKey::Balance)
    );
    assert!(route.minted.is_none() && !route.is_keyed());
    let edge = EdgeConfig::parse(b"{}").expect("edge");
    assert_eq!(
        (edge.access_log, edge.key_in_logs),
        (false, KeyLogging::Hash)
    );
}

#[test]
fn an_error_names_member_and_problem() {
    let error = LbConfig::parse(br#"{"service":"s"}"#).expect_err("incomplete");
    assert_eq!(error.to_string(), "guarded is missing");
    let error = LbConfig::parse(b"[").expect_err("no JSON");
    assert!(
        error
            .to_string()
            .starts_with("the configuration is no JSON")
    );
}

proptest! {
    #[test]
    fn any_text_is_parsed_or_refused(text in "\\PC{0,80}") {
        for kind in ["bootstrap", "edge", "route", "lb", "attempt"] {
            if let Err(error) = parse(kind, text.as_bytes()) {
                prop_assert!(!error.problem.is_empty());
            }
        }
    }
}
