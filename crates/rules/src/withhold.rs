//! Finds the text of a secret in a message, in the forms in which a JSON-RPC line can carry it: as
//! it is, escaped as JSON, and as base64 at any of the three offsets (both alphabets).
//!
//! A line is searched as it stands and, where it holds a backslash, with its escapes resolved: so
//! every JSON spelling of the same text is one text. A secret of under eight bytes is not searched
//! for, and white space around a secret is not part of what is searched.

use crate::json;
use crate::name::Handle;
use aho_corasick::{AhoCorasick, BuildError, MatchKind};
use base64::{Engine as _, alphabet, engine::GeneralPurpose, engine::general_purpose::NO_PAD};

/// The shortest secret that is searched for, in bytes.
pub const SHORTEST: usize = 8;

const ALPHABETS: [GeneralPurpose; 2] = [
    GeneralPurpose::new(&alphabet::STANDARD, NO_PAD),
    GeneralPurpose::new(&alphabet::URL_SAFE, NO_PAD),
];

/// The secrets of one launch, ready to be searched for; by default none.
#[derive(Default)]
pub struct Withhold {
    automaton: Option<AhoCorasick>,
    /// The handle of each pattern of the automaton.
    handles: Vec<Handle>,
}

impl Withhold {
    /// Prepares the search for the secrets given. Fails only when they are too large to be
    /// searched for; then nothing may be forwarded.
    pub fn new<'s>(
        secrets: impl IntoIterator<Item = (&'s Handle, &'s [u8])>,
    ) -> Result<Self, BuildError> {
        let (mut patterns, mut handles) = (Vec::new(), Vec::new());
        for (handle, secret) in secrets {
            for pattern in forms(secret.trim_ascii()) {
                patterns.push(pattern);
                handles.push(handle.clone());
            }
        }
        let automaton = match patterns.is_empty() {
            true => None,
            false => Some(
                AhoCorasick::builder()
                    .match_kind(MatchKind::Standard)
                    .build(&patterns)?,
            ),
        };
        Ok(Self { automaton, handles })
    }

    /// The handle of a secret that `line` carries. `scratch` is reused between lines.
    pub fn find(&self, line: &[u8], scratch: &mut Vec<u8>) -> Option<&Handle> {
        let automaton = self.automaton.as_ref()?;
        let found = automaton.find(line).or_else(|| {
            memchr::memchr(b'\\', line)?;
            scratch.clear();
            json::unescape_into(line, scratch);
            automaton.find(scratch.as_slice())
        });
        found.map(|found| &self.handles[found.pattern().as_usize()])
    }
}

/// Each form of a secret that is searched for.
fn forms(secret: &[u8]) -> Vec<Vec<u8>> {
    if secret.len() < SHORTEST {
        return Vec::new();
    }
    let mut forms = vec![secret.to_vec()];
    if let Ok(text) = std::str::from_utf8(secret) {
        let quoted = serde_json::Value::from(text).to_string();
        forms.push(quoted.as_bytes()[1..quoted.len() - 1].to_vec());
    }
    for engine in &ALPHABETS {
        forms.extend((0..3).map(|offset| base64_at(engine, secret, offset)));
    }
    forms.sort();
    forms.dedup();
    forms
}

/// The characters that every base64 text has in which the secret starts `offset` bytes after a
/// multiple of three: those that depend on the secret's bytes alone.
fn base64_at(engine: &GeneralPurpose, secret: &[u8], offset: usize) -> Vec<u8> {
    let padded = [&[0; 3][..offset], secret].concat();
    let encoded = engine.encode(&padded).into_bytes();
    let first = (offset * 8).div_ceil(6);
    let last = padded.len() * 8 / 6;
    encoded[first..last].to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn finds(secret: &[u8], line: &[u8]) -> bool {
        let handle = Handle::parse("TOKEN").unwrap();
        Withhold::new([(&handle, secret)])
            .unwrap()
            .find(line, &mut Vec::new())
            .is_some()
    }

    const STATE: &[u8] = br#"{"cookies":[],"origins":[]}"#;

    #[test]
    fn each_form_is_found() {
        let quoted = serde_json::Value::from(std::str::from_utf8(STATE).unwrap()).to_string();
        let twice = serde_json::Value::from(quoted.clone()).to_string();
        let letters: String = STATE.iter().map(|byte| format!("\\u{byte:04x}")).collect();
        for line in [
            quoted,
            twice,
            letters,
            String::from_utf8(STATE.to_vec()).unwrap(),
        ] {
            assert!(
                finds(STATE, format!(r#"{{"a":"x{line}y"}}"#).as_bytes()),
                "{line}"
            );
        }
        assert!(finds(b"pass/word/1", br#""pass\/word\/1""#));
        assert!(!finds(STATE, br#"{"cookies":[],"origins":[1]}"#));
    }

    #[test]
    fn short_secrets_and_white_space_are_not_searched() {
        assert!(!finds(b"seven77", b"seven77"));
        assert!(!finds(b" \n seven77 \n", b" \n seven77 \n"));
        assert!(finds(b" eight888\n", b"xeight888x"));
    }

    proptest! {
        #[test]
        fn base64_is_found_at_any_offset(
            before in proptest::collection::vec(any::<u8>(), 0..7),
            secret in proptest::collection::vec(1u8.., 8..40),
            after in proptest::collection::vec(any::<u8>(), 0..7),
        ) {
            prop_assume!(secret.trim_ascii().len() >= SHORTEST);
            let all = [before, secret.clone(), after].concat();
            for engine in &ALPHABETS {
                prop_assert!(finds(&secret, engine.encode(&all).as_bytes()));
            }
        }
    }
}
