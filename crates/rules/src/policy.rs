//! The operator's policy files: what a person writes by hand, read strictly.
//!
//! `tools.json` is enforced: a text that is not exactly `{"allow": [...]}` is refused, and a
//! refused policy allows nothing. `egress.json`, `jail.json` and `export.json` are only held to
//! their form here: whoever enforces one reads it with a type of its own.

use crate::strict::{Malformed, from_object};
use serde::Deserialize;
use std::collections::BTreeSet;

/// Which tools may be listed and called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolPolicy {
    /// The tools named, or none where every tool is allowed.
    allow: Option<BTreeSet<String>>,
}

/// Why a policy file is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file} is not a policy: {source}")]
pub struct PolicyError {
    /// The file's name.
    pub file: &'static str,
    /// What the reader found.
    pub source: Malformed,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ToolsFile {
    allow: BTreeSet<String>,
}

impl ToolPolicy {
    /// The file's name in a connector's directory.
    pub const FILE: &'static str = "tools.json";

    /// The policy without a file: every tool.
    pub fn all() -> Self {
        Self { allow: None }
    }

    /// The policy of a file that cannot be used: no tool.
    pub fn none() -> Self {
        Self {
            allow: Some(BTreeSet::new()),
        }
    }

    /// Reads `tools.json`.
    pub fn parse(text: &[u8]) -> Result<Self, PolicyError> {
        let file: ToolsFile = from_object(text).map_err(|source| PolicyError {
            file: Self::FILE,
            source,
        })?;
        Ok(Self {
            allow: Some(file.allow),
        })
    }

    /// Whether a tool of this name may be listed and called.
    pub fn allows(&self, tool: &str) -> bool {
        self.allow.as_ref().is_none_or(|allow| allow.contains(tool))
    }

    /// The tools that it names, sorted; none where every tool is allowed.
    pub fn named(&self) -> impl Iterator<Item = &str> {
        self.allow.iter().flatten().map(String::as_str)
    }

    /// Whether no tool is left out.
    pub fn allows_all(&self) -> bool {
        self.allow.is_none()
    }
}

/// The policy files that are accepted and not enforced yet.
pub const NOT_ENFORCED: [&str; 3] = ["egress.json", "jail.json", "export.json"];

/// Checks the form of one of [`NOT_ENFORCED`]. A file of another name is never well formed.
pub fn check_form(file: &'static str, text: &[u8]) -> Result<(), PolicyError> {
    let checked = match file {
        "egress.json" => from_object::<EgressFile>(text).map(|_| ()),
        "jail.json" => from_object::<JailFile>(text).map(|_| ()),
        "export.json" => {
            from_object::<serde_json::Map<String, serde_json::Value>>(text).map(|_| ())
        }
        _ => Err(Malformed {
            what: "not a policy file".to_owned(),
            line: 1,
            column: 1,
        }),
    };
    checked.map_err(|source| PolicyError { file, source })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "read for its form only")]
struct EgressFile {
    #[serde(default)]
    default: Reach,
    #[serde(default)]
    allow: Vec<String>,
    #[serde(default)]
    deny: Vec<String>,
    #[serde(default)]
    private: Vec<String>,
    #[serde(default)]
    tcp: Vec<String>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Reach {
    #[default]
    Public,
    None,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "read for its form only")]
struct JailFile {
    #[serde(default)]
    read: Vec<AbsolutePath>,
    #[serde(default)]
    write: Vec<AbsolutePath>,
    #[serde(default)]
    roots: Roots,
    #[serde(default)]
    env: Vec<VariableName>,
    memory_mib: Option<std::num::NonZeroU32>,
    processes: Option<std::num::NonZeroU32>,
    cpu_percent: Option<std::num::NonZeroU32>,
    proc: Option<Shared>,
    network: Option<NoNetwork>,
    jail: Option<Landlock>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Roots {
    #[default]
    None,
    Read,
    Write,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Shared {
    Shared,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum NoNetwork {
    None,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Landlock {
    Landlock,
}

#[derive(Deserialize)]
#[serde(try_from = "String")]
struct AbsolutePath;

impl TryFrom<String> for AbsolutePath {
    type Error = &'static str;
    fn try_from(path: String) -> Result<Self, &'static str> {
        if path.starts_with('/') && !path.contains('\0') {
            Ok(Self)
        } else {
            Err("expected an absolute path")
        }
    }
}

#[derive(Deserialize)]
#[serde(try_from = "String")]
struct VariableName;

impl TryFrom<String> for VariableName {
    type Error = &'static str;
    fn try_from(name: String) -> Result<Self, &'static str> {
        if name.is_empty() || name.contains(['=', '\0']) {
            Err("expected the name of a variable")
        } else {
            Ok(Self)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_names_what_it_allows() {
        let policy = ToolPolicy::parse(br#"{"allow": ["a", "b\u005fc"]}"#).unwrap();
        assert!(policy.allows("a") && policy.allows("b_c") && !policy.allows("A"));
        assert!(policy.named().eq(["a", "b_c"]));
        assert!(ToolPolicy::all().allows("anything"));
        assert!(!ToolPolicy::parse(br#"{"allow": []}"#).unwrap().allows("a"));
    }

    #[test]
    fn anything_else_is_refused() {
        for text in [
            "",
            "{}",
            "[]",
            r#"[["a"]]"#,
            r#"{"allow":"a"}"#,
            r#"{"allow":[1]}"#,
            r#"{"allow":[],"deny":[]}"#,
            r#"{"allow":[],"allow":[]}"#,
            r#"{"allow":["a"]} x"#,
            r#"{"allow":null}"#,
        ] {
            assert!(ToolPolicy::parse(text.as_bytes()).is_err(), "{text}");
        }
    }

    #[test]
    fn the_other_files_are_held_to_their_form() {
        for (file, text) in [
            ("egress.json", "{}"),
            (
                "egress.json",
                r#"{"default":"none","allow":["a"],"deny":[],"private":["localhost:3000"],"tcp":[]}"#,
            ),
            ("jail.json", "{}"),
            (
                "jail.json",
                r#"{"read":["/a"],"write":[],"roots":"read","env":["A"],"memory_mib":1,
                    "processes":2,"cpu_percent":300,"proc":"shared","network":"none","jail":"landlock"}"#,
            ),
            ("export.json", r#"{"to":"http://localhost:4318"}"#),
        ] {
            assert_eq!(check_form(file, text.as_bytes()), Ok(()), "{file} {text}");
        }
        let refusals: Vec<String> = [
            ("egress.json", "[]"),
            ("egress.json", r#"{"default":"hunter2"}"#),
            ("egress.json", r#"{"allow":"hunter2"}"#),
            ("egress.json", r#"{"allowed":[]}"#),
            ("egress.json", r#"["none",[],[],[],[]]"#),
            ("jail.json", r#"{"read":["hunter2"]}"#),
            ("jail.json", r#"{"roots":"all"}"#),
            ("jail.json", r#"{"memory_mib":0}"#),
            ("jail.json", r#"{"memory_mib":-1}"#),
            ("jail.json", r#"{"env":["A=B"]}"#),
            ("jail.json", r#"{"proc":"private"}"#),
            ("export.json", "[]"),
            ("other.json", "{}"),
        ]
        .iter()
        .map(|(file, text)| check_form(file, text.as_bytes()).unwrap_err().to_string())
        .collect();
        assert!(!refusals.concat().contains("hunter2"));
        insta::assert_snapshot!(refusals.join("\n"), @"
        egress.json is not a policy: not a JSON object (line 1, column 1)
        egress.json is not a policy: expected `public` or `none` (line 1, column 20)
        egress.json is not a policy: expected a sequence (line 1, column 18)
        egress.json is not a policy: unknown field `allowed`, expected one of `default`, `allow`, `deny`, `private`, `tcp` (line 1, column 10)
        egress.json is not a policy: not a JSON object (line 1, column 1)
        jail.json is not a policy: expected an absolute path (line 1, column 19)
        jail.json is not a policy: expected one of `none`, `read`, `write` (line 1, column 14)
        jail.json is not a policy: expected a nonzero u32 (line 1, column 15)
        jail.json is not a policy: expected a nonzero u32 (line 1, column 16)
        jail.json is not a policy: expected the name of a variable (line 1, column 14)
        jail.json is not a policy: expected `shared` (line 1, column 17)
        export.json is not a policy: not a JSON object (line 1, column 1)
        other.json is not a policy: not a policy file (line 1, column 1)
        ");
    }
}
