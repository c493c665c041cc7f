//! Digests as values: 32 bytes of SHA-256 written as hex, 64 bytes of SHA-512 written as the
//! registry's integrity string. Computing them is the vault's work; here they are parsed and printed.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use std::fmt;

/// A digest that does not parse.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DigestError {
    /// Not 64 lower-case hexadecimal digits.
    #[error("a sha256 must be 64 lower-case hexadecimal digits")]
    Sha256,
    /// Not `sha512-` and the base64 of 64 bytes.
    #[error("an integrity must be \"sha512-\" and the base64 of 64 bytes")]
    Sha512,
}

/// A SHA-256 digest, displayed as lower-case hex.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Sha256(pub [u8; 32]);

/// A SHA-512 digest, displayed as an npm integrity (`sha512-...`).
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Sha512(pub [u8; 64]);

impl Sha256 {
    /// Parses 64 lower-case hexadecimal digits.
    pub fn parse(text: &str) -> Result<Self, DigestError> {
        let mut bytes = [0; 32];
        if text.len() != 64 {
            return Err(DigestError::Sha256);
        }
        for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
            *byte = match (nibble(pair[0]), nibble(pair[1])) {
                (Some(high), Some(low)) => high << 4 | low,
                _ => return Err(DigestError::Sha256),
            };
        }
        Ok(Self(bytes))
    }
}

fn nibble(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    }
}

impl Sha512 {
    /// Parses an npm integrity of one SHA-512.
    pub fn parse(text: &str) -> Result<Self, DigestError> {
        let encoded = text.strip_prefix("sha512-").ok_or(DigestError::Sha512)?;
        let bytes = STANDARD.decode(encoded).map_err(|_| DigestError::Sha512)?;
        bytes.try_into().map(Self).map_err(|_| DigestError::Sha512)
    }
}

impl fmt::Display for Sha256 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Display for Sha512 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sha512-{}", STANDARD.encode(self.0))
    }
}

macro_rules! as_text {
    ($type:ident) => {
        impl fmt::Debug for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }

        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
                Self::parse(&String::deserialize(d)?).map_err(serde::de::Error::custom)
            }
        }

        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
                s.collect_str(self)
            }
        }
    };
}
as_text!(Sha256);
as_text!(Sha512);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_print_as_they_parse() {
        let hex = "f0014a13361b1ee2d8607a4e187868ab9a6e8ac637dbcd66e4af43f738d0c8cb";
        assert_eq!(Sha256::parse(hex).unwrap().to_string(), hex);
        let integrity = Sha512([7; 64]).to_string();
        assert_eq!(Sha512::parse(&integrity).unwrap(), Sha512([7; 64]));
    }

    #[test]
    fn other_spellings_are_refused() {
        for wrong in ["", "F0", &"g".repeat(64), &"A".repeat(64), &"é".repeat(32)] {
            assert_eq!(Sha256::parse(wrong), Err(DigestError::Sha256), "{wrong}");
        }
        for wrong in ["", "sha512-", "sha1-AAAA", "sha512-AAAA"] {
            assert_eq!(Sha512::parse(wrong), Err(DigestError::Sha512), "{wrong}");
        }
    }
}
