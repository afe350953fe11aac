//! What Envoy exports: buffers, and the callbacks in use.

use core::ffi::c_void;

pub(super) type P = *mut c_void;

#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct Buf {
    ptr: *const u8,
    len: usize,
}

impl Buf {
    pub(super) const NULL: Self = Self {
        ptr: core::ptr::null(),
        len: 0,
    };

    pub(super) fn of(bytes: &[u8]) -> Self {
        Self {
            ptr: bytes.as_ptr(),
            len: bytes.len(),
        }
    }

    /// Envoy's «none», which an empty value is not.
    pub(super) fn is_null(self) -> bool {
        self.ptr.is_null()
    }

    /// # Safety
    /// The buffer must stay valid for `'a`.
    pub(super) unsafe fn bytes<'a>(self) -> &'a [u8] {
        if self.ptr.is_null() || self.len == 0 {
            return &[];
        }
        unsafe { core::slice::from_raw_parts(self.ptr, self.len) }
    }
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct Header {
    pub(super) key: Buf,
    pub(super) value: Buf,
}

macro_rules! callbacks {
    ($(fn $name:ident($($arg:ident: $ty:ty),*) $(-> $ret:ty)?;)*) => {
        unsafe extern "C" { $(pub(super) fn $name($($arg: $ty),*) $(-> $ret)?;)* }
    };
}

callbacks! {
    fn envoy_dynamic_module_callback_log(level: u32, message: Buf);
    fn envoy_dynamic_module_callback_log_enabled(level: u32) -> bool;
    fn envoy_dynamic_module_callback_is_validation_mode() -> bool;
    fn envoy_dynamic_module_callback_http_get_header(f: P, map: u32, key: Buf, out: *mut Buf, index: usize, total: *mut usize) -> bool;
    fn envoy_dynamic_module_callback_http_get_headers_size(f: P, map: u32) -> usize;
    fn envoy_dynamic_module_callback_http_get_headers(f: P, map: u32, out: *mut Header) -> bool;
    fn envoy_dynamic_module_callback_http_add_header(f: P, map: u32, key: Buf, value: Buf) -> bool;
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
    fn envoy_dynamic_module_callback_lb_context_get_downstream_headers_size(ctx: P) -> usize;
    fn envoy_dynamic_module_callback_lb_context_get_downstream_headers(ctx: P, out: *mut Header) -> bool;
}
