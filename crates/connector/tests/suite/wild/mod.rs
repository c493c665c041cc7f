//! The launcher between an engine and a connector that misbehave: what each side sees of the other,
//! and that the session lives on. The connector is `programs/wild.rs`, which does what it is told.

mod behaviour;
mod from_connector;
mod from_engine;
mod policy;
mod volume;

use super::stage::{Stage, run};
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Longer than any wait of the launcher's, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);
const TOOLS_CHANGED: &str = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;
/// What is longer is shown by its ends.
const SHOWN: usize = 400;

/// An engine that has started the launcher of a wild connector.
struct Session {
    stage: Stage,
    launcher: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    /// While this is held, the engine reads no further line.
    reading: Arc<Mutex<()>>,
    asked: u32,
}

impl Session {
    /// One whose connector obeys these words at its start.
    fn start(words: &[&str]) -> Self {
        Self::on(Stage::new(), words)
    }

    /// One that has shaken hands, with this tool policy.
    fn restricted(policy: &str) -> Self {
        let (stage, program) = (Stage::new(), program());
        mount(&stage, &["--", program.to_str().unwrap()]);
        stage.write("config/connectors/c/tools.json", policy);
        let mut session = Self::run(stage);
        session.meet();
        session
    }

    /// On a stage that holds something already.
    fn on(stage: Stage, words: &[&str]) -> Self {
        let program = program();
        mount(
            &stage,
            &[&["--", program.to_str().unwrap()], words].concat(),
        );
        Self::run(stage)
    }

    /// What is mounted already.
    fn run(stage: Stage) -> Self {
        let mut command = stage.launcher(&["run", "c"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let errors = std::fs::File::create(stage.path("stderr")).unwrap();
        let mut launcher = command.stderr(errors).spawn().unwrap();
        let input = launcher.stdin.take();
        let mut output = BufReader::new(launcher.stdout.take().unwrap());
        let (tell, lines) = channel();
        let reading = Arc::new(Mutex::new(()));
        let reads = Arc::clone(&reading);
        std::thread::spawn(move || {
            let mut line = Vec::new();
            let mut read = |line: &mut Vec<u8>| {
                let _reads = reads.lock().unwrap();
                output.read_until(b'\n', line).unwrap()
            };
            while read(&mut line) > 0 {
                assert_eq!(line.pop(), Some(b'\n'), "a line without an end");
                let line = String::from_utf8(std::mem::take(&mut line)).unwrap();
                if tell.send(line).is_err() {
                    return;
                }
            }
        });
        let asked = 1000;
        Self {
            stage,
            launcher,
            input,
            lines,
            reading,
            asked,
        }
    }

    /// One that has shaken hands.
    fn met(words: &[&str]) -> Self {
        let mut session = Self::start(words);
        session.meet();
        session
    }

    fn meet(&mut self) {
        self.send(r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"e","version":"1"}}}"#);
        assert!(self.line().contains(r#""protocolVersion""#));
        self.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        self.seen();
    }

    /// Writes bytes and a line's end.
    fn send(&mut self, line: impl AsRef<[u8]>) {
        self.write(&[line.as_ref(), b"\n"].concat());
    }

    fn write(&mut self, bytes: &[u8]) {
        self.input.as_mut().unwrap().write_all(bytes).unwrap();
    }

    /// The next line that the engine gets.
    fn line(&self) -> String {
        match self.lines.recv_timeout(PATIENCE) {
            Ok(line) => line,
            Err(RecvTimeoutError::Timeout) => panic!("no line came; {}", self.stderr()),
            Err(RecvTimeoutError::Disconnected) => {
                panic!("the launcher closed its output; {}", self.stderr())
            }
        }
    }

    /// The next lines, as one text.
    fn next(&self, count: usize) -> String {
        let lines: Vec<String> = (0..count).map(|_| brief(&self.line())).collect();
        lines.join("\n")
    }

    /// Calls the connector with these words; the id of the call.
    fn call(&mut self, words: &str) -> u32 {
        self.asked += 1;
        let id = self.asked;
        self.send(call(id, words));
        id
    }

    /// Whatever came before the answer to a good call, and what reached the connector since the
    /// last one.
    fn between(&mut self) -> (Vec<String>, Vec<String>) {
        let id = self.call("seen");
        let mine = format!(r#""id":{id},"#);
        let mut before = Vec::new();
        let answer = loop {
            let line = self.line();
            if line.contains(&mine) {
                break line;
            }
            before.push(line);
        };
        let mut seen = decoded(&answer);
        assert_eq!(seen.pop(), Some(call(id, "seen") + "\n"), "{answer}");
        (before, seen)
    }

    /// What reached the connector since this was last asked. Nothing else reaches the engine.
    fn seen(&mut self) -> Vec<String> {
        let (before, seen) = self.between();
        assert!(before.is_empty(), "{before:?}");
        seen
    }

    /// That a good call is answered, and nothing came before.
    fn lives_on(&mut self) {
        self.seen();
    }

    /// That a connector that is gone has left a session that answers for itself.
    fn answers_for_itself(&mut self) {
        self.send(r#"{"jsonrpc":"2.0","id":"p","method":"ping"}"#);
        assert_eq!(self.line(), r#"{"jsonrpc":"2.0","id":"p","result":{}}"#);
    }

    /// Closes the engine's end; how the launcher ended, and what it still said.
    fn end(&mut self) -> (ExitStatus, Vec<String>) {
        drop(self.input.take());
        let status = self.ended();
        (status, self.lines.iter().collect())
    }

    /// That the launcher ends well once the engine closes its end, and says no more than that the
    /// tools are gone.
    fn ends_well(&mut self) {
        let (status, rest) = self.end();
        assert!(status.success(), "{status}");
        assert!(rest.iter().all(|line| line == TOOLS_CHANGED), "{rest:?}");
        assert!(self.processes().is_empty(), "{:?}", self.processes());
    }

    /// Waits for the end of the launcher.
    fn ended(&mut self) -> ExitStatus {
        let launcher = &mut self.launcher;
        let mut status = None;
        comes("the end of the launcher", || {
            status = launcher.try_wait().unwrap();
            status.is_some()
        });
        status.unwrap()
    }

    /// The processes that have this stage in their environment, but for the launcher.
    fn processes(&self) -> Vec<String> {
        let here = self.stage.config().to_str().unwrap().to_owned();
        let mut found = Vec::new();
        for process in std::fs::read_dir("/proc").unwrap().flatten() {
            let name = process.file_name().into_string().unwrap();
            let environ = std::fs::read(process.path().join("environ")).unwrap_or_default();
            let ours = name.parse() == Ok(self.launcher.id());
            if !ours && String::from_utf8_lossy(&environ).contains(&here) {
                found.push(name);
            }
        }
        found
    }

    /// The most memory that the launcher has had, in KiB.
    fn peak(&self) -> u64 {
        let path = format!("/proc/{}/status", self.launcher.id());
        let status = std::fs::read_to_string(path).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmHWM:"));
        let number = line.unwrap().split_whitespace().nth(1);
        number.unwrap().parse().unwrap()
    }

    fn stderr(&self) -> String {
        let bytes = std::fs::read(self.stage.path("stderr")).unwrap();
        brief(&String::from_utf8_lossy(&bytes))
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        _ = self.launcher.kill();
        _ = self.launcher.wait();
    }
}

fn mount(stage: &Stage, rest: &[&str]) {
    let mounted = run(&mut stage.launcher(&[&["mount", "c"], rest].concat()), "");
    assert_eq!(mounted.code, Some(0), "{}", mounted.stderr);
}

/// Waits until something holds.
fn comes(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < PATIENCE, "never: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A call that carries these words.
fn call(id: u32, words: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"safe","arguments":{{"do":"{words}"}}}}}}"#
    )
}

/// A word that makes the connector say this line.
fn say(line: impl AsRef<[u8]>) -> String {
    format!("say:{}0a", hex(line.as_ref()))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The lines that an answer of the connector's shows.
fn decoded(answer: &str) -> Vec<String> {
    let answer: Value = serde_json::from_str(answer).unwrap();
    let text = answer["result"]["content"][0]["text"].as_str();
    let lines = text.unwrap_or_else(|| panic!("{answer}")).split(' ');
    lines.map(line_of).collect()
}

fn line_of(shown: &str) -> String {
    if shown.contains(':') {
        return shown.to_owned();
    }
    let byte = |at| u8::from_str_radix(&shown[at..at + 2], 16).unwrap();
    let bytes: Vec<u8> = (0..shown.len()).step_by(2).map(byte).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// A text, its middle left out where it is long.
fn brief(text: &str) -> String {
    let count = text.chars().count();
    if count <= SHOWN {
        return text.to_owned();
    }
    let first: String = text.chars().take(SHOWN / 4).collect();
    let last: String = text.chars().skip(count - SHOWN / 4).collect();
    format!("{first}[...]{last} ({} bytes)", text.len())
}

/// The wild connector. It is built with the tests of the package, or alone.
fn program() -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    let program = tests.ancestors().nth(2).unwrap().join("examples/wild");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/wild.rs");
    let changed = |path: &Path| path.metadata().and_then(|found| found.modified()).ok();
    assert!(
        changed(&program).is_some_and(|built| Some(built) >= changed(&source)),
        "{} is missing or older than its source; run: cargo build -p sema-connector --example wild",
        program.display()
    );
    program
}
