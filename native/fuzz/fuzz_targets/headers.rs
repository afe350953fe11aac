//! Path, query, cookie, header and host places: any request gives a key that keeps the rules, or a
//! reason; the key survives its header encoding; a stripped path stays absolute.
#![no_main]

use std::sync::LazyLock;

use belay_keys::{Extraction, HeaderView, Key, Reason, RouteConfig, is_server_id};
use libfuzzer_sys::fuzz_target;

static ROUTES: LazyLock<[RouteConfig; 2]> = LazyLock::new(|| {
    [
        r#"[{"from":"path","template":"/s/{key}/files"},{"from":"path","template":"/d/{key...}"},
            {"from":"header","name":"x-player-id"},{"from":"cookie","name":"sid"},
            {"from":"query","name":"room"},{"from":"host","template":"{key}.example.com"}]"#,
        r#"[{"from":"path","template":"/{server}"},{"from":"cookie","name":"sid"}]"#,
    ]
    .map(|keys| {
        let config = format!(
            r#"{{"service":"s","guarded":true,"keys":{keys},"no_key":"refuse","park_ms":1,
                "replay_bytes":1}}"#
        );
        RouteConfig::parse(config.as_bytes()).expect("a good route")
    })
});

const NAMES: [&str; 4] = [":path", ":authority", "cookie", "x-player-id"];

/// Lines: the first byte chooses the header's name.
struct Lines<'d>(&'d [u8]);

impl HeaderView for Lines<'_> {
    fn header(&self, name: &str, index: usize) -> Option<&[u8]> {
        self.0
            .split(|&byte| byte == b'\n')
            .filter_map(|line| line.split_first())
            .filter(|(first, _)| NAMES[usize::from(**first) % NAMES.len()] == name)
            .map(|(_, value)| value)
            .nth(index)
    }
}

fuzz_target!(|data: &[u8]| {
    for route in ROUTES.iter() {
        let strip = match route.extract(&Lines(data)) {
            Extraction::Key { key, strip } => {
                assert!((1..=256).contains(&key.as_bytes().len()));
                assert!(!key.as_str().chars().any(char::is_control));
                assert_eq!(
                    Key::parse_percent_encoded(&key.to_header_value()),
                    Ok(key.clone())
                );
                strip
            }
            Extraction::Server { id, strip } => {
                assert!(is_server_id(id.as_bytes()));
                strip
            }
            Extraction::Error(reason) => {
                let expected = [Reason::BadKey, Reason::KeyConflict, Reason::ServerUnknown];
                assert!(expected.contains(&reason));
                None
            }
            Extraction::None => None,
            Extraction::NeedBody => panic!("no route has an envelope"),
        };
        if let Some(strip) = strip {
            let lines = Lines(data);
            let path = lines.header(":path", 0).expect("a path was read");
            let stripped = strip.apply(path);
            assert!(stripped.starts_with(b"/") && stripped.len() <= path.len());
        }
    }
});
