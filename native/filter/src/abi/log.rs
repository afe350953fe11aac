//! Envoy's log, and whether Envoy only validates its configuration.

use super::foreign::{
    Buf, envoy_dynamic_module_callback_is_validation_mode, envoy_dynamic_module_callback_log,
    envoy_dynamic_module_callback_log_enabled,
};

/// Envoy's log levels, as far as the module uses them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u32)]
pub enum Level {
    Debug = 1,
    Info = 2,
    Warn = 3,
    Error = 4,
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
