//! Envoy 1.40's dynamic-module C ABI (v0.2.0): the only folder with `unsafe`.
//!
//! | module | holds |
//! | --- | --- |
//! | [`foreign`] | what Envoy exports, as C declares it |
//! | [`log`] | Envoy's log, and its mode |
//! | [`filter`] | what a filter answers to, in words of Envoy |
//! | [`huge_pages`] | where the kernel keeps Envoy |
//! | [`headers`] | all headers of a map at once |
//! | [`stream`] | one HTTP stream: headers, bodies, answers, wake-ups |
//! | [`balancer`] | hosts, and the request that a host is picked for |
//! | [`bootstrap`] | the main thread: metrics, timer, init |
//! | [`hooks`] | what Envoy calls |
#![allow(unsafe_code)]

mod balancer;
mod bootstrap;
mod filter;
mod foreign;
mod headers;
mod hooks;
pub mod huge_pages;
mod log;
mod stream;

pub use balancer::{Hosts, PickContext};
pub use bootstrap::{Bootstrap, MainScheduler, MetricId, Timer};
pub use filter::{Body, BodyStatus, HeadersStatus, HttpFilter, Map, TrailersStatus};
pub use headers::Headers;
pub use log::{Level, is_validation_mode, log, log_enabled};
pub use stream::{Scheduler, Stream};
