//! Lines from the engine.

use super::{Hop, NEWEST, Open, Phase, REVISIONS, Step, status};
use crate::envelope::{self, Envelope, Id, IdKey, Malformed, Shape};
use crate::long::LongLine;
use crate::policy::ToolPolicy;
use crate::traceparent::Traceparent;
use crate::wire::{self, Code};
use serde_json::json;
use std::borrow::Cow;

/// The longest name of a tool that a refusal repeats, in bytes.
const LONGEST_SAID: usize = 128;

/// The key of the request in a line that was read before.
pub(crate) fn request_key(line: &[u8]) -> Option<IdKey> {
    match envelope::read(line).ok()?.shape {
        Shape::Request { id, .. } => Some(id.key()),
        _ => None,
    }
}

impl Hop {
    /// A line of the engine's. `now` is the caller's clock in nanoseconds.
    pub fn from_engine(
        &mut self,
        line: &[u8],
        message: &Result<Envelope<'_>, Malformed>,
        now: u64,
    ) -> Step {
        let message = match message {
            Ok(message) => message,
            Err(malformed) => return Step::reply(Self::malformed(malformed)),
        };
        if message.ambiguous && self.restricts() {
            return self.refuse_ambiguous(message);
        }
        match &message.shape {
            Shape::Answer { .. } if self.is_live() => Step::as_is(),
            Shape::Answer { .. } => Step::default(),
            Shape::Notification { method } => self.engine_notifies(line, method, message.params),
            Shape::Request { id, method } => {
                let request = Request {
                    line,
                    id: *id,
                    method,
                    params: message.params,
                    now,
                };
                self.engine_asks(&request)
            }
        }
    }

    /// A line of the engine's that is over the limit: nothing of it is forwarded.
    pub fn long_from_engine(&mut self, long: &LongLine) -> Step {
        let why = "the message is over 4 MiB (4194304 bytes)";
        match (long.id(), long.has_method()) {
            (Some(id), true) => Step::reply(self.refusal(id, Code::TooLarge, why)),
            (Some(id), false) => Step {
                to_connector: vec![self.refusal(id, Code::TooLarge, why)],
                ..Step::default()
            },
            (None, _) => Step::reply(wire::refusal(&self.name, None, Code::TooLarge, why)),
        }
    }

    pub(super) fn refusal(&self, id: Id<'_>, code: Code, why: &str) -> Vec<u8> {
        wire::refusal(&self.name, Some(id.as_bytes()), code, why)
    }

    fn restricts(&self) -> bool {
        !matches!(&self.policy, Ok(policy) if policy.allows_all())
    }

    fn refuse_ambiguous(&self, message: &Envelope<'_>) -> Step {
        let why = "invalid request: a member's name differs from the protocol's in case only, or a carriage return stands inside the message";
        match message.shape {
            Shape::Request { id, .. } => {
                Step::reply(wire::error(Some(id.as_bytes()), -32600, why, None))
            }
            _ => Step::default(),
        }
    }

    fn engine_notifies(&mut self, line: &[u8], method: &str, params: Option<&[u8]>) -> Step {
        match method {
            "notifications/initialized" => self.handshake.initialized = Some(line.to_vec()),
            "notifications/cancelled" => self.cancel(params),
            // A server might run a call without an id: the policy holds for it too.
            "tools/call" if self.judge_call(params).is_err() => return Step::default(),
            _ => {}
        }
        if self.is_live() {
            Step::as_is()
        } else {
            Step::default()
        }
    }

    fn cancel(&mut self, params: Option<&[u8]>) {
        let id = params.and_then(|params| envelope::member(params, "requestId").ok().flatten());
        if let Some(id) = id.and_then(Id::read) {
            self.open.cancel(id);
        }
    }

    fn engine_asks(&mut self, request: &Request<'_>) -> Step {
        if request.method == "initialize" {
            self.handshake.initialize = Some(request.line.to_vec());
        }
        if !self.is_live() {
            return Step::reply(self.answer_absent(request));
        }
        if let Some(step) = self.answer_status(request) {
            return step;
        }
        let tool = match request.method {
            "tools/call" => match self.judge_call(request.params) {
                Ok(tool) => tool,
                Err(refusal) => return Step::reply(refusal.line(&self.name, request.id)),
            },
            _ => None,
        };
        self.open.insert(request.id.key(), request.open(tool));
        Step::as_is()
    }

    /// The tool that a call names, if the policy lets it pass.
    fn judge_call(&self, params: Option<&[u8]>) -> Result<Option<String>, Refusal> {
        let name = match params {
            Some(params) => envelope::member(params, "name").map_err(Refusal::Invalid)?,
            None => None,
        };
        let name = name.map(|name| envelope::text_of(name).into_owned());
        match (&self.policy, &name) {
            (Ok(policy), Some(tool)) if policy.allows(tool) => Ok(name),
            (Ok(policy), None) if policy.allows_all() => Ok(name),
            (Ok(_), tool) => Err(Refusal::Scope(self.not_allowed(tool.as_deref()))),
            (Err(reason), _) => Err(Refusal::Scope(format!("no tool is allowed: {reason}"))),
        }
    }

    /// Which file refuses what, and what allows it.
    fn not_allowed(&self, tool: Option<&str>) -> String {
        let file = format!("connectors/{}/{}", self.name, ToolPolicy::FILE);
        match tool {
            Some(tool) if tool.len() <= LONGEST_SAID => {
                format!(
                    r#"{file} does not allow {tool}; hint: to allow it, add it to "allow" there"#
                )
            }
            Some(_) => format!("{file} does not allow a tool of so long a name"),
            None => format!("{file} allows no call without a tool's name"),
        }
    }

    /// The answer to a request while there is no connector.
    fn answer_absent(&mut self, request: &Request<'_>) -> Vec<u8> {
        let id = request.id.as_bytes();
        match request.method {
            "initialize" => {
                self.handshake.answered = true;
                self.initialize_absent(id)
            }
            "ping" => wire::result(id, &json!({})),
            "tools/list" => wire::result(id, &json!({"tools": []})),
            "resources/list" => {
                wire::result(id, &json!({"resources": [status::resource(&self.name)]}))
            }
            "resources/templates/list" => wire::result(id, &json!({"resourceTemplates": []})),
            "resources/read" if request.names_status(&self.name) => self.read_status(id, &[]),
            "resources/subscribe" if request.names_status(&self.name) => {
                self.status.subscribed = true;
                wire::result(id, &json!({}))
            }
            "resources/unsubscribe" if request.names_status(&self.name) => {
                self.status.subscribed = false;
                wire::result(id, &json!({}))
            }
            _ => match self.absence() {
                Some(absence) => self.refusal(request.id, absence.code, &absence.reason),
                None => self.refusal(request.id, Code::Internal, "no connector is running"),
            },
        }
    }

    /// The answer to `initialize` while there is no connector, or when it ended before its own.
    pub(super) fn initialize_absent(&mut self, id: &[u8]) -> Vec<u8> {
        self.handshake.answered = true;
        let asked = self
            .handshake
            .initialize
            .as_deref()
            .and_then(asked_revision);
        let version = REVISIONS
            .into_iter()
            .find(|known| asked.as_deref() == Some(known));
        wire::result(
            id,
            &json!({
                "protocolVersion": version.unwrap_or(NEWEST),
                "capabilities": {"tools": {"listChanged": true}, "resources": {"subscribe": true}},
                "serverInfo": {"name": "sema-connector", "version": self.version},
            }),
        )
    }

    /// Requests for the status resource, and for resources where the connector has none.
    fn answer_status(&mut self, request: &Request<'_>) -> Option<Step> {
        let id = request.id.as_bytes();
        let own = request.names_status(&self.name);
        let line = match request.method {
            "resources/read" if own => {
                self.status.reads.push(request.open(None));
                return Some(self.ask_for_tools());
            }
            "resources/subscribe" | "resources/unsubscribe" if own => {
                self.status.subscribed = request.method == "resources/subscribe";
                wire::result(id, &json!({}))
            }
            _ if self.handshake.resources => return None,
            "resources/list" => {
                wire::result(id, &json!({"resources": [status::resource(&self.name)]}))
            }
            "resources/templates/list" => wire::result(id, &json!({"resourceTemplates": []})),
            "resources/read" | "resources/subscribe" | "resources/unsubscribe" => {
                wire::error(Some(id), -32002, "resource not found", None)
            }
            _ => return None,
        };
        Some(Step::reply(line))
    }

    /// The engine's handshake is over: from live to revived and back nothing else is told here.
    pub(super) fn revived(&mut self) -> Step {
        self.phase = Phase::Live;
        let mut step = Step::default();
        if let Some(line) = self.handshake.initialized.clone() {
            step.to_connector.push(line);
            step.to_engine = self.tools_changed();
        }
        step
    }
}

/// A request of the engine's.
struct Request<'a> {
    line: &'a [u8],
    id: Id<'a>,
    method: &'a str,
    params: Option<&'a [u8]>,
    now: u64,
}

impl Request<'_> {
    fn open(&self, tool: Option<String>) -> Open {
        Open {
            id: self.id.as_bytes().to_vec(),
            method: self.method.to_owned(),
            tool,
            started: self.now,
            bytes: self.line.len(),
            traceparent: Traceparent::of_request(self.line, self.params),
            cancelled: false,
            first_page: self.method == "resources/list" && !self.has("cursor"),
        }
    }

    fn has(&self, name: &'static str) -> bool {
        self.params
            .is_some_and(|params| envelope::member(params, name) != Ok(None))
    }

    /// Whether its `uri` is that of the status resource.
    fn names_status(&self, name: &crate::name::ConnectorName) -> bool {
        let uri = self
            .params
            .and_then(|params| envelope::member(params, "uri").ok().flatten());
        uri.map(envelope::text_of)
            .is_some_and(|uri: Cow<'_, str>| uri == status::uri(name))
    }
}

/// Why a call is not forwarded.
enum Refusal {
    Scope(String),
    Invalid(envelope::Why),
}

impl Refusal {
    fn line(&self, connector: &crate::name::ConnectorName, id: Id<'_>) -> Vec<u8> {
        let id = Some(id.as_bytes());
        match self {
            Self::Scope(why) => wire::refusal(connector, id, Code::ForbiddenScope, why),
            Self::Invalid(why) => wire::error(id, why.code(), &why.to_string(), None),
        }
    }
}

/// The revision that an `initialize` asks for.
fn asked_revision(line: &[u8]) -> Option<String> {
    let params = envelope::read(line).ok()?.params?;
    let version = envelope::member(params, "protocolVersion").ok()??;
    Some(envelope::text_of(version).into_owned())
}
