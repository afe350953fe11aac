//! The configurations: parsed or refused with a problem that says something, whatever comes.
#![no_main]

use belay_keys::{
    AttemptConfig, BootstrapConfig, ConfigError, EdgeConfig, HeaderView, LbConfig, RouteConfig,
};
use libfuzzer_sys::fuzz_target;

struct NoHeaders;

impl HeaderView for NoHeaders {
    fn header(&self, _name: &str, _index: usize) -> Option<&[u8]> {
        None
    }
}

fn check<T>(parsed: Result<T, ConfigError>) {
    if let Err(error) = parsed {
        assert!(!error.problem.is_empty());
    }
}

fuzz_target!(|data: &[u8]| {
    check(BootstrapConfig::parse(data));
    check(EdgeConfig::parse(data));
    check(LbConfig::parse(data));
    check(AttemptConfig::parse(data));
    let route = RouteConfig::parse(data);
    if let Ok(route) = &route {
        let _ = route.extract(&NoHeaders);
    }
    check(route);
});
