//! The lock file, `binaries.lock.json`: the one place that names a pinned build. Everything an
//! installer does follows from it, so it is read strictly: a key that is not known or that occurs
//! twice, a path that could leave `bin/`, and two archives that claim one path are refused.

use crate::digest::{Sha256, Sha512};
use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, Visitor};
use std::fmt;
use std::marker::PhantomData;

/// The name under which the archives' copies are kept below `bin/`.
pub const ARCHIVES: &str = "archives";
/// The name of the record of what was unpacked, below `bin/`.
pub const RECORD: &str = "record.json";

/// Why a lock file is refused.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// It is not JSON of the lock's shape.
    #[error("{0}")]
    Shape(#[from] serde_json::Error),
    /// Two archives have one name.
    #[error("the archive {0} is named twice")]
    Twice(FileName),
    /// Two archives unpack to one path, or one inside the other's.
    #[error("{0} and {1} claim one path")]
    Overlap(String, String),
}

/// A lock file.
#[derive(Debug, Clone)]
pub struct Lock {
    builds: Vec<(String, Build)>,
}

/// One pinned build.
#[derive(Debug, Clone, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Build {
    /// The version of the upstream program.
    pub version: String,
    /// The day on which it was pinned, `YYYY-MM-DD`.
    pub pinned: Day,
    /// The Node.js program, below `bin/`.
    pub node: RelPath,
    /// The upstream's script, below `bin/`.
    pub script: RelPath,
    /// The browser, below `bin/`.
    pub browser: RelPath,
    /// What is fetched.
    pub archives: Vec<Archive>,
}

/// One archive of a build.
#[derive(Debug, Clone, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Archive {
    /// The name under which it is kept.
    pub file: FileName,
    /// Where it is needed.
    pub platform: Platform,
    /// Only installed when this group is asked for.
    #[serde(default)]
    pub group: Option<Group>,
    /// Where it comes from, with `{version}` and `{file}`.
    url: Url,
    /// Its length in bytes.
    pub bytes: u64,
    /// Its SHA-256.
    pub sha256: Sha256,
    /// The registry's own SHA-512 of it, where the registry gives one.
    #[serde(default)]
    pub integrity: Option<Sha512>,
    /// What it is.
    pub format: Format,
    /// The most that may come out of it.
    pub unpacked: Limit,
    /// What is taken from it: a file or a folder in the archive, and where it goes below `bin/`.
    #[serde(default)]
    pub take: Take,
    /// Archives inside it.
    #[serde(default)]
    pub nested: Vec<Nested>,
}

/// How much an archive may hold.
#[derive(Debug, Clone, Copy, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limit {
    /// All its files together, in bytes.
    pub bytes: u64,
    /// How many entries.
    pub entries: u32,
}

/// A compressed file inside an archive.
#[derive(Debug, Clone, serde::Deserialize)]
#[serde(tag = "format", deny_unknown_fields)]
pub enum Nested {
    /// One file, compressed with brotli.
    #[serde(rename = "brotli")]
    Brotli {
        /// The file in the archive.
        from: RelPath,
        /// Where it goes.
        to: RelPath,
        /// Its exact length once decompressed.
        bytes: u64,
        /// Whether it is a program.
        executable: bool,
    },
    /// A tar archive, compressed with brotli.
    #[serde(rename = "tar.br")]
    TarBrotli {
        /// The file in the archive.
        from: RelPath,
        /// The most that may come out of it.
        unpacked: Limit,
        /// What is taken from it.
        take: Take,
    },
}

/// Pairs of what is taken from an archive and where it goes.
#[derive(Debug, Clone, Default)]
pub struct Take(pub Vec<(RelPath, RelPath)>);

/// What an archive is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// A gzipped tar archive.
    Tgz,
    /// A zip archive.
    Zip,
}

/// A group of archives that is installed on request only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Group {
    /// Fonts for more scripts.
    Fonts,
}

impl Lock {
    /// Reads a lock file.
    pub fn parse(text: &[u8]) -> Result<Self, LockError> {
        let Unique(builds) = serde_json::from_slice::<Unique<Build>>(text)?;
        for (_, build) in &builds {
            build.check()?;
        }
        Ok(Self { builds })
    }

    /// The build of this key.
    pub fn build(&self, key: &str) -> Option<&Build> {
        self.builds
            .iter()
            .find(|(name, _)| name == key)
            .map(|(_, build)| build)
    }
}

impl Build {
    /// The archives that a platform needs, with those of the groups asked for.
    pub fn archives_for<'a>(
        &'a self,
        platform: &'a Platform,
        groups: &'a [Group],
    ) -> impl Iterator<Item = &'a Archive> {
        self.archives.iter().filter(move |archive| {
            (archive.platform.is_any() || archive.platform == *platform)
                && archive.group.is_none_or(|group| groups.contains(&group))
        })
    }

    /// Whether the browser is pinned for a platform: without it nothing is.
    pub fn pins(&self, platform: &Platform) -> bool {
        self.archives_for(platform, &[])
            .any(|archive| archive.destinations().any(|to| self.browser.is_in(to)))
    }

    /// The platforms for which the browser is pinned.
    pub fn platforms(&self) -> Vec<&Platform> {
        let mut platforms: Vec<&Platform> = self
            .archives
            .iter()
            .map(|archive| &archive.platform)
            .filter(|p| !p.is_any())
            .collect();
        platforms.sort();
        platforms.dedup();
        platforms.retain(|platform| self.pins(platform));
        platforms
    }

    /// Where an archive comes from.
    pub fn url(&self, archive: &Archive) -> String {
        archive
            .url
            .0
            .replace("{version}", &self.version)
            .replace("{file}", archive.file.as_str())
    }

    fn check(&self) -> Result<(), LockError> {
        for (at, archive) in self.archives.iter().enumerate() {
            let folded = archive.file.0.to_lowercase();
            for other in &self.archives[at + 1..] {
                if other.file.0.to_lowercase() == folded {
                    return Err(LockError::Twice(other.file.clone()));
                }
            }
        }
        let claims: Vec<(&Archive, &RelPath)> = self
            .archives
            .iter()
            .flat_map(|archive| archive.destinations().map(move |to| (archive, to)))
            .collect();
        for (at, (archive, path)) in claims.iter().enumerate() {
            for (other, claimed) in &claims[at + 1..] {
                let meet = archive.platform.meets(&other.platform);
                if meet && (path.folds_into(claimed) || claimed.folds_into(path)) {
                    let name = |archive: &Archive, path| format!("{} ({path})", archive.file);
                    return Err(LockError::Overlap(
                        name(archive, path),
                        name(other, claimed),
                    ));
                }
            }
        }
        Ok(())
    }
}

impl Archive {
    /// Every path below `bin/` that it unpacks to.
    pub fn destinations(&self) -> impl Iterator<Item = &RelPath> {
        let nested = self.nested.iter().flat_map(|nested| match nested {
            Nested::Brotli { to, .. } => vec![to],
            Nested::TarBrotli { take, .. } => take.0.iter().map(|(_, to)| to).collect(),
        });
        self.take.0.iter().map(|(_, to)| to).chain(nested)
    }
}

/// A text that a rule admits. The refused text is repeated: a lock file holds no secret.
macro_rules! text {
    ($(#[$doc:meta])* $type:ident, $rule:expr, $what:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $type(String);

        impl $type {
            /// Parses it; none when it is not well formed.
            pub fn parse(text: &str) -> Option<Self> {
                let rule: fn(&str) -> bool = $rule;
                rule(text).then(|| Self(text.to_owned()))
            }

            /// As it was written.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
                let text = String::deserialize(d)?;
                Self::parse(&text).ok_or_else(|| D::Error::custom(format!("{text:?} is not {}", $what)))
            }
        }
    };
}

text!(
    /// A file's name, without folders.
    FileName, |text| is_component(text) && text.bytes().all(|b| b.is_ascii_graphic()), "a file name"
);
text!(
    /// A path of one or more names below a folder, separated by `/`.
    RelPath, |text| text.split('/').all(is_component)
        && !text.split('/').next().is_some_and(is_reserved), "a path below bin/"
);
text!(
    /// `*`, or a system and a processor such as `linux-x64`.
    Platform, |text| text == "*" || matches!(text.split_once('-'), Some(("linux" | "darwin" | "win32", "x64" | "arm64"))),
    "a platform"
);
text!(
    /// An address with `{version}` and `{file}`.
    Url, |text| ["https://", "http://", "file:///"].iter().any(|scheme| text.starts_with(scheme))
        && text.bytes().all(|b| b.is_ascii_graphic()), "an address"
);
text!(
    /// A day, `YYYY-MM-DD`.
    Day, |text| text.len() == 10 && text.bytes().enumerate().all(|(at, b)| match at {
        4 | 7 => b == b'-',
        _ => b.is_ascii_digit(),
    }), "a day (YYYY-MM-DD)"
);

fn is_component(name: &str) -> bool {
    !matches!(name, "" | "." | "..")
        && !name.contains(['\\', ':', '\0'])
        && !name.chars().any(char::is_control)
}

fn is_reserved(name: &str) -> bool {
    [ARCHIVES, RECORD].contains(&name.to_lowercase().as_str())
}

impl RelPath {
    /// Whether it is `folder` or lies in it.
    pub fn is_in(&self, folder: &Self) -> bool {
        self.0
            .strip_prefix(&folder.0)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }

    /// The same without regard to case, as some file systems would have it.
    fn folds_into(&self, folder: &Self) -> bool {
        Self(self.0.to_lowercase()).is_in(&Self(folder.0.to_lowercase()))
    }
}

impl Platform {
    /// The platform of a system and a processor as the compiler names them.
    pub fn of(os: &str, arch: &str) -> Self {
        let os = match os {
            "macos" => "darwin",
            "windows" => "win32",
            other => other,
        };
        let arch = match arch {
            "x86_64" => "x64",
            "aarch64" => "arm64",
            other => other,
        };
        Self(format!("{os}-{arch}"))
    }

    fn is_any(&self) -> bool {
        self.0 == "*"
    }

    fn meets(&self, other: &Self) -> bool {
        self == other || self.is_any() || other.is_any()
    }
}

/// An object with free keys, none of them twice.
struct Unique<V>(Vec<(String, V)>);

impl<'de, V: Deserialize<'de>> Deserialize<'de> for Unique<V> {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct Entries<V>(PhantomData<V>);
        impl<'de, V: Deserialize<'de>> Visitor<'de> for Entries<V> {
            type Value = Unique<V>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut entries: Vec<(String, V)> = Vec::new();
                while let Some((key, value)) = map.next_entry::<String, V>()? {
                    if entries.iter().any(|(known, _)| *known == key) {
                        return Err(A::Error::custom(format!("duplicate key `{key}`")));
                    }
                    entries.push((key, value));
                }
                Ok(Unique(entries))
            }
        }
        d.deserialize_map(Entries(PhantomData))
    }
}

impl<'de> Deserialize<'de> for Take {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let Unique(entries) = Unique::<RelPath>::deserialize(d)?;
        let parse = |(from, to): (String, RelPath)| match RelPath::parse(&from) {
            Some(from) => Ok((from, to)),
            None => Err(D::Error::custom(format!(
                "{from:?} is not a path in an archive"
            ))),
        };
        entries
            .into_iter()
            .map(parse)
            .collect::<Result<_, _>>()
            .map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PINNED: &[u8] = include_bytes!("../../../binaries.lock.json");

    const SMALL: &str = r#"{"p": {"version": "1.0", "pinned": "2026-12-01", "node": "node/bin/node",
        "script": "m/cli.js", "browser": "chrome/shell", "archives": [
        {"file": "a.tgz", "platform": "*", "url": "https://h.example/-/{file}?v={version}", "bytes": 1,
         "sha256": "0000000000000000000000000000000000000000000000000000000000000000",
         "format": "tgz", "unpacked": {"bytes": 2, "entries": 3}, "take": {"package": "m"}},
        {"file": "b.zip", "platform": "linux-x64", "url": "https://h.example/b", "bytes": 1,
         "sha256": "0000000000000000000000000000000000000000000000000000000000000000",
         "format": "zip", "unpacked": {"bytes": 2, "entries": 3}, "take": {"x": "chrome"}}]}}"#;

    fn refusal(from: &str, to: &str) -> String {
        assert!(SMALL.contains(from), "{from}");
        let text = Lock::parse(SMALL.replacen(from, to, 1).as_bytes())
            .unwrap_err()
            .to_string();
        text.split(" at line ").next().unwrap().to_owned()
    }

    #[test]
    fn the_pinned_lock_is_read() {
        let lock = Lock::parse(PINNED).unwrap();
        let build = lock.build("playwright-mcp").unwrap();
        let linux = Platform::of("linux", "x86_64");
        assert_eq!(build.version, "0.0.83");
        assert_eq!(build.platforms(), [&linux]);
        assert!(!build.pins(&Platform::of("macos", "aarch64")));
        assert_eq!(build.archives_for(&linux, &[]).count(), 6);
        assert_eq!(build.archives_for(&linux, &[Group::Fonts]).count(), 12);
        assert!(
            build
                .archives
                .iter()
                .all(|archive| archive.integrity.is_some())
        );
    }

    #[test]
    fn an_address_is_filled_in() {
        let lock = Lock::parse(SMALL.as_bytes()).unwrap();
        let build = lock.build("p").unwrap();
        assert_eq!(
            build.url(&build.archives[0]),
            "https://h.example/-/a.tgz?v=1.0"
        );
    }

    #[test]
    fn what_is_not_a_lock_is_refused() {
        insta::assert_snapshot!(refusal(r#""version": "1.0","#, ""), @"missing field `version`");
        insta::assert_snapshot!(refusal(r#""version""#, r#""x": 1, "version""#), @"unknown field `x`, expected one of `version`, `pinned`, `node`, `script`, `browser`, `archives`");
        insta::assert_snapshot!(refusal(r#""version""#, r#""version": "2", "version""#), @"duplicate field `version`");
        insta::assert_snapshot!(refusal(r#""take": {"package": "m"}"#, r#""take": {"package": "m", "package": "n"}"#), @"duplicate key `package`");
        insta::assert_snapshot!(refusal("sha256\": \"0", "sha256\": \"g"), @"a sha256 must be 64 lower-case hexadecimal digits");
        insta::assert_snapshot!(refusal(r#""package": "m""#, r#""package": "../m""#), @r#""../m" is not a path below bin/"#);
        insta::assert_snapshot!(refusal(r#""package": "m""#, r#""package": "record.json""#), @r#""record.json" is not a path below bin/"#);
        insta::assert_snapshot!(refusal(r#""package": "m""#, r#""package": "Chrome/x""#), @"a.tgz (Chrome/x) and b.zip (chrome) claim one path");
        insta::assert_snapshot!(refusal(r#""file": "b.zip""#, r#""file": "A.tgz""#), @"the archive A.tgz is named twice");
        insta::assert_snapshot!(refusal(r#""linux-x64""#, r#""linux""#), @r#""linux" is not a platform"#);
        insta::assert_snapshot!(refusal(r#""bytes": 1"#, r#""bytes": -1"#), @"invalid value: integer `-1`, expected u64");
        insta::assert_snapshot!(Lock::parse(b"[]").unwrap_err(), @"invalid type: sequence, expected an object at line 1 column 0");
    }

    #[test]
    fn paths_stay_below_their_folder() {
        for wrong in [
            "",
            "/a",
            "a/",
            "a//b",
            "..",
            "a/../b",
            "./a",
            "a\\b",
            "c:/a",
            "a\0",
            "archives/x",
            "Archives",
        ] {
            assert_eq!(RelPath::parse(wrong), None, "{wrong:?}");
        }
        assert!(RelPath::parse("node_modules/@playwright/mcp").is_some());
        assert!(RelPath::parse("a/archives").is_some());
    }
}
