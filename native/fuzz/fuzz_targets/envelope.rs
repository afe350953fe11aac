//! The envelope scanner: any body in any portions gives what the whole body gives.
#![no_main]

use std::sync::LazyLock;

use belay_keys::{Framing, Progress, RouteConfig};
use libfuzzer_sys::fuzz_target;

static ROUTES: LazyLock<[RouteConfig; 2]> = LazyLock::new(|| {
    [
        r#"{"from":"envelope","field":0,"marker":"m1","use":["player","app"]}"#,
        r#"{"from":"envelope","field":3,"marker":"m1","use":"server","numbers":{"marker":9}}"#,
    ]
    .map(|place| {
        let config = format!(
            r#"{{"service":"s","guarded":true,"keys":[{place}],"no_key":"refuse","park_ms":1,
                "replay_bytes":1,"envelope_bytes":200}}"#
        );
        RouteConfig::parse(config.as_bytes()).expect("a good route")
    })
});

fn scan(route: &RouteConfig, framing: Framing, body: &[u8], size: usize) -> Progress {
    let mut scanner = route
        .envelope_scanner(framing)
        .expect("the route has an envelope");
    for chunk in body.chunks(size) {
        let progress = scanner.feed(chunk);
        if progress != Progress::NeedMore {
            assert_eq!(scanner.finish(), progress);
            return progress;
        }
    }
    let progress = scanner.finish();
    assert_ne!(progress, Progress::NeedMore);
    progress
}

fuzz_target!(|data: &[u8]| {
    let Some((&size, body)) = data.split_first() else {
        return;
    };
    for route in ROUTES.iter() {
        for framing in [Framing::Plain, Framing::Grpc] {
            let whole = scan(route, framing, body, usize::MAX);
            assert_eq!(scan(route, framing, body, usize::from(size).max(1)), whole);
            assert_eq!(scan(route, framing, body, 1), whole);
        }
    }
});
