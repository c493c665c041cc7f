//! A W3C Trace Context `traceparent`, as a request of MCP carries it in `params._meta`: which trace
//! the request belongs to and which span it comes from.
//!
//! Only its text is read. The line that carries it goes on with the bytes it came with. A text that
//! breaks the grammar is no parent, as the recommendation asks: the request counts as one without.

use crate::envelope;
use std::sync::LazyLock;

static NAME: LazyLock<memchr::memmem::Finder<'static>> =
    LazyLock::new(|| memchr::memmem::Finder::new("traceparent"));
static ESCAPE: LazyLock<memchr::memmem::Finder<'static>> =
    LazyLock::new(|| memchr::memmem::Finder::new("\\u00"));

/// The parent of a request's span.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Traceparent {
    trace_id: [u8; 32],
    parent_id: [u8; 16],
    flags: u8,
}

impl Traceparent {
    /// Reads `VERSION-TRACE-PARENT-FLAGS`. A version newer than ours may carry more behind it.
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('-');
        let version: [u8; 2] = hex(parts.next()?)?;
        let trace_id = hex(parts.next()?)?;
        let parent_id = hex(parts.next()?)?;
        let flags: [u8; 2] = hex(parts.next()?)?;
        let ends = parts.next().is_none() || version != *b"00";
        let zero = trace_id == [b'0'; 32] || parent_id == [b'0'; 16];
        (version != *b"ff" && ends && !zero).then(|| Self {
            trace_id,
            parent_id,
            flags: u8::from_str_radix(text_of(&flags), 16).unwrap_or(0),
        })
    }

    /// What a request carries in `params._meta`, if it does. A line that cannot have the name costs
    /// two searches.
    pub fn of_request(line: &[u8], params: Option<&[u8]>) -> Option<Self> {
        if NAME.find(line).is_none() && !has_escaped_letter(line) {
            return None;
        }
        let meta = envelope::member(params?, "_meta").ok()??;
        let value = envelope::member(meta, "traceparent").ok()??;
        Self::parse(&envelope::text_of(value))
    }

    /// The trace, as 32 hexadecimal digits.
    pub fn trace_id(&self) -> &str {
        text_of(&self.trace_id)
    }

    /// The span that the request comes from, as 16 hexadecimal digits.
    pub fn parent_id(&self) -> &str {
        text_of(&self.parent_id)
    }

    /// The flags; the lowest bit says that the caller records its own span.
    pub fn flags(&self) -> u8 {
        self.flags
    }
}

/// Whether a letter of the name could stand in the line as an escape: all are U+0061 to U+0074.
fn has_escaped_letter(line: &[u8]) -> bool {
    let mut escapes = ESCAPE.find_iter(line);
    escapes.any(|at| matches!(line.get(at + 4), Some(b'6' | b'7')))
}

/// Lower-case hexadecimal digits, exactly as many as asked for.
fn hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let digits: [u8; N] = text.as_bytes().try_into().ok()?;
    let is_hex = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    digits.iter().all(is_hex).then_some(digits)
}

fn text_of(digits: &[u8]) -> &str {
    std::str::from_utf8(digits).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
    const PARENT: &str = "00f067aa0ba902b7";

    #[test]
    fn the_example_of_the_recommendation_is_read() {
        let parent = Traceparent::parse(&format!("00-{TRACE}-{PARENT}-01")).unwrap();
        assert_eq!(parent.trace_id(), TRACE);
        assert_eq!((parent.parent_id(), parent.flags()), (PARENT, 1));
        assert!(Traceparent::parse(&format!("cc-{TRACE}-{PARENT}-01-more")).is_some());
    }

    #[test]
    fn what_breaks_the_grammar_is_no_parent() {
        let (no_trace, no_parent) = ("0".repeat(32), "0".repeat(16));
        for wrong in [
            String::new(),
            format!("ff-{TRACE}-{PARENT}-01"),
            format!("00-{TRACE}-{PARENT}-01-more"),
            format!("00-{TRACE}-{PARENT}"),
            format!("00-{}-{PARENT}-01", TRACE.to_uppercase()),
            format!("00-{TRACE}0-{PARENT}-01"),
            format!("0-{TRACE}-{PARENT}-01"),
            format!("00-{no_trace}-{PARENT}-01"),
            format!("00-{TRACE}-{no_parent}-01"),
            format!(" 00-{TRACE}-{PARENT}-01"),
        ] {
            assert_eq!(Traceparent::parse(&wrong), None, "{wrong}");
        }
    }

    #[test]
    fn it_is_read_out_of_the_meta_of_the_parameters_only() {
        let of = |params: &str| Traceparent::of_request(params.as_bytes(), Some(params.as_bytes()));
        let value = format!("\"traceparent\":\"00-{TRACE}-{PARENT}-00\"");
        assert!(of(&format!(r#"{{"_meta":{{{value}}}}}"#)).is_some());
        assert!(of(&format!("{{{value}}}")).is_none());
        assert!(of(&format!(r#"{{"_meta":{{{value},{value}}}}}"#)).is_none());
        assert!(of(r#"{"_meta":{"traceparent":7}}"#).is_none());
    }

    #[test]
    fn its_name_is_found_in_any_spelling() {
        for name in [
            "trac\\u0065parent",
            "\\u0074raceparen\\u0074",
            "traceparent",
        ] {
            let line = format!("{{\"\\u005fmeta\":{{\"{name}\":\"00-{TRACE}-{PARENT}-00\"}}}}");
            assert!(
                Traceparent::of_request(line.as_bytes(), Some(line.as_bytes())).is_some(),
                "{line}"
            );
        }
        assert!(!has_escaped_letter(br#""caf\u00e9 \u001b[0m \u00"#));
    }
}
