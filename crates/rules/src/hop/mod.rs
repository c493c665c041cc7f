//! The hop between an engine and a connector, as a function: lines in, what to send out. It holds
//! the state of one session and knows nothing of descriptors, threads or time.
//!
//! A message that no stage changes is forwarded as it came (`Forward::AsIs`): the caller sends the
//! very slice it read. Stages, in order: normalize (`Malformed`), scope (the tool policy), status
//! (the launcher's own resource), withhold (told by the caller, who searched the line).

mod connector;
mod engine;
mod open;
pub(crate) mod status;

use crate::envelope::{IdKey, Malformed};
use crate::name::ConnectorName;
use crate::policy::ToolPolicy;
use crate::wire::{self, Code};
pub(crate) use engine::request_key;
pub use open::{Ended, Outcome};
use open::{Open, OpenRequests};

/// The newest handshake revision, offered to a client that asks for one we do not know.
pub(crate) const NEWEST: &str = "2025-11-25";
/// The handshake revisions that a parked session answers for.
pub(crate) const REVISIONS: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", NEWEST];

/// What becomes of the line that was read.
#[derive(Debug, Default, PartialEq, Eq)]
pub enum Forward {
    /// Sent on, byte for byte.
    AsIs,
    /// This line is sent on instead.
    Replaced(Vec<u8>),
    /// Nothing is sent on.
    #[default]
    Nothing,
}

/// What to do after one line.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Step {
    /// What the other side gets of the line.
    pub forward: Forward,
    /// Lines of ours for the engine, sent after the forwarded one.
    pub to_engine: Vec<Vec<u8>>,
    /// Lines of ours for the connector, sent after the forwarded one.
    pub to_connector: Vec<Vec<u8>>,
    /// A request that has been answered.
    pub ended: Option<Ended>,
    /// Requests that waited for the connector and were answered here.
    pub answered: Vec<Ended>,
    /// The line was no message, or an answer nobody waits for: dropped, to be counted.
    pub noise: bool,
}

impl Step {
    pub(crate) fn as_is() -> Self {
        Self {
            forward: Forward::AsIs,
            ..Self::default()
        }
    }

    pub(crate) fn reply(line: Vec<u8>) -> Self {
        Self {
            to_engine: vec![line],
            ..Self::default()
        }
    }

    fn noise() -> Self {
        Self {
            noise: true,
            ..Self::default()
        }
    }
}

/// Why there is no connector behind the hop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Absence {
    /// The code of every error until it is there.
    pub code: Code,
    /// What is the matter and how to mend it, in plain words.
    pub reason: String,
}

/// Whether there is a connector behind the hop.
#[derive(Debug)]
enum Phase {
    /// A required handle is missing, or the connector ended: we answer ourselves.
    Absent(Absence),
    /// The connector was started after the engine's handshake, which is being repeated to it.
    Reviving(Absence, IdKey),
    /// Messages pass.
    Live,
}

/// How far a handshake is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    /// Not begun, or refused by the connector.
    None,
    /// `initialize` waits for its answer.
    Asked,
    /// `initialize` was answered.
    Answered,
    /// `notifications/initialized` was sent.
    Initialized,
}

/// The state of one session.
#[derive(Debug)]
pub struct Hop {
    name: ConnectorName,
    version: &'static str,
    phase: Phase,
    policy: Result<ToolPolicy, String>,
    open: OpenRequests,
    handshake: Handshake,
    status: status::Status,
}

/// What the engine and the connector said when they met.
#[derive(Debug, Default)]
struct Handshake {
    /// The engine's `initialize`, as it came.
    initialize: Option<Vec<u8>>,
    /// The engine's `notifications/initialized`, as it came.
    initialized: Option<Vec<u8>>,
    /// The engine has an answer to its `initialize`.
    answered: bool,
    /// What the connector answered to `initialize`: the value of `result`.
    said: Option<Vec<u8>>,
    /// The connector has resources of its own.
    resources: bool,
}

impl Hop {
    /// A session with no connector yet. `version` is ours, for the parked `serverInfo`.
    pub fn new(
        name: ConnectorName,
        version: &'static str,
        policy: Result<ToolPolicy, String>,
        absence: Absence,
    ) -> Self {
        Self {
            name,
            version,
            phase: Phase::Absent(absence),
            policy,
            open: OpenRequests::default(),
            handshake: Handshake::default(),
            status: status::Status::default(),
        }
    }

    /// A connector was started: what it must be sent before anything else.
    pub fn connector_started(&mut self) -> Step {
        let absence = match std::mem::replace(&mut self.phase, Phase::Live) {
            Phase::Absent(absence) | Phase::Reviving(absence, _) => absence,
            Phase::Live => return Step::default(),
        };
        let (Some(line), true) = (&self.handshake.initialize, self.handshake.answered) else {
            return Step::default();
        };
        let line = line.clone();
        if let Some(key) = engine::request_key(&line) {
            self.phase = Phase::Reviving(absence, key);
        }
        Step {
            to_connector: vec![line],
            ..Step::default()
        }
    }

    /// The connector ended or could not be started: every open request gets its error, and the
    /// session goes on without it.
    pub fn connector_ended(&mut self, absence: Absence) -> Step {
        let was_live = matches!(self.phase, Phase::Live);
        self.phase = Phase::Absent(absence.clone());
        self.handshake.resources = false;
        self.handshake.said = None;
        let mut step = Step::default();
        for open in self.open.drain() {
            let line = match open.method.as_str() {
                "initialize" => self.initialize_absent(&open.id),
                _ => wire::refusal(&self.name, Some(&open.id), absence.code, &absence.reason),
            };
            let outcome = match open.method.as_str() {
                "initialize" => Outcome::Result,
                _ => Outcome::Refused(absence.code),
            };
            step.answered.push(open.end(line.len(), outcome));
            step.to_engine.push(line);
        }
        self.answer_status_reads(&mut step);
        if was_live && self.handshake.initialized.is_some() {
            step.to_engine.extend(self.tools_changed());
        }
        step
    }

    /// The connector could not be started for want of something else than before.
    pub fn absent_because(&mut self, absence: Absence) {
        if let Phase::Absent(now) = &mut self.phase {
            *now = absence;
        }
    }

    /// The policy file changed. The engine is told of other tools only where others are allowed.
    pub fn policy_changed(&mut self, policy: Result<ToolPolicy, String>) -> Step {
        if self.policy == policy || self.handshake.initialized.is_none() {
            self.policy = policy;
            return Step::default();
        }
        let before = std::mem::replace(&mut self.policy, policy);
        let none = ToolPolicy::none();
        let to_engine = if before.as_ref().unwrap_or(&none) == self.policy.as_ref().unwrap_or(&none)
        {
            Vec::from_iter(self.status.updated(&self.name))
        } else {
            self.tools_changed()
        };
        Step {
            to_engine,
            ..Step::default()
        }
    }

    /// Whether messages pass to a connector.
    pub fn is_live(&self) -> bool {
        matches!(self.phase, Phase::Live)
    }

    /// How far the handshake is.
    pub(crate) fn handshake(&self) -> Progress {
        match (&self.handshake.initialize, self.handshake.answered) {
            (_, true) if self.handshake.initialized.is_some() => Progress::Initialized,
            (_, true) => Progress::Answered,
            (Some(_), false) => Progress::Asked,
            (None, false) => Progress::None,
        }
    }

    /// What the connector that runs said of itself: the result of its `initialize`.
    pub(crate) fn said(&self) -> Option<&[u8]> {
        self.handshake.said.as_deref()
    }

    /// The connector's name.
    pub(crate) fn name(&self) -> &ConnectorName {
        &self.name
    }

    /// Our own version.
    pub(crate) fn version(&self) -> &'static str {
        self.version
    }

    /// The requests that the engine waits for.
    pub fn open_requests(&self) -> usize {
        self.open.len()
    }

    /// The absence that the engine is answered with, if there is no connector.
    fn absence(&self) -> Option<&Absence> {
        match &self.phase {
            Phase::Absent(absence) | Phase::Reviving(absence, _) => Some(absence),
            Phase::Live => None,
        }
    }

    /// What tells the engine that its view of the tools, and so of the status, is old.
    fn tools_changed(&self) -> Vec<Vec<u8>> {
        let mut lines = vec![wire::notification("notifications/tools/list_changed")];
        lines.extend(self.status.updated(&self.name));
        lines
    }

    fn malformed(malformed: &Malformed) -> Vec<u8> {
        wire::error(
            malformed.id.as_deref(),
            malformed.why.code(),
            &malformed.to_string(),
            None,
        )
    }
}

#[cfg(test)]
mod tests;
