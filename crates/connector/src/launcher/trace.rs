//! The trace of one launch: a line of JSON for each request that ended, in files of its own below
//! `trace/`. Arguments and results are in it only with `SEMA_TRACE_CONTENT=on`, and a text of them
//! that carries a secret never is.
//!
//! A trace that cannot be written never stops a call: that is said once, and the lines lost are
//! counted and told at the end. A call only leaves a record; lines are made of many at once.

mod ids;
mod span;

use crate::cli::{env, output};
use ids::Ids;
use sema_rules::hop::Ended;
use sema_rules::name::{ConnectorName, Handle};
use sema_vault::ConnectorDir;
use sema_vault::journal::Journal;
use span::{CONTENT, Launch, Record};
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

pub(super) use span::More;

/// The variable that lets arguments and results into the trace, where it is `on`.
pub(super) const CONTENT_VARIABLE: &str = "SEMA_TRACE_CONTENT";
/// How many records are gathered before they are written.
const GATHERED: usize = 128;
/// Of how many open calls the arguments are kept.
const CALLS: usize = 128;

/// Whether arguments and results are traced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Content {
    On,
    Off,
}

/// The trace of a launch.
pub(super) struct Trace {
    name: ConnectorName,
    launch: String,
    trace_id: String,
    content: Content,
    began: Instant,
    began_unix: Duration,
    state: Mutex<State>,
}

struct State {
    journal: Option<Journal>,
    pending: Vec<Record>,
    /// The arguments of open calls by when they came and their id.
    arguments: VecDeque<(u64, Vec<u8>, String)>,
    version: Option<String>,
    ids: Ids,
    said: bool,
    lost: u64,
    noise: u64,
}

/// Begins the trace of a session, in the connector's `trace/`.
pub(super) fn open(dir: &ConnectorDir, name: &ConnectorName) -> Trace {
    let folder = dir.dir().create_sub("trace").inspect_err(|error| {
        output::say(&format!("sema-connector: no trace is written: {error}"));
    });
    let content = match env::var(CONTENT_VARIABLE) {
        Some(value) if value == "on" => Content::On,
        _ => Content::Off,
    };
    Trace::new(name.clone(), folder.ok().map(Journal::new), content)
}

impl Trace {
    /// A trace that goes to `journal`, or is counted as lost where there is none.
    pub(super) fn new(name: ConnectorName, journal: Option<Journal>, content: Content) -> Self {
        let began_unix = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        let mut ids = Ids::new();
        Self {
            name,
            launch: journal
                .as_ref()
                .map_or_else(String::new, |journal| journal.id().to_owned()),
            trace_id: ids.hex(16),
            content,
            began: Instant::now(),
            began_unix,
            state: Mutex::new(State {
                journal,
                pending: Vec::new(),
                arguments: VecDeque::new(),
                version: None,
                ids,
                said: false,
                lost: 0,
                noise: 0,
            }),
        }
    }

    /// Nanoseconds since the trace began.
    pub(super) fn now(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// The connector's name.
    pub(super) fn connector(&self) -> &str {
        self.name.as_str()
    }

    /// Whether arguments and results are wanted.
    pub(super) fn wants_content(&self) -> bool {
        self.content == Content::On
    }

    /// Keeps the arguments of a call until it ends.
    pub(super) fn arguments(&self, id: &[u8], started: u64, text: String) {
        let mut state = self.lock();
        if state.arguments.len() >= CALLS {
            state.arguments.pop_front();
        }
        state.arguments.push_back((started, id.to_vec(), text));
    }

    /// Notes the revision that the two sides agreed on.
    pub(super) fn version(&self, version: &str) {
        self.lock().version = Some(span::cut(version, 32).to_owned());
    }

    /// Notes a request that ended now, with the code of its answer where that is an error.
    pub(super) fn ended(&self, ended: Ended, code: Option<String>, more: More) {
        let now = self.now();
        let mut state = self.lock();
        let arguments = state.take_arguments(&ended);
        state.pending.push(Record {
            ended,
            now,
            code,
            more: More {
                arguments: more.arguments.or(arguments),
                ..more
            },
        });
        if state.pending.len() >= GATHERED || self.wants_content() {
            self.write(&mut state);
        }
    }

    /// Counts a line that was dropped because it was no message.
    pub(super) fn noise(&self) {
        self.lock().noise += 1;
    }

    /// Writes what was gathered.
    pub(super) fn flush(&self) {
        self.write(&mut self.lock());
    }

    /// How many lines of the connector were dropped, and how many trace lines were lost.
    pub(super) fn counts(&self) -> (u64, u64) {
        let state = self.lock();
        (state.noise, state.lost)
    }

    fn write(&self, state: &mut State) {
        let records = std::mem::take(&mut state.pending);
        if records.is_empty() {
            return;
        }
        let Some(journal) = &mut state.journal else {
            state.lost += records.len() as u64;
            return;
        };
        let launch = Launch {
            connector: self.name.as_str(),
            id: &self.launch,
            trace_id: &self.trace_id,
            version: state.version.as_deref(),
            began: self.began_unix,
        };
        let mut lines = Vec::new();
        for record in &records {
            span::write(record, &launch, &mut state.ids, &mut lines);
        }
        if let Err(error) = journal.append(&lines) {
            state.lost += records.len() as u64;
            if !std::mem::replace(&mut state.said, true) {
                output::say(&format!(
                    "sema-connector: the trace is not complete, the calls go on: {error}"
                ));
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn take_arguments(&mut self, ended: &Ended) -> Option<String> {
        let at = self
            .arguments
            .iter()
            .position(|(started, id, _)| *started == ended.started && *id == ended.id)?;
        self.arguments.remove(at).map(|(_, _, text)| text)
    }
}

/// A text for the trace: its beginning, or only the handle of the secret that it carries.
pub(super) fn content(text: &[u8], withheld: Option<Handle>) -> String {
    match withheld {
        Some(handle) => format!("[withheld:{handle}]"),
        None => span::cut(&String::from_utf8_lossy(text), CONTENT).to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sema_rules::hop::Outcome;
    use sema_rules::traceparent::Traceparent;
    use sema_rules::wire::Code;
    use sema_vault::Dir;

    fn ended(outcome: Outcome) -> Ended {
        Ended {
            method: "tools/call".into(),
            tool: Some("browser_click".into()),
            id: b"\"x\\u0041\"".to_vec(),
            started: 5,
            request_bytes: 10,
            answer_bytes: 20,
            outcome,
            traceparent: Traceparent::parse(
                "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            ),
            uri: None,
        }
    }

    fn traced(content: Content, note: impl Fn(&Trace)) -> serde_json::Value {
        let disk = tempfile::tempdir().unwrap();
        let dir = Dir::create_private(&disk.path().join("trace")).unwrap();
        let journal = Journal::new(dir.reopen().unwrap());
        let name = ConnectorName::parse("browser").unwrap();
        let trace = Trace::new(name, Some(journal), content);
        note(&trace);
        trace.flush();
        assert_eq!(trace.counts(), (0, 0));
        let file = sema_vault::journal::names(&dir).unwrap().remove(0);
        let (line, _) = sema_vault::journal::read_from(&dir, &file, 0).unwrap();
        serde_json::from_slice(&line).unwrap()
    }

    #[test]
    fn a_span_names_what_was_called_and_how_it_ended() {
        let span = traced(Content::Off, |trace| {
            trace.version("2025-11-25");
            let refused = Outcome::Refused(Code::Internal);
            trace.ended(ended(refused), None, More::default());
        });
        assert_eq!(span["name"], "tools/call browser_click");
        assert_eq!(span["traceId"], "4bf92f3577b34da6a3ce929d0e0e4736");
        assert_eq!(span["parentSpanId"], "00f067aa0ba902b7");
        assert_eq!(span["status"], "ERROR");
        let attributes = &span["attributes"];
        assert_eq!(attributes["error.type"], "-32014");
        assert_eq!(attributes["rpc.response.status_code"], "-32014");
        assert_eq!(attributes["sema.error"], "connector.internal");
        assert_eq!(attributes["jsonrpc.request.id"], "xA");
        assert_eq!(attributes["mcp.protocol.version"], "2025-11-25");
    }

    #[test]
    fn arguments_find_their_call() {
        let span = traced(Content::On, |trace| {
            trace.arguments(b"1", 5, "other".into());
            trace.arguments(b"\"x\\u0041\"", 5, "mine".into());
            trace.ended(ended(Outcome::ToolError), None, More::default());
        });
        assert_eq!(span["attributes"]["gen_ai.tool.call.arguments"], "mine");
        assert_eq!(span["attributes"]["error.type"], "tool_error");
    }

    #[test]
    fn what_cannot_be_written_is_counted() {
        let name = ConnectorName::parse("browser").unwrap();
        let trace = Trace::new(name, None, Content::Off);
        for _ in 0..200 {
            trace.ended(ended(Outcome::Result), None, More::default());
        }
        trace.flush();
        assert_eq!(trace.counts(), (0, 200));
    }

    #[test]
    fn a_long_text_is_cut_at_a_character() {
        let text = "é".repeat(CONTENT);
        assert_eq!(content(text.as_bytes(), None).len(), CONTENT);
        let odd = format!("x{text}");
        assert_eq!(content(odd.as_bytes(), None).len(), CONTENT - 1);
        let token = Handle::parse("TOKEN").unwrap();
        assert_eq!(content(b"secret", Some(token)), "[withheld:TOKEN]");
    }
}
