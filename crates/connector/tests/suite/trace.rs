//! `trace`: what a session through the launcher leaves, and how it is shown.

use crate::suite::stage::{Done, LAUNCHER, Stage, mode, run};
use serde_json::Value;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};

const SECRET: &str = "s3cret-of-the-person";
const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

/// A server that answers a call by the tool's name: `leak` says the secret, `fail` fails, `wrong`
/// is an error, `slow` takes its time, `meta` says the parent that it was handed.
const SERVER: &str = r#"
hello='"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"resources":{}},"serverInfo":{"name":"s","version":"1"}}'
while IFS= read -r line; do
  case "$line" in *'"id":'*) ;; *) continue;; esac
  id=${line#*\"id\":}; id=${id%%,*}
  case "$line" in
    *initialize*) body=$hello;;
    *'"leak"'*) body='"result":{"content":[{"type":"text","text":"s3cret-of-the-person"}]}';;
    *'"fail"'*) body='"result":{"content":[],"isError":true}';;
    *'"wrong"'*) body='"error":{"code":-32602,"message":"no"}';;
    *'"slow"'*) sleep 0.3; body='"result":{"content":[]}';;
    *00f067aa0ba902b7-01*) body='"result":{"content":[{"type":"text","text":"handed on"}]}';;
    *) body='"result":{"content":[{"type":"text","text":"an answer"}]}';;
  esac
  printf '{"jsonrpc":"2.0","id":%s,%s}\n' "$id" "$body"
done
"#;

/// A session of an engine with the server.
struct Session {
    child: Child,
    answers: BufReader<ChildStdout>,
    id: u32,
}

impl Session {
    fn start(command: &mut Command) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let answers = BufReader::new(child.stdout.take().unwrap());
        let mut session = Self {
            child,
            answers,
            id: 0,
        };
        session.ask(
            "initialize",
            r#"{"protocolVersion":"2025-11-25","capabilities":{}}"#,
        );
        session
    }

    fn ask(&mut self, method: &str, params: &str) -> String {
        self.id += 1;
        let id = self.id;
        self.say(&format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#
        ))
    }

    /// The answer to a line.
    fn say(&mut self, line: &str) -> String {
        let input = self.child.stdin.as_mut().unwrap();
        writeln!(input, "{line}").unwrap();
        let mut answer = String::new();
        self.answers.read_line(&mut answer).unwrap();
        answer
    }

    fn call(&mut self, tool: &str) -> String {
        let params = format!(r#"{{"name":"{tool}","arguments":{{"with":"an argument"}}}}"#);
        self.ask("tools/call", &params)
    }

    /// Ends it and returns what the launcher said.
    fn end(mut self) -> String {
        drop(self.child.stdin.take());
        let output = self.child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0));
        String::from_utf8(output.stderr).unwrap()
    }
}

fn mounted() -> Stage {
    let stage = Stage::new();
    let server = stage.write("server.sh", SERVER);
    let server = server.to_str().unwrap();
    let mount = [
        "mount",
        "small",
        "--require",
        "TOKEN",
        "--",
        "/bin/sh",
        server,
    ];
    assert_eq!(run(&mut stage.launcher(&mount), "").code, Some(0));
    let auth = run(&mut stage.launcher(&["auth", "small", "TOKEN"]), SECRET);
    assert_eq!(auth.code, Some(0), "{}", auth.stderr);
    stage
}

fn session(stage: &Stage) -> Session {
    Session::start(&mut stage.launcher(&["run", "small"]))
}

fn trace(stage: &Stage, args: &[&str]) -> Done {
    let args: Vec<&str> = ["trace"].iter().chain(args).copied().collect();
    run(&mut stage.launcher(&args), "")
}

fn spans(stage: &Stage, args: &[&str]) -> Vec<Value> {
    let args: Vec<&str> = args.iter().chain(&["--json"]).copied().collect();
    let done = trace(stage, &args);
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    let lines = done.stdout.lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn names(spans: &[Value]) -> Vec<&str> {
    spans
        .iter()
        .map(|span| span["name"].as_str().unwrap())
        .collect()
}

fn files(stage: &Stage) -> Vec<PathBuf> {
    let folder = stage.config().join("connectors/small/trace");
    let entries = fs::read_dir(folder).unwrap().flatten();
    entries.map(|entry| entry.path()).collect()
}

#[test]
fn each_request_is_a_span_that_is_shown_and_chosen() {
    let stage = mounted();
    let mut engine = session(&stage);
    for tool in ["plain", "fail", "wrong", "slow", "leak"] {
        engine.call(tool);
    }
    for name in ["traceparent", "trac\\u0065parent"] {
        let meta = format!(r#"{{"name":"meta","_meta":{{"{name}":"{PARENT}"}}}}"#);
        assert!(engine.ask("tools/call", &meta).contains("handed on"));
    }
    assert!(!engine.end().contains("trace"));
    let all = spans(&stage, &["small"]);
    assert_eq!(
        names(&all),
        [
            "initialize",
            "tools/call plain",
            "tools/call fail",
            "tools/call wrong",
            "tools/call slow",
            "tools/call leak",
            "tools/call meta",
            "tools/call meta"
        ]
    );
    assert_eq!(all[1]["attributes"]["mcp.protocol.version"], "2025-11-25");
    assert_eq!(all[2]["attributes"]["error.type"], "tool_error");
    assert_eq!(all[3]["attributes"]["rpc.response.status_code"], "-32602");
    assert_eq!(all[5]["attributes"]["sema.error"], "connector.internal");
    for handed in &all[6..] {
        assert_eq!(handed["traceId"], "4bf92f3577b34da6a3ce929d0e0e4736");
        assert_eq!(handed["parentSpanId"], "00f067aa0ba902b7");
    }
    assert_eq!(all[0]["traceId"], all[1]["traceId"]);
    assert_ne!(all[0]["spanId"], all[1]["spanId"]);
    assert!(all[0].get("parentSpanId").is_none());
    let chosen = |args: &[&str]| spans(&stage, args).len();
    assert_eq!((chosen(&["--errors"]), chosen(&["--last", "2"])), (3, 2));
    assert!(names(&spans(&stage, &["--slow", "300"])).contains(&"tools/call slow"));
    assert_eq!(chosen(&["--slow", "100000"]), 0);
    let launch = all[0]["attributes"]["sema.launch"].as_str().unwrap();
    let drawn = trace(&stage, &["small", "--launch", launch]).stdout;
    assert!(
        drawn.starts_with(&format!("launch {launch} of small")),
        "{drawn}"
    );
    assert!(drawn.contains('█'));
    assert!(files(&stage).iter().all(|file| mode(file) == 0o600));
}

/// The table without its first four columns and the milliseconds and bytes of each row.
fn outcomes(table: &str) -> Vec<String> {
    let row = |row: &str| {
        let words: Vec<&str> = row.split_whitespace().collect();
        format!("{} {} {}", words[1], words[3], words[6..].join(" "))
    };
    table.lines().skip(1).map(row).collect()
}

#[test]
fn the_table_says_how_each_request_ended() {
    let stage = mounted();
    for tools in [&["plain", "fail", "wrong", "leak"][..], &["plain"]] {
        let mut engine = session(&stage);
        for tool in tools {
            engine.call(tool);
        }
        engine.end();
    }
    let table = trace(&stage, &[]).stdout;
    let header: Vec<&str> = table.lines().next().unwrap().split_whitespace().collect();
    assert_eq!(
        header.join(" "),
        "TIME (UTC) CONNECTOR LAUNCH TOOL MS BYTES OUTCOME"
    );
    assert_eq!(
        outcomes(&table),
        [
            "small initialize ok",
            "small plain ok",
            "small fail tool error",
            "small wrong error -32602",
            "small leak connector.internal",
            "small initialize ok",
            "small plain ok",
        ]
    );
    assert!(!table.contains('\x1b'), "colour where no terminal is");
}

#[test]
fn arguments_and_results_are_traced_only_when_asked_for_and_never_a_secret() {
    for (content, wanted) in [("", false), ("1", false), ("on", true)] {
        let stage = mounted();
        let mut run = stage.launcher(&["run", "small"]);
        run.env("SEMA_TRACE_CONTENT", content);
        let mut engine = Session::start(&mut run);
        engine.call("plain");
        engine.call("leak");
        let params = format!(r#"{{"name":"plain","arguments":{{"a":"{SECRET}"}}}}"#);
        engine.ask("tools/call", &params);
        engine.end();
        let text: String = files(&stage)
            .iter()
            .map(|file| fs::read_to_string(file).unwrap())
            .collect();
        assert!(!text.contains(SECRET), "{content}");
        for word in ["an argument", "an answer"] {
            assert_eq!(text.contains(word), wanted, "{content}: {text}");
        }
        assert_eq!(
            text.matches("[withheld:TOKEN]").count(),
            if wanted { 2 } else { 0 }
        );
    }
}

#[test]
fn what_the_launcher_answers_is_traced_too() {
    let stage = mounted();
    let policy = stage.config().join("connectors/small/tools.json");
    fs::write(policy, r#"{"allow": ["plain"]}"#).unwrap();
    let mut engine = session(&stage);
    engine.call("slow");
    engine.say(r#"{"jsonrpc":"1.0","id":"old","method":"tools/list"}"#);
    // Over the limit, with the id behind what is too long.
    let long = "x".repeat(4 << 20);
    engine.say(&format!(
        r#"{{"jsonrpc":"2.0","method":"tools/call","params":{{"name":"{long}"}},"id":"long"}}"#
    ));
    let status = "sema-connector://small/status";
    let read = engine.ask("resources/read", &format!(r#"{{"uri":"{status}"}}"#));
    assert!(read.contains("authorized"), "{read}");
    // There is no id to answer or to trace.
    engine.say("nonsense");
    engine.end();
    let all = spans(&stage, &[]);
    let row = |span: &Value| {
        let attribute = |name: &str| span["attributes"][name].as_str().unwrap_or("-").to_owned();
        [
            "jsonrpc.request.id",
            "mcp.method.name",
            "mcp.resource.uri",
            "error.type",
            "sema.error",
        ]
        .map(attribute)
        .join(" ")
    };
    let rows: Vec<String> = all[1..].iter().map(row).collect();
    insta::assert_snapshot!(rows.join("\n"), @"
    2 tools/call - -32011 connector.forbidden_scope
    old _OTHER - -32600 -
    long tools/call - -32012 connector.too_large
    3 resources/read sema-connector://small/status - -
    ");
    let bytes = |span: usize| all[span]["attributes"]["sema.request.bytes"].as_u64();
    assert!(bytes(3).unwrap() > 4 << 20);
}

#[test]
fn an_empty_trace_says_so() {
    let stage = Stage::new();
    insta::assert_snapshot!(trace(&stage, &[]).said(&stage), @"
    0: no request to show
    hint: a request is here once an engine that runs the connector has made one
    ");
    let stage = mounted();
    let said = trace(&stage, &["other"]).said(&stage);
    insta::assert_snapshot!(said, @"
    1: error: there is no connector other
    hint: run: sema-connector list
    ");
}

#[test]
fn a_trace_is_followed_into_new_launches() {
    let stage = mounted();
    let mut follow = stage.launcher(&["trace", "--follow", "--json"]);
    let mut follow = follow.stdout(Stdio::piped()).spawn().unwrap();
    let mut shown = BufReader::new(follow.stdout.take().unwrap()).lines();
    for _ in 0..2 {
        let mut engine = session(&stage);
        engine.call("plain");
        // Shown while the launch lives.
        for name in ["initialize", "tools/call plain"] {
            let span: Value = serde_json::from_str(&shown.next().unwrap().unwrap()).unwrap();
            assert_eq!(span["name"], name);
        }
        engine.end();
    }
    follow.kill().unwrap();
    follow.wait().unwrap();
}

#[test]
fn a_full_disk_stops_no_call() {
    let stage = mounted();
    let folder = stage.config().join("connectors/small/trace");
    // A file system of one page, in a mount namespace of the test's own.
    let script = r#"mkdir -p -m 700 "$1"
        mount -t tmpfs -o size=4k,mode=700 tmpfs "$1" && head -c 4096 /dev/zero > "$1/full"
        exec "$2" run small"#;
    let mut command = stage.command("unshare", &["-Urm", "sh", "-c", script, "sh"]);
    command.arg(&folder).arg(LAUNCHER);
    let mut engine = Session::start(&mut command);
    for _ in 0..3 {
        assert!(engine.call("plain").contains("an answer"));
    }
    let said = engine.end();
    assert!(
        said.contains("the trace is not complete, the calls go on"),
        "{said}"
    );
    assert!(
        said.contains("4 lines of the trace could not be written"),
        "{said}"
    );
}
