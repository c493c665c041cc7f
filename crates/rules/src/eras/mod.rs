//! Both eras of MCP in front of a connector that speaks the handshake era.
//!
//! A modern request (revision 2026-07-28) declares its version and the client's capabilities
//! itself. It is written as the handshake era writes it, under an id of ours, and handed to the
//! [`Hop`] like any line of the engine's: so the policy, the status, parking and withholding hold
//! for both eras. What the hop has for the engine under an id of ours is written back. The
//! handshake with the connector is ours, with the capabilities of the client's first request,
//! unless the engine has shaken hands itself: both eras may be used at once.
//!
//! Lines of the handshake era pass to the hop and back as they are.

mod answer;
mod asked;
mod calls;
mod listen;
mod question;
mod request;
mod told;

use crate::envelope::{self, Envelope, Id, Malformed, Shape};
use crate::hop::{Absence, Forward, Hop, Step};
use crate::long::LongLine;
use crate::name::Handle;
use crate::policy::ToolPolicy;
use crate::wire;
use calls::Calls;
use listen::Listener;
use question::Question;
use request::Level;

/// The state of one session, in either era.
#[derive(Debug)]
pub struct Eras {
    hop: Hop,
    /// Makes names that cannot be guessed.
    tokens: fn() -> Option<String>,
    /// A modern request has come.
    modern: bool,
    /// The engine has sent an `initialize` itself.
    handshake_client: bool,
    calls: Calls,
    /// Modern requests that wait for the handshake, and when they came.
    waiting: Vec<(Vec<u8>, u64)>,
    held: Vec<Question>,
    listeners: Vec<Listener>,
    /// The level of log messages that the connector was asked for.
    log: Option<Level>,
}

/// A request of the engine's.
struct Request<'a> {
    line: &'a [u8],
    id: Id<'a>,
    method: &'a str,
    params: Option<&'a [u8]>,
    now: u64,
}

impl Eras {
    /// A session. `tokens` makes a name that cannot be guessed, a new one each time,
    /// or none where the machine has no randomness.
    pub fn new(hop: Hop, tokens: fn() -> Option<String>) -> Self {
        Self {
            hop,
            tokens,
            modern: false,
            handshake_client: false,
            calls: Calls::default(),
            waiting: Vec::new(),
            held: Vec::new(),
            listeners: Vec::new(),
            log: None,
        }
    }

    /// A line of the engine's. `now` is the caller's clock in nanoseconds.
    pub fn from_engine(
        &mut self,
        line: &[u8],
        message: &Result<Envelope<'_>, Malformed>,
        now: u64,
    ) -> Step {
        match message.as_ref().map(|message| (&message.shape, message)) {
            Ok((Shape::Request { id, .. }, _)) if request::is_own(*id) => {
                let why = "invalid request: an id must not begin with \"sema-connector:\"";
                return Step::reply(wire::error(Some(id.as_bytes()), -32600, why, None));
            }
            Ok((Shape::Request { id, method }, message)) => {
                if request::is_modern(method, message.params) {
                    let request = Request {
                        line,
                        id: *id,
                        method,
                        params: message.params,
                        now,
                    };
                    return self.modern_request(&request);
                }
                self.handshake_client |= method == "initialize";
            }
            Ok((Shape::Notification { method }, message))
                if self.modern && method == "notifications/cancelled" =>
            {
                if let Some(step) = self.cancelled(line, message.params) {
                    return step;
                }
            }
            _ => {}
        }
        let mut step = self.hop.from_engine(line, message, now);
        // Ours may have waited for the engine's own handshake.
        self.settle(&mut step);
        step
    }

    /// A line of the engine's that is over the limit: nothing of it is forwarded.
    pub fn long_from_engine(&mut self, long: &LongLine) -> Step {
        self.hop.long_from_engine(long)
    }

    /// A line of the connector's. `withheld` names the secret that was found in it.
    pub fn from_connector(
        &mut self,
        line: &[u8],
        message: &Result<Envelope<'_>, Malformed>,
        withheld: Option<&Handle>,
    ) -> Step {
        let step = self.hop.from_connector(line, message, withheld);
        if !self.modern {
            return step;
        }
        match (step.forward, message) {
            (Forward::AsIs, Ok(message)) => {
                let mut out = self.begin(step.ended, step.answered);
                if !self.translate(line, message, &mut out) {
                    out.forward = Forward::AsIs;
                }
                self.finish(step.to_engine, step.to_connector, out)
            }
            (Forward::Replaced(line), _) => {
                let mut out = self.begin(step.ended, step.answered);
                let ours = envelope::read(&line)
                    .is_ok_and(|message| self.translate(&line, &message, &mut out));
                if !ours {
                    out.forward = Forward::Replaced(line);
                }
                self.finish(step.to_engine, step.to_connector, out)
            }
            (forward, _) => self.rewritten(Step { forward, ..step }),
        }
    }

    /// A line of the connector's that is over the limit: nothing of it is forwarded.
    pub fn long_from_connector(&mut self, long: &LongLine, bytes: usize) -> Step {
        let step = self.hop.long_from_connector(long, bytes);
        self.rewritten(step)
    }

    /// A connector was started: what it must be sent before anything else.
    pub fn connector_started(&mut self) -> Step {
        self.log = None;
        let step = self.hop.connector_started();
        self.rewritten(step)
    }

    /// The connector ended or could not be started: every open request gets its error, and the
    /// session goes on without it.
    pub fn connector_ended(&mut self, absence: Absence) -> Step {
        let step = self.hop.connector_ended(absence);
        self.held.clear();
        let mut step = self.rewritten(step);
        self.end_foreign_streams(&mut step);
        step
    }

    /// The session ends: every open request gets its error, and every stream its end.
    pub fn ended(&mut self, absence: Absence) -> Step {
        let mut step = self.connector_ended(absence);
        self.end_streams(&mut step);
        step
    }

    /// The connector could not be started for want of something else than before.
    pub fn absent_because(&mut self, absence: Absence) {
        self.hop.absent_because(absence);
    }

    /// The policy file changed.
    pub fn policy_changed(&mut self, policy: Result<ToolPolicy, String>) -> Step {
        let step = self.hop.policy_changed(policy);
        self.rewritten(step)
    }

    /// Whether messages pass to a connector.
    pub fn is_live(&self) -> bool {
        self.hop.is_live()
    }
}

#[cfg(test)]
mod tests;
