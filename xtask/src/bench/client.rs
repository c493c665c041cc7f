//! A client that asks one thing at a time.

use serde_json::{Value, json};
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

/// How long a round of a peer may take.
const PATIENCE: Duration = Duration::from_secs(15);

/// What a client and its child speak through. Node.js gives its children socket pairs, shells and
/// most others pipes.
#[derive(Debug, Clone, Copy)]
pub(super) enum Ends {
    Pipes,
    Sockets,
}

pub(super) struct Client {
    child: Child,
    input: File,
    output: BufReader<File>,
    asked: u64,
}

impl Ends {
    /// One to read from and one to write to.
    fn pair(self) -> io::Result<(OwnedFd, OwnedFd)> {
        match self {
            Self::Pipes => io::pipe().map(|(read, write)| (read.into(), write.into())),
            Self::Sockets => UnixStream::pair().map(|(one, other)| (one.into(), other.into())),
        }
    }
}

impl Client {
    pub(super) fn start(command: &mut Command) -> Result<Self, String> {
        Self::start_with(command, Ends::Pipes)
    }

    pub(super) fn start_with(command: &mut Command, ends: Ends) -> Result<Self, String> {
        let what = format!("cannot start {}", command.get_program().display());
        let failed = |error: io::Error| format!("{what}: {error}");
        let (their_input, input) = ends.pair().map_err(failed)?;
        let (output, their_output) = ends.pair().map_err(failed)?;
        command
            .stdin(their_input)
            .stdout(their_output)
            .stderr(Stdio::null());
        let child = command.spawn().map_err(failed)?;
        // The command holds the child's ends until something else takes their place.
        command.stdin(Stdio::null()).stdout(Stdio::null());
        Ok(Self {
            child,
            input: input.into(),
            output: BufReader::with_capacity(1 << 16, output.into()),
            asked: 0,
        })
    }

    pub(super) fn id(&self) -> u32 {
        self.child.id()
    }

    /// The two ends, for who writes and reads lines as they are.
    pub(super) fn pipes(&mut self) -> (&mut File, &mut BufReader<File>) {
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

    /// What the child holds in memory, in KiB; of a peer, what its whole tree does not is not counted.
    pub(super) fn resident(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.id()));
        let status = status.unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let size = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
        size.unwrap_or(0)
    }

    /// Does something that may hang: after a while the child is killed, and what hung fails.
    pub(super) fn patiently<T>(
        &mut self,
        work: impl FnOnce(&mut Self) -> Result<T, String>,
    ) -> Result<T, String> {
        let child = self.id().to_string();
        std::thread::scope(|scope| {
            let (done, wait) = std::sync::mpsc::channel::<()>();
            scope.spawn(move || {
                if wait.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
                    _ = Command::new("kill").args(["-9", &child]).status();
                }
            });
            let result = work(self);
            drop(done);
            result
        })
    }

    pub(super) fn end(mut self) -> Result<(), String> {
        drop(self.input);
        self.child.wait().map_err(|e| e.to_string())?;
        Ok(())
    }
}
