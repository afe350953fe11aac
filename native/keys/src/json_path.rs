//! `$.a.b[0]['c']` in the beginning of a JSON text.
//!
//! The text may be cut anywhere, so this walks only as far as the value and never builds a document.
//! Of equal member names the first counts. The value must be a string or a number; a number stands
//! as it is written.

use std::borrow::Cow;

/// Most steps of a path.
const STEPS_MAX: usize = 16;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct JsonPath(Vec<Step>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    Name(String),
    Index(usize),
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Look<'j> {
    Found(Cow<'j, [u8]>),
    /// The text ends before the value does.
    NeedMore,
    /// No such value, or not JSON.
    Absent,
}

impl JsonPath {
    pub(crate) fn parse(text: &str) -> Result<JsonPath, String> {
        let mut rest = text.strip_prefix('$').ok_or("must begin with $")?;
        let mut steps = Vec::new();
        while !rest.is_empty() {
            let (step, after) = parse_step(rest)?;
            steps.push(step);
            rest = after;
        }
        if steps.len() > STEPS_MAX {
            return Err(format!("has more than {STEPS_MAX} steps"));
        }
        Ok(JsonPath(steps))
    }

    /// `whole`: nothing follows `json`.
    pub(crate) fn find<'j>(&self, json: &'j [u8], whole: bool) -> Look<'j> {
        let mut cursor = Cursor { json, at: 0, whole };
        let found = self.0.iter().try_for_each(|step| match step {
            Step::Name(name) => cursor.enter_object(name),
            Step::Index(index) => cursor.enter_array(*index),
        });
        match found.and_then(|()| cursor.scalar()) {
            Ok(value) => Look::Found(value),
            Err(Stop::Cut) => Look::NeedMore,
            Err(Stop::Absent) => Look::Absent,
        }
    }
}

fn parse_step(rest: &str) -> Result<(Step, &str), String> {
    if let Some(rest) = rest.strip_prefix('.') {
        let end = rest.find(['.', '[']).unwrap_or(rest.len());
        if end == 0 || rest[..end].contains(['*', '\'', ']']) {
            return Err("has a step that is no name: use .name, [0] or ['name']".into());
        }
        return Ok((Step::Name(rest[..end].into()), &rest[end..]));
    }
    if let Some(quoted) = rest.strip_prefix("['") {
        let end = quoted.find("']").ok_or("has [' without ']")?;
        return Ok((Step::Name(quoted[..end].into()), &quoted[end + 2..]));
    }
    let inner = rest.strip_prefix('[').ok_or("must go on with . or [")?;
    let end = inner.find(']').ok_or("has [ without ]")?;
    let index = inner[..end]
        .parse()
        .map_err(|_| format!("has the index {:?}", &inner[..end]))?;
    Ok((Step::Index(index), &inner[end + 1..]))
}

enum Stop {
    Cut,
    Absent,
}

struct Cursor<'j> {
    json: &'j [u8],
    at: usize,
    whole: bool,
}

impl<'j> Cursor<'j> {
    fn peek(&self) -> Result<u8, Stop> {
        let end = if self.whole { Stop::Absent } else { Stop::Cut };
        self.json.get(self.at).copied().ok_or(end)
    }

    /// The next byte that is no white space; not consumed.
    fn token(&mut self) -> Result<u8, Stop> {
        loop {
            let byte = self.peek()?;
            if !matches!(byte, b' ' | b'\t' | b'\n' | b'\r') {
                return Ok(byte);
            }
            self.at += 1;
        }
    }

    fn expect(&mut self, wanted: u8) -> Result<(), Stop> {
        if self.token()? == wanted {
            self.at += 1;
            Ok(())
        } else {
            Err(Stop::Absent)
        }
    }

    fn enter_object(&mut self, name: &str) -> Result<(), Stop> {
        self.expect(b'{')?;
        loop {
            let member = self.string()?;
            self.expect(b':')?;
            if *member == *name.as_bytes() {
                return Ok(());
            }
            self.skip_value()?;
            self.expect(b',')?;
        }
    }

    fn enter_array(&mut self, index: usize) -> Result<(), Stop> {
        self.expect(b'[')?;
        for _ in 0..index {
            self.skip_value()?;
            self.expect(b',')?;
        }
        Ok(())
    }

    fn scalar(&mut self) -> Result<Cow<'j, [u8]>, Stop> {
        match self.token()? {
            b'"' => self.string(),
            b'-' | b'0'..=b'9' => self.number(),
            _ => Err(Stop::Absent),
        }
    }

    fn number(&mut self) -> Result<Cow<'j, [u8]>, Stop> {
        let start = self.at;
        let rest = &self.json[start..];
        let length = rest
            .iter()
            .position(|byte| !b"+-.0123456789eE".contains(byte));
        match length {
            None if !self.whole => Err(Stop::Cut),
            length => {
                self.at = start + length.unwrap_or(rest.len());
                Ok(Cow::Borrowed(&self.json[start..self.at]))
            }
        }
    }

    fn string(&mut self) -> Result<Cow<'j, [u8]>, Stop> {
        self.expect(b'"')?;
        let start = self.at;
        let mut decoded: Option<Vec<u8>> = None;
        loop {
            let byte = self.peek()?;
            self.at += 1;
            match byte {
                b'"' => {
                    let plain = &self.json[start..self.at - 1];
                    return Ok(decoded.map_or(Cow::Borrowed(plain), Cow::Owned));
                }
                b'\\' => {
                    let plain = &self.json[start..self.at - 1];
                    let out = decoded.get_or_insert_with(|| plain.to_vec());
                    let char = self.escape()?;
                    out.extend_from_slice(char.encode_utf8(&mut [0; 4]).as_bytes());
                }
                0..=0x1f => return Err(Stop::Absent),
                byte => {
                    if let Some(out) = &mut decoded {
                        out.push(byte);
                    }
                }
            }
        }
    }

    fn escape(&mut self) -> Result<char, Stop> {
        let byte = self.peek()?;
        self.at += 1;
        match byte {
            b'"' | b'\\' | b'/' => Ok(char::from(byte)),
            b'b' => Ok('\u{8}'),
            b'f' => Ok('\u{c}'),
            b'n' => Ok('\n'),
            b'r' => Ok('\r'),
            b't' => Ok('\t'),
            b'u' => {
                let high = self.hex4()?;
                if !(0xd800..0xdc00).contains(&high) {
                    return char::from_u32(high).ok_or(Stop::Absent);
                }
                for wanted in [b'\\', b'u'] {
                    if self.peek()? != wanted {
                        return Err(Stop::Absent);
                    }
                    self.at += 1;
                }
                let low = self.hex4()?;
                if !(0xdc00..0xe000).contains(&low) {
                    return Err(Stop::Absent);
                }
                let code = 0x1_0000 + ((high - 0xd800) << 10) + (low - 0xdc00);
                char::from_u32(code).ok_or(Stop::Absent)
            }
            _ => Err(Stop::Absent),
        }
    }

    fn hex4(&mut self) -> Result<u32, Stop> {
        let mut value = 0;
        for _ in 0..4 {
            let digit = char::from(self.peek()?).to_digit(16).ok_or(Stop::Absent)?;
            value = value << 4 | digit;
            self.at += 1;
        }
        Ok(value)
    }

    /// Any value. Brackets are counted, not matched by kind: this searches, it does not validate.
    fn skip_value(&mut self) -> Result<(), Stop> {
        let mut depth = 0_usize;
        loop {
            match self.token()? {
                b'"' => {
                    self.string()?;
                }
                b'{' | b'[' => {
                    self.at += 1;
                    depth += 1;
                    continue;
                }
                b'}' | b']' => {
                    depth = depth.checked_sub(1).ok_or(Stop::Absent)?;
                    self.at += 1;
                }
                b',' | b':' if depth > 0 => {
                    self.at += 1;
                    continue;
                }
                _ => self.skip_word()?,
            }
            if depth == 0 {
                return Ok(());
            }
        }
    }

    /// A number, `true`, `false` or `null`.
    fn skip_word(&mut self) -> Result<(), Stop> {
        let start = self.at;
        while let Ok(byte) = self.peek() {
            if !(byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.')) {
                break;
            }
            self.at += 1;
        }
        if self.at == start {
            Err(Stop::Absent)
        } else {
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{JsonPath, Look};

    fn find<'j>(path: &str, json: &'j str) -> Look<'j> {
        JsonPath::parse(path)
            .expect(path)
            .find(json.as_bytes(), true)
    }

    fn found(value: &str) -> Look<'_> {
        Look::Found(value.as_bytes().into())
    }

    const JSON: &str =
        r#" {"s":[1,{"x":"}"},"\ud83c\udfae\n\u00e4"],"id":42, "a b":{"c.d":"v"},"t":true,"n":[]}"#;

    #[test]
    fn values_are_found_past_others() {
        assert_eq!(find("$.id", JSON), found("42"));
        assert_eq!(find("$.s[0]", JSON), found("1"));
        assert_eq!(find("$.s[1].x", JSON), found("}"));
        assert_eq!(find("$.s[2]", JSON), found("🎮\nä"));
        assert_eq!(find("$['a b']['c.d']", JSON), found("v"));
        assert_eq!(find("$", "\"x\""), found("x"));
        assert_eq!(find("$", "-1.5"), found("-1.5"));
    }

    #[test]
    fn what_is_no_string_or_number_is_absent() {
        for path in [
            "$.t",
            "$.s",
            "$.n[0]",
            "$.s[9]",
            "$.id.x",
            "$.nothing",
            "$[0]",
        ] {
            assert_eq!(find(path, JSON), Look::Absent, "{path}");
        }
        for json in [
            "",
            "nope",
            "{",
            "{]",
            "{\"id\" 1}",
            "{\"id\":\"\\ud800x\"}",
            "{\"a\":}}",
        ] {
            assert_eq!(find("$.id", json), Look::Absent, "{json}");
        }
    }

    #[test]
    fn bad_paths_say_why() {
        for bad in [
            "id", "$id", "$.", "$..a", "$[x]", "$[1", "$['a]", "$.*", "$.a.*.b", "$[-1]",
        ] {
            assert!(JsonPath::parse(bad).is_err(), "{bad}");
        }
        assert!(JsonPath::parse(&format!("${}", ".a".repeat(17))).is_err());
    }

    proptest! {
        #[test]
        fn a_cut_text_is_never_answered_otherwise_than_the_whole(cut in 0..JSON.len()) {
            let Some(head) = JSON.as_bytes().get(..cut) else { return Ok(()) };
            for path in ["$.id", "$.s[2]", "$['a b']['c.d']", "$.none"] {
                let path = JsonPath::parse(path).expect("path");
                let look = path.find(head, false);
                prop_assert!(look == Look::NeedMore || look == path.find(JSON.as_bytes(), true));
            }
        }

        #[test]
        fn a_document_of_serde_is_read_as_serde_reads_it(text in "\\PC*", before in "[a-z]{0,3}") {
            let json = serde_json::json!({ "0": [before, { "x": null }], "k": text }).to_string();
            prop_assert_eq!(find("$.k", &json), found(&text));
        }

        #[test]
        fn any_bytes_end(json in proptest::collection::vec(any::<u8>(), 0..200)) {
            let path = JsonPath::parse("$.a[1].b").expect("path");
            let _ = path.find(&json, true);
        }
    }
}
