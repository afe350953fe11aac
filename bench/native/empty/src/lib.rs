//! A dynamic module whose HTTP filter does nothing: what the module ABI itself costs.

use core::ffi::c_void;

type Pointer = *mut c_void;

#[repr(C)]
pub struct Buffer {
    pointer: *const u8,
    length: usize,
}

/// Anything but null: there is nothing to point to.
const SOMETHING: Pointer = core::ptr::dangling_mut::<u8>().cast();
const CONTINUE: u32 = 0;

#[unsafe(no_mangle)]
pub extern "C" fn envoy_dynamic_module_on_program_init() -> *const u8 {
    c"v0.2.0".as_ptr().cast()
}

#[unsafe(no_mangle)]
pub extern "C" fn envoy_dynamic_module_on_http_filter_config_new(
    _: Pointer,
    _: Buffer,
    _: Buffer,
) -> Pointer {
    SOMETHING
}

#[unsafe(no_mangle)]
pub extern "C" fn envoy_dynamic_module_on_http_filter_config_destroy(_: Pointer) {}

#[unsafe(no_mangle)]
pub extern "C" fn envoy_dynamic_module_on_http_filter_new(_: Pointer, _: Pointer) -> Pointer {
    SOMETHING
}

#[unsafe(no_mangle)]
pub extern "C" fn envoy_dynamic_module_on_http_filter_destroy(_: Pointer) {}

#[unsafe(no_mangle)]
pub extern "C" fn envoy_dynamic_module_on_http_filter_request_headers(
    _: Pointer,
    _: Pointer,
    _: bool,
) -> u32 {
    CONTINUE
}

#[unsafe(no_mangle)]
pub extern "C" fn envoy_dynamic_module_on_http_filter_request_body(
    _: Pointer,
    _: Pointer,
    _: bool,
) -> u32 {
    CONTINUE
}

#[unsafe(no_mangle)]
pub extern "C" fn envoy_dynamic_module_on_http_filter_request_trailers(
    _: Pointer,
    _: Pointer,
) -> u32 {
    CONTINUE
}

#[unsafe(no_mangle)]
pub extern "C" fn envoy_dynamic_module_on_http_filter_response_headers(
    _: Pointer,
    _: Pointer,
    _: bool,
) -> u32 {
    CONTINUE
}

#[unsafe(no_mangle)]
pub extern "C" fn envoy_dynamic_module_on_http_filter_response_body(
    _: Pointer,
    _: Pointer,
    _: bool,
) -> u32 {
    CONTINUE
}

#[unsafe(no_mangle)]
pub extern "C" fn envoy_dynamic_module_on_http_filter_response_trailers(
    _: Pointer,
    _: Pointer,
) -> u32 {
    CONTINUE
}

#[unsafe(no_mangle)]
pub extern "C" fn envoy_dynamic_module_on_http_filter_stream_complete(_: Pointer, _: Pointer) {}

#[unsafe(no_mangle)]
pub extern "C" fn envoy_dynamic_module_on_http_filter_http_callout_done(
    _: Pointer,
    _: Pointer,
    _: u64,
    _: u32,
    _: Pointer,
    _: usize,
    _: Pointer,
    _: usize,
) {
}

#[unsafe(no_mangle)]
pub extern "C" fn envoy_dynamic_module_on_http_filter_http_stream_headers(
    _: Pointer,
    _: Pointer,
    _: u64,
    _: Pointer,
    _: usize,
    _: bool,
) {
}

#[unsafe(no_mangle)]
pub extern "C" fn envoy_dynamic_module_on_http_filter_http_stream_data(
    _: Pointer,
    _: Pointer,
    _: u64,
    _: Pointer,
    _: usize,
    _: bool,
) {
}

#[unsafe(no_mangle)]
pub extern "C" fn envoy_dynamic_module_on_http_filter_http_stream_trailers(
    _: Pointer,
    _: Pointer,
    _: u64,
    _: Pointer,
    _: usize,
) {
}

#[unsafe(no_mangle)]
pub extern "C" fn envoy_dynamic_module_on_http_filter_http_stream_complete(
    _: Pointer,
    _: Pointer,
    _: u64,
) {
}

#[unsafe(no_mangle)]
pub extern "C" fn envoy_dynamic_module_on_http_filter_http_stream_reset(
    _: Pointer,
    _: Pointer,
    _: u64,
    _: u32,
) {
}

#[unsafe(no_mangle)]
pub extern "C" fn envoy_dynamic_module_on_http_filter_scheduled(_: Pointer, _: Pointer, _: u64) {}

#[unsafe(no_mangle)]
pub extern "C" fn envoy_dynamic_module_on_http_filter_downstream_above_write_buffer_high_watermark(
    _: Pointer,
    _: Pointer,
) {
}

#[unsafe(no_mangle)]
pub extern "C" fn envoy_dynamic_module_on_http_filter_downstream_below_write_buffer_low_watermark(
    _: Pointer,
    _: Pointer,
) {
}
