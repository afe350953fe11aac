//! Types and frames of the coordinator protocol (`proto/belay/v1`).
//!
//! The types are generated; `cargo run -p belay-proto --example generate` makes them anew.
#![forbid(unsafe_code)]
// Errors are told in the first paragraph of each.
#![allow(clippy::missing_errors_doc)]

mod frame;

/// Generated from `proto/belay/v1`.
#[allow(clippy::pedantic)] // Not written by hand.
pub mod v1 {
    include!("gen/belay.v1.rs");
}

pub use frame::{Decoder, FRAME_BYTES_MAX, FrameError, encode};
