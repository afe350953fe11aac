//! Everything about finding the key in a request that needs no Envoy.
//!
//! | module | does |
//! | --- | --- |
//! | [`key`] | what a key is, its encodings |
//! | [`config`] | the JSON configurations of the module, checked and compiled |
//! | [`extract`] | compares the places of a route in a borrowed request view |
//! | [`envelope`] | finds the envelope in a protobuf body as it arrives (C1) |
//! | [`minted`] | finds the key that a server made in its answer (A7) |
//! | [`websocket`] | frame and message boundaries of one direction, close frames (M2) |
//! | [`reason`] | the closed set of reasons that Belay answers with |
//!
//! Nothing here allocates on the way of a request whose key has at most [`KEY_INLINE_BYTES`] bytes.

#![forbid(unsafe_code)]

pub mod config;
pub mod envelope;
pub mod extract;
mod host;
mod json_path;
pub mod key;
mod members;
pub mod minted;
mod path;
pub mod reason;
pub mod websocket;
mod wire;

pub use config::{
    AttemptConfig, BootstrapConfig, ConfigError, EdgeConfig, KeyLogging, LbConfig, NoKey,
    RouteConfig,
};
pub use envelope::{EnvelopeScanner, Framing, Progress};
pub use extract::{Extraction, HeaderView};
pub use key::{KEY_BYTES_MAX, KEY_INLINE_BYTES, Key, KeyProblem, is_server_id};
pub use minted::{Mint, MintReader, MintedPlace};
pub use path::{PathBuffer, Strip};
pub use reason::Reason;
pub use websocket::{Boundaries, FrameScanner, close_frame};
