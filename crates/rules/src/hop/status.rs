//! The status resource: `sema-connector://NAME/status`.

use super::{Hop, Open, Outcome, Phase, Step};
use crate::edit;
use crate::envelope::{Envelope, Id};
use crate::json as reader;
use crate::name::ConnectorName;
use crate::wire;
use serde_json::{Value, json};

/// The most pages of tools that are asked for: a connector whose pages never end is not followed.
const PAGES: usize = 64;

/// The state behind the resource.
#[derive(Debug, Default)]
pub(super) struct Status {
    /// The engine subscribed to it.
    pub(super) subscribed: bool,
    /// The reads that wait for the list of tools.
    pub(super) reads: Vec<Open>,
    /// Our own `tools/list` on its way: its id, and the names so far.
    asking: Option<Asking>,
    /// How many lists were asked for.
    count: u64,
}

/// The most of their names that is kept, in bytes, before no further page is asked for.
const NAMES: usize = 1024 * 1024;

#[derive(Debug)]
struct Asking {
    id: String,
    tools: Vec<String>,
    pages: usize,
}

/// The resource's address.
pub(crate) fn uri(name: &ConnectorName) -> String {
    format!("sema-connector://{name}/status")
}

/// The resource's entry in a list.
pub(super) fn resource(name: &ConnectorName) -> Value {
    json!({
        "uri": uri(name),
        "name": "status",
        "description": format!("Whether the connector {name} can be used, and its tools."),
        "mimeType": "application/json",
    })
}

impl Status {
    /// Whether this answers a request of ours.
    pub(super) fn asked(&self, id: Id<'_>) -> bool {
        let ours = self
            .asking
            .as_ref()
            .map(|asking| format!("\"{}\"", asking.id));
        ours.is_some_and(|ours| ours.as_bytes() == id.as_bytes())
    }

    /// The notification for a subscriber.
    pub(super) fn updated(&self, name: &ConnectorName) -> Option<Vec<u8>> {
        self.subscribed.then(|| {
            let params = json!({"uri": uri(name)});
            let method = "notifications/resources/updated";
            let line = json!({"jsonrpc": "2.0", "method": method, "params": params});
            format!("{line}\n").into_bytes()
        })
    }

    fn request(&mut self, cursor: Option<&[u8]>) -> Vec<u8> {
        self.count += 1;
        let id = format!("sema-connector:tools:{}", self.count);
        let cursor = cursor.map(|cursor| [br#","params":{"cursor":"#, cursor, b"}"].concat());
        let line = [
            format!(r#"{{"jsonrpc":"2.0","id":"{id}","method":"tools/list""#).as_bytes(),
            &cursor.unwrap_or_default(),
            b"}\n",
        ]
        .concat();
        let asking = self.asking.get_or_insert(Asking {
            id: String::new(),
            tools: Vec::new(),
            pages: 0,
        });
        asking.id = id;
        asking.pages += 1;
        line
    }
}

impl Hop {
    /// The status as one line of JSON, with these tools if there is a connector.
    pub(super) fn status_text(&self, tools: &[String]) -> String {
        match (&self.phase, &self.policy) {
            (Phase::Absent(absence) | Phase::Reviving(absence, _), _)
                if absence.code == wire::Code::Unauthorized =>
            {
                json!({"state": "unauthorized", "tools": []}).to_string()
            }
            (Phase::Absent(absence) | Phase::Reviving(absence, _), _) => {
                json!({"state": "failed", "tools": [], "reason": absence.reason}).to_string()
            }
            (Phase::Live, Err(reason)) => {
                json!({"state": "failed", "tools": [], "reason": reason}).to_string()
            }
            (Phase::Live, Ok(policy)) => {
                let tools: Vec<&String> = tools.iter().filter(|tool| policy.allows(tool)).collect();
                json!({"state": "authorized", "tools": tools}).to_string()
            }
        }
    }

    /// The answer to a read of the status resource.
    pub(super) fn read_status(&self, id: &[u8], tools: &[String]) -> Vec<u8> {
        let text = self.status_text(tools);
        let contents =
            json!([{"uri": uri(&self.name), "mimeType": "application/json", "text": text}]);
        wire::result(id, &json!({"contents": contents}))
    }

    /// Asks the connector for its tools, unless that is under way.
    pub(super) fn ask_for_tools(&mut self) -> Step {
        match self.status.asking {
            Some(_) => Step::default(),
            None => Step {
                to_connector: vec![self.status.request(None)],
                ..Step::default()
            },
        }
    }

    /// A page of the tools that we asked for.
    pub(super) fn tools_told(&mut self, message: &Envelope<'_>) -> Step {
        let (names, cursor) = edit::tool_names(message).unwrap_or_default();
        let mut more = false;
        if let Some(asking) = &mut self.status.asking {
            asking.tools.extend(names);
            let bytes: usize = asking.tools.iter().map(String::len).sum();
            more = asking.pages < PAGES && bytes < NAMES;
        }
        match cursor {
            Some(cursor) if more && reader::value(cursor).is_ok() => Step {
                to_connector: vec![self.status.request(Some(cursor))],
                ..Step::default()
            },
            _ => self.tools_untold(),
        }
    }

    /// There is no further page, or none that can be told: the reads are answered with what is
    /// known.
    pub(super) fn tools_untold(&mut self) -> Step {
        let mut step = Step::default();
        self.answer_status_reads(&mut step);
        step
    }

    /// Answers every read that waits.
    pub(super) fn answer_status_reads(&mut self, step: &mut Step) {
        let tools = self
            .status
            .asking
            .take()
            .map(|asking| asking.tools)
            .unwrap_or_default();
        for open in std::mem::take(&mut self.status.reads) {
            let line = self.read_status(&open.id, &tools);
            let mut ended = open.end(line.len(), Outcome::Result);
            ended.uri = Some(uri(&self.name));
            step.answered.push(ended);
            step.to_engine.push(line);
        }
    }
}
