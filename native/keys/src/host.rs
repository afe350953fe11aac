//! Host templates: `{key}.play.example.com`. Letters compare without case; the key is lower-cased.

use crate::key::{Key, KeyProblem};

/// Longest host template, in bytes: the longest DNS name.
const HOST_BYTES_MAX: usize = 253;

#[derive(Clone, Debug)]
pub(crate) struct HostTemplate {
    /// `eu.` of `eu.{key}.example.com`, in lower case.
    before: Box<[u8]>,
    /// `.example.com` of it.
    after: Box<[u8]>,
}

impl HostTemplate {
    pub(crate) fn parse(template: &str) -> Result<HostTemplate, String> {
        if template.len() > HOST_BYTES_MAX {
            return Err(format!("is longer than {HOST_BYTES_MAX} bytes"));
        }
        let mut parts = template.split("{key}");
        let (Some(before), Some(after), None) = (parts.next(), parts.next(), parts.next()) else {
            return Err("must have the label {key} exactly once".into());
        };
        let whole_label = (before.is_empty() || before.ends_with('.'))
            && (after.is_empty() || after.starts_with('.'));
        if !whole_label {
            return Err("must have {key} as a whole label, between dots".into());
        }
        let labels = before
            .strip_suffix('.')
            .into_iter()
            .chain(after.strip_prefix('.'));
        if !labels.flat_map(|part| part.split('.')).all(is_label) {
            return Err("has a label that is not 1-63 of [A-Za-z0-9_-]".into());
        }
        Ok(HostTemplate {
            before: before.to_ascii_lowercase().into_bytes().into(),
            after: after.to_ascii_lowercase().into_bytes().into(),
        })
    }

    /// The key in an authority (`host` or `host:port`); `None` if the host has another shape.
    pub(crate) fn find(&self, authority: &[u8]) -> Option<Result<Key, KeyProblem>> {
        // A host with {key} is no IPv6 literal, so the last colon begins the port.
        let host = memchr::memrchr(b':', authority).map_or(authority, |at| &authority[..at]);
        let host = host.strip_suffix(b".").unwrap_or(host);
        let end = host.len().checked_sub(self.after.len())?;
        let label = host.get(self.before.len()..end)?;
        let same = host[..self.before.len()].eq_ignore_ascii_case(&self.before)
            && host[end..].eq_ignore_ascii_case(&self.after);
        (same && !label.is_empty() && !label.contains(&b'.')).then(|| Key::parse_host_label(label))
    }
}

fn is_label(label: &str) -> bool {
    (1..=63).contains(&label.len())
        && label
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::HostTemplate;

    fn find(template: &str, authority: &str) -> Option<String> {
        let key = HostTemplate::parse(template)
            .expect(template)
            .find(authority.as_bytes())?;
        Some(key.expect("a good key").as_str().into())
    }

    #[test]
    fn the_label_is_lower_cased_and_the_port_ignored() {
        let template = "{key}.Play.example.com";
        for host in [
            "Room-7.play.example.com",
            "room-7.PLAY.example.com:8080",
            "room-7.play.example.com.",
        ] {
            assert_eq!(find(template, host).as_deref(), Some("room-7"));
        }
        for host in [
            "play.example.com",
            ".play.example.com",
            "a.b.play.example.com",
            "[::1]:80",
            "",
        ] {
            assert_eq!(find(template, host), None, "{host}");
        }
        assert_eq!(
            find("eu.{key}.example.com", "EU.x.example.com").as_deref(),
            Some("x")
        );
        assert_eq!(find("{key}", "x:1").as_deref(), Some("x"));
    }

    #[test]
    fn bad_templates_say_why() {
        for bad in [
            "example.com",
            "{key}.{key}.com",
            "room-{key}.com",
            "{key}com",
            "{key}..com",
            "{key}.b/c",
            ".{key}",
        ] {
            assert!(HostTemplate::parse(bad).is_err(), "{bad}");
        }
    }
}
