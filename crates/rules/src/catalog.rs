//! `catalog.json`: what an engine may start, one entry a connector.
//!
//! `{"connectors": {"browser": {"command": "/abs/sema-connector", "args": ["run", "browser"]}}}`.
//! An entry that is not exactly of the shape that `mount` writes is somebody else's: it is never
//! listed, changed or removed. Everything else in the file keeps its bytes.

use crate::json::{self, Kind};
use crate::name::ConnectorName;

const CONNECTORS: &str = "connectors";
/// The program that an entry of ours starts.
const PROGRAM: &str = "sema-connector";

/// The file, as raw members in their order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Catalog {
    /// The members of the file other than `connectors`, and where that one stands among them.
    members: Vec<Member>,
    place: usize,
    entries: Vec<Member>,
}

/// A key and a value, each as written (the key without its quotes).
#[derive(Debug, Clone, PartialEq, Eq)]
struct Member {
    key: String,
    value: String,
}

/// An entry of the shape that `mount` writes.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Entry {
    /// The launcher, an absolute path.
    pub command: String,
    /// `run NAME`.
    pub args: Vec<String>,
}

/// What stands under a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// What `mount` writes.
    Ours(Entry),
    /// Anything else.
    Foreign,
}

/// Why a text is no catalog.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CatalogError {
    /// Not JSON.
    #[error("not JSON at byte {0}")]
    NotJson(usize),
    /// The file is not an object.
    #[error("not a JSON object")]
    NotObject,
    /// `connectors` is not an object.
    #[error("\"connectors\" is not a JSON object")]
    Connectors,
    /// A key that we read is given twice.
    #[error("the key {0} is given twice")]
    Twice(String),
}

impl Entry {
    /// The entry that `mount` writes for a connector.
    pub fn new(launcher: &str, name: &ConnectorName) -> Self {
        Self {
            command: launcher.to_owned(),
            args: vec!["run".to_owned(), name.to_string()],
        }
    }

    /// Reads an entry that is exactly of that shape, whatever the folder of the launcher.
    fn parse(value: &str, name: &ConnectorName) -> Option<Self> {
        let mut members = Vec::new();
        json::object(value.as_bytes(), |key, value| members.push((key, value))).ok()?;
        let (mut command, mut args) = (None, None);
        for (key, value) in &members {
            let slot = match json::unescape(key).as_ref() {
                b"command" => &mut command,
                b"args" => &mut args,
                _ => return None,
            };
            if slot.replace(*value).is_some() {
                return None;
            }
        }
        let command: String = serde_json::from_slice(command?).ok()?;
        let args: Vec<String> = serde_json::from_slice(args?).ok()?;
        let ours = command.starts_with('/')
            && command.rsplit('/').next() == Some(PROGRAM)
            && args == ["run", name.as_str()];
        ours.then_some(Self { command, args })
    }
}

impl Catalog {
    /// Reads the file.
    pub fn parse(text: &[u8]) -> Result<Self, CatalogError> {
        let mut members = members(text)?.ok_or(CatalogError::NotObject)?;
        let is_connectors = |member: &Member| member.is(CONNECTORS);
        let Some(place) = members.iter().position(is_connectors) else {
            return Ok(Self {
                place: members.len(),
                members,
                entries: Vec::new(),
            });
        };
        let connectors = members.remove(place);
        if members.iter().any(is_connectors) {
            return Err(CatalogError::Twice(CONNECTORS.to_owned()));
        }
        let entries =
            self::members(connectors.value.as_bytes())?.ok_or(CatalogError::Connectors)?;
        for (index, entry) in entries.iter().enumerate() {
            if entries[..index]
                .iter()
                .any(|other| other.name() == entry.name())
                && let Ok(name) = ConnectorName::parse(&entry.name())
            {
                return Err(CatalogError::Twice(name.to_string()));
            }
        }
        Ok(Self {
            members,
            place,
            entries,
        })
    }

    /// What stands under a name.
    pub fn find(&self, name: &ConnectorName) -> Option<Found> {
        let member = self.entries.iter().find(|entry| entry.is(name.as_str()))?;
        Some(Entry::parse(&member.value, name).map_or(Found::Foreign, Found::Ours))
    }

    /// The entries of ours, in the order of the file.
    pub fn entries(&self) -> Vec<(ConnectorName, Entry)> {
        let read = |member: &Member| {
            let name = ConnectorName::parse(&member.name()).ok()?;
            let entry = Entry::parse(&member.value, &name)?;
            Some((name, entry))
        };
        self.entries.iter().filter_map(read).collect()
    }

    /// Writes an entry of ours, in the place of the one under that name or at the end. The caller
    /// has seen that no foreign one stands there.
    pub fn put(&mut self, name: &ConnectorName, entry: &Entry) {
        let value = serde_json::to_string(entry).unwrap_or_default();
        match self
            .entries
            .iter_mut()
            .find(|member| member.is(name.as_str()))
        {
            Some(member) => member.value = value,
            None => self.entries.push(Member {
                key: name.to_string(),
                value,
            }),
        }
    }

    /// Takes an entry away. The caller has seen that it is ours.
    pub fn remove(&mut self, name: &ConnectorName) {
        self.entries.retain(|member| !member.is(name.as_str()));
    }

    /// The file's text: every member on its line, its bytes as they were.
    pub fn to_text(&self) -> String {
        let mut lines: Vec<String> = self
            .members
            .iter()
            .map(|member| format!("  \"{}\": {}", member.key, member.value))
            .collect();
        lines.insert(self.place.min(lines.len()), self.connectors());
        format!("{{\n{}\n}}\n", lines.join(",\n"))
    }

    fn connectors(&self) -> String {
        if self.entries.is_empty() {
            return format!("  \"{CONNECTORS}\": {{}}");
        }
        let lines: Vec<String> = self
            .entries
            .iter()
            .map(|member| format!("    \"{}\": {}", member.key, member.value))
            .collect();
        format!("  \"{CONNECTORS}\": {{\n{}\n  }}", lines.join(",\n"))
    }
}

impl Member {
    fn name(&self) -> String {
        String::from_utf8_lossy(&json::unescape(self.key.as_bytes())).into_owned()
    }

    fn is(&self, name: &str) -> bool {
        json::unescape(self.key.as_bytes()).as_ref() == name.as_bytes()
    }
}

/// The members of an object; `None` where the value is something else.
fn members(text: &[u8]) -> Result<Option<Vec<Member>>, CatalogError> {
    let mut members = Vec::new();
    let lossless = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let value = json::object(text, |key, value| {
        members.push(Member {
            key: lossless(key),
            value: lossless(value),
        });
    })
    .map_err(|error| CatalogError::NotJson(error.at))?;
    Ok((json::kind(value) == Kind::Object).then_some(members))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> ConnectorName {
        ConnectorName::parse(text).unwrap()
    }

    #[test]
    fn what_mount_writes_is_found_listed_and_removed() {
        let browser = name("browser");
        let entry = Entry::new("/opt/my tools/sema-connector", &browser);
        let mut catalog = Catalog::default();
        catalog.put(&browser, &entry);
        insta::assert_snapshot!(catalog.to_text(), @r#"
        {
          "connectors": {
            "browser": {"command":"/opt/my tools/sema-connector","args":["run","browser"]}
          }
        }
        "#);
        let mut read = Catalog::parse(catalog.to_text().as_bytes()).unwrap();
        assert_eq!(read, catalog);
        assert_eq!(read.find(&browser), Some(Found::Ours(entry.clone())));
        assert_eq!(read.entries(), [(browser.clone(), entry)]);
        read.remove(&browser);
        assert_eq!(read.to_text(), "{\n  \"connectors\": {}\n}\n");
    }

    #[test]
    fn what_is_not_ours_keeps_its_bytes() {
        let text =
            r#"{"v": 1.0e400, "connectors": {"x\/y": { "a" : 1.50 }, "other": []}, "é": "\u00e9"}"#;
        let mut catalog = Catalog::parse(text.as_bytes()).unwrap();
        let browser = name("browser");
        catalog.put(&browser, &Entry::new("/b/sema-connector", &browser));
        insta::assert_snapshot!(catalog.to_text(), @r#"
        {
          "v": 1.0e400,
          "connectors": {
            "x\/y": { "a" : 1.50 },
            "other": [],
            "browser": {"command":"/b/sema-connector","args":["run","browser"]}
          },
          "é": "\u00e9"
        }
        "#);
        assert_eq!(catalog.find(&name("other")), Some(Found::Foreign));
        assert_eq!(catalog.entries().len(), 1);
    }

    #[test]
    fn an_entry_that_differs_in_anything_is_foreign() {
        for value in [
            r#"{"command":"/b/sema-connector","args":["run","other"]}"#,
            r#"{"command":"/b/sema-connector","args":["run","browser"],"env":{}}"#,
            r#"{"command":"sema-connector","args":["run","browser"]}"#,
            r#"{"command":"/bin/sh","args":["run","browser"]}"#,
            r#"{"command":"/b/sema-connector","args":["run","browser","-x"]}"#,
            r#"{"command":"/b/sema-connector"}"#,
            r#"{"command":"/b/sema-connector","args":["run","browser"],"args":["run","browser"]}"#,
            r#"["/b/sema-connector",["run","browser"]]"#,
            "null",
        ] {
            let text = format!(r#"{{"connectors":{{"browser":{value}}}}}"#);
            let catalog = Catalog::parse(text.as_bytes()).unwrap();
            assert_eq!(
                catalog.find(&name("browser")),
                Some(Found::Foreign),
                "{value}"
            );
            assert!(catalog.entries().is_empty());
        }
    }

    #[test]
    fn a_broken_file_is_refused() {
        let refusals: Vec<String> = [
            "",
            "[]",
            r#"{"connectors":[]}"#,
            r#"{"connectors":{},"connectors":{}}"#,
            r#"{"connectors":{"a":1,"\u0061":2}}"#,
        ]
        .iter()
        .map(|text| Catalog::parse(text.as_bytes()).unwrap_err().to_string())
        .collect();
        insta::assert_snapshot!(refusals.join("\n"), @r#"
        not JSON at byte 0
        not a JSON object
        "connectors" is not a JSON object
        the key connectors is given twice
        the key a is given twice
        "#);
    }

    proptest::proptest! {
        #[test]
        fn a_catalog_that_is_read_is_written_as_it_means(
            text in r#"\{("v":[1-9][0-9]{0,2},)?"connectors":\{("[a-z]{1,2}":(1|\{\}|\[ \])(,"[A-Z]":null)?)?\}(, "é": "x")?\}"#,
        ) {
            let catalog = Catalog::parse(text.as_bytes()).unwrap();
            let written = catalog.to_text();
            let value = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
            proptest::prop_assert_eq!(value(&written), value(&text));
            proptest::prop_assert_eq!(Catalog::parse(written.as_bytes()).unwrap().to_text(), written);
        }

        #[test]
        fn no_bytes_make_a_reader_panic(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..64)) {
            let _ = Catalog::parse(&bytes);
            let _ = crate::auth::AuthRequest::parse(&bytes);
            let _ = crate::state::check_storage_state(&bytes);
            let _ = crate::manifest::Manifest::parse(&bytes);
            let _ = crate::policy::ToolPolicy::parse(&bytes);
            for file in crate::policy::NOT_ENFORCED {
                let _ = crate::policy::check_form(file, &bytes);
            }
        }
    }
}
