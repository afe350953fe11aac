//! One HTTP stream.
//!
//! Envoy may call a hook of a filter while another hook of it is running (a local reply,
//! `continue_*`), so filters take `&self` and each hook builds its own `&mut Stream`; views of
//! headers and bodies borrow that `Stream` and cannot outlive a call that changes it.

use super::filter::{Body, Map};
use super::foreign::{
    Buf, Header, P, envoy_dynamic_module_callback_get_most_specific_route_config,
    envoy_dynamic_module_callback_http_add_header, envoy_dynamic_module_callback_http_append_body,
    envoy_dynamic_module_callback_http_drain_body,
    envoy_dynamic_module_callback_http_filter_continue_decoding,
    envoy_dynamic_module_callback_http_filter_continue_encoding,
    envoy_dynamic_module_callback_http_filter_reset_stream,
    envoy_dynamic_module_callback_http_filter_scheduler_commit,
    envoy_dynamic_module_callback_http_filter_scheduler_delete,
    envoy_dynamic_module_callback_http_filter_scheduler_new,
    envoy_dynamic_module_callback_http_get_body_chunks,
    envoy_dynamic_module_callback_http_get_body_chunks_size,
    envoy_dynamic_module_callback_http_get_body_size,
    envoy_dynamic_module_callback_http_get_header, envoy_dynamic_module_callback_http_get_headers,
    envoy_dynamic_module_callback_http_get_headers_size,
    envoy_dynamic_module_callback_http_send_response,
    envoy_dynamic_module_callback_http_send_response_data,
    envoy_dynamic_module_callback_http_set_dynamic_metadata_string,
    envoy_dynamic_module_callback_http_set_header,
};
use super::headers::{self, Headers};
use crate::entry;
use smallvec::SmallVec;

/// One HTTP stream, as one filter sees it, for the time of one hook.
pub struct Stream {
    pub(super) raw: P,
}

impl Stream {
    /// The first value of a header.
    #[must_use]
    pub fn header(&self, map: Map, name: &str) -> Option<&[u8]> {
        self.header_at(map, name, 0)
    }

    /// The n-th value of a header.
    #[must_use]
    pub fn header_at(&self, map: Map, name: &str, index: usize) -> Option<&[u8]> {
        let mut out = Buf::NULL;
        let found = unsafe {
            envoy_dynamic_module_callback_http_get_header(
                self.raw,
                map as u32,
                Buf::of(name.as_bytes()),
                &raw mut out,
                index,
                core::ptr::null_mut(),
            )
        };
        // Envoy owns the bytes until the header map changes, which needs `&mut self`.
        (found && !out.is_null()).then(|| unsafe { out.bytes() })
    }

    /// Hands all headers of a map to `act`; cheaper than one look-up.
    pub fn headers<R>(&self, map: Map, act: impl for<'a> FnOnce(Headers<'a>) -> R) -> R {
        let (raw, map) = (self.raw, map as u32);
        // The map cannot change under `act`: that needs `&mut self`.
        unsafe {
            let count = envoy_dynamic_module_callback_http_get_headers_size(raw, map);
            headers::read(
                count,
                |out| envoy_dynamic_module_callback_http_get_headers(raw, map, out),
                act,
            )
        }
    }

    /// Appends a header that is known not to be there; cheaper than `set_header`.
    pub fn add_header(&mut self, map: Map, name: &str, value: &[u8]) {
        unsafe {
            envoy_dynamic_module_callback_http_add_header(
                self.raw,
                map as u32,
                Buf::of(name.as_bytes()),
                Buf::of(value),
            )
        };
    }

    /// Replaces all values of a header.
    pub fn set_header(&mut self, map: Map, name: &str, value: &[u8]) {
        unsafe {
            envoy_dynamic_module_callback_http_set_header(
                self.raw,
                map as u32,
                Buf::of(name.as_bytes()),
                Buf::of(value),
            )
        };
    }

    /// Removes all values of a header.
    pub fn remove_header(&mut self, map: Map, name: &[u8]) {
        unsafe {
            envoy_dynamic_module_callback_http_set_header(
                self.raw,
                map as u32,
                Buf::of(name),
                Buf::NULL,
            )
        };
    }

    #[must_use]
    pub fn body_size(&self, body: Body) -> usize {
        unsafe { envoy_dynamic_module_callback_http_get_body_size(self.raw, body as u32) }
    }

    /// Views of a body's slices, no copy.
    pub fn body(&self, body: Body) -> impl Iterator<Item = &[u8]> {
        let count = unsafe {
            envoy_dynamic_module_callback_http_get_body_chunks_size(self.raw, body as u32)
        };
        let mut raw: SmallVec<[Buf; 8]> = SmallVec::from_elem(Buf::NULL, count);
        let filled = count > 0
            && unsafe {
                envoy_dynamic_module_callback_http_get_body_chunks(
                    self.raw,
                    body as u32,
                    raw.as_mut_ptr(),
                )
            };
        if !filled {
            raw.clear();
        }
        raw.into_iter().map(|slice| unsafe { slice.bytes() })
    }

    /// Drops the first `n` bytes of a body.
    pub fn drain_body(&mut self, body: Body, n: usize) {
        unsafe { envoy_dynamic_module_callback_http_drain_body(self.raw, body as u32, n) };
    }

    /// Appends to a body.
    pub fn append_body(&mut self, body: Body, data: &[u8]) {
        unsafe {
            envoy_dynamic_module_callback_http_append_body(self.raw, body as u32, Buf::of(data))
        };
    }

    /// The most specific per-route configuration, if the route has one.
    #[must_use]
    pub fn route_config(&self) -> Option<entry::RouteConfig> {
        let raw = unsafe { envoy_dynamic_module_callback_get_most_specific_route_config(self.raw) };
        // Made by `per_route_config_new` below; Envoy keeps it as long as the stream's route.
        (!raw.is_null()).then(|| unsafe { (*raw.cast::<entry::RouteConfig>()).clone() })
    }

    /// Answers the client. `details` shows as `%RESPONSE_CODE_DETAILS%`. A gRPC request needs a
    /// `grpc-status` among `headers`, else Envoy makes it 200 with grpc-status 0.
    pub fn send_response(
        &mut self,
        code: u32,
        headers: &[(&str, &[u8])],
        body: &[u8],
        details: &str,
    ) {
        let mut raw: Vec<Header> = headers
            .iter()
            .map(|(name, value)| Header {
                key: Buf::of(name.as_bytes()),
                value: Buf::of(value),
            })
            .collect();
        unsafe {
            envoy_dynamic_module_callback_http_send_response(
                self.raw,
                code,
                raw.as_mut_ptr(),
                raw.len(),
                Buf::of(body),
                Buf::of(details.as_bytes()),
            );
        }
    }

    /// Sends bytes to the client of an accepted stream; after it `response_body` is not called any
    /// more, so use it for the last bytes.
    pub fn send_response_data(&mut self, data: &[u8], end: bool) {
        unsafe {
            envoy_dynamic_module_callback_http_send_response_data(self.raw, Buf::of(data), end);
        }
    }

    pub fn continue_decoding(&mut self) {
        unsafe { envoy_dynamic_module_callback_http_filter_continue_decoding(self.raw) }
    }

    pub fn continue_encoding(&mut self) {
        unsafe { envoy_dynamic_module_callback_http_filter_continue_encoding(self.raw) }
    }

    /// Ends the stream without a clean end on both sides.
    pub fn reset(&mut self, details: &str) {
        const LOCAL_RESET: u32 = 0;
        unsafe {
            envoy_dynamic_module_callback_http_filter_reset_stream(
                self.raw,
                LOCAL_RESET,
                Buf::of(details.as_bytes()),
            );
        }
    }

    /// Writes one string of dynamic metadata in namespace `belay`.
    pub fn set_metadata(&mut self, key: &str, value: &[u8]) {
        unsafe {
            envoy_dynamic_module_callback_http_set_dynamic_metadata_string(
                self.raw,
                Buf::of(b"belay"),
                Buf::of(key.as_bytes()),
                Buf::of(value),
            );
        }
    }

    /// A handle by which another thread wakes this filter's `scheduled` hook on its worker. Drop it
    /// before the filter is destroyed.
    #[must_use]
    pub fn scheduler(&mut self) -> Scheduler {
        Scheduler {
            raw: unsafe { envoy_dynamic_module_callback_http_filter_scheduler_new(self.raw) },
        }
    }
}

/// Wakes one filter from any thread.
pub struct Scheduler {
    pub(super) raw: P,
}

// Envoy documents the scheduler as usable from any thread; `commit` posts to the worker.
unsafe impl Send for Scheduler {}
unsafe impl Sync for Scheduler {}

impl Scheduler {
    pub fn commit(&self, event: u64) {
        unsafe { envoy_dynamic_module_callback_http_filter_scheduler_commit(self.raw, event) }
    }
}

impl Drop for Scheduler {
    fn drop(&mut self) {
        unsafe { envoy_dynamic_module_callback_http_filter_scheduler_delete(self.raw) }
    }
}
