//! A client that asks one thing at a time.

use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

pub(super) struct Client {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    asked: u64,
}

impl Client {
    pub(super) fn start(command: &mut Command) -> Result<Self, String> {
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut child = command
            .spawn()
            .map_err(|e| format!("cannot start {}: {e}", command.get_program().display()))?;
        let pipes = child.stdin.take().zip(child.stdout.take());
        let (input, output) = pipes.ok_or("no pipes")?;
        Ok(Self {
            child,
            input,
            output: BufReader::with_capacity(1 << 16, output),
            asked: 0,
        })
    }

    pub(super) fn id(&self) -> u32 {
        self.child.id()
    }

    /// The two ends, for who writes and reads lines as they are.
    pub(super) fn pipes(&mut self) -> (&mut ChildStdin, &mut BufReader<ChildStdout>) {
        (&mut self.input, &mut self.output)
    }

    pub(super) fn shake_hands(&mut self) -> Result<(), String> {
        let client = json!({"name": "bench", "version": "1"});
        let params =
            json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client});
        self.ask("initialize", &params)?;
        self.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))
    }

    /// The result of a request that must succeed.
    pub(super) fn ask(&mut self, method: &str, params: &Value) -> Result<Value, String> {
        self.asked += 1;
        let id = self.asked;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))?;
        loop {
            let mut line = String::new();
            let read = self.output.read_line(&mut line);
            if read.map_err(|e| format!("{method}: {e}"))? == 0 {
                return Err(format!("{method}: the other side ended"));
            }
            let mut message: Value =
                serde_json::from_str(&line).map_err(|e| format!("{method}: {e}"))?;
            if message["id"] == json!(id) && message.get("method").is_none() {
                let failed = message["result"]["isError"] == json!(true);
                return match message["result"].take() {
                    result @ Value::Object(_) if !failed => Ok(result),
                    _ => Err(format!("{method}: {line}")),
                };
            }
        }
    }

    fn send(&mut self, message: &Value) -> Result<(), String> {
        writeln!(self.input, "{message}").map_err(|e| format!("cannot ask: {e}"))
    }

    pub(super) fn end(mut self) -> Result<(), String> {
        drop(self.input);
        self.child.wait().map_err(|e| e.to_string())?;
        Ok(())
    }
}
