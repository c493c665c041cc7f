//! A strict JSON reader over a borrowed slice: it says where the members of one object lie and
//! never makes a copy of them, so that what is forwarded is the slice that came in.
//!
//! Guarantees: text that it accepts is JSON by RFC 8259 in UTF-8 (lone surrogates in escapes are
//! allowed, as the RFC allows them), at any depth of nesting, in one pass and without recursion.
//! It does not judge numbers by size nor keys by uniqueness: callers do, for the keys they read.

use memchr::memchr2;
use std::borrow::Cow;

/// Why a text is not JSON, and at which byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not JSON at byte {at}")]
pub struct NotJson {
    /// Offset of the first byte that cannot be read, from the start of the text.
    pub at: usize,
}

/// What kind of value a text holds, told by its first byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `{...}`
    Object,
    /// `[...]`
    Array,
    /// `"..."`
    String,
    /// A number.
    Number,
    /// `true`, `false` or `null`.
    Literal,
}

/// The kind of a value that was read before.
pub fn kind(value: &[u8]) -> Kind {
    match value.first() {
        Some(b'{') => Kind::Object,
        Some(b'[') => Kind::Array,
        Some(b'"') => Kind::String,
        Some(b'-' | b'0'..=b'9') => Kind::Number,
        _ => Kind::Literal,
    }
}

/// Checks that `text` is one JSON value with nothing but white space around it, and returns it
/// without that white space.
pub fn value(text: &[u8]) -> Result<&[u8], NotJson> {
    Reader::new(text)?.whole(|_, _| {})
}

/// Checks that `text` is one JSON value and calls `member` with each key (between its quotes, as
/// written) and each value of the outermost object, in order. Of any other value nothing is told.
pub fn object<'a>(
    text: &'a [u8],
    member: impl FnMut(&'a [u8], &'a [u8]),
) -> Result<&'a [u8], NotJson> {
    Reader::new(text)?.whole(member)
}

/// Calls `tell` with each element of an array, as written and in order. They are not gathered: an
/// array of a line's length can hold two million.
pub fn each_element<'a>(array: &'a [u8], mut tell: impl FnMut(&'a [u8])) -> Result<(), NotJson> {
    let mut reader = Reader::new(array)?;
    reader.space();
    reader.expect(b'[')?;
    reader.space();
    if reader.peek() == Some(b']') {
        return Ok(());
    }
    loop {
        tell(reader.value()?);
        reader.space();
        match reader.next() {
            Some(b',') => reader.space(),
            Some(b']') => return Ok(()),
            _ => return reader.fail_before(),
        }
    }
}

/// The text of a string, given what stands between its quotes. A lone surrogate becomes U+FFFD.
pub fn unescape(raw: &[u8]) -> Cow<'_, [u8]> {
    if memchr::memchr(b'\\', raw).is_none() {
        return Cow::Borrowed(raw);
    }
    let mut text = Vec::with_capacity(raw.len());
    unescape_into(raw, &mut text);
    Cow::Owned(text)
}

/// Appends `raw` to `text` with every escape of a JSON string resolved. Bytes that are no escape
/// are copied, so that a whole line can be unescaped at once for a search.
pub fn unescape_into(mut raw: &[u8], text: &mut Vec<u8>) {
    while let Some(at) = memchr::memchr(b'\\', raw) {
        text.extend_from_slice(&raw[..at]);
        let (used, character) = escape(&raw[at..]);
        let mut utf8 = [0; 4];
        text.extend_from_slice(character.encode_utf8(&mut utf8).as_bytes());
        raw = &raw[at + used..];
    }
    text.extend_from_slice(raw);
}

/// Reads one escape: how many bytes it takes and the character that it means.
fn escape(raw: &[u8]) -> (usize, char) {
    match raw.get(1) {
        Some(b'n') => (2, '\n'),
        Some(b't') => (2, '\t'),
        Some(b'r') => (2, '\r'),
        Some(b'b') => (2, '\u{8}'),
        Some(b'f') => (2, '\u{c}'),
        Some(b'u') => unicode_escape(raw),
        Some(&other) => (2, char::from(other)),
        None => (1, '\\'),
    }
}

fn unicode_escape(raw: &[u8]) -> (usize, char) {
    let Some(first) = hex4(raw) else {
        return (2, 'u');
    };
    if (0xd800..0xdc00).contains(&first)
        && let Some(second) = hex4(&raw[6..]).filter(|low| (0xdc00..0xe000).contains(low))
    {
        let scalar = 0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00);
        return (
            12,
            char::from_u32(scalar).unwrap_or(char::REPLACEMENT_CHARACTER),
        );
    }
    (
        6,
        char::from_u32(first).unwrap_or(char::REPLACEMENT_CHARACTER),
    )
}

/// The value of `\uXXXX` at the start of `raw`.
fn hex4(raw: &[u8]) -> Option<u32> {
    let digits = raw.strip_prefix(b"\\u")?.get(..4)?;
    digits.iter().try_fold(0, |value, &digit| {
        Some(value << 4 | char::from(digit).to_digit(16)?)
    })
}

struct Reader<'a> {
    text: &'a [u8],
    at: usize,
    /// A control character occurs somewhere, so every string is looked at for one.
    controls: bool,
}

impl<'a> Reader<'a> {
    fn new(text: &'a [u8]) -> Result<Self, NotJson> {
        if let Err(error) = std::str::from_utf8(text) {
            return Err(NotJson {
                at: error.valid_up_to(),
            });
        }
        // One vectorised pass: most lines hold no control character but their end, which is not
        // inside a string.
        let controls = text
            .trim_ascii_end()
            .iter()
            .fold(0, |any, &byte| any | u8::from(byte < 0x20))
            != 0;
        Ok(Self {
            text,
            at: 0,
            controls,
        })
    }

    fn whole(mut self, member: impl FnMut(&'a [u8], &'a [u8])) -> Result<&'a [u8], NotJson> {
        self.space();
        let start = self.at;
        if self.peek() == Some(b'{') {
            self.members(member)?;
        } else {
            self.value()?;
        }
        let end = self.at;
        self.space();
        if self.at < self.text.len() {
            self.fail()
        } else {
            Ok(&self.text[start..end])
        }
    }

    fn members(&mut self, mut member: impl FnMut(&'a [u8], &'a [u8])) -> Result<(), NotJson> {
        self.expect(b'{')?;
        self.space();
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(());
        }
        loop {
            let key = self.key()?;
            member(key, self.value()?);
            self.space();
            match self.next() {
                Some(b',') => self.space(),
                Some(b'}') => return Ok(()),
                _ => return self.fail_before(),
            }
        }
    }

    /// Reads `"key" :` and the space after it.
    fn key(&mut self) -> Result<&'a [u8], NotJson> {
        let key = self.string()?;
        self.space();
        self.expect(b':')?;
        self.space();
        Ok(&key[1..key.len() - 1])
    }

    /// Reads one value of any depth. The nesting is kept as one bit a level.
    fn value(&mut self) -> Result<&'a [u8], NotJson> {
        let start = self.at;
        let mut open = Nesting::default();
        loop {
            match self.peek() {
                Some(bracket @ (b'{' | b'[')) => {
                    self.at += 1;
                    self.space();
                    let closing = if bracket == b'{' { b'}' } else { b']' };
                    if self.peek() != Some(closing) {
                        open.push(bracket == b'{');
                        if bracket == b'{' {
                            self.key()?;
                        }
                        continue;
                    }
                    self.at += 1;
                }
                _ => self.scalar()?,
            }
            if !self.close(&mut open)? {
                return Ok(&self.text[start..self.at]);
            }
        }
    }

    /// After a value: closes what ends here and goes to the next value. False at the outermost end.
    fn close(&mut self, open: &mut Nesting) -> Result<bool, NotJson> {
        while let Some(in_object) = open.top() {
            self.space();
            match (self.next(), in_object) {
                (Some(b','), true) => {
                    self.space();
                    self.key()?;
                    return Ok(true);
                }
                (Some(b','), false) => {
                    self.space();
                    return Ok(true);
                }
                (Some(b'}'), true) | (Some(b']'), false) => open.pop(),
                _ => return self.fail_before(),
            }
        }
        Ok(false)
    }

    fn scalar(&mut self) -> Result<(), NotJson> {
        match self.peek() {
            Some(b'"') => self.string().map(|_| ()),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b't') => self.literal(b"true"),
            Some(b'f') => self.literal(b"false"),
            Some(b'n') => self.literal(b"null"),
            _ => self.fail(),
        }
    }

    fn literal(&mut self, word: &[u8]) -> Result<(), NotJson> {
        if self.text[self.at..].starts_with(word) {
            self.at += word.len();
            return Ok(());
        }
        self.fail()
    }

    fn number(&mut self) -> Result<(), NotJson> {
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        if self.peek() == Some(b'0') {
            self.at += 1;
        } else {
            self.digits()?;
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.digits()?;
        }
        Ok(())
    }

    fn digits(&mut self) -> Result<(), NotJson> {
        let count = self.text[self.at..]
            .iter()
            .take_while(|byte| byte.is_ascii_digit())
            .count();
        self.at += count;
        if count == 0 { self.fail() } else { Ok(()) }
    }

    /// Reads a string with its quotes.
    fn string(&mut self) -> Result<&'a [u8], NotJson> {
        let start = self.at;
        self.expect(b'"')?;
        loop {
            let rest = &self.text[self.at..];
            let Some(found) = memchr2(b'"', b'\\', rest) else {
                self.at = self.text.len();
                return self.fail();
            };
            if self.controls
                && let Some(control) = rest[..found].iter().position(|&byte| byte < 0x20)
            {
                self.at += control;
                return self.fail();
            }
            self.at += found + 1;
            if rest[found] == b'"' {
                return Ok(&self.text[start..self.at]);
            }
            self.escaped()?;
        }
    }

    /// Reads what follows a backslash.
    fn escaped(&mut self) -> Result<(), NotJson> {
        match self.peek() {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => self.at += 1,
            Some(b'u') if hex4(&self.text[self.at - 1..]).is_some() => self.at += 5,
            _ => return self.fail(),
        }
        Ok(())
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn next(&mut self) -> Option<u8> {
        let byte = self.peek()?;
        self.at += 1;
        Some(byte)
    }

    fn expect(&mut self, byte: u8) -> Result<(), NotJson> {
        if self.peek() == Some(byte) {
            self.at += 1;
            return Ok(());
        }
        self.fail()
    }

    fn fail<T>(&self) -> Result<T, NotJson> {
        Err(NotJson { at: self.at })
    }

    /// Fails at the byte that `next` took, or at the end of the text.
    fn fail_before<T>(&self) -> Result<T, NotJson> {
        Err(NotJson {
            at: self.at.saturating_sub(1),
        })
    }
}

/// Which brackets are open: one bit a level, so that four million levels take half a megabyte.
#[derive(Default)]
struct Nesting {
    words: Vec<u64>,
    depth: usize,
}

impl Nesting {
    fn push(&mut self, object: bool) {
        let (word, bit) = (self.depth / 64, self.depth % 64);
        if word == self.words.len() {
            self.words.push(0);
        }
        self.words[word] = self.words[word] & !(1 << bit) | u64::from(object) << bit;
        self.depth += 1;
    }

    fn top(&self) -> Option<bool> {
        let last = self.depth.checked_sub(1)?;
        Some(self.words[last / 64] >> (last % 64) & 1 == 1)
    }

    fn pop(&mut self) {
        self.depth -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn members(text: &str) -> Vec<(String, String)> {
        let mut found = Vec::new();
        object(text.as_bytes(), |key, value| {
            let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
            found.push((text(key), text(value)));
        })
        .unwrap();
        found
    }

    #[test]
    fn members_are_told_as_written() {
        let text = r#" { "a\/b" : 1e3 , "a":[{"x":[]},"]"], "":{"}":-0.0} } "#;
        let expected = [
            ("a\\/b", "1e3"),
            ("a", r#"[{"x":[]},"]"]"#),
            ("", r#"{"}":-0.0}"#),
        ];
        let expected: Vec<_> = expected
            .iter()
            .map(|(k, v)| (k.to_string(), v.to_string()))
            .collect();
        assert_eq!(members(text), expected);
    }

    #[test]
    fn nesting_has_no_limit() {
        let deep = [vec![b'['; 4_000_000], vec![b']'; 4_000_000]].concat();
        assert!(value(&deep).is_ok());
        assert!(value(&deep[..deep.len() - 1]).is_err());
        let objects = [
            br#"{"a":"#.repeat(100_000),
            b"1".to_vec(),
            vec![b'}'; 100_000],
        ]
        .concat();
        assert!(value(&objects).is_ok());
    }

    #[test]
    fn what_is_not_json_is_refused_where_it_breaks() {
        for (text, at) in [
            ("", 0),
            ("{", 1),
            ("[1,]", 3),
            ("{\"a\" 1}", 5),
            ("01", 1),
            ("1.", 2),
            ("-", 1),
            ("1e", 2),
            ("nul", 0),
            ("\"\\x\"", 2),
            ("\"\\ud80\"", 2),
            ("\"a", 2),
            ("{\"a\":1]", 6),
            ("[1}", 2),
            ("1 2", 2),
            ("\u{feff}1", 0),
            ("{,}", 1),
            ("\"\u{1}\"", 1),
            ("+1", 0),
            (".5", 0),
            ("'a'", 0),
        ] {
            assert_eq!(value(text.as_bytes()), Err(NotJson { at }), "{text}");
        }
        assert_eq!(value(b"\"\xff\""), Err(NotJson { at: 1 }));
        assert_eq!(value(b"\"\0\""), Err(NotJson { at: 1 }));
    }

    #[test]
    fn escapes_mean_what_a_server_reads() {
        assert_eq!(unescape(br"tools\/call").as_ref(), b"tools/call");
        assert_eq!(unescape(br"secret\u005ftool").as_ref(), b"secret_tool");
        assert_eq!(unescape(br"\ud83d\ude00").as_ref(), "😀".as_bytes());
        assert_eq!(unescape(br"\ud83dx").as_ref(), "\u{fffd}x".as_bytes());
        assert_eq!(unescape(br"\ude00\n\\").as_ref(), "\u{fffd}\n\\".as_bytes());
    }

    #[test]
    fn elements_are_told_as_written() {
        let mut found = Vec::new();
        each_element(br#"[ 1.0, "a,]" ,[2,3],{} ]"#, |element| {
            found.push(element)
        })
        .unwrap();
        assert_eq!(found, [&b"1.0"[..], b"\"a,]\"", b"[2,3]", b"{}"]);
        assert!(each_element(b"[]", |_| unreachable!()).is_ok());
        assert!(each_element(b"{}", |_| unreachable!()).is_err());
    }

    proptest! {
        #[test]
        fn agrees_with_serde_json(text in r#"[\[\]{}",:0-9eE.+\-truefalsn \\u"a]{0,24}"#) {
            let theirs = serde_json::from_str::<serde::de::IgnoredAny>(&text).is_ok();
            prop_assert_eq!(value(text.as_bytes()).is_ok(), theirs);
        }

        #[test]
        fn never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            let _ = value(&bytes);
            let _ = unescape(&bytes);
            let _ = each_element(&bytes, |_| {});
        }
    }
}
