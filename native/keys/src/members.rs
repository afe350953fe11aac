//! Reads the members of a JSON object one by one; what nobody asked for is refused.

use serde_json::{Map, Value};

use crate::config::ConfigError;

/// The members of one object that were not taken yet, and where the object stands.
pub(crate) struct Members {
    at: String,
    left: Map<String, Value>,
}

impl Members {
    pub(crate) fn parse(json: &[u8]) -> Result<Members, ConfigError> {
        let value = serde_json::from_slice(json)
            .map_err(|why| ConfigError::new("", format!("is no JSON: {why}")))?;
        Members::of(String::new(), value)
    }

    pub(crate) fn of(at: String, value: Value) -> Result<Members, ConfigError> {
        match value {
            Value::Object(left) => Ok(Members { at, left }),
            other => Err(ConfigError::new(
                &at,
                format!("must be an object, not {}", kind(&other)),
            )),
        }
    }

    /// `keys[0].template`
    pub(crate) fn path(&self, name: &str) -> String {
        if self.at.is_empty() {
            name.into()
        } else {
            format!("{}.{name}", self.at)
        }
    }

    pub(crate) fn error(&self, name: &str, problem: impl Into<String>) -> ConfigError {
        ConfigError::new(&self.path(name), problem)
    }

    fn wrong(&self, name: &str, wanted: &str, value: &Value) -> ConfigError {
        self.error(name, format!("must be {wanted}, not {}", kind(value)))
    }

    pub(crate) fn take(&mut self, name: &str) -> Option<Value> {
        self.left.remove(name)
    }

    pub(crate) fn require(&mut self, name: &str) -> Result<Value, ConfigError> {
        self.take(name)
            .ok_or_else(|| self.error(name, "is missing"))
    }

    /// A text of 1 to `bytes_max` bytes.
    pub(crate) fn text(&mut self, name: &str, bytes_max: usize) -> Result<String, ConfigError> {
        let value = self.require(name)?;
        self.as_text(name, value, bytes_max)
    }

    pub(crate) fn as_text(
        &self,
        name: &str,
        value: Value,
        bytes_max: usize,
    ) -> Result<String, ConfigError> {
        match value {
            Value::String(text) if (1..=bytes_max).contains(&text.len()) => Ok(text),
            Value::String(_) => Err(self.error(name, format!("must have 1 to {bytes_max} bytes"))),
            other => Err(self.wrong(name, "a string", &other)),
        }
    }

    pub(crate) fn optional_text(
        &mut self,
        name: &str,
        bytes_max: usize,
    ) -> Result<Option<String>, ConfigError> {
        self.take(name)
            .map(|value| self.as_text(name, value, bytes_max))
            .transpose()
    }

    pub(crate) fn flag(&mut self, name: &str) -> Result<bool, ConfigError> {
        let value = self.require(name)?;
        value
            .as_bool()
            .ok_or_else(|| self.wrong(name, "true or false", &value))
    }

    pub(crate) fn flag_or(&mut self, name: &str, default: bool) -> Result<bool, ConfigError> {
        if self.left.contains_key(name) {
            self.flag(name)
        } else {
            Ok(default)
        }
    }

    pub(crate) fn whole(&mut self, name: &str, min: u32, max: u32) -> Result<u32, ConfigError> {
        let value = self.require(name)?;
        value
            .as_u64()
            .and_then(|number| u32::try_from(number).ok())
            .filter(|number| (min..=max).contains(number))
            .ok_or_else(|| {
                self.error(
                    name,
                    format!("must be a whole number from {min} to {max}, not {value}"),
                )
            })
    }

    pub(crate) fn whole_or(
        &mut self,
        name: &str,
        (min, max): (u32, u32),
        default: u32,
    ) -> Result<u32, ConfigError> {
        if self.left.contains_key(name) {
            self.whole(name, min, max)
        } else {
            Ok(default)
        }
    }

    pub(crate) fn array(&mut self, name: &str) -> Result<Vec<Value>, ConfigError> {
        match self.require(name)? {
            Value::Array(items) => Ok(items),
            other => Err(self.wrong(name, "an array", &other)),
        }
    }

    /// Refuses what was not taken.
    pub(crate) fn end(self) -> Result<(), ConfigError> {
        match self.left.keys().next() {
            None => Ok(()),
            Some(name) => Err(self.error(name, "is no member of this object; remove it")),
        }
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}
