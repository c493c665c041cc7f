//! The browser connector started without the launcher: a configuration directory, a launch as the
//! launcher makes one, and an MCP client on its standard streams.

use sema_rules::name::Handle;
use sema_vault::{ConfigDir, ConnectorDir, LaunchDir, Secret};
use serde_json::{Value, json};
use std::ffi::OsString;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};

pub(super) const PROGRAM: &str = env!("CARGO_BIN_EXE_sema-connector-browser");
pub(super) const CLEAN: &str = r#"{"cookies":[],"origins":[]}"#;

/// A configuration directory with one launch of the browser.
pub(super) struct Lab {
    pub(super) root: tempfile::TempDir,
    pub(super) config: PathBuf,
    pub(super) connector: ConnectorDir,
    pub(super) launch: LaunchDir,
    env: Vec<(OsString, OsString)>,
    user: Option<u32>,
}

impl Lab {
    /// A launch with these handles, below a temporary directory.
    pub(super) fn new(handles: &[(&str, &str)]) -> Self {
        Self::in_folder("", handles)
    }

    /// The same with the pinned build, without its archives.
    pub(super) fn with_build(handles: &[(&str, &str)]) -> Self {
        let lab = Self::new(handles);
        lab.install();
        lab
    }

    /// Puts a copy of the pinned build into the connector's directory.
    pub(super) fn install(&self) {
        let to = self.connector.path().join("bin");
        std::fs::create_dir(&to).unwrap();
        std::fs::set_permissions(&to, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
        for entry in std::fs::read_dir(build()).unwrap() {
            let entry = entry.unwrap();
            if entry.file_name() != "archives" {
                let copy = Command::new("cp")
                    .arg("-a")
                    .arg(entry.path())
                    .arg(&to)
                    .status();
                assert!(copy.unwrap().success());
            }
        }
    }

    /// The same with `below` between the temporary directory and the configuration directory.
    pub(super) fn in_folder(below: &str, handles: &[(&str, &str)]) -> Self {
        let root = tempfile::Builder::new().prefix("sema").tempdir().unwrap();
        let path = root.path().join(below).join("config");
        let config = ConfigDir::create(&path).unwrap();
        let connector = config
            .create_connector(&"browser".parse().unwrap())
            .unwrap();
        let secrets: Vec<(Handle, Secret)> = handles
            .iter()
            .map(|(name, text)| (name.parse().unwrap(), Secret::new(text.as_bytes().to_vec())))
            .collect();
        let secrets: Vec<_> = secrets
            .iter()
            .map(|(handle, secret)| (handle, secret))
            .collect();
        let held = connector.lock_shared(&mut |_| {}).unwrap();
        let launch = connector.new_launch(&held, &secrets).unwrap();
        drop(held);
        let mut lab = Self {
            root,
            config: path.clone(),
            connector,
            launch,
            env: Vec::new(),
            user: None,
        };
        lab.set("PATH", std::env::var_os("PATH").unwrap());
        lab.set("CONFIG_LOCAL_DIR", path);
        lab.set("CONNECTOR_DIR", lab.connector.path().to_owned());
        lab.set("CONNECTOR_LAUNCH_DIR", lab.launch.path().to_owned());
        for (name, _) in handles {
            lab.set(&format!("{name}_FILE"), lab.launch.path().join(name));
        }
        lab
    }

    /// Sets a variable of the connector's environment.
    pub(super) fn set(&mut self, name: &str, value: impl Into<OsString>) -> &mut Self {
        self.unset(name);
        self.env.push((name.into(), value.into()));
        self
    }

    /// Takes a variable away.
    pub(super) fn unset(&mut self, name: &str) -> &mut Self {
        self.env.retain(|(own, _)| own != name);
        self
    }

    /// Runs the connector as this user, to whom everything is given.
    pub(super) fn user(&mut self, user: u32) -> &mut Self {
        self.user = Some(user);
        let owner = format!("{user}:{user}");
        let status = Command::new("chown")
            .args(["-R", &owner])
            .arg(self.root.path())
            .status();
        assert!(status.unwrap().success());
        self
    }

    pub(super) fn out(&self) -> PathBuf {
        self.launch.path().join("out")
    }

    pub(super) fn command(&self) -> Command {
        let mut command = Command::new(PROGRAM);
        command
            .env_clear()
            .envs(self.env.iter().map(|(name, value)| (name, value)))
            .current_dir("/");
        if let Some(user) = self.user {
            command.uid(user).gid(user);
        }
        command
    }

    /// What a connector that refuses to start says, with the temporary directory's name taken out.
    pub(super) fn refusal(&self) -> String {
        let output = self.command().stdin(Stdio::null()).output().unwrap();
        assert!(output.stdout.is_empty());
        let text = String::from_utf8(output.stderr).unwrap();
        let text = text.replace(self.root.path().to_str().unwrap(), "TMP");
        let text = text.replace(self.launch.id().as_str(), "ID");
        format!("exit {}\n{text}", output.status.code().unwrap())
    }

    pub(super) fn start(&self) -> Session {
        Session::start(&mut self.command())
    }
}

/// Where `cargo xtask test` installed the pinned build.
fn build() -> PathBuf {
    let parts = std::env::var_os("SEMA_TEST_PARTS").map(PathBuf::from);
    let parts =
        parts.unwrap_or_else(|| Path::new(env!("CARGO_TARGET_TMPDIR")).join("../test-parts"));
    let bin = parts.join("config/connectors/browser/bin");
    assert!(
        bin.exists(),
        "the pinned build is not in {}: run cargo xtask test",
        bin.display()
    );
    bin
}

/// A running connector and its MCP client.
pub(super) struct Session {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    calls: u64,
}

impl Session {
    pub(super) fn start(command: &mut Command) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (stdin, stdout) = (
            child.stdin.take(),
            BufReader::new(child.stdout.take().unwrap()),
        );
        let mut session = Self {
            child,
            stdin,
            stdout,
            calls: 0,
        };
        let asked = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}});
        session.call("initialize", asked);
        session.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        session
    }

    pub(super) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(super) fn send(&mut self, line: &str) {
        let stdin = self.stdin.as_mut().unwrap();
        stdin
            .write_all(line.as_bytes())
            .and_then(|()| stdin.write_all(b"\n"))
            .unwrap();
    }

    /// The next line, empty at the end.
    pub(super) fn line(&mut self) -> String {
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        line
    }

    /// The line that answers `id`, as JSON writes it.
    pub(super) fn answer(&mut self, id: &str) -> String {
        loop {
            let line = self.line();
            assert!(!line.is_empty(), "the connector ended");
            let message: Value = serde_json::from_str(&line).unwrap();
            if message.get("method").is_none() && message["id"].to_string().as_str() == id {
                return line;
            }
        }
    }

    pub(super) fn call(&mut self, method: &str, params: Value) -> Value {
        self.calls += 1;
        let id = self.calls;
        self.send(
            &json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string(),
        );
        serde_json::from_str(&self.answer(&id.to_string())).unwrap()
    }

    /// Calls a tool; the text of its answer.
    pub(super) fn tool(&mut self, name: &str, arguments: Value) -> String {
        let answer = self.call("tools/call", json!({"name": name, "arguments": arguments}));
        answer["result"]["content"][0]["text"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    }

    /// Runs a function in the page; what it returned.
    pub(super) fn evaluate(&mut self, function: &str) -> Value {
        let text = self.tool("browser_evaluate", json!({"function": function}));
        let result = text
            .strip_prefix("### Result\n")
            .unwrap_or_else(|| panic!("{text}"));
        let result = result.split("\n### Ran").next().unwrap_or_default();
        serde_json::from_str(result).unwrap_or_else(|error| panic!("{error}: {text}"))
    }

    pub(super) fn tools(&mut self) -> Vec<String> {
        let answer = self.call("tools/list", json!({}));
        let tools = answer["result"]["tools"].as_array().unwrap();
        tools
            .iter()
            .map(|tool| tool["name"].as_str().unwrap().to_owned())
            .collect()
    }

    /// Closes its input and waits.
    pub(super) fn end(mut self) -> ExitStatus {
        self.stdin = None;
        self.child.wait().unwrap()
    }

    pub(super) fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_raw(self.child.id().try_into().unwrap()).unwrap();
        rustix::process::kill_process(pid, signal).unwrap();
    }

    pub(super) fn wait(&mut self) -> ExitStatus {
        self.child.wait().unwrap()
    }
}

/// The processes below `pid`, by the parents that `/proc` tells.
pub(super) fn below(pid: u32) -> Vec<u32> {
    let mut found = Vec::new();
    let mut parents = vec![pid];
    let all: Vec<(u32, u32)> = std::fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter_map(|pid: u32| Some((pid, parent(pid)?)))
        .collect();
    while let Some(parent) = parents.pop() {
        for (child, _) in all.iter().filter(|(_, of)| *of == parent) {
            found.push(*child);
            parents.push(*child);
        }
    }
    found
}

fn parent(pid: u32) -> Option<u32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit(')')
        .next()?
        .split_whitespace()
        .nth(1)?
        .parse()
        .ok()
}

/// The NUL-separated texts of a file below `/proc/PID`.
pub(super) fn proc_texts(pid: u32, file: &str) -> Vec<String> {
    let text =
        std::fs::read(Path::new("/proc").join(pid.to_string()).join(file)).unwrap_or_default();
    text.split(|&byte| byte == 0)
        .filter(|text| !text.is_empty())
        .map(|text| String::from_utf8_lossy(text).into_owned())
        .collect()
}
