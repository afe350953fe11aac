//! Path templates: `/s/{key}/**`.
//!
//! - A template is a prefix: `/s/{key}` is `/s/{key}/**`, and `**` may be empty.
//! - `{key}` and `{server}` take exactly one segment, percent-decoded once. So `/{key}` finds `a` in
//!   `/a/b`: all documents below `a` have one owner, which is safe and coarse.
//! - `{key...}` takes the whole rest of the path, slashes and all, and must be the last segment:
//!   `/{key...}` finds `a/b` in `/a/b`. For servers whose document name is the whole path.
//! - Literal segments may stand before and after; they are compared byte by byte, not decoded.
//! - An empty segment (`/s//x`) is no key.
//! - Stripping takes away everything up to the end of the key: of `/s/{key}/files` on `/s/k/files/1?q`
//!   `/files/1?q` is left, of `/s/k?q` `/?q`.

use smallvec::SmallVec;

use crate::key::{Key, KeyProblem};

/// Longest template, in bytes.
pub(crate) const TEMPLATE_BYTES_MAX: usize = 512;

/// A `:path`; usual ones take no allocation.
pub type PathBuffer = SmallVec<[u8; 192]>;

/// What the placeholder of a template names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Names {
    Key,
    /// The key is the whole rest of the path.
    KeyRest,
    Server,
}

#[derive(Clone, Debug)]
pub(crate) struct PathTemplate {
    /// `/s/` of `/s/{key}/files`.
    before: Box<[u8]>,
    pub(crate) names: Names,
    /// `/files` of `/s/{key}/files`; whole segments.
    after: Box<[u8]>,
}

/// Where the rest of a path begins that the server is to see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Strip {
    from: usize,
}

impl Strip {
    /// Writes the new `:path`: an absolute path with the query of the old one. `path` is the `:path`
    /// that the extraction read.
    #[must_use]
    pub fn apply(self, path: &[u8]) -> PathBuffer {
        let rest = path.get(self.from..).unwrap_or_default();
        let mut out = PathBuffer::new();
        if rest.first() != Some(&b'/') {
            out.push(b'/');
        }
        out.extend_from_slice(rest);
        out
    }
}

/// The raw segment that stands where the placeholder is.
pub(crate) struct PathMatch<'p> {
    raw: &'p [u8],
    pub(crate) strip: Strip,
}

impl PathMatch<'_> {
    pub(crate) fn key(&self) -> Result<Key, KeyProblem> {
        Key::parse_percent_encoded(self.raw)
    }
}

impl PathTemplate {
    pub(crate) fn parse(template: &str) -> Result<PathTemplate, String> {
        if template.len() > TEMPLATE_BYTES_MAX {
            return Err(format!("is longer than {TEMPLATE_BYTES_MAX} bytes"));
        }
        let segments = template.strip_prefix('/').ok_or("must begin with /")?;
        let segments = segments.strip_suffix("/**").unwrap_or(segments);
        let mut names = None;
        let mut before = vec![b'/'];
        let mut after = Vec::new();
        for segment in segments.split('/') {
            let placeholder = match segment {
                "{key}" => Some(Names::Key),
                "{key...}" => Some(Names::KeyRest),
                "{server}" => Some(Names::Server),
                _ => None,
            };
            if placeholder.is_some() {
                if names.is_some() {
                    return Err("has more than one placeholder".into());
                }
                names = placeholder;
                continue;
            }
            check_literal(segment)?;
            if names.is_none() {
                before.extend_from_slice(segment.as_bytes());
                before.push(b'/');
            } else {
                after.push(b'/');
                after.extend_from_slice(segment.as_bytes());
            }
        }
        let names = names.ok_or("has neither a segment {key} nor {key...} nor {server}")?;
        if names == Names::KeyRest && !after.is_empty() {
            return Err(
                "{key...} takes the rest of the path, so it must be the last segment".into(),
            );
        }
        Ok(PathTemplate {
            before: before.into(),
            names,
            after: after.into(),
        })
    }

    /// `None`: the path has another shape, or nothing stands where the key should.
    pub(crate) fn find<'p>(&self, path: &'p [u8]) -> Option<PathMatch<'p>> {
        let end = memchr::memchr2(b'?', b'#', path).unwrap_or(path.len());
        let rest = path[..end].strip_prefix(&*self.before)?;
        let raw = match self.names {
            Names::KeyRest => rest,
            Names::Key | Names::Server => &rest[..memchr::memchr(b'/', rest).unwrap_or(rest.len())],
        };
        let tail = rest[raw.len()..].strip_prefix(&*self.after)?;
        let whole_segments = tail.is_empty() || tail[0] == b'/';
        (!raw.is_empty() && whole_segments).then_some(PathMatch {
            raw,
            strip: Strip {
                from: self.before.len() + raw.len(),
            },
        })
    }
}

fn check_literal(segment: &str) -> Result<(), String> {
    if segment.is_empty() {
        return Err("has an empty segment".into());
    }
    match segment
        .chars()
        .find(|&c| !c.is_ascii_graphic() || "{}*?#".contains(c))
    {
        Some(_) if segment.contains(['{', '}']) => Err(format!(
            "has the segment {segment:?}; a placeholder is a whole segment: {{key}}, {{key...}} or {{server}}"
        )),
        Some('*') => Err("may have ** only at its end, and no other *".into()),
        Some(c) => Err(format!(
            "has the character {c:?}, which never stands in a path"
        )),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::PathTemplate;

    fn find(template: &str, path: &str) -> Option<(String, String)> {
        let template = PathTemplate::parse(template).expect(template);
        let found = template.find(path.as_bytes())?;
        let stripped = found.strip.apply(path.as_bytes()).to_vec();
        let key = found.key().expect("a good key");
        Some((
            key.as_str().into(),
            String::from_utf8(stripped).expect("UTF-8"),
        ))
    }

    fn found(key: &str, stripped: &str) -> (String, String) {
        (key.into(), stripped.into())
    }

    #[test]
    fn a_template_is_a_prefix_and_stripping_leaves_a_slash_and_the_query() {
        for template in ["/s/{key}", "/s/{key}/**"] {
            assert_eq!(find(template, "/s/k"), Some(found("k", "/")));
            assert_eq!(find(template, "/s/k/"), Some(found("k", "/")));
            assert_eq!(
                find(template, "/s/k/a/b?x=/y"),
                Some(found("k", "/a/b?x=/y"))
            );
            assert_eq!(find(template, "/s/k?x=1"), Some(found("k", "/?x=1")));
            assert_eq!(find(template, "/s/a%2Fb%20c/x"), Some(found("a/b c", "/x")));
            for other in [
                "/", "/s", "/s/", "/s//x", "/t/k", "/ss/k", "s/k", "", "/s?/k",
            ] {
                assert_eq!(find(template, other), None, "{other}");
            }
        }
    }

    #[test]
    fn a_placeholder_is_one_segment_unless_it_takes_the_rest() {
        assert_eq!(find("/{key}", "/a/b"), Some(found("a", "/b")));
        assert_eq!(find("/{key...}", "/a/b?q"), Some(found("a/b", "/?q")));
        assert_eq!(find("/d/{key...}", "/d/a/b/"), Some(found("a/b/", "/")));
        assert_eq!(find("/{key...}", "/"), None);
    }

    #[test]
    fn literal_segments_stand_before_and_after() {
        let template = "/api/v1/{server}/files/**";
        assert_eq!(
            find(template, "/api/v1/s-1/files/x"),
            Some(found("s-1", "/files/x"))
        );
        assert_eq!(
            find(template, "/api/v1/s-1/files"),
            Some(found("s-1", "/files"))
        );
        assert_eq!(find(template, "/api/v1/s-1/filesystem"), None);
        assert_eq!(find(template, "/api/v1/s-1"), None);
    }

    #[test]
    fn bad_templates_say_why() {
        for (template, why) in [
            ("s/{key}", "must begin with /"),
            ("/s", "neither"),
            ("/", "empty segment"),
            ("/s//{key}", "empty segment"),
            ("/s/{key}/", "empty segment"),
            ("/{key}/{server}", "more than one"),
            ("/room-{key}", "whole segment"),
            ("/{player}", "whole segment"),
            ("/*/{key}", "only at its end"),
            ("/**/{key}", "only at its end"),
            ("/{key...}/x", "must be the last"),
            ("/a b/{key}", "never stands in a path"),
        ] {
            let problem = PathTemplate::parse(template).expect_err(template);
            assert!(problem.contains(why), "{template}: {problem}");
        }
        assert!(PathTemplate::parse(&format!("/{}/{{key}}", "x".repeat(512))).is_err());
    }

    proptest! {
        #[test]
        fn a_stripped_path_is_absolute_and_keeps_the_query(path in "/s/[a-z%?/#]{0,20}") {
            let template = PathTemplate::parse("/s/{key}").expect("template");
            if let Some(found) = template.find(path.as_bytes()) {
                let out = found.strip.apply(path.as_bytes());
                prop_assert_eq!(out[0], b'/');
                let query = path.find('?').map_or("", |at| &path[at..]);
                prop_assert!(out.ends_with(query.as_bytes()));
            }
        }
    }
}
