//! The status in words for a person: a line a fact, headed by what it is about.

use crate::cli::browser_mount;
use crate::install::progress::bytes;
use sema_rules::quote;
use serde_json::Value;

/// The lines so far.
#[derive(Default)]
struct Table(String);

impl Table {
    fn line(&mut self, heading: &str, words: &str) {
        self.0.push_str(&format!("{heading:<10}{words}\n"));
    }

    fn named(&mut self, heading: &str, name: &str, words: &str) {
        self.line(heading, &format!("{name:<11} {words}"));
    }

    fn hint(&mut self, of: &Value) {
        if let Some(hint) = of["hint"].as_str() {
            self.line("", &format!("hint: {hint}"));
        }
    }
}

pub(super) fn of(status: &Value) -> String {
    let mut table = Table::default();
    table.line("state", &text(&status["state"]));
    if let Some(reason) = status["reason"].as_str() {
        table.line("reason", reason);
    }
    table.line("tools", &list(&status["tools"]).len().to_string());
    let words = list(&status["command"]).iter();
    let words: Vec<String> = words
        .map(|word| quote::shell(&text(word)).into_owned())
        .collect();
    table.line("command", &words.join(" "));
    table.line("directory", &text(&status["directory"]));
    build(&mut table, &status["build"]);
    for handle in list(&status["handles"]) {
        let name = text(&handle["name"]);
        table.named("handle", &name, &held(handle, &text(&status["name"])));
    }
    for what in ["read", "write"] {
        for path in list(&status["grants"][what]) {
            let path = quote::shell(&text(path)).into_owned();
            table.named("grant", what, &format!("{path} (not enforced yet)"));
        }
    }
    for (name, state) in members(&status["policies"]) {
        table.named("policy", name, &text(state));
        let unknown: Vec<String> = list(&status["unknown_tools"]).iter().map(text).collect();
        if name == "tools.json" && !unknown.is_empty() {
            let unknown = unknown.join(", ");
            table.line("", &format!("the connector does not have: {unknown}"));
        }
    }
    for (name, wall) in members(&status["walls"]) {
        let words = format!("{}: {}", text(&wall["state"]), text(&wall["what"]));
        table.named("wall", name, &words);
        table.hint(wall);
    }
    for launch in list(&status["launches"]) {
        let words = format!("{} {}", text(&launch["id"]), text(&launch["out"]));
        table.line("launch", &words);
    }
    table.0
}

fn build(table: &mut Table, build: &Value) {
    if let Some(refused) = build["refused"].as_str() {
        table.line("build", &format!("refused: {refused}"));
        table.hint(build);
    } else if build.is_object() {
        let words = format!(
            "playwright-mcp {}, {}, {}, pinned {} ({} days ago)",
            text(&build["playwright-mcp"]),
            text(&build["browser"]),
            bytes(build["bytes"].as_u64().unwrap_or(0)),
            text(&build["pinned"]),
            text(&build["pinned_days_ago"]),
        );
        table.line("build", &words);
    }
}

/// What there is to say of a handle.
fn held(handle: &Value, connector: &str) -> String {
    let is = |what: &str| handle[what] == Value::Bool(true);
    let mut words = vec![match handle["refused"].as_str() {
        Some(refused) => format!("refused: {refused}"),
        None if is("stored") => "stored".to_owned(),
        None => "not stored".to_owned(),
    }];
    if handle["secret"].is_boolean() {
        let kind = if is("secret") { "a secret" } else { "a switch" };
        words.push(kind.to_owned());
    }
    if is("required") {
        words.push("required".to_owned());
    }
    if is("env") {
        words.push("in the program's environment".to_owned());
    }
    let words = words.join(", ");
    if is("stored") || handle["refused"].is_string() || !(is("required") || is("env")) {
        return words;
    }
    let fix = match connector {
        browser_mount::NAME => "sema-connector-browser auth".to_owned(),
        _ => format!("sema-connector auth {connector} {}", text(&handle["name"])),
    };
    format!("{words}: {fix}")
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn members(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flatten()
}

fn text(value: &Value) -> String {
    let text = value.as_str().map(str::to_owned);
    text.unwrap_or_else(|| value.to_string())
}
