//! The trace of one launch: a line of JSON for each request that ended, in a file of its own below
//! `trace/`, by the names of OpenTelemetry's semantic conventions for MCP. Arguments and results
//! are never in it.
//!
//! A trace that cannot be written never stops a call: the lines lost are counted and told at the
//! end.

use crate::cli::output;
use rustix::io::Errno;
use sema_rules::hop::{Ended, Outcome};
use sema_rules::name::ConnectorName;
use sema_vault::{ConnectorDir, VaultError};
use std::borrow::Cow;
use std::os::fd::OwnedFd;
use std::sync::Mutex;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// How many files of earlier launches are kept.
const FILES: usize = 64;
/// How much is gathered before it is written.
const BUFFER: usize = 16 * 1024;

/// The trace file of a launch.
pub(super) struct Trace {
    name: ConnectorName,
    began: Instant,
    began_unix: Duration,
    state: Mutex<State>,
}

struct State {
    file: Option<OwnedFd>,
    buffer: Vec<u8>,
    pending: u64,
    lost: u64,
    noise: u64,
}

/// Begins the trace of a session, in a new file of the connector's `trace/`.
pub(super) fn open(dir: &ConnectorDir, name: &ConnectorName) -> Trace {
    let file = create(dir).inspect_err(|error| {
        output::say(&format!("sema-connector: no trace is written: {error}"));
    });
    Trace::new(name.clone(), file.ok())
}

fn create(dir: &ConnectorDir) -> Result<OwnedFd, VaultError> {
    let folder = dir.dir().create_sub("trace")?;
    let names = folder.names()?;
    for old in names.iter().take((names.len() + 1).saturating_sub(FILES)) {
        folder.remove(old)?;
    }
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    folder.create_file(format!(
        "{:013}-{}.jsonl",
        now.as_millis(),
        std::process::id()
    ))
}

/// One line of the trace.
#[derive(serde::Serialize)]
struct Span<'s> {
    name: Cow<'s, str>,
    kind: &'static str,
    #[serde(rename = "startTimeUnixNano")]
    start: String,
    #[serde(rename = "endTimeUnixNano")]
    end: String,
    attributes: Attributes<'s>,
}

#[derive(serde::Serialize)]
struct Attributes<'s> {
    #[serde(rename = "mcp.method.name")]
    method: &'s str,
    #[serde(rename = "jsonrpc.request.id")]
    id: &'s str,
    #[serde(rename = "network.transport")]
    transport: &'static str,
    #[serde(rename = "sema.connector")]
    connector: &'s str,
    #[serde(rename = "sema.request.bytes")]
    request_bytes: usize,
    #[serde(rename = "sema.answer.bytes")]
    answer_bytes: usize,
    #[serde(rename = "gen_ai.tool.name", skip_serializing_if = "Option::is_none")]
    tool: Option<&'s str>,
    #[serde(
        rename = "gen_ai.operation.name",
        skip_serializing_if = "Option::is_none"
    )]
    operation: Option<&'static str>,
    #[serde(rename = "error.type", skip_serializing_if = "Option::is_none")]
    error: Option<&'static str>,
}

impl Trace {
    /// A trace that is written to `file`, or counted as lost where there is none.
    pub(super) fn new(name: ConnectorName, file: Option<OwnedFd>) -> Self {
        let began_unix = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        let state = State {
            file,
            buffer: Vec::new(),
            pending: 0,
            lost: 0,
            noise: 0,
        };
        Self {
            name,
            began: Instant::now(),
            began_unix,
            state: Mutex::new(state),
        }
    }

    /// Nanoseconds since the trace began.
    pub(super) fn now(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// Notes a request that ended now.
    pub(super) fn ended(&self, ended: &Ended) {
        let now = self.now();
        let mut state = self.lock();
        self.line(ended, now, &mut state.buffer);
        state.pending += 1;
        if state.buffer.len() >= BUFFER {
            state.write();
        }
    }

    /// Counts a line that was dropped because it was no message.
    pub(super) fn noise(&self) {
        self.lock().noise += 1;
    }

    /// Writes what was gathered.
    pub(super) fn flush(&self) {
        self.lock().write();
    }

    /// How many lines of the connector were dropped, and how many trace lines were lost.
    pub(super) fn counts(&self) -> (u64, u64) {
        let state = self.lock();
        (state.noise, state.lost)
    }

    /// Appends the line of a request that ended at `now`.
    fn line(&self, ended: &Ended, now: u64, out: &mut Vec<u8>) {
        let name = match &ended.tool {
            Some(tool) => Cow::Owned(format!("{} {tool}", ended.method)),
            None => Cow::Borrowed(ended.method.as_str()),
        };
        let at = |offset| self.began_unix + Duration::from_nanos(offset);
        let id = String::from_utf8_lossy(&ended.id);
        let span = Span {
            name,
            kind: "SERVER",
            start: at(ended.started).as_nanos().to_string(),
            end: at(now).as_nanos().to_string(),
            attributes: Attributes {
                method: &ended.method,
                id: id.trim_matches('"'),
                transport: "pipe",
                connector: self.name.as_str(),
                request_bytes: ended.request_bytes,
                answer_bytes: ended.answer_bytes,
                tool: ended.tool.as_deref(),
                operation: ended.tool.is_some().then_some("execute_tool"),
                error: match ended.outcome {
                    Outcome::Result => None,
                    Outcome::ToolError => Some("tool_error"),
                    Outcome::Error => Some("error"),
                    Outcome::Refused(code) => Some(code.name()),
                },
            },
        };
        // A vector takes every byte.
        _ = serde_json::to_writer(&mut *out, &span);
        out.push(b'\n');
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl State {
    fn write(&mut self) {
        let written = match &self.file {
            Some(file) => write_all(file, &self.buffer),
            None => self.buffer.is_empty(),
        };
        if !written {
            self.lost += self.pending;
        }
        self.pending = 0;
        self.buffer.clear();
    }
}

fn write_all(file: &OwnedFd, mut bytes: &[u8]) -> bool {
    while !bytes.is_empty() {
        match rustix::io::write(file, bytes) {
            Ok(count) => bytes = &bytes[count..],
            Err(Errno::INTR) => {}
            Err(_) => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use sema_rules::wire::Code;

    #[test]
    fn a_span_names_what_was_called_and_how_it_ended() {
        let name = ConnectorName::parse("browser").unwrap();
        let trace = Trace::new(name, None);
        let ended = Ended {
            method: "tools/call".into(),
            tool: Some("browser_click".into()),
            id: b"\"x\"".to_vec(),
            started: 5,
            request_bytes: 10,
            answer_bytes: 20,
            outcome: Outcome::Refused(Code::Internal),
        };
        let mut line = Vec::new();
        trace.line(&ended, 9, &mut line);
        let line: serde_json::Value = serde_json::from_slice(&line).unwrap();
        assert_eq!(line["name"], "tools/call browser_click");
        assert_eq!(line["attributes"]["error.type"], "connector.internal");
        assert_eq!(line["attributes"]["jsonrpc.request.id"], "x");
        trace.ended(&ended);
        trace.flush();
        assert_eq!(trace.counts(), (0, 1));
    }
}
