//! What an HTTP filter answers to.

use super::stream::Stream;

/// Which header map of a stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum Map {
    Request = 0,
    RequestTrailers = 1,
    Response = 2,
    ResponseTrailers = 3,
}

/// What just arrived of a stream's bodies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum Body {
    ReceivedRequest = 0,
    ReceivedResponse = 2,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum HeadersStatus {
    Continue = 0,
    StopIteration = 1,
    /// Also body and trailers hooks wait, and the sender is slowed down at the buffer limit.
    StopAllAndWatermark = 4,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum BodyStatus {
    Continue = 0,
    StopAndBuffer = 1,
    StopAndWatermark = 2,
    StopNoBuffer = 3,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum TrailersStatus {
    Continue = 0,
    StopIteration = 1,
}

/// What an HTTP filter of ours answers to. Dropped when Envoy destroys the filter.
pub trait HttpFilter {
    fn request_headers(&self, _stream: &mut Stream, _end: bool) -> HeadersStatus {
        HeadersStatus::Continue
    }
    fn request_body(&self, _stream: &mut Stream, _end: bool) -> BodyStatus {
        BodyStatus::Continue
    }
    fn request_trailers(&self, _stream: &mut Stream) -> TrailersStatus {
        TrailersStatus::Continue
    }
    fn response_headers(&self, _stream: &mut Stream, _end: bool) -> HeadersStatus {
        HeadersStatus::Continue
    }
    fn response_body(&self, _stream: &mut Stream, _end: bool) -> BodyStatus {
        BodyStatus::Continue
    }
    fn response_trailers(&self, _stream: &mut Stream) -> TrailersStatus {
        TrailersStatus::Continue
    }
    fn scheduled(&self, _stream: &mut Stream, _event: u64) {}
    /// The stream has ended. Not called for upstream filters.
    fn stream_complete(&self, _stream: &mut Stream) {}
    /// Envoy itself answers; its answer goes through `response_headers` next.
    fn local_reply(&self, _details: &[u8]) {}
}
