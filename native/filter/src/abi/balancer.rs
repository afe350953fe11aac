//! What an LB policy sees.

use super::foreign::{
    Buf, P, envoy_dynamic_module_callback_lb_context_get_downstream_headers,
    envoy_dynamic_module_callback_lb_context_get_downstream_headers_size,
    envoy_dynamic_module_callback_lb_get_healthy_host_address,
    envoy_dynamic_module_callback_lb_get_healthy_hosts_count,
};
use super::headers::{self, Headers};

/// The hosts of one LB policy instance (one for each worker and one for the main thread).
pub struct Hosts {
    pub(super) raw: P,
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
        (found && !out.is_null()).then(|| unsafe { out.bytes() })
    }
}

/// The request for which a host is picked.
pub struct PickContext {
    pub(super) raw: P,
}

impl PickContext {
    /// Hands all headers of the request to `act`.
    pub fn headers<R>(&self, act: impl for<'a> FnOnce(Headers<'a>) -> R) -> R {
        let raw = self.raw;
        // Envoy owns the bytes as long as the pick runs.
        unsafe {
            let count = if raw.is_null() {
                0
            } else {
                envoy_dynamic_module_callback_lb_context_get_downstream_headers_size(raw)
            };
            headers::read(
                count,
                |out| envoy_dynamic_module_callback_lb_context_get_downstream_headers(raw, out),
                act,
            )
        }
    }
}
