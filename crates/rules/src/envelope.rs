//! Reads the envelope of one JSON-RPC message and borrows from it: which kind it is, its id, its
//! method, and where its parameters, result and error lie.
//!
//! A message in which a member that is read here occurs twice is refused, because two readers would
//! disagree on it. Names are told unescaped, as the server would read them.

use crate::json::{self, Kind};
use std::borrow::Cow;

/// One JSON-RPC message, as slices of the line that it came in.
#[derive(Debug, PartialEq, Eq)]
pub struct Envelope<'a> {
    /// What kind of message it is.
    pub shape: Shape<'a>,
    /// The whole message, without white space around it.
    pub text: &'a [u8],
    /// The value of `params`, if there is one.
    pub params: Option<&'a [u8]>,
    /// The value of `result`, if there is one.
    pub result: Option<&'a [u8]>,
    /// The value of `error`, if there is one.
    pub error: Option<&'a [u8]>,
    /// Some servers would take it for another message: a member's name differs from one that is
    /// read here in case only, or a carriage return stands between two tokens, where a server that
    /// splits lines as Python and Node.js do by themselves ends a line.
    pub ambiguous: bool,
}

/// The three kinds of JSON-RPC messages.
#[derive(Debug, PartialEq, Eq)]
pub enum Shape<'a> {
    /// It has an id and a method.
    Request {
        /// Names the answer.
        id: Id<'a>,
        /// What is asked for.
        method: Cow<'a, str>,
    },
    /// It has a method and no id.
    Notification {
        /// What is told.
        method: Cow<'a, str>,
    },
    /// It has an id and no method.
    Answer {
        /// The id of the request that it answers.
        id: Id<'a>,
    },
}

/// An id as it was written: a string or an integer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Id<'a>(&'a [u8]);

/// An id as a key: equal where a server that reads numbers as doubles would see one id.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum IdKey {
    /// A string, unescaped.
    Text(Vec<u8>),
    /// The bits of the number as a double.
    Number(u64),
}

impl<'a> Id<'a> {
    /// An id of a message, or none where the value can be no id.
    pub fn read(value: &'a [u8]) -> Option<Self> {
        match json::kind(value) {
            Kind::Number if small(value).is_some() => Some(Self(value)),
            Kind::String => Some(Self(value)),
            Kind::Number => {
                let number: f64 = std::str::from_utf8(value).ok()?.parse().ok()?;
                (number.is_finite() && number.fract() == 0.0).then_some(Self(value))
            }
            _ => None,
        }
    }

    /// The bytes, as written.
    pub fn as_bytes(self) -> &'a [u8] {
        self.0
    }

    /// The key under which an open request is kept.
    pub fn key(self) -> IdKey {
        if json::kind(self.0) == Kind::String {
            return IdKey::Text(json::unescape(&self.0[1..self.0.len() - 1]).into_owned());
        }
        if let Some(number) = small(self.0) {
            return IdKey::Number(f64::from(number).to_bits());
        }
        let number: f64 = std::str::from_utf8(self.0)
            .ok()
            .and_then(|text| text.parse().ok())
            .unwrap_or(0.0);
        // Adding zero makes one key of 0 and -0.
        IdKey::Number((number + 0.0).to_bits())
    }
}

/// The number that a few digits are, which most ids are: read without the reader of doubles.
fn small(value: &[u8]) -> Option<u32> {
    if value.len() > 9 || !value.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let digits = value.iter().map(|digit| u32::from(digit - b'0'));
    Some(digits.fold(0, |number, digit| number * 10 + digit))
}

/// Why a line is no message, in the words of the answer to it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub struct Malformed {
    /// What is wrong.
    pub why: Why,
    /// The id as written, where one could be read.
    pub id: Option<Vec<u8>>,
    /// It was meant as an answer: whole, with an id, a result or an error, and no method.
    pub is_answer: bool,
}

/// The kinds of malformed lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Why {
    /// The line is not JSON.
    #[error("parse error: {0}")]
    NotJson(#[from] json::NotJson),
    /// An array.
    #[error("invalid request: batches are not part of the protocol")]
    Batch,
    /// Neither an object nor an array.
    #[error("invalid request: a message is a JSON object")]
    NotObject,
    /// `jsonrpc` is missing or not `"2.0"`.
    #[error("invalid request: \"jsonrpc\" must be \"2.0\"")]
    Version,
    /// A member that a stage reads occurs twice.
    #[error("invalid request: \"{0}\" occurs twice")]
    Twice(&'static str),
    /// The id is neither a string nor an integer.
    #[error("invalid request: \"id\" must be a string or an integer")]
    BadId,
    /// The method is not a string.
    #[error("invalid request: \"method\" must be a string")]
    BadMethod,
    /// Neither request, notification nor answer.
    #[error(
        "invalid request: a message has a \"method\", or an \"id\" with a \"result\" or an \"error\""
    )]
    NoKind,
}

impl Why {
    /// The JSON-RPC error code of the answer.
    pub fn code(self) -> i32 {
        match self {
            Self::NotJson(_) => -32700,
            _ => -32600,
        }
    }
}

const MEMBERS: [&str; 6] = ["jsonrpc", "id", "method", "params", "result", "error"];

/// Reads the envelope of `line`, which may carry its line end.
pub fn read(line: &[u8]) -> Result<Envelope<'_>, Malformed> {
    let mut found: [Option<&[u8]>; MEMBERS.len()] = [None; MEMBERS.len()];
    let (mut twice, mut two_ids) = (None, false);
    let mut ambiguous = false;
    let text = json::object(line, |key, value| {
        let key = json::unescape(key);
        if let Some(at) = MEMBERS
            .iter()
            .position(|name| name.as_bytes() == key.as_ref())
        {
            if found[at].replace(value).is_some() {
                twice = Some(MEMBERS[at]);
                two_ids |= MEMBERS[at] == "id";
            }
        } else {
            ambiguous |= MEMBERS.iter().any(|name| folds_to(&key, name));
        }
    });
    let [version, id, method, params, result, error] = found;
    let read_id = id.and_then(Id::read).filter(|_| !two_ids);
    let whole = text.is_ok();
    let answers = read_id.is_some() && method.is_none() && (result.is_some() || error.is_some());
    let malformed = |why| Malformed {
        why,
        id: read_id.map(|id| id.0.to_vec()),
        is_answer: whole && answers,
    };
    let text = text.map_err(|error| malformed(error.into()))?;
    match json::kind(text) {
        Kind::Object => {}
        Kind::Array => return Err(malformed(Why::Batch)),
        _ => return Err(malformed(Why::NotObject)),
    }
    if let Some(name) = twice {
        return Err(malformed(Why::Twice(name)));
    }
    if version != Some(b"\"2.0\"") {
        return Err(malformed(Why::Version));
    }
    if id.is_some() && read_id.is_none() {
        return Err(malformed(Why::BadId));
    }
    let method = match method {
        None => None,
        Some(value) if json::kind(value) == Kind::String => Some(text_of(value)),
        Some(_) => return Err(malformed(Why::BadMethod)),
    };
    let shape = match (read_id, method) {
        (Some(id), Some(method)) => Shape::Request { id, method },
        (None, Some(method)) => Shape::Notification { method },
        (Some(id), None) if result.is_some() || error.is_some() => Shape::Answer { id },
        _ => return Err(malformed(Why::NoKind)),
    };
    // Inside a string it would not be JSON.
    ambiguous |= memchr::memchr(b'\r', text).is_some();
    Ok(Envelope {
        shape,
        text,
        params,
        result,
        error,
        ambiguous,
    })
}

/// Whether a reader that ignores case would take `key` for `name`: letters by ASCII case, and the
/// two other characters that Unicode folds to an ASCII letter.
fn folds_to(key: &[u8], name: &str) -> bool {
    let Ok(key) = std::str::from_utf8(key) else {
        return false;
    };
    let folded = key.chars().map(|c| match c {
        '\u{17f}' => 's',
        '\u{212a}' => 'k',
        other => other.to_ascii_lowercase(),
    });
    folded.eq(name.chars())
}

/// A member of an object, read by a name that may be written in escapes. `Err` when it occurs
/// twice, or when another member's name differs from it in case only.
pub fn member<'a>(object: &'a [u8], name: &'static str) -> Result<Option<&'a [u8]>, Why> {
    let (mut found, mut twice) = (None, false);
    json::object(object, |key, value| {
        let key = json::unescape(key);
        if key.as_ref() == name.as_bytes() {
            twice |= found.replace(value).is_some();
        } else {
            twice |= folds_to(&key, name);
        }
    })?;
    if twice {
        Err(Why::Twice(name))
    } else {
        Ok(found)
    }
}

/// The text of a string value, unescaped; of any other value the empty text.
pub fn text_of(value: &[u8]) -> Cow<'_, str> {
    if json::kind(value) != Kind::String {
        return Cow::Borrowed("");
    }
    match json::unescape(&value[1..value.len() - 1]) {
        Cow::Borrowed(text) => String::from_utf8_lossy(text),
        Cow::Owned(text) => Cow::Owned(String::from_utf8_lossy(&text).into_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn why(line: &str) -> String {
        read(line.as_bytes()).unwrap_err().to_string()
    }

    #[test]
    fn a_request_is_borrowed() {
        let line =
            br#" {"id":7, "params" : {"name":"x"},"method":"tools\/call","jsonrpc":"2.0","x":1} "#;
        let envelope = read(line).unwrap();
        assert_eq!(envelope.params, Some(&br#"{"name":"x"}"#[..]));
        let Shape::Request { id, method } = envelope.shape else {
            panic!("not a request")
        };
        assert_eq!((id.as_bytes(), method.as_ref()), (&b"7"[..], "tools/call"));
    }

    #[test]
    fn ids_are_one_where_a_server_reads_one() {
        let key = |text: &'static str| Id::read(text.as_bytes()).map(Id::key);
        assert_eq!(key("1"), key("1.0"));
        assert_eq!(key("1000"), key("1e3"));
        assert_eq!(key("0"), key("-0"));
        assert_eq!(key("123456789"), key("123456789.0"));
        assert_eq!(key("1234567890"), key("1.23456789e9"));
        assert_eq!(key("12345678901234567890"), key("12345678901234567000"));
        assert_eq!(key(r#""a/b""#), key(r#""a\/b""#));
        assert_ne!(key("1"), key(r#""1""#));
        for wrong in ["null", "1.5", "{}", "[1]", "true", "1e999"] {
            assert_eq!(key(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn what_is_no_message_is_named() {
        insta::assert_snapshot!(why("nonsense"), @"parse error: not JSON at byte 0");
        insta::assert_snapshot!(why("[]"), @"invalid request: batches are not part of the protocol");
        insta::assert_snapshot!(why("3"), @"invalid request: a message is a JSON object");
        insta::assert_snapshot!(why("{}"), @r#"invalid request: "jsonrpc" must be "2.0""#);
        insta::assert_snapshot!(why(r#"{"jsonrpc":"1.0","id":1,"method":"a"}"#), @r#"invalid request: "jsonrpc" must be "2.0""#);
        insta::assert_snapshot!(why(r#"{"jsonrpc":"2.0","id":null,"method":"a"}"#), @r#"invalid request: "id" must be a string or an integer"#);
        insta::assert_snapshot!(why(r#"{"jsonrpc":"2.0","id":1,"method":"a","\u006dethod":"b"}"#), @r#"invalid request: "method" occurs twice"#);
        insta::assert_snapshot!(why(r#"{"jsonrpc":"2.0","id":1}"#), @r#"invalid request: a message has a "method", or an "id" with a "result" or an "error""#);
        insta::assert_snapshot!(why(r#"{"jsonrpc":"2.0","method":1}"#), @r#"invalid request: "method" must be a string"#);
    }

    #[test]
    fn the_id_of_a_refused_line_is_told_unless_there_are_two() {
        let id = |line: &str| read(line.as_bytes()).unwrap_err().id;
        let twice = r#"{"jsonrpc":"2.0","id":1,"method":"a","method":"b"}"#;
        assert_eq!(id(twice), Some(b"1".to_vec()));
        for line in [
            r#"{"jsonrpc":"2.0","id":1,"\u0069d":2,"method":"a"}"#,
            r#"{"id":1,"id":1,"method":"a","method":"b"}"#,
            r#"{"id":1,"id":2"#,
        ] {
            assert_eq!(id(line), None, "{line}");
        }
    }

    #[test]
    fn a_line_that_could_be_read_as_another_is_told() {
        for line in [
            "{\r\"jsonrpc\":\"2.0\",\"method\":\"a\"}",
            "{\"jsonrpc\":\"2.0\",\"method\":\"a\",\"x\":\r1}\r\n",
        ] {
            assert!(read(line.as_bytes()).unwrap().ambiguous, "{line:?}");
        }
        assert!(
            !read(b"{\"jsonrpc\":\"2.0\",\"method\":\"a\"}\r\n")
                .unwrap()
                .ambiguous
        );

        for key in ["Method", "PARAMS", "re\\u017fult"] {
            let line = format!(r#"{{"jsonrpc":"2.0","method":"a","{key}":"b"}}"#);
            assert!(read(line.as_bytes()).unwrap().ambiguous, "{key}");
        }
        assert_eq!(
            member(br#"{"name":1,"Name":2}"#, "name"),
            Err(Why::Twice("name"))
        );
    }
}
