//! Envoy 1.40's dynamic-module C ABI (v0.2.0): the only file with `unsafe`.
//!
//! Below: the callbacks that Envoy exports, safe handles around them, and the hooks that Envoy calls.
//! Every hook runs behind `catch_unwind`, because a panic that leaves an `extern "C"` function
//! aborts Envoy. Envoy may call a hook of a filter while another hook of it is running (a local
//! reply, `continue_*`), so filters take `&self` and each hook builds its own `&mut Stream`; views
//! of headers and bodies borrow that `Stream` and cannot outlive a call that changes it.
#![allow(unsafe_code)]

use crate::entry;
use core::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};

type P = *mut c_void;

#[repr(C)]
#[derive(Clone, Copy)]
struct Buf {
    ptr: *const u8,
    len: usize,
}

impl Buf {
    const NULL: Self = Self {
        ptr: core::ptr::null(),
        len: 0,
    };

    fn of(bytes: &[u8]) -> Self {
        Self {
            ptr: bytes.as_ptr(),
            len: bytes.len(),
        }
    }

    /// # Safety
    /// The buffer must stay valid for `'a`.
    unsafe fn bytes<'a>(self) -> &'a [u8] {
        if self.ptr.is_null() || self.len == 0 {
            return &[];
        }
        unsafe { core::slice::from_raw_parts(self.ptr, self.len) }
    }
}

#[repr(C)]
#[derive(Clone, Copy)]
struct Header {
    key: Buf,
    value: Buf,
}

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

/// Envoy's log levels, as far as the module uses them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u32)]
pub enum Level {
    Debug = 1,
    Info = 2,
    Warn = 3,
    Error = 4,
}

macro_rules! callbacks {
    ($(fn $name:ident($($arg:ident: $ty:ty),*) $(-> $ret:ty)?;)*) => {
        unsafe extern "C" { $(fn $name($($arg: $ty),*) $(-> $ret)?;)* }
    };
}

callbacks! {
    fn envoy_dynamic_module_callback_log(level: u32, message: Buf);
    fn envoy_dynamic_module_callback_log_enabled(level: u32) -> bool;
    fn envoy_dynamic_module_callback_is_validation_mode() -> bool;
    fn envoy_dynamic_module_callback_http_get_header(f: P, map: u32, key: Buf, out: *mut Buf, index: usize, total: *mut usize) -> bool;
    fn envoy_dynamic_module_callback_http_get_headers_size(f: P, map: u32) -> usize;
    fn envoy_dynamic_module_callback_http_get_headers(f: P, map: u32, out: *mut Header) -> bool;
    fn envoy_dynamic_module_callback_http_set_header(f: P, map: u32, key: Buf, value: Buf) -> bool;
    fn envoy_dynamic_module_callback_http_get_body_size(f: P, body: u32) -> usize;
    fn envoy_dynamic_module_callback_http_get_body_chunks_size(f: P, body: u32) -> usize;
    fn envoy_dynamic_module_callback_http_get_body_chunks(f: P, body: u32, out: *mut Buf) -> bool;
    fn envoy_dynamic_module_callback_http_append_body(f: P, body: u32, data: Buf) -> bool;
    fn envoy_dynamic_module_callback_http_drain_body(f: P, body: u32, n: usize) -> bool;
    fn envoy_dynamic_module_callback_get_most_specific_route_config(f: P) -> P;
    fn envoy_dynamic_module_callback_http_send_response(f: P, code: u32, headers: *mut Header, n: usize, body: Buf, details: Buf);
    fn envoy_dynamic_module_callback_http_send_response_data(f: P, data: Buf, end: bool);
    fn envoy_dynamic_module_callback_http_filter_continue_decoding(f: P);
    fn envoy_dynamic_module_callback_http_filter_continue_encoding(f: P);
    fn envoy_dynamic_module_callback_http_filter_reset_stream(f: P, reason: u32, details: Buf);
    fn envoy_dynamic_module_callback_http_filter_scheduler_new(f: P) -> P;
    fn envoy_dynamic_module_callback_http_filter_scheduler_commit(s: P, event: u64);
    fn envoy_dynamic_module_callback_http_filter_scheduler_delete(s: P);
    fn envoy_dynamic_module_callback_http_set_dynamic_metadata_string(f: P, namespace: Buf, key: Buf, value: Buf);
    fn envoy_dynamic_module_callback_bootstrap_extension_config_scheduler_new(c: P) -> P;
    fn envoy_dynamic_module_callback_bootstrap_extension_config_scheduler_commit(s: P, event: u64);
    fn envoy_dynamic_module_callback_bootstrap_extension_config_scheduler_delete(s: P);
    fn envoy_dynamic_module_callback_bootstrap_extension_config_signal_init_complete(c: P);
    fn envoy_dynamic_module_callback_bootstrap_extension_config_define_counter(c: P, name: Buf, labels: *mut Buf, n: usize, id: *mut usize) -> u32;
    fn envoy_dynamic_module_callback_bootstrap_extension_config_increment_counter(c: P, id: usize, values: *mut Buf, n: usize, by: u64) -> u32;
    fn envoy_dynamic_module_callback_bootstrap_extension_config_define_gauge(c: P, name: Buf, labels: *mut Buf, n: usize, id: *mut usize) -> u32;
    fn envoy_dynamic_module_callback_bootstrap_extension_config_set_gauge(c: P, id: usize, values: *mut Buf, n: usize, to: u64) -> u32;
    fn envoy_dynamic_module_callback_bootstrap_extension_timer_new(c: P) -> P;
    fn envoy_dynamic_module_callback_bootstrap_extension_timer_enable(t: P, ms: u64);
    fn envoy_dynamic_module_callback_bootstrap_extension_timer_delete(t: P);
    fn envoy_dynamic_module_callback_lb_get_healthy_hosts_count(lb: P, priority: u32) -> usize;
    fn envoy_dynamic_module_callback_lb_get_healthy_host_address(lb: P, priority: u32, index: usize, out: *mut Buf) -> bool;
    fn envoy_dynamic_module_callback_lb_context_get_downstream_header(ctx: P, key: Buf, out: *mut Buf, index: usize, total: *mut usize) -> bool;
}

/// Whether Envoy logs this level now; asks before a message is formatted.
#[must_use]
pub fn log_enabled(level: Level) -> bool {
    unsafe { envoy_dynamic_module_callback_log_enabled(level as u32) }
}

/// Writes one line to Envoy's log, from any thread.
pub fn log(level: Level, message: &str) {
    unsafe { envoy_dynamic_module_callback_log(level as u32, Buf::of(message.as_bytes())) }
}

/// True under `envoy --mode validate`: parse, but start nothing.
#[must_use]
pub fn is_validation_mode() -> bool {
    unsafe { envoy_dynamic_module_callback_is_validation_mode() }
}

/// One HTTP stream, as one filter sees it, for the time of one hook.
pub struct Stream {
    raw: P,
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
        (found && !out.ptr.is_null()).then(|| unsafe { out.bytes() })
    }

    /// The names of a map that satisfy `wanted`. Allocates only for those found.
    pub fn names(&self, map: Map, wanted: impl Fn(&[u8]) -> bool) -> Vec<Vec<u8>> {
        const INLINE: usize = 32;
        let empty = Header {
            key: Buf::NULL,
            value: Buf::NULL,
        };
        let count =
            unsafe { envoy_dynamic_module_callback_http_get_headers_size(self.raw, map as u32) };
        let mut inline = [empty; INLINE];
        let mut heap = Vec::new();
        let all: &mut [Header] = if count <= INLINE {
            &mut inline[..count]
        } else {
            heap.resize(count, empty);
            &mut heap
        };
        let filled = count > 0
            && unsafe {
                envoy_dynamic_module_callback_http_get_headers(
                    self.raw,
                    map as u32,
                    all.as_mut_ptr(),
                )
            };
        let mut found = Vec::new();
        if filled {
            for header in all.iter() {
                let name = unsafe { header.key.bytes() };
                if wanted(name) {
                    found.push(name.to_vec());
                }
            }
        }
        found
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

    /// Appends views of a body's slices, no copy.
    pub fn body<'a>(&'a self, body: Body, slices: &mut Vec<&'a [u8]>) {
        let count = unsafe {
            envoy_dynamic_module_callback_http_get_body_chunks_size(self.raw, body as u32)
        };
        if count == 0 {
            return;
        }
        let mut raw = vec![Buf::NULL; count];
        let filled = unsafe {
            envoy_dynamic_module_callback_http_get_body_chunks(
                self.raw,
                body as u32,
                raw.as_mut_ptr(),
            )
        };
        if filled {
            slices.extend(raw.into_iter().map(|slice| unsafe { slice.bytes::<'a>() }));
        }
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
    raw: P,
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

/// The hosts of one LB policy instance (one for each worker and one for the main thread).
pub struct Hosts {
    raw: P,
}

impl Hosts {
    /// How many healthy hosts there are; their indexes are below it.
    #[must_use]
    pub fn count(&self) -> usize {
        unsafe { envoy_dynamic_module_callback_lb_get_healthy_hosts_count(self.raw, 0) }
    }

    /// The address of a healthy host, as `ip:port` or `envoy://listener/endpoint`.
    #[must_use]
    pub fn address(&self, index: usize) -> Option<&[u8]> {
        let mut out = Buf::NULL;
        let found = unsafe {
            envoy_dynamic_module_callback_lb_get_healthy_host_address(
                self.raw,
                0,
                index,
                &raw mut out,
            )
        };
        (found && !out.ptr.is_null()).then(|| unsafe { out.bytes() })
    }
}

/// The request for which a host is picked.
pub struct PickContext {
    raw: P,
}

impl PickContext {
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&[u8]> {
        if self.raw.is_null() {
            return None;
        }
        let mut out = Buf::NULL;
        let found = unsafe {
            envoy_dynamic_module_callback_lb_context_get_downstream_header(
                self.raw,
                Buf::of(name.as_bytes()),
                &raw mut out,
                0,
                core::ptr::null_mut(),
            )
        };
        (found && !out.ptr.is_null()).then(|| unsafe { out.bytes() })
    }
}

/// The bootstrap extension, on the main thread.
pub struct Bootstrap {
    raw: P,
}

/// A metric of the bootstrap extension.
#[derive(Clone, Copy)]
pub struct MetricId(usize);

impl Bootstrap {
    /// Lets the listeners open.
    pub fn signal_init_complete(&self) {
        unsafe {
            envoy_dynamic_module_callback_bootstrap_extension_config_signal_init_complete(self.raw);
        }
    }

    /// A handle by which another thread wakes `bootstrap_scheduled` on the main thread.
    #[must_use]
    pub fn scheduler(&self) -> MainScheduler {
        MainScheduler {
            raw: unsafe {
                envoy_dynamic_module_callback_bootstrap_extension_config_scheduler_new(self.raw)
            },
        }
    }

    /// A timer that fires `bootstrap_timer` on the main thread.
    #[must_use]
    pub fn timer(&self) -> Timer {
        Timer {
            raw: unsafe { envoy_dynamic_module_callback_bootstrap_extension_timer_new(self.raw) },
        }
    }

    /// None: Envoy refused the definition.
    #[must_use]
    pub fn define_counter(&self, name: &str, labels: &[&str]) -> Option<MetricId> {
        self.define(
            name,
            labels,
            envoy_dynamic_module_callback_bootstrap_extension_config_define_counter,
        )
    }

    #[must_use]
    pub fn define_gauge(&self, name: &str, labels: &[&str]) -> Option<MetricId> {
        self.define(
            name,
            labels,
            envoy_dynamic_module_callback_bootstrap_extension_config_define_gauge,
        )
    }

    pub fn count(&self, id: MetricId, labels: &[&str], by: u64) {
        self.update(
            id,
            labels,
            by,
            envoy_dynamic_module_callback_bootstrap_extension_config_increment_counter,
        );
    }

    pub fn gauge(&self, id: MetricId, labels: &[&str], to: u64) {
        self.update(
            id,
            labels,
            to,
            envoy_dynamic_module_callback_bootstrap_extension_config_set_gauge,
        );
    }

    fn define(
        &self,
        name: &str,
        labels: &[&str],
        callback: unsafe extern "C" fn(P, Buf, *mut Buf, usize, *mut usize) -> u32,
    ) -> Option<MetricId> {
        let mut raw: Vec<Buf> = labels
            .iter()
            .map(|label| Buf::of(label.as_bytes()))
            .collect();
        let mut id = 0;
        let result = unsafe {
            callback(
                self.raw,
                Buf::of(name.as_bytes()),
                raw.as_mut_ptr(),
                raw.len(),
                &raw mut id,
            )
        };
        (result == 0).then_some(MetricId(id))
    }

    fn update(
        &self,
        id: MetricId,
        labels: &[&str],
        value: u64,
        callback: unsafe extern "C" fn(P, usize, *mut Buf, usize, u64) -> u32,
    ) {
        let mut raw: Vec<Buf> = labels
            .iter()
            .map(|label| Buf::of(label.as_bytes()))
            .collect();
        unsafe { callback(self.raw, id.0, raw.as_mut_ptr(), raw.len(), value) };
    }
}

/// Wakes the bootstrap extension on the main thread, from any thread.
pub struct MainScheduler {
    raw: P,
}

unsafe impl Send for MainScheduler {}
unsafe impl Sync for MainScheduler {}

impl MainScheduler {
    pub fn commit(&self, event: u64) {
        unsafe {
            envoy_dynamic_module_callback_bootstrap_extension_config_scheduler_commit(
                self.raw, event,
            );
        }
    }
}

impl Drop for MainScheduler {
    fn drop(&mut self) {
        unsafe {
            envoy_dynamic_module_callback_bootstrap_extension_config_scheduler_delete(self.raw);
        }
    }
}

/// A one-shot timer of the main thread.
pub struct Timer {
    raw: P,
}

impl Timer {
    pub fn start(&self, ms: u64) {
        unsafe { envoy_dynamic_module_callback_bootstrap_extension_timer_enable(self.raw, ms) }
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        unsafe { envoy_dynamic_module_callback_bootstrap_extension_timer_delete(self.raw) }
    }
}

// ---- hooks ----

/// Runs a hook that has no stream; a panic is logged, counted and turned into `fallback`.
fn guarded<T>(hook: &str, fallback: T, body: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|_| {
        entry::panicked(hook);
        fallback
    })
}

/// Runs a hook of a stream; a panic is answered with 500 `internal` and `stop`.
///
/// # Safety
/// `filter` is a pointer from `http_filter_new`, not yet destroyed.
unsafe fn on_stream<T>(
    hook: &str,
    envoy: P,
    filter: P,
    stop: T,
    body: impl FnOnce(&entry::Filter, &mut Stream) -> T,
) -> T {
    let filter = unsafe { &*filter.cast::<entry::Filter>() };
    catch_unwind(AssertUnwindSafe(|| {
        body(filter, &mut Stream { raw: envoy })
    }))
    .unwrap_or_else(|_| {
        entry::panicked(hook);
        let answer = AssertUnwindSafe(|| entry::answer_panic(&mut Stream { raw: envoy }));
        if catch_unwind(answer).is_err() {
            entry::panicked("answer_panic");
        }
        stop
    })
}

fn boxed<T>(value: Option<T>) -> P {
    value.map_or(core::ptr::null_mut(), |value| {
        Box::into_raw(Box::new(value)).cast()
    })
}

/// # Safety
/// `raw` is null or came from `boxed::<T>` and is dropped once.
unsafe fn drop_boxed<T>(hook: &str, raw: P) {
    if !raw.is_null() {
        guarded(hook, (), || drop(unsafe { Box::from_raw(raw.cast::<T>()) }));
    }
}

/// # Safety
/// Envoy's buffers live for the time of the hook.
unsafe fn text<'a>(buffer: Buf) -> &'a str {
    core::str::from_utf8(unsafe { buffer.bytes() }).unwrap_or("")
}

macro_rules! hooks {
    ($(fn $name:ident($($arg:ident: $ty:ty),*) $(-> $ret:ty)? $body:block)*) => {
        $(#[unsafe(no_mangle)]
        unsafe extern "C" fn $name($($arg: $ty),*) $(-> $ret)? { unsafe { $body } })*
    };
}

/// Hooks that Envoy wants to find, but that have nothing to do here.
macro_rules! idle_hooks {
    ($($name:ident($($ty:ty),*);)*) => {
        $(#[unsafe(no_mangle)]
        unsafe extern "C" fn $name($(_: $ty),*) {})*
    };
}

#[unsafe(no_mangle)]
extern "C" fn envoy_dynamic_module_on_program_init() -> *const u8 {
    guarded("program_init", (), entry::program_init);
    c"v0.2.0".as_ptr().cast()
}

/// The extension object is its configuration.
#[unsafe(no_mangle)]
extern "C" fn envoy_dynamic_module_on_bootstrap_extension_new(extension: P, _envoy: P) -> P {
    extension
}

/// The feed thread woke the main thread.
#[unsafe(no_mangle)]
extern "C" fn envoy_dynamic_module_on_bootstrap_extension_config_scheduled(
    envoy: P,
    _extension: P,
    event: u64,
) {
    guarded("bootstrap_extension_config_scheduled", (), || {
        entry::Extension::scheduled(&Bootstrap { raw: envoy }, event);
    });
}

/// No admin endpoint is registered, so this is never called.
#[unsafe(no_mangle)]
extern "C" fn envoy_dynamic_module_on_bootstrap_extension_admin_request(
    _: P,
    _: P,
    _: Buf,
    _: Buf,
    _: Buf,
) -> u32 {
    404
}

hooks! {
    fn envoy_dynamic_module_on_http_filter_config_new(_envoy: P, name: Buf, config: Buf) -> P {
        guarded("http_filter_config_new", core::ptr::null_mut(), || {
            boxed(entry::filter_config(text(name), text(config)))
        })
    }
    fn envoy_dynamic_module_on_http_filter_config_destroy(config: P) {
        drop_boxed::<entry::FilterConfig>("http_filter_config_destroy", config);
    }
    fn envoy_dynamic_module_on_http_filter_per_route_config_new(name: Buf, config: Buf) -> P {
        guarded("http_filter_per_route_config_new", core::ptr::null_mut(), || {
            boxed(entry::route_config(text(name), text(config)))
        })
    }
    fn envoy_dynamic_module_on_http_filter_per_route_config_destroy(config: P) {
        drop_boxed::<entry::RouteConfig>("http_filter_per_route_config_destroy", config);
    }
    fn envoy_dynamic_module_on_http_filter_new(config: P, _envoy: P) -> P {
        guarded("http_filter_new", core::ptr::null_mut(), || {
            boxed(Some((*config.cast::<entry::FilterConfig>()).filter()))
        })
    }
    fn envoy_dynamic_module_on_http_filter_destroy(filter: P) {
        drop_boxed::<entry::Filter>("http_filter_destroy", filter);
    }
    fn envoy_dynamic_module_on_http_filter_request_headers(envoy: P, filter: P, end: bool) -> u32 {
        on_stream("request_headers", envoy, filter, HeadersStatus::StopIteration, |f, s| f.request_headers(s, end)) as u32
    }
    fn envoy_dynamic_module_on_http_filter_request_body(envoy: P, filter: P, end: bool) -> u32 {
        on_stream("request_body", envoy, filter, BodyStatus::StopNoBuffer, |f, s| f.request_body(s, end)) as u32
    }
    fn envoy_dynamic_module_on_http_filter_request_trailers(envoy: P, filter: P) -> u32 {
        on_stream("request_trailers", envoy, filter, TrailersStatus::StopIteration, HttpFilter::request_trailers) as u32
    }
    fn envoy_dynamic_module_on_http_filter_response_headers(envoy: P, filter: P, end: bool) -> u32 {
        on_stream("response_headers", envoy, filter, HeadersStatus::StopIteration, |f, s| f.response_headers(s, end)) as u32
    }
    fn envoy_dynamic_module_on_http_filter_response_body(envoy: P, filter: P, end: bool) -> u32 {
        on_stream("response_body", envoy, filter, BodyStatus::StopNoBuffer, |f, s| f.response_body(s, end)) as u32
    }
    fn envoy_dynamic_module_on_http_filter_response_trailers(envoy: P, filter: P) -> u32 {
        on_stream("response_trailers", envoy, filter, TrailersStatus::StopIteration, HttpFilter::response_trailers) as u32
    }
    fn envoy_dynamic_module_on_http_filter_scheduled(envoy: P, filter: P, event: u64) {
        on_stream("scheduled", envoy, filter, (), |f, s| f.scheduled(s, event));
    }
    fn envoy_dynamic_module_on_http_filter_stream_complete(envoy: P, filter: P) {
        on_stream("stream_complete", envoy, filter, (), HttpFilter::stream_complete);
    }
    fn envoy_dynamic_module_on_http_filter_local_reply(_envoy: P, filter: P, _code: u32, details: Buf, _reset: bool) -> u32 {
        guarded("local_reply", (), || (*filter.cast::<entry::Filter>()).local_reply(details.bytes()));
        0
    }
    fn envoy_dynamic_module_on_lb_config_new(_envoy: P, name: Buf, config: Buf) -> P {
        guarded("lb_config_new", core::ptr::null_mut(), || boxed(entry::lb_config(text(name), text(config))))
    }
    fn envoy_dynamic_module_on_lb_config_destroy(config: P) {
        drop_boxed::<entry::LbConfig>("lb_config_destroy", config);
    }
    fn envoy_dynamic_module_on_lb_new(config: P, envoy: P) -> P {
        guarded("lb_new", core::ptr::null_mut(), || {
            let config = &*config.cast::<entry::LbConfig>();
            boxed(Some(entry::LbPolicy::new(config, &Hosts { raw: envoy })))
        })
    }
    fn envoy_dynamic_module_on_lb_destroy(policy: P) {
        drop_boxed::<entry::LbPolicy>("lb_destroy", policy);
    }
    fn envoy_dynamic_module_on_lb_choose_host(envoy: P, policy: P, context: P, priority: *mut u32, index: *mut u32) -> bool {
        guarded("lb_choose_host", false, || {
            let policy = &*policy.cast::<entry::LbPolicy>();
            match policy.choose(&Hosts { raw: envoy }, &PickContext { raw: context }) {
                Some(host) => {
                    *priority = 0;
                    *index = host;
                    true
                }
                None => false,
            }
        })
    }
    fn envoy_dynamic_module_on_lb_on_host_membership_update(envoy: P, policy: P, _added: usize, _removed: usize) {
        guarded("lb_on_host_membership_update", (), || {
            (*policy.cast::<entry::LbPolicy>()).hosts_changed(&Hosts { raw: envoy });
        });
    }
    fn envoy_dynamic_module_on_bootstrap_extension_config_new(envoy: P, _name: Buf, config: Buf) -> P {
        guarded("bootstrap_extension_config_new", core::ptr::null_mut(), || {
            boxed(entry::Extension::start(&Bootstrap { raw: envoy }, text(config)))
        })
    }
    fn envoy_dynamic_module_on_bootstrap_extension_config_destroy(extension: P) {
        drop_boxed::<entry::Extension>("bootstrap_extension_config_destroy", extension);
    }
    fn envoy_dynamic_module_on_bootstrap_extension_timer_fired(envoy: P, extension: P, _timer: P) {
        guarded("bootstrap_extension_timer_fired", (), || {
            (*extension.cast::<entry::Extension>()).timer_fired(&Bootstrap { raw: envoy });
        });
    }
    fn envoy_dynamic_module_on_bootstrap_extension_shutdown(_envoy: P, _extension: P, done: Option<unsafe extern "C" fn(P)>, context: P) {
        guarded("bootstrap_extension_shutdown", (), entry::Extension::shutdown);
        if let Some(done) = done {
            done(context);
        }
    }
}

idle_hooks! {
    envoy_dynamic_module_on_http_filter_http_callout_done(P, P, u64, u32, P, usize, P, usize);
    envoy_dynamic_module_on_http_filter_http_stream_headers(P, P, u64, P, usize, bool);
    envoy_dynamic_module_on_http_filter_http_stream_data(P, P, u64, P, usize, bool);
    envoy_dynamic_module_on_http_filter_http_stream_trailers(P, P, u64, P, usize);
    envoy_dynamic_module_on_http_filter_http_stream_complete(P, P, u64);
    envoy_dynamic_module_on_http_filter_http_stream_reset(P, P, u64, u32);
    envoy_dynamic_module_on_http_filter_downstream_above_write_buffer_high_watermark(P, P);
    envoy_dynamic_module_on_http_filter_downstream_below_write_buffer_low_watermark(P, P);
    envoy_dynamic_module_on_bootstrap_extension_server_initialized(P, P);
    envoy_dynamic_module_on_bootstrap_extension_worker_thread_initialized(P, P);
    envoy_dynamic_module_on_bootstrap_extension_drain_started(P, P);
    envoy_dynamic_module_on_bootstrap_extension_destroy(P);
    envoy_dynamic_module_on_bootstrap_extension_http_callout_done(P, P, u64, u32, P, usize, P, usize);
    envoy_dynamic_module_on_bootstrap_extension_file_changed(P, P, Buf, u32);
    envoy_dynamic_module_on_bootstrap_extension_cluster_add_or_update(P, P, Buf);
    envoy_dynamic_module_on_bootstrap_extension_cluster_removal(P, P, Buf);
    envoy_dynamic_module_on_bootstrap_extension_listener_add_or_update(P, P, Buf);
    envoy_dynamic_module_on_bootstrap_extension_listener_removal(P, P, Buf);
}
