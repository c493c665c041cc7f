//! The operator's tool policy, `tools.json`: `{"allow": ["browser_navigate", ...]}`.
//!
//! A text that is anything else is refused, and a refused policy allows nothing.

use std::collections::BTreeSet;

/// Which tools may be listed and called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolPolicy {
    /// The tools named, or none where every tool is allowed.
    allow: Option<BTreeSet<String>>,
}

/// Why a policy file is refused.
#[derive(Debug, thiserror::Error)]
#[error("{file} is not a policy: {source}")]
pub struct PolicyError {
    /// The file's name.
    pub file: &'static str,
    /// What the reader found.
    pub source: serde_json::Error,
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct ToolsFile {
    allow: BTreeSet<String>,
}

impl ToolPolicy {
    /// The policy without a file: every tool.
    pub fn all() -> Self {
        Self { allow: None }
    }

    /// Reads `tools.json`.
    pub fn parse(text: &[u8]) -> Result<Self, PolicyError> {
        let file: ToolsFile = serde_json::from_slice(text).map_err(|source| PolicyError {
            file: "tools.json",
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

    /// Whether no tool is left out.
    pub fn allows_all(&self) -> bool {
        self.allow.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_names_what_it_allows() {
        let policy = ToolPolicy::parse(br#"{"allow": ["a", "b\u005fc"]}"#).unwrap();
        assert!(policy.allows("a") && policy.allows("b_c") && !policy.allows("A"));
        assert!(ToolPolicy::all().allows("anything"));
        assert!(!ToolPolicy::parse(br#"{"allow": []}"#).unwrap().allows("a"));
    }

    #[test]
    fn anything_else_is_refused() {
        for text in [
            "",
            "{}",
            "[]",
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
}
