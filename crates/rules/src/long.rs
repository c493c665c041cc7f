//! Looks through a line that is over the limit as its parts go by, in constant memory, for what
//! says whom it concerns: its top-level `id`, and its `method` if it has one.
//!
//! The line is not kept and not validated: nothing of it is forwarded. An id or a method of more
//! than 1 KiB is not told.

use crate::envelope::{self, Id};
use crate::json;

/// The longest id or method that is remembered, in bytes as written.
const VALUE_LIMIT: usize = 1024;
/// The longest key that is looked at, in bytes as written: `method` in escapes only takes 36.
const KEY_LIMIT: usize = 40;

/// What is known of an over-long line.
#[derive(Debug, Default)]
pub struct LongLine {
    depth: usize,
    in_string: bool,
    escaped: bool,
    /// The string or scalar being read at depth one.
    token: Vec<u8>,
    /// The key whose value comes next or is being read.
    key: Key,
    /// A colon was read since the last comma, at depth one.
    in_value: bool,
    id: Vec<u8>,
    method: Vec<u8>,
    has_method: bool,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Key {
    #[default]
    Other,
    Id,
    Method,
}

impl LongLine {
    /// Takes the next bytes of the line.
    pub fn feed(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        while !rest.is_empty() {
            if self.in_string && !self.escaped {
                // Most of a long line is one long string: skip to where something can happen.
                let plain = memchr::memchr2(b'"', b'\\', rest).unwrap_or(rest.len());
                self.keep(&rest[..plain]);
                rest = &rest[plain..];
            }
            if let Some((&byte, after)) = rest.split_first() {
                self.byte(byte);
                rest = after;
            }
        }
    }

    fn byte(&mut self, byte: u8) {
        if self.in_string {
            self.keep(&[byte]);
            let ends = byte == b'"' && !self.escaped;
            self.escaped = byte == b'\\' && !self.escaped;
            if ends {
                self.in_string = false;
            }
            return;
        }
        match byte {
            b'"' => {
                self.in_string = true;
                self.keep(&[byte]);
            }
            b'{' | b'[' => self.depth += 1,
            b'}' | b']' => {
                self.end_member();
                self.depth = self.depth.saturating_sub(1);
            }
            b':' if self.depth == 1 => self.end_key(),
            b',' => self.end_member(),
            b' ' | b'\t' | b'\r' | b'\n' => {}
            _ => self.keep(&[byte]),
        }
    }

    /// Remembers the bytes of a key, or of a value that is told, at depth one.
    fn keep(&mut self, bytes: &[u8]) {
        let wanted = !self.in_value || self.key != Key::Other;
        if self.depth == 1 && wanted && self.token.len() <= VALUE_LIMIT {
            let room = (VALUE_LIMIT + 1).saturating_sub(self.token.len());
            self.token
                .extend_from_slice(&bytes[..bytes.len().min(room)]);
        }
    }

    fn end_key(&mut self) {
        let token = std::mem::take(&mut self.token);
        let quoted = token
            .strip_prefix(b"\"")
            .and_then(|token| token.strip_suffix(b"\""));
        let name = quoted
            .filter(|raw| raw.len() <= KEY_LIMIT)
            .map(json::unescape);
        self.key = match name.as_deref() {
            Some(b"id") => Key::Id,
            Some(b"method") => Key::Method,
            _ => Key::Other,
        };
        self.has_method |= self.key == Key::Method;
        self.in_value = true;
    }

    fn end_member(&mut self) {
        if self.depth != 1 {
            return;
        }
        let token = std::mem::take(&mut self.token);
        match self.key {
            Key::Id if self.in_value => self.id = token,
            Key::Method if self.in_value => self.method = token,
            _ => {}
        }
        self.key = Key::Other;
        self.in_value = false;
    }

    /// The id as written, if one was seen that can be one.
    pub fn id(&self) -> Option<Id<'_>> {
        let whole = self.id.len() <= VALUE_LIMIT && json::value(&self.id).is_ok();
        if whole { Id::read(&self.id) } else { None }
    }

    /// Whether a `method` was seen: then it is no answer.
    pub fn has_method(&self) -> bool {
        self.has_method
    }

    /// The method, unescaped, if it is a text.
    pub fn method(&self) -> Option<String> {
        let whole = self.method.len() <= VALUE_LIMIT && json::value(&self.method).is_ok();
        let text = whole.then(|| envelope::text_of(&self.method).into_owned());
        text.filter(|text| !text.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(line: &str, chunk: usize) -> (Option<String>, bool) {
        let mut long = LongLine::default();
        line.as_bytes()
            .chunks(chunk)
            .for_each(|part| long.feed(part));
        let id = long
            .id()
            .map(|id| String::from_utf8(id.as_bytes().to_vec()).unwrap());
        (id, long.has_method())
    }

    #[test]
    fn the_top_level_id_is_found_wherever_it_stands() {
        let cases = [
            (
                r#"{"result":{"id":1,"a":["id",{"id":2}]},"jsonrpc":"2.0","id":8}"#,
                Some("8"),
                false,
            ),
            (
                r#"{"id":"a\"b\\","result":"\"id\":9"}"#,
                Some(r#""a\"b\\""#),
                false,
            ),
            (
                r#"{ "\u0069d" : 7 , "\u006dethod":"x","params":{"method":1}}"#,
                Some("7"),
                true,
            ),
            (r#"{"method":"x","params":{"id":3}}"#, None, true),
            (r#"{"result":"id","x":{"method":"y"}}"#, None, false),
            (r#"{"id":[1],"result":1}"#, None, false),
            (r#"{"id":1.5,"result":1}"#, None, false),
        ];
        for (line, id, method) in cases {
            for chunk in [1, 2, 7, 1000] {
                assert_eq!(
                    look(line, chunk),
                    (id.map(String::from), method),
                    "{line} {chunk}"
                );
            }
        }
    }

    #[test]
    fn an_endless_id_is_not_kept() {
        let line = format!(r#"{{"id":"{}","result":1}}"#, "x".repeat(100_000));
        let mut long = LongLine::default();
        long.feed(line.as_bytes());
        assert_eq!(long.id(), None);
        assert!(long.id.len() <= VALUE_LIMIT + 1);
    }

    #[test]
    fn the_method_is_told_as_a_server_would_read_it() {
        for (line, method) in [
            (
                r#"{"id":1,"m\u0065thod":"tools\/call","params":{"method":"x"}}"#,
                Some("tools/call"),
            ),
            (r#"{"method":7}"#, None),
            (r#"{"params":{"method":"x"}}"#, None),
        ] {
            let mut long = LongLine::default();
            line.as_bytes().chunks(3).for_each(|part| long.feed(part));
            assert_eq!(long.method().as_deref(), method, "{line}");
        }
    }
}
