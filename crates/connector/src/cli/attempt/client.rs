//! A small MCP client of the real launcher: one request at a time.

use crate::cli::failure::Failure;
use crate::cli::{browser_mount, env};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sema_jail::{Child, Exit, Plan, Stdio};
use serde_json::{Value, json};
use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// How long one answer is waited for.
const PATIENCE: Duration = Duration::from_secs(120);
/// How long the launcher may take to end what it started, at most.
const ENDING: Duration = Duration::from_secs(10);

/// The launcher, started as an engine starts it.
pub(super) struct Client {
    child: Child,
    to: Option<File>,
    lines: Receiver<String>,
    last: u64,
}

/// What a tool answered.
pub(super) struct Answer {
    pub(super) text: String,
    pub(super) image: Option<Vec<u8>>,
}

impl Client {
    /// Starts `sema-connector run browser` and shakes hands.
    pub(super) fn start() -> Result<(Self, String), Failure> {
        let failed =
            |what: &str| Failure::failed(format_args!("cannot start the launcher: {what}"));
        let plan = Plan {
            program: browser_mount::sibling("sema-connector")?.into(),
            args: vec!["run".into(), browser_mount::NAME.into()],
            env: env::vars().collect(),
            cwd: env::current_dir()?,
            stdin: Stdio::Pipe,
            stdout: Stdio::Pipe,
            stderr: Stdio::Null,
            private_tmp: None,
            read_only: Vec::new(),
        };
        let mut child = sema_jail::plain(plan).map_err(|e| failed(&e.to_string()))?;
        let (stdin, stdout) = child
            .stdin
            .take()
            .zip(child.stdout.take())
            .ok_or_else(|| failed("no pipes"))?;
        let (tell, lines) = channel();
        std::thread::spawn(move || {
            let lines = BufReader::new(File::from(stdout)).lines();
            lines
                .map_while(Result::ok)
                .try_for_each(|line| tell.send(line))
        });
        let mut client = Self {
            child,
            to: Some(File::from(stdin)),
            lines,
            last: 0,
        };
        let info = json!({"name": "sema-connector try", "version": env!("CARGO_PKG_VERSION")});
        let hello =
            json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info});
        let answer = client.request("initialize", &hello)?;
        client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))?;
        let server = &answer["serverInfo"];
        let name = server["name"].as_str().unwrap_or_default();
        let version = server["version"].as_str().unwrap_or_default();
        Ok((client, format!("{name} {version}")))
    }

    /// Asks and waits for the answer; the result.
    pub(super) fn request(&mut self, method: &str, params: &Value) -> Result<Value, Failure> {
        self.last += 1;
        let id = self.last;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))?;
        loop {
            let line = self.lines.recv_timeout(PATIENCE).map_err(|_| {
                Failure::failed(format_args!("no answer to {method}"))
                    .hint("see what it says: sema-connector run browser </dev/null")
            })?;
            let mut message: Value = serde_json::from_str(&line).unwrap_or_default();
            if message["id"] != json!(id) {
                continue;
            }
            if let Some(error) = message["error"]["message"].as_str() {
                return Err(explained(error));
            }
            return Ok(message["result"].take());
        }
    }

    /// Calls a tool. A result that says it failed is a failure.
    pub(super) fn call(&mut self, tool: &str, arguments: &Value) -> Result<Answer, Failure> {
        let params = json!({"name": tool, "arguments": arguments});
        let result = self.request("tools/call", &params)?;
        let (mut text, mut image) = (String::new(), None);
        for part in result["content"].as_array().into_iter().flatten() {
            text.push_str(part["text"].as_str().unwrap_or_default());
            let data = part["data"].as_str();
            image = image.or(data.and_then(|data| STANDARD.decode(data).ok()));
        }
        if result["isError"] == json!(true) {
            return Err(Failure::failed(text.replace('\n', " ")));
        }
        Ok(Answer { text, image })
    }

    /// Why the launcher offers no tool, in the words of its status.
    pub(super) fn why_no_tools(&mut self) -> Result<Failure, Failure> {
        let uri = format!("sema-connector://{}/status", browser_mount::NAME);
        let answer = self.request("resources/read", &json!({"uri": uri}))?;
        let text = answer["contents"][0]["text"].as_str().unwrap_or_default();
        let status: Value = serde_json::from_str(text).unwrap_or_default();
        Ok(explained(
            status["reason"]
                .as_str()
                .unwrap_or("the policy tools.json allows no tool"),
        ))
    }

    /// Closes the session and waits for its end.
    pub(super) fn stop(mut self) -> Result<((), String), Failure> {
        drop(self.to.take());
        match self.child.wait_timeout(PATIENCE) {
            Some(Exit::Code(0)) => Ok(((), "nothing of it is left running".to_owned())),
            Some(exit) => Err(Failure::failed(format_args!(
                "the launcher ended with {exit:?}"
            ))),
            None => Err(Failure::failed("the launcher did not end")),
        }
    }

    fn send(&mut self, message: &Value) -> Result<(), Failure> {
        let sent = self.to.as_mut().map(|to| writeln!(to, "{message}"));
        match sent {
            Some(Ok(())) => Ok(()),
            _ => Err(Failure::failed("the launcher does not read any more")),
        }
    }
}

/// After a step that failed: the launcher still takes away what it made.
impl Drop for Client {
    fn drop(&mut self) {
        drop(self.to.take());
        _ = self.child.wait_timeout(ENDING);
    }
}

/// An error of the launcher's, whose hint stands behind `hint:`.
fn explained(error: &str) -> Failure {
    match error.split_once("; hint: ") {
        Some((message, hint)) => Failure::failed(message).hint(hint),
        None => Failure::failed(error),
    }
}
