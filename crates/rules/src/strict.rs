//! Strict reading of the small JSON files that we and the operator write.
//!
//! One object and nothing else: serde's derived readers would take an array for a struct. The
//! error names the place, the key and what was expected; a value that was found is never
//! repeated, since it may be a secret that was pasted in the wrong file.

use serde::de::DeserializeOwned;

/// Why a text is not the object that it should be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what} (line {line}, column {column})")]
pub struct Malformed {
    /// What is wrong.
    pub what: String,
    /// The line, from 1.
    pub line: usize,
    /// The column, from 1.
    pub column: usize,
}

/// Reads one JSON object.
pub(crate) fn from_object<T: DeserializeOwned>(text: &[u8]) -> Result<T, Malformed> {
    let first = text.iter().position(|byte| !byte.is_ascii_whitespace());
    match first.map(|at| text[at]) {
        Some(b'{') => serde_json::from_slice(text).map_err(|error| malformed(&error)),
        Some(_) => Err(Malformed {
            what: "not a JSON object".to_owned(),
            line: 1,
            column: 1,
        }),
        None => Err(Malformed {
            what: "empty".to_owned(),
            line: 1,
            column: 1,
        }),
    }
}

fn malformed(error: &serde_json::Error) -> Malformed {
    let text = error.to_string();
    let what = match text.rsplit_once(" at line ") {
        Some((what, _)) => what,
        None => &text,
    };
    let what = if error.is_data() {
        without_value(what)
    } else {
        format!("not JSON: {what}")
    };
    Malformed {
        what,
        line: error.line(),
        column: error.column(),
    }
}

/// `invalid type: string "...", expected a sequence` without the value.
fn without_value(what: &str) -> String {
    let found = what.starts_with("invalid ") || what.starts_with("unknown variant");
    match what.rsplit_once(", expected ") {
        Some((_, expected)) if found => format!("expected {expected}"),
        _ => what.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only read by serde")]
    struct Example {
        list: Vec<String>,
        word: Word,
    }

    #[derive(Debug, serde::Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum Word {
        One,
        Two,
    }

    fn refusal(text: &str) -> String {
        from_object::<Example>(text.as_bytes())
            .unwrap_err()
            .to_string()
    }

    #[test]
    fn refusals_name_the_place_and_no_value() {
        let all = [
            "",
            " []",
            r#"[["a"], "one"]"#,
            r#"{"list": "hunter2", "word": "one"}"#,
            r#"{"list": ["a, expected b", 7], "word": "one"}"#,
            r#"{"list": [], "word": "hunter2"}"#,
            r#"{"list": [], "wrod": "one"}"#,
            r#"{"list": [], "list": [], "word": "one"}"#,
            r#"{"list": []}"#,
            "{\"list\": [],\n \"word\": \"one\"} x",
            r#"{"list": ["#,
        ];
        insta::assert_snapshot!(all.map(refusal).join("\n"), @"
        empty (line 1, column 1)
        not a JSON object (line 1, column 1)
        not a JSON object (line 1, column 1)
        expected a sequence (line 1, column 18)
        expected a string (line 1, column 28)
        expected `one` or `two` (line 1, column 30)
        unknown field `wrod`, expected `list` or `word` (line 1, column 19)
        duplicate field `list` (line 1, column 19)
        missing field `word` (line 1, column 12)
        not JSON: trailing characters (line 2, column 17)
        not JSON: EOF while parsing a list (line 1, column 10)
        ");
    }
}
