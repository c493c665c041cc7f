//! Reads which tool a line calls while its parts go by, in constant memory: for a line that is too
//! long to be kept, or that is JSON only to a reader that mends its UTF-8.
//!
//! It does not judge whether the line is JSON. Of a line that is, it tells what every reader that
//! takes one of two equal members would see; where two readers could differ, `ambiguous` is true.

use crate::envelope::Id;
use crate::json;

/// The longest key, name or id that is remembered, in bytes as written.
const TOKEN_LIMIT: usize = 1024;

/// What is known of a line so far.
#[derive(Debug, Default)]
pub struct CallScan {
    depth: usize,
    in_string: bool,
    escaped: bool,
    /// Depth two is the object of `params`.
    in_params: bool,
    /// The string or scalar being read.
    token: Vec<u8>,
    /// The member being read: of the message, and of its `params`.
    members: [Member; 2],
    method: Seen,
    params: Seen,
    name: Seen,
    id: Seen,
}

/// A member being read.
#[derive(Debug, Default, Clone, Copy)]
struct Member {
    key: Key,
    /// Its colon was read.
    in_value: bool,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Key {
    #[default]
    Other,
    Method,
    Params,
    Id,
    Name,
}

/// A member that matters: how often it was seen, and its last value where it is a scalar.
#[derive(Debug, Default)]
struct Seen {
    times: u32,
    value: Vec<u8>,
}

impl CallScan {
    /// Takes the next bytes of the line.
    pub fn feed(&mut self, mut rest: &[u8]) {
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

    /// The tool that the line calls, when it is a `tools/call` and names one.
    pub fn tool(&self) -> Option<String> {
        if text(&self.method.value)? != "tools/call" {
            return None;
        }
        text(&self.name.value)
    }

    /// A member that says which tool is called occurs twice.
    pub fn ambiguous(&self) -> bool {
        [&self.method, &self.params, &self.name]
            .iter()
            .any(|seen| seen.times > 1)
    }

    /// The id as written, if the line has one that can be one.
    pub fn id(&self) -> Option<Id<'_>> {
        json::value(&self.id.value).ok().and_then(Id::read)
    }

    fn byte(&mut self, byte: u8) {
        if self.in_string {
            self.keep(&[byte]);
            let ends = byte == b'"' && !self.escaped;
            self.escaped = byte == b'\\' && !self.escaped;
            self.in_string = !ends;
            return;
        }
        match byte {
            b'"' => {
                self.in_string = true;
                self.keep(&[byte]);
            }
            b'{' | b'[' => self.open(byte),
            b'}' | b']' => self.close(),
            b':' => self.end_key(),
            b',' => self.end_member(),
            b' ' | b'\t' | b'\r' | b'\n' => {}
            _ => self.keep(&[byte]),
        }
    }

    /// Which of the two objects is being read, if one of them is.
    fn level(&self) -> Option<usize> {
        match self.depth {
            1 => Some(0),
            2 if self.in_params => Some(1),
            _ => None,
        }
    }

    fn open(&mut self, bracket: u8) {
        self.token.clear();
        let params = self.members[0].key == Key::Params && self.members[0].in_value;
        if self.depth == 1 {
            self.in_params = params && bracket == b'{';
            self.members[1] = Member::default();
        }
        self.depth += 1;
    }

    fn close(&mut self) {
        self.end_member();
        self.depth = self.depth.saturating_sub(1);
    }

    fn keep(&mut self, bytes: &[u8]) {
        let wanted = self.level().is_some_and(|level| {
            let member = self.members[level];
            !member.in_value || member.key != Key::Other
        });
        if wanted {
            // One byte over the limit is kept, so that a token that was cut is never a whole one.
            let room = (TOKEN_LIMIT + 1).saturating_sub(self.token.len());
            self.token
                .extend_from_slice(&bytes[..bytes.len().min(room)]);
        }
    }

    fn end_key(&mut self) {
        let Some(level) = self.level() else { return };
        let token = std::mem::take(&mut self.token);
        let key = match (level, text(&token).as_deref()) {
            (0, Some("method")) => Key::Method,
            (0, Some("params")) => Key::Params,
            (0, Some("id")) => Key::Id,
            (1, Some("name")) => Key::Name,
            _ => Key::Other,
        };
        self.members[level] = Member {
            key,
            in_value: true,
        };
        if let Some(seen) = self.seen(key) {
            seen.times = seen.times.saturating_add(1);
        }
    }

    fn end_member(&mut self) {
        let Some(level) = self.level() else { return };
        let token = std::mem::take(&mut self.token);
        let key = std::mem::take(&mut self.members[level]).key;
        if let Some(seen) = self.seen(key) {
            seen.value = token;
        }
    }

    fn seen(&mut self, key: Key) -> Option<&mut Seen> {
        match key {
            Key::Other => None,
            Key::Method => Some(&mut self.method),
            Key::Params => Some(&mut self.params),
            Key::Id => Some(&mut self.id),
            Key::Name => Some(&mut self.name),
        }
    }
}

/// The text of a string as written, none of anything else and of what was cut.
fn text(token: &[u8]) -> Option<String> {
    let raw = token.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
    if token.len() > TOKEN_LIMIT {
        return None;
    }
    String::from_utf8(json::unescape(raw).into_owned()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scan(line: &[u8], chunk: usize) -> (Option<String>, bool, Option<String>) {
        let mut scan = CallScan::default();
        line.chunks(chunk).for_each(|part| scan.feed(part));
        let id = scan
            .id()
            .map(|id| String::from_utf8(id.as_bytes().to_vec()).unwrap());
        (scan.tool(), scan.ambiguous(), id)
    }

    #[test]
    fn the_tool_is_found_wherever_it_stands() {
        for (line, tool, ambiguous) in [
            (
                r#"{"id":1,"method":"tools/call","params":{"name":"a"}}"#,
                Some("a"),
                false,
            ),
            (
                r#"{"params":{"arguments":{"name":"x"},"name":"a"},"method":"tools\/call"}"#,
                Some("a"),
                false,
            ),
            (
                r#" { "params" : { "x" : [{"name":"y"}] , "n\u0061me" : "\u0061" } , "m\u0065thod" : "tools/call" } "#,
                Some("a"),
                false,
            ),
            (
                r#"{"method":"tools/call","params":[{"name":"a"}]}"#,
                None,
                false,
            ),
            (
                r#"{"method":"tools/call","params":"name","name":"a"}"#,
                None,
                false,
            ),
            (
                r#"{"method":"tools/list","params":{"name":"a"}}"#,
                None,
                false,
            ),
            (
                r#"{"x":{"method":"tools/call"},"params":{"name":"a"}}"#,
                None,
                false,
            ),
            (
                r#"{"method":"tools/call","params":{"name":"x","name":"a"}}"#,
                Some("a"),
                true,
            ),
            (
                r#"{"method":"x","method":"tools/call","params":{"name":"a"}}"#,
                Some("a"),
                true,
            ),
            (
                r#"{"method":"tools/call","params":{"name":"x"},"params":{"name":"a"}}"#,
                Some("a"),
                true,
            ),
            (
                r#"{"method":"tools/call","params":{"name":["a"]}}"#,
                None,
                false,
            ),
        ] {
            for chunk in [1, 2, 7, 1000] {
                let (found, twice, _) = scan(line.as_bytes(), chunk);
                assert_eq!(
                    (found.as_deref(), twice),
                    (tool, ambiguous),
                    "{line} {chunk}"
                );
            }
        }
    }

    #[test]
    fn bytes_that_are_no_utf8_do_not_hide_a_name() {
        let line = b"{\"id\":\"i\",\"x\":\"\xff\",\"method\":\"tools/call\",\"params\":{\"\xfe\":\"\xff\",\"name\":\"a\"}}";
        let (tool, ambiguous, id) = scan(line, 3);
        assert_eq!(
            (tool.as_deref(), ambiguous, id.as_deref()),
            (Some("a"), false, Some("\"i\""))
        );
    }

    #[test]
    fn an_endless_name_is_not_kept() {
        let line = format!(
            r#"{{"method":"tools/call","params":{{"name":"{}"}}}}"#,
            "x".repeat(100_000)
        );
        assert_eq!(scan(line.as_bytes(), 4096), (None, false, None));
    }
}
