//! The names of the product, parsed once at the door: a value of these types is well formed.

use std::fmt;

/// What a name must look like, for the error.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what} must match {pattern}")]
pub struct NameError {
    /// Which kind of name was refused.
    pub what: &'static str,
    /// The pattern that it must match.
    pub pattern: &'static str,
}

macro_rules! name {
    ($(#[$doc:meta])* $type:ident, $what:literal, $pattern:literal, $rule:expr) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $type(String);

        impl $type {
            /// Parses the name. The refused text is not repeated in the error: it may be a secret
            /// that was typed in the wrong place.
            pub fn parse(text: &str) -> Result<Self, NameError> {
                let rule: fn(&[u8]) -> bool = $rule;
                if rule(text.as_bytes()) {
                    Ok(Self(text.to_owned()))
                } else {
                    Err(NameError { what: $what, pattern: $pattern })
                }
            }

            /// The name as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl std::str::FromStr for $type {
            type Err = NameError;
            fn from_str(text: &str) -> Result<Self, NameError> {
                Self::parse(text)
            }
        }

        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
                let text = String::deserialize(d)?;
                Self::parse(&text).map_err(serde::de::Error::custom)
            }
        }

        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
                s.serialize_str(&self.0)
            }
        }
    };
}

name!(
    /// A connector's name, as in `sema-connector run NAME`.
    ConnectorName, "a connector's name", "[a-z][a-z0-9-]{0,31}",
    |name| matches!(name, [b'a'..=b'z', rest @ ..] if rest.len() <= 31
        && rest.iter().all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'-')))
);

name!(
    /// The name of a secret or a switch that a connector takes.
    Handle, "a handle", "[A-Z][A-Z0-9_]{0,63}",
    |name| matches!(name, [b'A'..=b'Z', rest @ ..] if rest.len() <= 63
        && rest.iter().all(|b| matches!(b, b'A'..=b'Z' | b'0'..=b'9' | b'_')))
);

name!(
    /// The id of one launch: the name of its directory, short because socket paths below it are.
    LaunchId, "a launch id", "[a-z0-9]{4,12}",
    |name| (4..=12).contains(&name.len())
        && name.iter().all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9'))
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_parsed_exactly() {
        assert!(ConnectorName::parse("browser").is_ok());
        assert!(ConnectorName::parse(&"a".repeat(32)).is_ok());
        for wrong in [
            "",
            "-a",
            "1a",
            "A",
            "a_b",
            "a/b",
            "..",
            "é",
            &"a".repeat(33),
        ] {
            assert!(ConnectorName::parse(wrong).is_err(), "{wrong}");
        }
        assert!(Handle::parse("BROWSER_STORAGE_STATE").is_ok());
        for wrong in ["", "_A", "a", "A-B", "A\n", &"A".repeat(65)] {
            assert!(Handle::parse(wrong).is_err(), "{wrong}");
        }
        assert!(LaunchId::parse("k3x9").is_ok());
        assert!(LaunchId::parse("../x").is_err());
    }

    #[test]
    fn an_error_never_repeats_the_text() {
        let error = Handle::parse("hunter2-secret").unwrap_err();
        assert_eq!(
            error.to_string(),
            "a handle must match [A-Z][A-Z0-9_]{0,63}"
        );
    }
}
