//! What a person adds to the configuration of their client, in each client's own format, with
//! absolute paths.

use sema_rules::catalog::Entry;
use sema_rules::name::ConnectorName;
use sema_rules::quote;

/// How an engine starts a connector.
pub(super) struct Engine<'a> {
    pub(super) name: &'a ConnectorName,
    pub(super) entry: &'a Entry,
    /// The configuration directory, where a program of the desktop would not find it by itself.
    pub(super) config: Option<&'a str>,
}

impl Engine<'_> {
    /// The command, its arguments and its environment.
    pub(super) fn json(&self) -> serde_json::Value {
        let mut engine = serde_json::json!({
            "command": self.entry.command, "args": self.entry.args,
        });
        if let Some(config) = self.config {
            engine["env"] = serde_json::json!({ "CONFIG_LOCAL_DIR": config });
        }
        engine
    }

    /// Every client's snippet under its name.
    pub(super) fn snippets(&self) -> String {
        let servers = self.object("mcpServers", None);
        [
            ("Claude Code (run this)", self.claude_code()),
            (
                "Claude Desktop (claude_desktop_config.json)",
                servers.clone(),
            ),
            ("Cursor (~/.cursor/mcp.json)", servers.clone()),
            (
                "VS Code (.vscode/mcp.json, or \"MCP: Open User Configuration\")",
                self.object("servers", Some(("type", "stdio"))),
            ),
            ("Codex (~/.codex/config.toml)", self.toml()),
            ("Gemini CLI (~/.gemini/settings.json)", servers),
            (
                "Zed (settings.json)",
                self.object("context_servers", Some(("source", "custom"))),
            ),
        ]
        .map(|(client, snippet)| format!("{client}:\n\n{}\n", indented(&snippet)))
        .join("\n")
    }

    /// `--transport` stands between `--env`, which takes any number of values, and the name.
    fn claude_code(&self) -> String {
        let env = self.config.map(|config| {
            let pair = format!("CONFIG_LOCAL_DIR={config}");
            format!(" --env {}", quote::shell(&pair))
        });
        let words = std::iter::once(&self.entry.command).chain(&self.entry.args);
        let command: Vec<_> = words.map(|word| quote::shell(word)).collect();
        format!(
            "claude mcp add --scope user{} --transport stdio {} -- {}",
            env.unwrap_or_default(),
            self.name,
            command.join(" "),
        )
    }

    fn object(&self, key: &str, first: Option<(&str, &str)>) -> String {
        let mut lines = Vec::new();
        if let Some((key, value)) = first {
            lines.push(format!("      \"{key}\": {}", json(value)));
        }
        lines.push(format!("      \"command\": {}", json(&self.entry.command)));
        lines.push(format!("      \"args\": [{}]", list(&self.entry.args)));
        if let Some(config) = self.config {
            lines.push(format!(
                "      \"env\": {{ \"CONFIG_LOCAL_DIR\": {} }}",
                json(config)
            ));
        }
        let lines = lines.join(",\n");
        format!(
            "{{\n  \"{key}\": {{\n    \"{}\": {{\n{lines}\n    }}\n  }}\n}}",
            self.name
        )
    }

    fn toml(&self) -> String {
        let mut text = format!(
            "[mcp_servers.{}]\ncommand = {}\nargs = [{}]",
            self.name,
            json(&self.entry.command),
            list(&self.entry.args),
        );
        if let Some(config) = self.config {
            text.push_str(&format!(
                "\nenv = {{ CONFIG_LOCAL_DIR = {} }}",
                json(config)
            ));
        }
        text
    }
}

/// A string of JSON, and of TOML, which knows the same escapes but forbids a bare DEL.
fn json(text: &str) -> String {
    serde_json::Value::from(text)
        .to_string()
        .replace('\u{7f}', "\\u007f")
}

fn list(texts: &[String]) -> String {
    texts
        .iter()
        .map(|text| json(text))
        .collect::<Vec<_>>()
        .join(", ")
}

fn indented(text: &str) -> String {
    text.lines()
        .map(|line| format!("  {line}"))
        .collect::<Vec<_>>()
        .join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_client_gets_its_format() {
        let name = ConnectorName::parse("browser").unwrap();
        let entry = Entry::new("/opt/my \"tools\"/é's/sema-connector", &name);
        let engine = Engine {
            name: &name,
            entry: &entry,
            config: Some("/home/zoé/a b"),
        };
        insta::assert_snapshot!(engine.snippets(), @r#"
        Claude Code (run this):

          claude mcp add --scope user --env 'CONFIG_LOCAL_DIR=/home/zoé/a b' --transport stdio browser -- '/opt/my "tools"/é'\''s/sema-connector' run browser

        Claude Desktop (claude_desktop_config.json):

          {
            "mcpServers": {
              "browser": {
                "command": "/opt/my \"tools\"/é's/sema-connector",
                "args": ["run", "browser"],
                "env": { "CONFIG_LOCAL_DIR": "/home/zoé/a b" }
              }
            }
          }

        Cursor (~/.cursor/mcp.json):

          {
            "mcpServers": {
              "browser": {
                "command": "/opt/my \"tools\"/é's/sema-connector",
                "args": ["run", "browser"],
                "env": { "CONFIG_LOCAL_DIR": "/home/zoé/a b" }
              }
            }
          }

        VS Code (.vscode/mcp.json, or "MCP: Open User Configuration"):

          {
            "servers": {
              "browser": {
                "type": "stdio",
                "command": "/opt/my \"tools\"/é's/sema-connector",
                "args": ["run", "browser"],
                "env": { "CONFIG_LOCAL_DIR": "/home/zoé/a b" }
              }
            }
          }

        Codex (~/.codex/config.toml):

          [mcp_servers.browser]
          command = "/opt/my \"tools\"/é's/sema-connector"
          args = ["run", "browser"]
          env = { CONFIG_LOCAL_DIR = "/home/zoé/a b" }

        Gemini CLI (~/.gemini/settings.json):

          {
            "mcpServers": {
              "browser": {
                "command": "/opt/my \"tools\"/é's/sema-connector",
                "args": ["run", "browser"],
                "env": { "CONFIG_LOCAL_DIR": "/home/zoé/a b" }
              }
            }
          }

        Zed (settings.json):

          {
            "context_servers": {
              "browser": {
                "source": "custom",
                "command": "/opt/my \"tools\"/é's/sema-connector",
                "args": ["run", "browser"],
                "env": { "CONFIG_LOCAL_DIR": "/home/zoé/a b" }
              }
            }
          }
        "#);
    }

    #[test]
    fn the_directory_that_everybody_finds_is_not_named() {
        let name = ConnectorName::parse("browser").unwrap();
        let entry = Entry::new("/usr/bin/sema-connector", &name);
        let engine = Engine {
            name: &name,
            entry: &entry,
            config: None,
        };
        insta::assert_snapshot!(engine.claude_code(), @"claude mcp add --scope user --transport stdio browser -- /usr/bin/sema-connector run browser");
        assert!(!engine.snippets().contains("CONFIG_LOCAL_DIR"));
    }
}
