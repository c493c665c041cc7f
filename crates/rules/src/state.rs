//! The rule that a browser's login state keeps: a Playwright storage state.

use crate::json::{self, Kind};

/// The most bytes that a login state holds.
pub const STATE_LIMIT: usize = 4 * 1024 * 1024;

/// A browser that has never been anywhere.
pub const CLEAN_PROFILE: &[u8] = br#"{"cookies":[],"origins":[]}"#;

const KEYS: [&str; 2] = ["cookies", "origins"];

/// Why a text is not a login state. Nothing of the text is repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum StateError {
    /// Over 4 MiB.
    #[error("the login state is over 4 MiB")]
    TooLarge,
    /// Not UTF-8.
    #[error("the login state is not UTF-8")]
    NotUtf8,
    /// Not one JSON value.
    #[error("the login state is not JSON (byte {at})")]
    NotJson {
        /// Where it breaks.
        at: usize,
    },
    /// JSON, but no object.
    #[error("the login state is not a JSON object")]
    NotObject,
    /// Keys other than the two, or one of them missing.
    #[error("the login state does not hold exactly the keys cookies and origins")]
    Keys,
    /// A key given twice.
    #[error("the login state gives {0} twice")]
    Twice(&'static str),
    /// A value that is no list.
    #[error("{0} of the login state is not a list")]
    NotList(&'static str),
}

/// Checks that `text` is at most 4 MiB of UTF-8 JSON: one object with exactly the keys `cookies`
/// and `origins`, each given once, each a list.
pub fn check_storage_state(text: &[u8]) -> Result<(), StateError> {
    if text.len() > STATE_LIMIT {
        return Err(StateError::TooLarge);
    }
    if std::str::from_utf8(text).is_err() {
        return Err(StateError::NotUtf8);
    }
    let mut members = Vec::new();
    let value = json::object(text, |key, value| members.push((key, json::kind(value))))
        .map_err(|error| StateError::NotJson { at: error.at })?;
    if json::kind(value) != Kind::Object {
        return Err(StateError::NotObject);
    }
    check_members(&members)
}

fn check_members(members: &[(&[u8], Kind)]) -> Result<(), StateError> {
    let mut seen = [false; 2];
    for (key, kind) in members {
        let key = json::unescape(key);
        let index = KEYS
            .iter()
            .position(|known| known.as_bytes() == key.as_ref());
        let index = index.ok_or(StateError::Keys)?;
        if std::mem::replace(&mut seen[index], true) {
            return Err(StateError::Twice(KEYS[index]));
        }
        if *kind != Kind::Array {
            return Err(StateError::NotList(KEYS[index]));
        }
    }
    if seen == [true; 2] {
        Ok(())
    } else {
        Err(StateError::Keys)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: impl AsRef<[u8]>) -> Result<(), StateError> {
        check_storage_state(text.as_ref())
    }

    #[test]
    fn a_storage_state_is_taken_as_it_is() {
        assert_eq!(check(CLEAN_PROFILE), Ok(()));
        assert_eq!(
            check(" {\"origins\" : [{}],\n\"cooki\\u0065s\":[1]}\r\n"),
            Ok(())
        );
        let filler = STATE_LIMIT - CLEAN_PROFILE.len();
        let full = [CLEAN_PROFILE, &vec![b' '; filler]].concat();
        assert_eq!(check(&full), Ok(()));
        assert_eq!(check([&full[..], b" "].concat()), Err(StateError::TooLarge));
    }

    #[test]
    fn everything_else_is_refused() {
        let refusals: Vec<String> = [
            &b"\xff"[..],
            b"",
            b"{\"cookies\":[]",
            b"[]",
            b"{}",
            b"{\"cookies\":[]}",
            b"{\"cookies\":[],\"origins\":[],\"hunter2\":[]}",
            b"{\"cookies\":[],\"cookies\":[],\"origins\":[]}",
            b"{\"cookies\":[],\"origins\":{}}",
            b"{\"cookies\":null,\"origins\":[]}",
            b"\xef\xbb\xbf{\"cookies\":[],\"origins\":[]}",
            b"{\"cookies\":[],\"origins\":[]}{}",
        ]
        .iter()
        .map(|text| check(text).unwrap_err().to_string())
        .collect();
        insta::assert_snapshot!(refusals.join("\n"), @"
        the login state is not UTF-8
        the login state is not JSON (byte 0)
        the login state is not JSON (byte 12)
        the login state is not a JSON object
        the login state does not hold exactly the keys cookies and origins
        the login state does not hold exactly the keys cookies and origins
        the login state does not hold exactly the keys cookies and origins
        the login state gives cookies twice
        origins of the login state is not a list
        cookies of the login state is not a list
        the login state is not JSON (byte 0)
        the login state is not JSON (byte 27)
        ");
    }
}
