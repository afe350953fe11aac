//! The bootstrap extension's side of Envoy's main thread.

use super::foreign::{
    Buf, P, envoy_dynamic_module_callback_bootstrap_extension_config_define_counter,
    envoy_dynamic_module_callback_bootstrap_extension_config_define_gauge,
    envoy_dynamic_module_callback_bootstrap_extension_config_increment_counter,
    envoy_dynamic_module_callback_bootstrap_extension_config_scheduler_commit,
    envoy_dynamic_module_callback_bootstrap_extension_config_scheduler_delete,
    envoy_dynamic_module_callback_bootstrap_extension_config_scheduler_new,
    envoy_dynamic_module_callback_bootstrap_extension_config_set_gauge,
    envoy_dynamic_module_callback_bootstrap_extension_config_signal_init_complete,
    envoy_dynamic_module_callback_bootstrap_extension_timer_delete,
    envoy_dynamic_module_callback_bootstrap_extension_timer_enable,
    envoy_dynamic_module_callback_bootstrap_extension_timer_new,
};

/// The bootstrap extension, on the main thread.
pub struct Bootstrap {
    pub(super) raw: P,
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
    pub(super) raw: P,
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
    pub(super) raw: P,
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
