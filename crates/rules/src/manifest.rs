//! `connector.json`: what the launcher starts for a connector, which handles it takes, and what
//! of the disk it is granted.

use crate::name::Handle;
use crate::strict::{Malformed, from_object};
use serde::{Deserialize, Serialize};

/// The file's name in a connector's directory.
pub const FILE: &str = "connector.json";
/// The longest that is read, in bytes.
pub const LIMIT: usize = 1024 * 1024;

/// What the launcher starts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// The program, an absolute path, and its arguments.
    pub command: Vec<String>,
    /// The handles that it takes.
    #[serde(default)]
    pub handles: Vec<Handle>,
    /// Those of them without which it is not started.
    #[serde(default)]
    pub required: Vec<Handle>,
    /// Who puts the walls around it.
    #[serde(default)]
    pub confined: Confined,
    /// Absolute paths that it may read.
    #[serde(default)]
    pub read: Vec<String>,
    /// Absolute paths that it may read and write.
    #[serde(default)]
    pub write: Vec<String>,
    /// The handles that are set in its environment, inside the walls.
    #[serde(default)]
    pub env: Vec<Handle>,
}

/// Who puts the walls around a connector.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Confined {
    /// The launcher: the connector is a program that we do not trust.
    #[default]
    ByLauncher,
    /// The connector itself: it is ours and confines what it starts.
    ByItself,
}

/// Why a text is no manifest.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("connector.json: {0}")]
pub struct ManifestError(Problem);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
enum Problem {
    #[error(transparent)]
    Malformed(Malformed),
    #[error("command names no program")]
    NoCommand,
    #[error("{0} holds a path that is not absolute")]
    Relative(&'static str),
    #[error("{0} holds a zero byte")]
    Zero(&'static str),
    #[error("{0} holds {1} twice")]
    Twice(&'static str, Handle),
    #[error("{0} holds {1}, which is not among handles")]
    NotTaken(&'static str, Handle),
}

impl Manifest {
    /// Reads and checks a manifest.
    pub fn parse(text: &[u8]) -> Result<Self, ManifestError> {
        let manifest: Self = from_object(text).map_err(|e| ManifestError(Problem::Malformed(e)))?;
        manifest.check().map_err(ManifestError)?;
        Ok(manifest)
    }

    /// The text that `parse` reads.
    pub fn to_text(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).unwrap_or_default();
        text.push('\n');
        text
    }

    fn check(&self) -> Result<(), Problem> {
        let program = self.command.first().ok_or(Problem::NoCommand)?;
        absolute("command", program)?;
        for word in &self.command {
            no_zero("command", word)?;
        }
        for (list, paths) in [("read", &self.read), ("write", &self.write)] {
            for path in paths {
                absolute(list, path)?;
                no_zero(list, path)?;
            }
        }
        for (list, handles) in [
            ("handles", &self.handles),
            ("required", &self.required),
            ("env", &self.env),
        ] {
            self.check_handles(list, handles)?;
        }
        Ok(())
    }

    fn check_handles(&self, list: &'static str, handles: &[Handle]) -> Result<(), Problem> {
        for (index, handle) in handles.iter().enumerate() {
            if handles[..index].contains(handle) {
                return Err(Problem::Twice(list, handle.clone()));
            }
            if !self.handles.contains(handle) {
                return Err(Problem::NotTaken(list, handle.clone()));
            }
        }
        Ok(())
    }
}

fn absolute(list: &'static str, path: &str) -> Result<(), Problem> {
    if path.starts_with('/') {
        Ok(())
    } else {
        Err(Problem::Relative(list))
    }
}

fn no_zero(list: &'static str, text: &str) -> Result<(), Problem> {
    if text.contains('\0') {
        Err(Problem::Zero(list))
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manifest_is_read_as_it_is_written() {
        let token = Handle::parse("TOKEN").unwrap();
        let manifest = Manifest {
            command: vec!["/usr/bin/node".to_owned(), "/srv/a b/é.js".to_owned()],
            handles: vec![token.clone()],
            required: vec![token],
            confined: Confined::ByItself,
            read: vec!["/srv".to_owned()],
            write: vec![],
            env: vec![],
        };
        insta::assert_snapshot!(manifest.to_text(), @r#"
        {
          "command": [
            "/usr/bin/node",
            "/srv/a b/é.js"
          ],
          "handles": [
            "TOKEN"
          ],
          "required": [
            "TOKEN"
          ],
          "confined": "by-itself",
          "read": [
            "/srv"
          ],
          "write": [],
          "env": []
        }
        "#);
        assert_eq!(Manifest::parse(manifest.to_text().as_bytes()), Ok(manifest));
        let least = Manifest::parse(br#"{"command":["/bin/cat"]}"#).unwrap();
        assert_eq!(least.confined, Confined::ByLauncher);
    }

    #[test]
    fn everything_else_is_refused() {
        let refusals: Vec<String> = [
            "",
            "[]",
            r#"[["/bin/cat"],[],[],"by-itself",[],[],[]]"#,
            "{}",
            r#"{"command":[]}"#,
            r#"{"command":["cat"]}"#,
            r#"{"command":"/bin/cat"}"#,
            r#"{"command":["/bin/cat","a\u0000"]}"#,
            r#"{"command":["/bin/cat"],"command":["/bin/cat"]}"#,
            r#"{"command":["/bin/cat"],"shell":true}"#,
            r#"{"command":["/bin/cat"],"confined":"not-at-all"}"#,
            r#"{"command":["/bin/cat"],"handles":["hunter2"]}"#,
            r#"{"command":["/bin/cat"],"handles":["A","A"]}"#,
            r#"{"command":["/bin/cat"],"required":["A"]}"#,
            r#"{"command":["/bin/cat"],"env":["A"]}"#,
            r#"{"command":["/bin/cat"],"read":["x"]}"#,
            r#"{"command":["/bin/cat"],"write":["~/x"]}"#,
        ]
        .iter()
        .map(|text| Manifest::parse(text.as_bytes()).unwrap_err().to_string())
        .collect();
        insta::assert_snapshot!(refusals.join("\n"), @"
        connector.json: empty (line 1, column 1)
        connector.json: not a JSON object (line 1, column 1)
        connector.json: not a JSON object (line 1, column 1)
        connector.json: missing field `command` (line 1, column 2)
        connector.json: command names no program
        connector.json: command holds a path that is not absolute
        connector.json: expected a sequence (line 1, column 21)
        connector.json: command holds a zero byte
        connector.json: duplicate field `command` (line 1, column 33)
        connector.json: unknown field `shell`, expected one of `command`, `handles`, `required`, `confined`, `read`, `write`, `env` (line 1, column 31)
        connector.json: expected `by-launcher` or `by-itself` (line 1, column 47)
        connector.json: a handle must match [A-Z][A-Z0-9_]{0,63} (line 1, column 45)
        connector.json: handles holds A twice
        connector.json: required holds A, which is not among handles
        connector.json: env holds A, which is not among handles
        connector.json: read holds a path that is not absolute
        connector.json: write holds a path that is not absolute
        ");
    }
}
