//! A configuration directory of a test's own, and an engine that speaks to the launcher.

use serde_json::{Value, json};
use std::ffi::OsStr;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

pub(crate) const LAUNCHER: &str = env!("CARGO_BIN_EXE_sema-connector");
pub(crate) const BROWSER: &str = env!("CARGO_BIN_EXE_sema-connector-browser");
const PATIENCE: Duration = Duration::from_secs(60);

/// What `cargo xtask test` installed.
pub(crate) fn parts() -> PathBuf {
    let parts = std::env::var_os("SEMA_TEST_PARTS");
    parts.expect("run the tests with: cargo xtask test").into()
}

/// A configuration directory with the pinned build, a clean profile and the mounted browser.
pub(crate) struct Lab {
    folder: tempfile::TempDir,
    config: PathBuf,
}

impl Lab {
    pub(crate) fn new() -> Self {
        let lab = Self::empty("config");
        lab.install();
        assert!(lab.auth("{}").status.success());
        assert!(lab.run(BROWSER, ["mount"]).status.success());
        lab
    }

    /// One with nothing in it, at a path below a folder of its own.
    pub(crate) fn empty(below: &str) -> Self {
        let folder = tempfile::Builder::new()
            .prefix("sema é ")
            .tempdir()
            .unwrap();
        let config = folder.path().join(below);
        Self { folder, config }
    }

    /// Puts a copy of the pinned build into it.
    pub(crate) fn install(&self) {
        let to = self.connector().join("bin");
        assert!(self.run(BROWSER, ["list"]).status.success());
        std::fs::create_dir_all(&to).unwrap();
        for folder in [
            &self.config,
            &self.config.join("connectors"),
            &self.connector(),
            &to,
        ] {
            set_mode(folder, 0o700);
        }
        let from = parts().join("config/connectors/browser/bin");
        for entry in std::fs::read_dir(&from).unwrap().flatten() {
            if entry.file_name() != "archives" {
                let copied = Command::new("cp")
                    .arg("-a")
                    .arg(entry.path())
                    .arg(&to)
                    .status();
                assert!(copied.unwrap().success());
            }
        }
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn config(&self) -> &Path {
        &self.config
    }

    pub(crate) fn connector(&self) -> PathBuf {
        self.config.join("connectors/browser")
    }

    pub(crate) fn launches(&self) -> usize {
        std::fs::read_dir(self.connector().join("launches")).map_or(0, Iterator::count)
    }

    pub(crate) fn command<S: AsRef<OsStr>>(
        &self,
        program: impl AsRef<OsStr>,
        args: impl IntoIterator<Item = S>,
    ) -> Command {
        let mut command = Command::new(program);
        command
            .args(args)
            .env("CONFIG_LOCAL_DIR", &self.config)
            .env("TZ", "Asia/Tokyo");
        command
            .env("LANG", "C.UTF-8")
            .env("NODE_OPTIONS", "--title=leaked")
            .env("PWDEBUG", "1");
        command
    }

    pub(crate) fn run<S: AsRef<OsStr>>(
        &self,
        program: impl AsRef<OsStr>,
        args: impl IntoIterator<Item = S>,
    ) -> Output {
        self.command(program, args)
            .stdin(Stdio::null())
            .output()
            .unwrap()
    }

    /// Runs the browser's `auth` with this line.
    pub(crate) fn auth(&self, line: &str) -> Output {
        let mut command = self.command(BROWSER, ["auth"]);
        command
            .stdin(Stdio::piped())
            .stderr(Stdio::piped())
            .stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child
            .stdin
            .take()
            .unwrap()
            .write_all(line.as_bytes())
            .unwrap();
        child.wait_with_output().unwrap()
    }

    pub(crate) fn write_policy(&self, name: &str, text: &str) {
        std::fs::write(self.connector().join(name), text).unwrap();
        set_mode(&self.connector().join(name), 0o600);
    }

    /// An engine in front of `sema-connector run browser`.
    pub(crate) fn engine(&self) -> Engine {
        Engine::start(self.command(LAUNCHER, ["run", "browser"]))
    }
}

pub(crate) fn set_mode(path: &Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

/// An engine: a handshake client that asks one thing at a time and keeps what else it hears.
pub(crate) struct Engine {
    pub(crate) child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    last: u64,
    pub(crate) heard: Vec<Value>,
}

impl Engine {
    pub(crate) fn start(command: Command) -> Self {
        let mut engine = Self::silent(command);
        engine.shake_hands(&json!({}));
        engine
    }

    /// One that has not said anything yet.
    pub(crate) fn silent(mut command: Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let (tell, lines) = channel();
        std::thread::spawn(move || {
            stdout
                .lines()
                .map_while(Result::ok)
                .try_for_each(|line| tell.send(line))
        });
        let input = child.stdin.take();
        Self {
            child,
            input,
            lines,
            last: 0,
            heard: Vec::new(),
        }
    }

    pub(crate) fn shake_hands(&mut self, capabilities: &Value) -> Value {
        let params = json!({
            "protocolVersion": "2025-11-25", "capabilities": capabilities,
            "clientInfo": {"name": "test", "version": "1"},
        });
        let answer = self.request("initialize", &params);
        self.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        answer
    }

    pub(crate) fn send(&mut self, line: &str) {
        writeln!(self.input.as_mut().unwrap(), "{line}").unwrap();
    }

    /// The whole answer to a request.
    pub(crate) fn request(&mut self, method: &str, params: &Value) -> Value {
        self.last += 1;
        let id = self.last;
        self.send(
            &json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string(),
        );
        self.answer(&json!(id))
    }

    pub(crate) fn answer(&mut self, id: &Value) -> Value {
        loop {
            let message = self.next();
            if message["id"] == *id && message.get("method").is_none() {
                return message;
            }
            self.heard.push(message);
        }
    }

    pub(crate) fn next(&mut self) -> Value {
        let line = self
            .lines
            .recv_timeout(PATIENCE)
            .expect("the launcher said nothing more");
        serde_json::from_str(&line).unwrap()
    }

    /// Waits for a notification of this method.
    pub(crate) fn hear(&mut self, method: &str) {
        while !self.heard.iter().any(|message| message["method"] == method) {
            let message = self.next();
            self.heard.push(message);
        }
    }

    pub(crate) fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        self.request("tools/call", &json!({"name": tool, "arguments": arguments}))
    }

    /// The text of a call that must succeed.
    pub(crate) fn text(&mut self, tool: &str, arguments: &Value) -> String {
        let answer = self.call(tool, arguments);
        let parts = answer["result"]["content"]
            .as_array()
            .unwrap_or_else(|| panic!("{answer}"));
        let text: String = parts
            .iter()
            .filter_map(|part| part["text"].as_str())
            .collect();
        assert_ne!(answer["result"]["isError"], json!(true), "{text}");
        text
    }

    /// What an expression in the page comes to.
    pub(crate) fn evaluate(&mut self, expression: &str) -> String {
        let text = self.text(
            "browser_evaluate",
            &json!({"function": format!("() => {expression}")}),
        );
        let result = text
            .split("### Result\n")
            .nth(1)
            .unwrap_or_else(|| panic!("{text}"));
        result.split("\n### ").next().unwrap().trim().to_owned()
    }

    pub(crate) fn tools(&mut self) -> Vec<String> {
        let answer = self.request("tools/list", &json!({}));
        let tools = answer["result"]["tools"].as_array().unwrap();
        tools
            .iter()
            .map(|tool| tool["name"].as_str().unwrap().to_owned())
            .collect()
    }

    pub(crate) fn status(&mut self) -> Value {
        let uri = "sema-connector://browser/status";
        let answer = self.request("resources/read", &json!({"uri": uri}));
        let text = answer["result"]["contents"][0]["text"]
            .as_str()
            .unwrap_or_else(|| panic!("{answer}"));
        serde_json::from_str(text).unwrap()
    }

    /// Closes the engine's end and waits for the launcher's.
    pub(crate) fn close(mut self) -> Option<i32> {
        drop(self.input.take());
        let end = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code();
            }
            assert!(Instant::now() < end, "the launcher did not end");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

/// Every process whose environment or command line names this text.
pub(crate) fn processes(text: &Path) -> Vec<(i32, String)> {
    let text = text.to_str().unwrap();
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Some(pid) = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok())
        else {
            continue;
        };
        let read = |file: &str| std::fs::read(entry.path().join(file)).unwrap_or_default();
        let line = String::from_utf8_lossy(&read("cmdline")).replace('\0', " ");
        let environment = String::from_utf8_lossy(&read("environ")).into_owned();
        let own = pid == i32::try_from(std::process::id()).unwrap();
        if !own && (line.contains(text) || environment.contains(text)) {
            found.push((pid, line));
        }
    }
    found
}

/// Waits until something is true.
pub(crate) fn wait_for(what: &str, condition: impl Fn() -> bool) {
    let end = Instant::now() + Duration::from_secs(20);
    while !condition() {
        assert!(Instant::now() < end, "{what} did not come true in 20 s");
        std::thread::sleep(Duration::from_millis(10));
    }
}
