//! `libbelay.so`: Belay's dynamic module for Envoy 1.40.
//!
//! | module | does |
//! | --- | --- |
//! | [`abi`] | the C ABI, and the only `unsafe` |
//! | [`entry`] | which of ours stands behind a name in Envoy's configuration |
//! | [`bootstrap`] | starts and joins the feed, the gate, metrics |
//! | [`edge`] | downstream filter: finds the key, holds on a miss, mints, closes moved sockets |
//! | [`lb`] | picks the host of every attempt from the owner map, or the waiting room |
//! | [`attempt`] | upstream filter: per-attempt headers, refusals |
//! | [`room`] | the waiting room: holds what has no owner, then lets the router try again |
//!
//! Rule ids in comments (R1, M2, P4 …) are those of `packages/ownership/SPEC.md`.
#![deny(unsafe_code)]
#![allow(
    // Hooks must take what Envoy gives and answer in its types.
    clippy::missing_safety_doc,
    clippy::missing_panics_doc,
    clippy::module_name_repetitions
)]

mod abi;
mod answer;
mod attempt;
mod bootstrap;
mod delay;
mod edge;
mod entry;
mod headers;
mod last_pick;
mod lb;
mod mappings;
mod memory;
mod metrics;
mod process;
mod room;
mod wait;
mod wakers;
