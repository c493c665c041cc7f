//! What changes while a session runs: the tool policy, the handles, the build.

use super::stage::{LAUNCHER, Stage, chmod, run};
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

/// What the launcher says of each start.
const STARTED: &str = "the files of this launch are in";

/// A server with three tools, as a shell script. It says again what it is told, and ends when told.
pub(super) const SERVER: &str = r#"
while read -r line; do
    id=${line#*'"id":'}; id=${id%%,*}
    case $line in
    *'"method":"initialize"'*) result='{"protocolVersion":"2025-11-25","capabilities":{"tools":{}}}' ;;
    *'"method":"tools/list"'*) result='{"tools":[{"name":"a"},{"name":"b"},{"name":"c"}]}' ;;
    *'"method":"echo"'*) word=${line#*'"word":"'}; result="{\"said\":\"${word%%'"'*}\"}" ;;
    *'"method":"exit"'*) exit ;;
    *) continue ;;
    esac
    echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":$result}"
done"#;

/// A launcher, and the engine that it works for.
pub(super) struct Session {
    launcher: Child,
    input: Option<ChildStdin>,
    answers: mpsc::Receiver<String>,
    words: mpsc::Receiver<String>,
    said: String,
    count: u64,
    /// How often the engine was told of other tools.
    told: usize,
}

impl Session {
    /// Mounts the script as the connector `c` and starts it.
    pub(super) fn start(stage: &Stage, options: &[&str], script: &str) -> Self {
        let mount = [&["mount", "c"], options, &["--", "/bin/sh", "-c", script]].concat();
        assert_eq!(run(&mut stage.launcher(&mount), "").code, Some(0));
        Self::of(&mut stage.launcher(&["run", "c"]))
    }

    /// The session of a launcher that is started so.
    pub(super) fn of(command: &mut Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut launcher = command.stderr(Stdio::piped()).spawn().unwrap();
        let mut session = Self {
            input: launcher.stdin.take(),
            answers: lines(launcher.stdout.take().unwrap()),
            words: lines(launcher.stderr.take().unwrap()),
            said: String::new(),
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
    pub(super) fn ask(&mut self, method: &str, params: &Value) -> Value {
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
    pub(super) fn tools(&mut self) -> String {
        let answer = self.ask("tools/list", &json!({}));
        let tools = answer["result"]["tools"].as_array().unwrap();
        tools
            .iter()
            .map(|tool| tool["name"].as_str().unwrap())
            .collect()
    }

    /// Asks until the tools are these.
    pub(super) fn await_tools(&mut self, tools: &str) {
        until(|| self.tools() == tools);
    }

    /// Asks for as long as a change may take: the tools are always these.
    pub(super) fn always(&mut self, tools: &str) {
        let begun = Instant::now();
        while begun.elapsed() < A_SECOND {
            assert_eq!(self.tools(), tools);
            pause();
        }
    }

    /// How often the launcher has said this so far.
    pub(super) fn said(&mut self, word: &str) -> usize {
        self.said.extend(self.words.try_iter());
        self.said.matches(word).count()
    }

    /// Whether the answer to one that says this word, which comes back, is withheld.
    fn is_withheld(&mut self, word: &str) -> bool {
        let answer = self.ask("echo", &json!({ "word": word }));
        answer["error"]["data"]["code"] == "connector.internal"
    }

    pub(super) fn status(&mut self) -> Value {
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

pub(super) fn until(mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < DEADLINE);
        pause();
    }
}

fn policy(stage: &Stage) -> PathBuf {
    stage.config().join("connectors/c/tools.json")
}

pub(super) fn auth(stage: &Stage, secret: &str) {
    let auth = ["auth", "c", "TOKEN"];
    assert_eq!(run(&mut stage.launcher(&auth), secret).code, Some(0));
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

#[test]
fn a_policy_is_followed_while_the_lock_is_held() {
    let stage = Stage::new();
    let mut session = Session::start(&stage, &["--require", "TOKEN"], SERVER);
    auth(&stage, "the first secret");
    session.await_tools("abc");
    let lock = std::fs::File::open(policy(&stage).with_file_name(".lock")).unwrap();
    lock.lock().unwrap();
    let handle = policy(&stage).with_file_name("TOKEN");
    chmod(&handle, 0o400);
    chmod(&handle, 0o600);
    pause();
    std::fs::write(policy(&stage), r#"{"allow":["a"]}"#).unwrap();
    let begun = Instant::now();
    session.await_tools("a");
    // The lock is given up after 30 s only.
    assert!(begun.elapsed() < Duration::from_secs(20));
    drop(lock);
}

#[test]
fn a_start_that_waits_for_the_lock_keeps_no_session_from_ending() {
    let stage = Stage::new();
    let mut session = Session::start(&stage, &["--require", "TOKEN"], SERVER);
    let lock = std::fs::File::open(policy(&stage).with_file_name(".lock")).unwrap();
    lock.lock().unwrap();
    std::fs::create_dir(policy(&stage).with_file_name("bin")).unwrap();
    until(|| session.said("waiting for") > 0);
    let begun = Instant::now();
    drop(session);
    // The lock is given up after 30 s only.
    assert!(begun.elapsed() < Duration::from_secs(20));
    drop(lock);
}

#[test]
fn a_handle_that_is_stored_replaced_and_removed_is_followed() {
    let stage = Stage::new();
    let mut session = Session::start(&stage, &["--require", "TOKEN"], SERVER);
    assert_eq!(session.status()["state"], "unauthorized");
    assert_eq!((session.tools().as_str(), session.told), ("", 0));
    auth(&stage, "the first secret");
    session.await_tools("abc");
    assert_eq!(session.told, 1);
    assert!(session.is_withheld("the first secret"));
    assert!(!session.is_withheld("the second secret"));
    auth(&stage, "the second secret");
    until(|| session.is_withheld("the second secret"));
    assert!(session.is_withheld("the first secret"));
    std::fs::remove_file(policy(&stage).with_file_name("TOKEN")).unwrap();
    session.always("abc");
    assert!(session.is_withheld("the second secret"));
    assert_eq!((session.said(STARTED), session.told), (1, 1));
    let mut next = Session::of(&mut stage.launcher(&["run", "c"]));
    assert_eq!(next.status()["state"], "unauthorized");
}

#[test]
fn a_connector_that_has_ended_is_started_for_a_handle_or_a_build_alone() {
    let stage = Stage::new();
    let mut session = Session::start(&stage, &["--require", "TOKEN"], SERVER);
    auth(&stage, "the first secret");
    session.await_tools("abc");
    let path = policy(&stage);
    session.ask("exit", &json!({}));
    std::fs::write(&path, r#"{"allow":["a"]}"#).unwrap();
    session.always("");
    std::fs::remove_file(path.with_file_name("TOKEN")).unwrap();
    session.always("");
    assert_eq!(session.said(STARTED), 1);
    auth(&stage, "the second secret");
    session.await_tools("a");
    session.ask("exit", &json!({}));
    std::fs::create_dir(path.with_file_name("bin")).unwrap();
    session.await_tools("a");
    until(|| session.said(STARTED) == 3);
}

#[test]
fn a_connector_that_is_mounted_anew_is_said_once_and_goes_on() {
    const CHANGED: &str = "connector.json has changed";
    let stage = Stage::new();
    let mut session = Session::start(&stage, &[], SERVER);
    let mount = |script| {
        let mount = ["mount", "c", "--", "/bin/sh", "-c", script];
        assert_eq!(run(&mut stage.launcher(&mount), "").code, Some(0));
    };
    mount(SERVER);
    session.always("abc");
    assert_eq!(session.said(CHANGED), 0);
    mount("exit 1");
    until(|| session.said(CHANGED) == 1);
    mount("exit 2");
    session.always("abc");
    assert_eq!((session.said(CHANGED), session.told), (1, 0));
}

#[test]
fn everything_is_followed_where_the_kernel_tells_of_nothing() {
    const SAID: &str = "the kernel does not tell of changes";
    let stage = Stage::new();
    let mount = [
        "mount",
        "c",
        "--require",
        "TOKEN",
        "--",
        "/bin/sh",
        "-c",
        SERVER,
    ];
    assert_eq!(run(&mut stage.launcher(&mount), "").code, Some(0));
    // A namespace in which nobody may have an inotify instance.
    let none = r#"echo 0 >/proc/sys/user/max_inotify_instances && exec "$@""#;
    let options = ["-Ur", "/bin/sh", "-c", none, "sh", LAUNCHER, "run", "c"];
    let mut session = Session::of(&mut stage.command("unshare", &options));
    until(|| session.said(SAID) == 1);
    auth(&stage, "the first secret");
    session.await_tools("abc");
    auth(&stage, "the second secret");
    until(|| session.is_withheld("the second secret"));
    std::fs::write(policy(&stage), r#"{"allow":["a"]}"#).unwrap();
    session.await_tools("a");
    session.ask("exit", &json!({}));
    std::fs::create_dir(policy(&stage).with_file_name("bin")).unwrap();
    session.await_tools("a");
    std::fs::remove_file(policy(&stage)).unwrap();
    session.await_tools("abc");
    assert_eq!(session.said(SAID), 1);
}
