//! `sema-connector trace`, on what a launcher wrote of a session with a small server.

use super::stage::{Done, Stage, run};
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

/// Answers a call of `leak` with the token that it was given, a call of `boom` with an error, and
/// everything else with an empty result.
const SERVER: &str = r#"while read -r line; do
    id=${line#*\"id\":}; id=${id%%,*}
    case "$line" in
        *leak*) echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":\"$(cat "$TOKEN_FILE")\"}" ;;
        *boom*) echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"error\":{\"code\":-7,\"message\":\"no\"}}" ;;
        *) echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{}}" ;;
    esac
done"#;
const SECRET: &str = "correct horse battery";

/// A session in which these tools are called in turn.
fn session(stage: &Stage, tools: &[&str], content: bool) {
    let mut command = stage.launcher(&["run", "notes"]);
    if content {
        command.env("SEMA_TRACE_CONTENT", "on");
    }
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut launcher = command.stderr(Stdio::null()).spawn().unwrap();
    let mut input = launcher.stdin.take().unwrap();
    let mut output = BufReader::new(launcher.stdout.take().unwrap()).lines();
    for (id, tool) in tools.iter().enumerate() {
        writeln!(input, r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{tool}","arguments":{{"q":"asked {SECRET}"}}}}}}"#).unwrap();
        output.next().unwrap().unwrap();
    }
    drop(input);
    assert!(launcher.wait().unwrap().success());
}

fn stage() -> Stage {
    let stage = Stage::new();
    let mount = [
        "mount",
        "notes",
        "--require",
        "TOKEN",
        "--",
        "/bin/sh",
        "-c",
        SERVER,
    ];
    assert_eq!(run(&mut stage.launcher(&mount), "").code, Some(0));
    let auth = run(&mut stage.launcher(&["auth", "notes", "TOKEN"]), SECRET);
    assert_eq!(auth.code, Some(0), "{}", auth.stderr);
    stage
}

fn trace(stage: &Stage, args: &[&str]) -> Done {
    let done = run(&mut stage.launcher(&[&["trace"], args].concat()), "");
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    done
}

/// The tools of the rows shown.
fn tools(done: &Done) -> Vec<String> {
    let spans = done
        .stdout
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    let tool = |span: Value| {
        span["attributes"]["gen_ai.tool.name"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    spans.map(tool).collect()
}

#[test]
fn what_was_called_is_shown_and_chosen_from() {
    let stage = stage();
    session(&stage, &["look", "boom", "leak"], false);
    session(&stage, &["look"], false);
    let shown = trace(&stage, &[]).stdout;
    let rows: Vec<Vec<&str>> = shown
        .lines()
        .map(|row| row.split_whitespace().collect())
        .collect();
    assert_eq!(
        rows[0],
        [
            "TIME",
            "(UTC)",
            "CONNECTOR",
            "LAUNCH",
            "TOOL",
            "MS",
            "BYTES",
            "OUTCOME"
        ]
    );
    let outcome = |row: &Vec<&str>| format!("{} {}", row[3], row[6..].join(" "));
    let outcomes: Vec<String> = rows[1..].iter().map(outcome).collect();
    assert_eq!(
        outcomes,
        [
            "look ok",
            "boom error -7",
            "leak connector.internal",
            "look ok"
        ]
    );
    assert_eq!(
        tools(&trace(&stage, &["--json"])),
        ["look", "boom", "leak", "look"]
    );
    assert_eq!(
        tools(&trace(&stage, &["notes", "--json", "--errors"])),
        ["boom", "leak"]
    );
    assert_eq!(
        tools(&trace(&stage, &["--json", "--last", "2"])),
        ["leak", "look"]
    );
    assert!(tools(&trace(&stage, &["--json", "--slow", "100000"])).is_empty());
    let last = rows[4][2];
    assert_eq!(
        tools(&trace(&stage, &["--json", "--launch", last])),
        ["look"]
    );
    assert!(!shown.contains("\x1b["), "colour where no terminal is");
}

#[test]
fn content_is_kept_on_request_only_and_never_a_secret() {
    let stage = stage();
    session(&stage, &["look", "leak"], false);
    let bare = trace(&stage, &["--json"]).stdout;
    assert!(
        !bare.contains("asked") && !bare.contains("gen_ai.tool.call"),
        "{bare}"
    );
    session(&stage, &["look", "leak"], true);
    let full = trace(&stage, &["--json"]).stdout;
    assert!(full.contains("gen_ai.tool.call.result"), "{full}");
    assert!(
        full.contains("[withheld:TOKEN]") && !full.contains(SECRET),
        "{full}"
    );
}

#[test]
fn nothing_to_show_is_said() {
    let stage = stage();
    let done = trace(&stage, &["notes"]);
    assert_eq!(done.stdout, "");
    assert!(
        done.stderr.starts_with("no request to show\nhint: "),
        "{}",
        done.stderr
    );
    let unknown = run(&mut stage.launcher(&["trace", "other"]), "");
    assert_eq!(
        unknown.said(&stage),
        "1: error: there is no connector other\nhint: run: sema-connector list\n"
    );
}
