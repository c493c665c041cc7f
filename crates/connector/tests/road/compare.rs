//! The same steps with clients that others wrote, of a server bare and through the launcher, in
//! each era that the client speaks. What it is answered must be the same, but for what the contract
//! names: the snapshots here are all of it.
//!
//! The servers know the handshake era only. So what a client is told through the launcher, in any
//! era, is held against what it is told bare in that one; bare, no step works in the modern era.

use crate::differences::{Answers, differences};
use crate::lab::{LAUNCHER, Lab, parts};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::process::{Child, Command, Output, Stdio};

const LEGACY: &str = "legacy";
const AUTO: &str = "auto";
const ERAS: &[&str] = &[LEGACY, AUTO, "2026-07-28"];
const NODE: &str = include_str!("compare.mjs");
const PYTHON: &str = include_str!("compare.py");
const INSPECTOR: &str =
    "npm/node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js";

/// A client: what it is called, the package that is its kit, and the eras that it speaks.
type Client = (&'static str, Kit, &'static [&'static str]);
/// A method and its parameters.
type Step = (&'static str, Value);

/// What takes the steps.
#[derive(Clone, Copy)]
enum Kit {
    /// `compare.mjs`, with this package.
    Node(&'static str),
    /// `compare.py`, with this package.
    Python(&'static str),
    /// `tests/parts/rmcp`.
    Rust,
    /// One run a step.
    Inspector,
}

const CLIENTS: [Client; 6] = [
    ("inspector", Kit::Inspector, &[LEGACY, "modern"]),
    ("sdk", Kit::Node("@modelcontextprotocol/sdk"), &[LEGACY]),
    ("client", Kit::Node("@modelcontextprotocol/client"), ERAS),
    ("mcp", Kit::Python("mcp"), ERAS),
    ("fastmcp", Kit::Python("fastmcp"), ERAS),
    ("rmcp", Kit::Rust, ERAS),
];

/// A server, bare and through the launcher, and what is asked of it.
struct Server {
    lab: Lab,
    bare: Vec<String>,
    ours: Vec<String>,
    steps: Vec<Step>,
}

impl Server {
    fn new(lab: Lab, name: &str, bare: Vec<String>, steps: Vec<Step>) -> Self {
        let config = format!("CONFIG_LOCAL_DIR={}", lab.config().display());
        let ours = ["/usr/bin/env", &config, LAUNCHER, "run", name].map(str::to_owned);
        Self {
            ours: ours.to_vec(),
            lab,
            bare,
            steps,
        }
    }

    /// The differences, and which clients see them in which era.
    fn compared(&self, clients: &[Client]) -> String {
        let mut seen: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (name, kit, eras) in clients {
            let all: Vec<&Step> = self.steps.iter().collect();
            let bare = self.answers(*kit, LEGACY, &self.bare, &all);
            assert!(bare.iter().all(has_worked), "{name}: {bare:?}");
            for era in *eras {
                // Only the handshake era has a ping.
                let mut steps = all.clone();
                steps.retain(|step| *era == LEGACY || step.0 != "ping");
                let ours = self.answers(*kit, era, &self.ours, &steps);
                let who = seen.entry(differences(&bare, &ours)).or_default();
                who.push(format!("{name} {era}"));
                if ![LEGACY, AUTO].contains(era) {
                    let answers = self.answers(*kit, era, &self.bare, &steps[..1]);
                    let (_, last) = answers.last().unwrap();
                    assert!(last["error"].is_string(), "{name}: {last}");
                }
            }
        }
        let group = |(differences, who): (String, Vec<String>)| {
            format!("{}\n{differences}", who.join(", "))
        };
        seen.into_iter().map(group).collect()
    }

    /// What a client is answered when it connects and takes these steps.
    fn answers(&self, kit: Kit, era: &str, server: &[String], steps: &[&Step]) -> Answers {
        let label = |(method, params): &&Step| match params["uri"].as_str() {
            Some(uri) if uri.ends_with("/status") => "status".to_owned(),
            _ => (*method).to_owned(),
        };
        let labels = std::iter::once("connect".to_owned()).chain(steps.iter().map(label));
        let answers = match kit {
            Kit::Inspector => self.inspected(era, server, steps),
            Kit::Node(package) | Kit::Python(package) => {
                self.taken(kit, package, era, server, steps)
            }
            Kit::Rust => self.taken(kit, "rmcp", era, server, steps),
        };
        labels.zip(answers).collect()
    }

    /// One run for all steps.
    fn taken(
        &self,
        kit: Kit,
        package: &str,
        era: &str,
        server: &[String],
        steps: &[&Step],
    ) -> Vec<Value> {
        let plan = json!({"kit": package, "mode": era, "server": server, "steps": steps});
        let answers = printed(&self.program(kit).arg(plan.to_string()).output().unwrap());
        answers.as_array().unwrap().clone()
    }

    /// A run for each step, a few at once.
    fn inspected(&self, era: &str, server: &[String], steps: &[&Step]) -> Vec<Value> {
        let connect = ("initialize", json!({}));
        let steps: Vec<&Step> = std::iter::once(&connect)
            .chain(steps.iter().copied())
            .collect();
        let mut answers = Vec::new();
        for some in steps.chunks(4) {
            let start = |step: &&Step| {
                let mut command = self.inspector(era, step);
                command.arg("--").args(server);
                command
                    .stdout(Stdio::piped())
                    .stderr(Stdio::piped())
                    .spawn()
                    .unwrap()
            };
            let runs: Vec<Child> = some.iter().map(start).collect();
            let ends = runs
                .into_iter()
                .map(|run| printed(&run.wait_with_output().unwrap()));
            answers.extend(ends.map(|answer| match &answer["error"]["message"] {
                Value::Null => answer["result"].clone(),
                message => json!({"error": message}),
            }));
        }
        answers
    }

    fn inspector(&self, era: &str, (method, params): &Step) -> Command {
        let mut command = self.program(Kit::Inspector);
        command.args(["--protocol-era", era, "--method", method]);
        let name = match *method {
            "tools/call" => "--tool-name",
            _ => "--prompt-name",
        };
        for (key, flag) in [
            ("name", name),
            ("uri", "--uri"),
            ("arguments", "--tool-args-json"),
        ] {
            match &params[key] {
                Value::Null => {}
                Value::String(text) => _ = command.args([flag, text]),
                value => _ = command.args([flag, &value.to_string()]),
            }
        }
        command
    }

    fn program(&self, kit: Kit) -> Command {
        let mut command = match kit {
            Kit::Node(_) | Kit::Inspector => Command::new(node()),
            Kit::Python(_) => Command::new(parts().join("venv/bin/python")),
            Kit::Rust => Command::new(parts().join("rmcp/debug/client")),
        };
        match kit {
            Kit::Node(_) => {
                // Beside the packages that it imports.
                let name = self.ours.last().unwrap();
                let script = parts().join(format!("npm/compare-{name}.mjs"));
                std::fs::write(&script, NODE).unwrap();
                command.arg(script);
            }
            Kit::Inspector => {
                command.arg(parts().join(INSPECTOR));
                command.args(["--cli", "--quiet", "--format", "json"]);
            }
            Kit::Python(_) => _ = command.args(["-c", PYTHON]),
            Kit::Rust => {}
        }
        command
            .env("HOME", self.lab.folder())
            .current_dir(self.lab.folder());
        command
    }
}

/// Two equal failures of a call would tell nothing.
fn has_worked((label, answer): &(String, Value)) -> bool {
    let failed = answer["isError"] == json!(true) || !answer["content"].is_array();
    label != "tools/call" || !failed
}

/// The JSON that a program prints, or the error that it says.
fn printed(output: &Output) -> Value {
    let read = |bytes: &[u8]| {
        let text = String::from_utf8_lossy(bytes);
        serde_json::from_str(&nameless(text.lines().last()?)).ok()
    };
    let printed = read(&output.stdout).or_else(|| read(&output.stderr));
    printed.unwrap_or_else(|| panic!("{output:?}"))
}

/// A text without the names of the files that the server wrote, in which the time is.
fn nameless(text: &str) -> String {
    let (link, end) = ("[Snapshot](", ')');
    let mut parts = text.split(link);
    let first = parts.next().unwrap_or_default().to_owned();
    let rest = parts.map(|part| part.split_once(end).map_or(part, |(_, rest)| rest));
    rest.fold(first, |text, rest| format!("{text}{link}{end}{rest}"))
}

fn node() -> String {
    let node = parts().join("config/connectors/browser/bin/node/bin/node");
    node.to_str().unwrap().to_owned()
}

fn everything() -> Server {
    let lab = Lab::empty("config");
    let script =
        parts().join("npm/node_modules/@modelcontextprotocol/server-everything/dist/index.js");
    let bare = vec![node(), script.to_str().unwrap().to_owned()];
    let mount = ["mount", "everything", "--"].map(str::to_owned);
    assert!(
        lab.run(LAUNCHER, mount.iter().chain(&bare))
            .status
            .success()
    );
    let steps = vec![
        ("tools/list", json!({})),
        (
            "tools/call",
            json!({"name": "echo", "arguments": {"message": "é"}}),
        ),
        (
            "tools/call",
            json!({"name": "get-sum", "arguments": {"a": 1, "b": 2}}),
        ),
        ("resources/list", json!({})),
        ("resources/templates/list", json!({})),
        (
            "resources/read",
            json!({"uri": "demo://resource/static/document/features.md"}),
        ),
        (
            "resources/read",
            json!({"uri": "sema-connector://everything/status"}),
        ),
        ("prompts/list", json!({})),
        ("prompts/get", json!({"name": "simple-prompt"})),
        ("ping", json!({})),
    ];
    Server::new(lab, "everything", bare, steps)
}

/// Bare, without walls: in a copy, since the browser writes beside itself where it can.
fn browser() -> Server {
    let lab = Lab::new();
    let copy = lab.folder().join("bare");
    let mut copying = Command::new("cp");
    copying
        .arg("-a")
        .arg(lab.connector().join("bin"))
        .arg(&copy);
    assert!(copying.status().unwrap().success());
    let at = |below: &str| copy.join(below).to_str().unwrap().to_owned();
    let libraries = format!("LD_LIBRARY_PATH={}", at("chrome/lib"));
    let script = at("node_modules/@playwright/mcp/cli.js");
    let mut bare = vec!["/usr/bin/env".to_owned(), libraries, node(), script];
    bare.extend(
        [
            "--headless",
            "--isolated",
            "--no-sandbox",
            "--executable-path",
        ]
        .map(str::to_owned),
    );
    bare.push(at("chrome/headless_shell"));
    let page = json!({"url": "data:text/html,<title>t</title><h1>Hello</h1>"});
    let steps = vec![
        ("tools/list", json!({})),
        (
            "tools/call",
            json!({"name": "browser_navigate", "arguments": page}),
        ),
        (
            "tools/call",
            json!({"name": "browser_snapshot", "arguments": {}}),
        ),
        ("resources/list", json!({})),
        (
            "resources/read",
            json!({"uri": "sema-connector://browser/status"}),
        ),
        ("prompts/list", json!({})),
        ("ping", json!({})),
    ];
    Server::new(lab, "browser", bare, steps)
}

#[test]
fn the_inspector_sees_the_everything_server_as_it_is() {
    insta::assert_snapshot!(everything().compared(&CLIENTS[..1]), @r##"
    inspector modern
      status: "MCP error -32602: Resource sema-connector://everything/status not found" -> ["_meta", "cacheScope", "contents", "ttlMs"]
      tools/call, resources/read, prompts/get: ._meta + {"io.modelcontextprotocol/serverInfo":{"name":"mcp-servers/everything","title":"…
      resources/read: .cacheScope + "private"
      connect: .capabilities.tasks - {"cancel":{},"list":{},"requests":{"tools":{"call":{}}}}
      connect: .protocolVersion "2025-11-25" -> "2026-07-28"
      resources/list: .resources[] + {"description":"Whether the connector everything can be used, and its tools.","m…
      tools/list: .tools[].execution - {"taskSupport":"forbidden"}
      tools/list: .tools[].execution - {"taskSupport":"required"}
      resources/read: .ttlMs + 0
    inspector legacy
      status: "MCP error -32602: Resource sema-connector://everything/status not found" -> ["contents"]
      resources/list: .resources[] + {"description":"Whether the connector everything can be used, and its tools.","m…
    "##);
}

#[test]
fn the_node_kits_see_the_everything_server_as_it_is() {
    insta::assert_snapshot!(everything().compared(&CLIENTS[1..3]), @r##"
    sdk legacy
      status: "MCP error -32602: MCP error -32602: Resource sema-connector://everything/status… -> ["contents"]
      resources/list: .resources[] + {"description":"Whether the connector everything can be used, and its tools.","m…
    client auto, client 2026-07-28
      status: "MCP error -32602: Resource sema-connector://everything/status not found" -> ["_meta", "cacheScope", "contents", "ttlMs"]
      each answer: ._meta + {"io.modelcontextprotocol/serverInfo":{"name":"mcp-servers/everything","title":"…
      tools/list, resources/list, resources/templates/list, resources/read, prompts/list: .cacheScope + "private"
      connect: .capabilities.tasks - {"cancel":{},"list":{},"requests":{"tools":{"call":{}}}}
      resources/list: .resources[] + {"description":"Whether the connector everything can be used, and its tools.","m…
      tools/list: .tools[].execution - {"taskSupport":"forbidden"}
      tools/list: .tools[].execution - {"taskSupport":"required"}
      tools/list, resources/list, resources/templates/list, resources/read, prompts/list: .ttlMs + 0
      connect: .version "2025-11-25" -> "2026-07-28"
    client legacy
      status: "MCP error -32602: Resource sema-connector://everything/status not found" -> ["contents"]
      resources/list: .resources[] + {"description":"Whether the connector everything can be used, and its tools.","m…
    "##);
}

#[test]
fn the_python_and_rust_kits_see_the_everything_server_as_it_is() {
    insta::assert_snapshot!(everything().compared(&CLIENTS[3..]), @r##"
    mcp 2026-07-28, fastmcp 2026-07-28
      status: "MCP error -32602: Resource sema-connector://everything/status not found" -> ["_meta", "cacheScope", "contents", "resultType", "ttlMs"]
      each answer: ._meta + {"io.modelcontextprotocol/serverInfo":{"name":"mcp-servers/everything","title":"…
      connect: .capabilities.completions - {}
      connect: .capabilities.logging - {}
      connect: .capabilities.prompts - {"listChanged":true}
      connect: .capabilities.resources - {"listChanged":true,"subscribe":true}
      connect: .capabilities.tasks - {"cancel":{},"list":{},"requests":{"tools":{"call":{}}}}
      connect: .capabilities.tools - {"listChanged":true}
      connect: .instructions - "# Everything Server – Server Instructions\n\nAudience: These instructions are w…
      resources/list: .resources[] + {"description":"Whether the connector everything can be used, and its tools.","m…
      connect: .server - {"name":"mcp-servers/everything","title":"Everything Reference Server","version"…
      connect: .version "2025-11-25" -> "2026-07-28"
    mcp auto, fastmcp auto
      status: "MCP error -32602: Resource sema-connector://everything/status not found" -> ["_meta", "cacheScope", "contents", "resultType", "ttlMs"]
      each answer: ._meta + {"io.modelcontextprotocol/serverInfo":{"name":"mcp-servers/everything","title":"…
      connect: .capabilities.tasks - {"cancel":{},"list":{},"requests":{"tools":{"call":{}}}}
      resources/list: .resources[] + {"description":"Whether the connector everything can be used, and its tools.","m…
      connect: .version "2025-11-25" -> "2026-07-28"
    mcp legacy, fastmcp legacy
      status: "MCP error -32602: Resource sema-connector://everything/status not found" -> ["cacheScope", "contents", "resultType", "ttlMs"]
      resources/list: .resources[] + {"description":"Whether the connector everything can be used, and its tools.","m…
    rmcp auto, rmcp 2026-07-28
      status: "Mcp error: -32602: MCP error -32602: Resource sema-connector://everything/statu… -> ["_meta", "cacheScope", "contents", "resultType", "ttlMs"]
      each answer: ._meta + {"io.modelcontextprotocol/serverInfo":{"name":"mcp-servers/everything","title":"…
      tools/list, resources/list, resources/templates/list, resources/read, prompts/list: .cacheScope + "private"
      resources/list: .resources[] + {"description":"Whether the connector everything can be used, and its tools.","m…
      each answer: .resultType + "complete"
      tools/list, resources/list, resources/templates/list, resources/read, prompts/list: .ttlMs + 0
      connect: .version "2025-11-25" -> "2026-07-28"
    rmcp legacy
      status: "Mcp error: -32602: MCP error -32602: Resource sema-connector://everything/statu… -> ["contents"]
      resources/list: .resources[] + {"description":"Whether the connector everything can be used, and its tools.","m…
    "##);
}

#[test]
fn the_inspector_sees_the_browser_as_it_is() {
    insta::assert_snapshot!(browser().compared(&CLIENTS[..1]), @r##"
    inspector modern
      status: "Method not found" -> ["_meta", "cacheScope", "contents", "ttlMs"]
      tools/call: ._meta + {"io.modelcontextprotocol/serverInfo":{"name":"Playwright","version":"1.64.0-alp…
      connect: .capabilities.resources + {"subscribe":true}
      connect: .protocolVersion "2025-11-25" -> "2026-07-28"
      resources/list: .resources[] + {"description":"Whether the connector browser can be used, and its tools.","mime…
    inspector legacy
      status: "Method not found" -> ["contents"]
      connect: .capabilities.resources + {"subscribe":true}
      resources/list: .resources[] + {"description":"Whether the connector browser can be used, and its tools.","mime…
    "##);
}

#[test]
fn the_node_kits_see_the_browser_as_it_is() {
    insta::assert_snapshot!(browser().compared(&CLIENTS[1..3]), @r##"
    sdk legacy
      status: "MCP error -32601: Method not found" -> ["contents"]
      resources/list: "MCP error -32601: Method not found" -> ["resources"]
      connect: .capabilities.resources + {"subscribe":true}
    client auto, client 2026-07-28
      status: "Method not found" -> ["_meta", "cacheScope", "contents", "ttlMs"]
      tools/list, tools/call, resources/list: ._meta + {"io.modelcontextprotocol/serverInfo":{"name":"Playwright","version":"1.64.0-alp…
      tools/list, resources/list: .cacheScope + "private"
      connect: .capabilities.resources + {"subscribe":true}
      resources/list: .resources[] + {"description":"Whether the connector browser can be used, and its tools.","mime…
      tools/list, resources/list: .ttlMs + 0
      connect: .version "2025-11-25" -> "2026-07-28"
    client legacy
      status: "Method not found" -> ["contents"]
      connect: .capabilities.resources + {"subscribe":true}
      resources/list: .resources[] + {"description":"Whether the connector browser can be used, and its tools.","mime…
    "##);
}

#[test]
fn the_python_and_rust_kits_see_the_browser_as_it_is() {
    insta::assert_snapshot!(browser().compared(&CLIENTS[3..]), @r##"
    rmcp auto, rmcp 2026-07-28
      status: "Mcp error: -32601: Method not found" -> ["_meta", "cacheScope", "contents", "resultType", "ttlMs"]
      resources/list: "Mcp error: -32601: Method not found" -> ["_meta", "cacheScope", "resources", "resultType", "ttlMs"]
      tools/list, tools/call: ._meta + {"io.modelcontextprotocol/serverInfo":{"name":"Playwright","version":"1.64.0-alp…
      tools/list: .cacheScope + "private"
      connect: .capabilities.resources + {"subscribe":true}
      tools/list, tools/call: .resultType + "complete"
      tools/list: .ttlMs + 0
      connect: .version "2025-11-25" -> "2026-07-28"
    rmcp legacy
      status: "Mcp error: -32601: Method not found" -> ["contents"]
      resources/list: "Mcp error: -32601: Method not found" -> ["resources"]
      connect: .capabilities.resources + {"subscribe":true}
    mcp auto, fastmcp auto
      status: "Method not found" -> ["_meta", "cacheScope", "contents", "resultType", "ttlMs"]
      resources/list: "Method not found" -> ["_meta", "cacheScope", "resources", "resultType", "ttlMs"]
      tools/list, tools/call: ._meta + {"io.modelcontextprotocol/serverInfo":{"name":"Playwright","version":"1.64.0-alp…
      connect: .capabilities.resources + {"subscribe":true}
      connect: .version "2025-11-25" -> "2026-07-28"
    mcp 2026-07-28, fastmcp 2026-07-28
      status: "Method not found" -> ["_meta", "cacheScope", "contents", "resultType", "ttlMs"]
      resources/list: "Method not found" -> ["_meta", "cacheScope", "resources", "resultType", "ttlMs"]
      tools/list, tools/call: ._meta + {"io.modelcontextprotocol/serverInfo":{"name":"Playwright","version":"1.64.0-alp…
      connect: .capabilities.tools - {"listChanged":true}
      connect: .server - {"name":"Playwright","version":"1.64.0-alpha-1790635538000"}
      connect: .version "2025-11-25" -> "2026-07-28"
    mcp legacy, fastmcp legacy
      status: "Method not found" -> ["cacheScope", "contents", "resultType", "ttlMs"]
      resources/list: "Method not found" -> ["cacheScope", "resources", "resultType", "ttlMs"]
      connect: .capabilities.resources + {"subscribe":true}
    "##);
}
