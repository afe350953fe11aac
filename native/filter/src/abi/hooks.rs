//! The hooks that Envoy calls.
//!
//! Every hook runs behind `catch_unwind`, because a panic that leaves an `extern "C"` function
//! aborts Envoy.

use super::balancer::{Hosts, PickContext};
use super::bootstrap::Bootstrap;
use super::filter::{BodyStatus, HeadersStatus, HttpFilter, TrailersStatus};
use super::foreign::{Buf, P};
use super::stream::Stream;
use crate::entry;
use std::panic::{AssertUnwindSafe, catch_unwind};

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
