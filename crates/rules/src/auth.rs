//! The one line that `sema-connector-browser auth` reads: which login state, and whether sessions
//! may save theirs. No refusal repeats what was read.

use crate::json::{self, Kind};

/// The most that is read of the input.
pub const REQUEST_LIMIT: usize = 64 * 1024;

/// What `auth` is asked to store. It is the connector's whole configuration: what is not named is
/// a clean profile, or off.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AuthRequest {
    /// The file that holds the login state; none: a clean profile.
    pub storage_state_file: Option<String>,
    /// Whether a session may save its login state.
    pub export: bool,
}

/// Why an input is no request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AuthError {
    /// Nothing but white space.
    #[error("the input is empty")]
    Empty,
    /// Over 64 KiB.
    #[error("the input is over 64 KiB")]
    TooLarge,
    /// A second line.
    #[error("the input is more than one line")]
    Lines,
    /// Not UTF-8.
    #[error("the input is not UTF-8")]
    NotUtf8,
    /// Not JSON.
    #[error("the input is not JSON (byte {at})")]
    NotJson {
        /// Where it breaks.
        at: usize,
    },
    /// Not an object.
    #[error("the input is not a JSON object")]
    NotObject,
    /// A key other than the two.
    #[error("the input has a key other than storageStateFile and export")]
    UnknownKey,
    /// A key given twice.
    #[error("the input gives {0} twice")]
    Twice(&'static str),
    /// A value that is no string.
    #[error("{0} is not a string")]
    NotString(&'static str),
    /// Neither on nor off.
    #[error("export is neither \"on\" nor \"off\"")]
    Export,
    /// A path that does not begin at the root.
    #[error("storageStateFile is not an absolute path")]
    Relative,
}

impl AuthError {
    /// How a person mends it.
    pub fn hint(self) -> &'static str {
        match self {
            Self::Empty => "for a clean profile: echo '{}' | sema-connector-browser auth",
            _ => {
                "give one line on standard input: {} or {\"storageStateFile\": \"/absolute/path\", \
                 \"export\": \"on\"}, each key optional"
            }
        }
    }
}

impl AuthRequest {
    /// Reads the whole input: one line, its end optional.
    pub fn parse(input: &[u8]) -> Result<Self, AuthError> {
        if input.len() > REQUEST_LIMIT {
            return Err(AuthError::TooLarge);
        }
        if input.iter().all(u8::is_ascii_whitespace) {
            return Err(AuthError::Empty);
        }
        let line = input.strip_suffix(b"\n").unwrap_or(input);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.iter().any(|byte| matches!(byte, b'\n' | b'\r')) {
            return Err(AuthError::Lines);
        }
        if std::str::from_utf8(line).is_err() {
            return Err(AuthError::NotUtf8);
        }
        let mut members = Vec::new();
        let value = json::object(line, |key, value| members.push((key, value)))
            .map_err(|error| AuthError::NotJson { at: error.at })?;
        if json::kind(value) != Kind::Object {
            return Err(AuthError::NotObject);
        }
        Self::from_members(&members)
    }

    fn from_members(members: &[(&[u8], &[u8])]) -> Result<Self, AuthError> {
        let (mut file, mut export) = (None, None);
        for (key, value) in members {
            match json::unescape(key).as_ref() {
                b"storageStateFile" => set(&mut file, "storageStateFile", value)?,
                b"export" => set(&mut export, "export", value)?,
                _ => return Err(AuthError::UnknownKey),
            }
        }
        if file
            .as_deref()
            .is_some_and(|path: &str| !path.starts_with('/'))
        {
            return Err(AuthError::Relative);
        }
        let export = match export.as_deref() {
            Some("on") => true,
            None | Some("off") => false,
            Some(_) => return Err(AuthError::Export),
        };
        Ok(Self {
            storage_state_file: file,
            export,
        })
    }
}

fn set(slot: &mut Option<String>, key: &'static str, value: &[u8]) -> Result<(), AuthError> {
    if slot.is_some() {
        return Err(AuthError::Twice(key));
    }
    if json::kind(value) != Kind::String {
        return Err(AuthError::NotString(key));
    }
    let text = json::unescape(&value[1..value.len() - 1]).into_owned();
    *slot = Some(String::from_utf8(text).map_err(|_| AuthError::NotUtf8)?);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_form_of_the_line_is_read() {
        let parse = |text: &str| AuthRequest::parse(text.as_bytes()).unwrap();
        assert_eq!(parse("{}"), AuthRequest::default());
        assert_eq!(parse("{}\r\n"), AuthRequest::default());
        assert_eq!(parse(" {\"export\": \"off\"} \n"), AuthRequest::default());
        let both = parse(r#"{"storage\u0053tateFile": "/a \u00e9", "export": "on"}"#);
        assert_eq!(both.storage_state_file.as_deref(), Some("/a é"));
        assert!(both.export);
    }

    #[test]
    fn every_refusal_says_what_and_repeats_nothing() {
        let refusals: Vec<String> = [
            &b""[..],
            b" \n\n",
            b"{}\n{}\n",
            b"{}\n\n",
            b"\n{}",
            b"{\"a\":\"\xff\"}",
            b"hunter2",
            b"[]",
            b"{\"hunter2\": \"x\"}",
            b"{\"export\": \"on\", \"exp\\u006frt\": \"on\"}",
            b"{\"export\": true}",
            b"{\"export\": \"hunter2\"}",
            b"{\"storageStateFile\": null}",
            b"{\"storageStateFile\": \"hunter2\"}",
            &[b' '; REQUEST_LIMIT + 1],
        ]
        .iter()
        .map(|text| AuthRequest::parse(text).unwrap_err().to_string())
        .collect();
        assert!(!refusals.concat().contains("hunter2"));
        insta::assert_snapshot!(refusals.join("\n"), @r#"
        the input is empty
        the input is empty
        the input is more than one line
        the input is more than one line
        the input is more than one line
        the input is not UTF-8
        the input is not JSON (byte 0)
        the input is not a JSON object
        the input has a key other than storageStateFile and export
        the input gives export twice
        export is not a string
        export is neither "on" nor "off"
        storageStateFile is not a string
        storageStateFile is not an absolute path
        the input is over 64 KiB
        "#);
    }
}
