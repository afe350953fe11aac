use std::hint::black_box;
use std::sync::Arc;

use rustix::time::{ClockId, clock_gettime};

use super::harness::World;
use crate::answer::{Answer, StreamKind};
use crate::clock::now_ms;
use crate::part::NewAnswer;
use crate::service::Service;
use crate::waker::StreamId;

const KEYS: u64 = 1_000_000;
const LOOKS: u64 = 2_000_000;

/// Of this thread: the wall clock would measure the neighbours too.
fn cpu_ns() -> i64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

/// Run with `--release --ignored --nocapture`: what a hit costs with a million keys, all cold.
#[test]
#[ignore = "measures"]
fn c3_cost_of_a_hit() {
    for guarded in [true, false] {
        let world = World::following(guarded);
        let (state, shared) = (world.world(), &world.shared);
        let server = state.servers.read().by_incarnation(1).unwrap().index;
        let key = |n: u64| format!("player-{n:09}");
        // From the future, as filling takes its time and the service idles out in 80 s.
        let now_ms = now_ms() + 600_000;
        for n in 0..KEYS {
            let new = NewAnswer {
                epoch: 8,
                server,
                now_ms,
            };
            state
                .map
                .answer(key(n).as_bytes(), new, &shared.totals, usize::MAX);
        }
        // The handle reads the real clock, the machine of this test has its own.
        state.set_lease_until(u64::MAX);
        let service = Service::new(Arc::clone(&state), Arc::clone(shared));
        let keys: Vec<String> = (0..LOOKS)
            .map(|n| key(n.wrapping_mul(2_654_435_761) % KEYS))
            .collect();
        let report = |what: &str, start: i64| {
            let ns = (cpu_ns() - start) / i64::try_from(LOOKS).unwrap();
            println!("guarded {guarded}: {what} {ns} ns");
        };
        let start = cpu_ns();
        for key in &keys {
            assert!(matches!(
                black_box(service.lookup(key.as_bytes())),
                Answer::Owner(_)
            ));
        }
        report("lookup", start);
        let start = cpu_ns();
        for key in &keys {
            assert!(matches!(
                black_box(service.pick(key.as_bytes())),
                Answer::Owner(_)
            ));
        }
        report("pick and drop", start);
        let start = cpu_ns();
        for (stream, key) in (0..).zip(&keys) {
            black_box(service.open(key.as_bytes(), 8, 1, StreamId(stream), StreamKind::Stream));
            shared.streams.close(StreamId(stream));
        }
        report("open and close", start);
    }
}
