//! What changes while a session runs: the tool policy, the handles, the build.

use super::stage::{Stage, chmod, run};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// Longer than any change takes, on a machine that has other things to do, too.
const DEADLINE: Duration = Duration::from_secs(30);
/// Longer than the second within which a change takes effect.
const A_SECOND: Duration = Duration::from_millis(1200);

/// A server with three tools, as a shell script.
const SERVER: &str = r#"
while read -r line; do
    id=${line#*'"id":'}; id=${id%%,*}
    case $line in
    *'"method":"initialize"'*) result='{"protocolVersion":"2025-11-25","capabilities":{"tools":{}}}' ;;
    *'"method":"tools/list"'*) result='{"tools":[{"name":"a"},{"name":"b"},{"name":"c"}]}' ;;
    *) continue ;;
    esac
    echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":$result}"
done"#;

/// A launcher, and the engine that it works for.
struct Session {
    launcher: Child,
    input: Option<ChildStdin>,
    answers: mpsc::Receiver<String>,
    count: u64,
    /// How often the engine was told of other tools.
    told: usize,
}

impl Session {
    /// Mounts the script as the connector `c` and starts it.
    fn start(stage: &Stage, options: &[&str], script: &str) -> Self {
        let mount = [&["mount", "c"], options, &["--", "/bin/sh", "-c", script]].concat();
        assert_eq!(run(&mut stage.launcher(&mount), "").code, Some(0));
        Self::of(&mut stage.launcher(&["run", "c"]))
    }

    /// The session of a launcher that is started so.
    fn of(command: &mut Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut launcher = command.stderr(Stdio::null()).spawn().unwrap();
        let mut session = Self {
            input: launcher.stdin.take(),
            answers: lines(launcher.stdout.take().unwrap()),
            launcher,
            count: 0,
            told: 0,
        };
        let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
        session.ask("initialize", &params);
        session.send("notifications/initialized", &json!({}));
        session
    }

    fn send(&mut self, method: &str, params: &Value) {
        // The script above reads the id before the first comma.
        let line = match method.strip_prefix("notifications/") {
            Some(_) => format!(r#"{{"jsonrpc":"2.0","method":"{method}"}}"#),
            None => {
                self.count += 1;
                let id = self.count;
                format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#)
            }
        };
        writeln!(self.input.as_ref().unwrap(), "{line}").unwrap();
    }

    /// Asks and waits for the answer.
    fn ask(&mut self, method: &str, params: &Value) -> Value {
        self.send(method, params);
        loop {
            let line = self.answers.recv_timeout(DEADLINE).unwrap();
            let message: Value = serde_json::from_str(&line).unwrap();
            if message["id"] == self.count {
                return message;
            }
            self.told += usize::from(message["method"] == "notifications/tools/list_changed");
        }
    }

    /// The tools that the engine is shown, joined.
    fn tools(&mut self) -> String {
        let answer = self.ask("tools/list", &json!({}));
        let tools = answer["result"]["tools"].as_array().unwrap();
        tools
            .iter()
            .map(|tool| tool["name"].as_str().unwrap())
            .collect()
    }

    /// Asks until the tools are these.
    fn await_tools(&mut self, tools: &str) {
        until(|| self.tools() == tools);
    }

    /// Asks for as long as a change may take: the tools are always these.
    fn always(&mut self, tools: &str) {
        let begun = Instant::now();
        while begun.elapsed() < A_SECOND {
            assert_eq!(self.tools(), tools);
            pause();
        }
    }

    fn status(&mut self) -> Value {
        let params = json!({"uri": "sema-connector://c/status"});
        let answer = self.ask("resources/read", &params);
        let text = answer["result"]["contents"][0]["text"].as_str().unwrap();
        serde_json::from_str(text).unwrap()
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        drop(self.input.take());
        _ = self.launcher.wait();
    }
}

/// The lines of a stream, as they come.
fn lines(stream: impl Read + Send + 'static) -> mpsc::Receiver<String> {
    let (tell, told) = mpsc::channel();
    std::thread::spawn(move || {
        for line in BufReader::new(stream).lines() {
            _ = tell.send(line.unwrap());
        }
    });
    told
}

fn until(mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < DEADLINE);
        pause();
    }
}

fn policy(stage: &Stage) -> PathBuf {
    stage.config().join("connectors/c/tools.json")
}

fn pause() {
    std::thread::sleep(Duration::from_millis(20));
}

#[test]
fn a_change_of_the_policy_takes_effect_and_is_told_once() {
    let stage = Stage::new();
    let mut session = Session::start(&stage, &[], SERVER);
    let path = policy(&stage);
    let new = path.with_extension("new");
    assert_eq!(session.tools(), "abc");
    let changes: [(&dyn Fn(), &str, usize); 9] = [
        (
            &|| std::fs::write(&path, r#"{"allow":["a"]}"#).unwrap(),
            "a",
            1,
        ),
        // The same policy in other words.
        (
            &|| std::fs::write(&path, r#"{"allow": ["a", "a"]}"#).unwrap(),
            "a",
            1,
        ),
        (
            &|| {
                std::fs::write(&new, r#"{"allow":["b"]}"#).unwrap();
                std::fs::rename(&new, &path).unwrap();
            },
            "b",
            2,
        ),
        (&|| chmod(&path, 0o664), "", 3),
        (&|| chmod(&path, 0o644), "b", 4),
        (
            &|| std::fs::write(&path, r#"{"allow":["b""#).unwrap(),
            "",
            5,
        ),
        // Closed for another reason.
        (&|| std::fs::write(&path, r#"{"allow":[]}"#).unwrap(), "", 5),
        (
            &|| std::fs::write(&path, r#"{"allow":["c"]}"#).unwrap(),
            "c",
            6,
        ),
        // Closed first.
        (&|| std::fs::remove_file(&path).unwrap(), "abc", 8),
    ];
    for (change, tools, told) in changes {
        let same = session.tools() == tools;
        change();
        if same {
            session.always(tools);
        }
        session.await_tools(tools);
        assert_eq!(session.told, told, "{tools}");
    }
    session.always("abc");
    assert_eq!(session.told, 8);
}

#[test]
fn a_policy_that_cannot_be_used_is_the_reason_in_the_status() {
    let stage = Stage::new();
    let mut session = Session::start(&stage, &[], SERVER);
    let path = policy(&stage);
    assert_eq!(
        session.status(),
        json!({"state": "authorized", "tools": ["a", "b", "c"]})
    );
    std::fs::write(&path, r#"{"allow":["a"]"#).unwrap();
    session.await_tools("");
    let reason = session.status()["reason"].as_str().unwrap().to_owned();
    assert!(
        reason.starts_with("tools.json is not a policy: "),
        "{reason}"
    );
    std::fs::write(&path, r#"{"allow":["a"]}"#).unwrap();
    session.await_tools("a");
    assert_eq!(
        session.status(),
        json!({"state": "authorized", "tools": ["a"]})
    );
}

#[test]
fn a_policy_that_an_editor_removes_and_writes_anew_never_opens() {
    let stage = Stage::new();
    let mut session = Session::start(&stage, &[], SERVER);
    let path = policy(&stage);
    std::fs::write(&path, r#"{"allow":["a"]}"#).unwrap();
    session.await_tools("a");
    let editor = std::thread::spawn(move || {
        for round in 0..10 {
            std::fs::remove_file(&path).unwrap();
            (0..round).for_each(|_| pause());
            std::fs::write(&path, r#"{"allow":["a"]}"#).unwrap();
            (0..5).for_each(|_| pause());
        }
    });
    while !editor.is_finished() {
        let tools = session.tools();
        assert!(tools == "a" || tools.is_empty(), "{tools}");
    }
    session.await_tools("a");
}

#[test]
fn a_policy_that_is_written_in_pieces_is_taken_over_once_it_is_whole() {
    let stage = Stage::new();
    let mut session = Session::start(&stage, &[], SERVER);
    let path = policy(&stage);
    std::fs::write(&path, r#"{"allow":["a"]}"#).unwrap();
    session.await_tools("a");
    let told = session.told;
    let editor = std::thread::spawn(move || {
        let mut file = std::fs::File::create(&path).unwrap();
        for piece in [r#"{"allow"#, r#"":["b"#, r#"","#, r#""c"]"#, "}\n"] {
            pause();
            file.write_all(piece.as_bytes()).unwrap();
        }
    });
    let mut tools = String::new();
    while tools != "bc" {
        tools = session.tools();
        assert!(tools == "a" || tools == "bc", "{tools}");
    }
    editor.join().unwrap();
    session.always("bc");
    assert_eq!(session.told, told + 1);
}
