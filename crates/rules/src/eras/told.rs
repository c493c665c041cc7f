//! What the hop has for the engine, as a modern client expects it.

use super::calls::Call;
use super::request::{Level, own_id, own_number};
use super::{Eras, answer};
use crate::edit;
use crate::envelope::{self, Envelope, Id, Shape};
use crate::hop::{Ended, Step};
use crate::json::{self, Kind};
use crate::wire::{self, Code};

/// How many bytes of answers are kept for retries that have not come.
const KEPT: usize = 4 << 20;

impl Eras {
    /// What the hop has to say, with what is for modern requests written as they expect it.
    pub(super) fn rewritten(&mut self, step: Step) -> Step {
        if !self.modern {
            return step;
        }
        let mut out = self.begin(step.ended, step.answered);
        out.forward = step.forward;
        out.noise = step.noise;
        self.finish(step.to_engine, step.to_connector, out)
    }

    /// A step that tells of the ends of requests under the engine's ids.
    pub(super) fn begin(&mut self, ended: Option<Ended>, answered: Vec<Ended>) -> Step {
        Step {
            ended: ended.and_then(|ended| self.restored(ended)),
            answered: answered
                .into_iter()
                .filter_map(|ended| self.restored(ended))
                .collect(),
            ..Step::default()
        }
    }

    pub(super) fn finish(
        &mut self,
        to_engine: Vec<Vec<u8>>,
        to_connector: Vec<Vec<u8>>,
        mut out: Step,
    ) -> Step {
        out.to_connector.splice(0..0, to_connector);
        for line in to_engine {
            self.outward(line, &mut out);
        }
        self.settle(&mut out);
        out
    }

    /// The end of a request under the id that the engine knows; none where the engine does not
    /// know of it.
    pub(super) fn restored(&mut self, mut ended: Ended) -> Option<Ended> {
        let Some(number) = own_number(&ended.id) else {
            return Some(ended);
        };
        let call = self.calls.get(number)?;
        if call.parked.is_some() {
            return None;
        }
        ended.id.clone_from(&call.id);
        (ended.started, ended.request_bytes) = (call.started, call.bytes);
        Some(ended)
    }

    /// A line of ours for the engine.
    pub(super) fn outward(&mut self, line: Vec<u8>, out: &mut Step) {
        let taken = envelope::read(&line).is_ok_and(|message| self.translate(&line, &message, out));
        if !taken {
            out.to_engine.push(line);
        }
    }

    /// Writes a line for the engine as the modern era expects it. False where it is not for a
    /// modern client, and goes on as it is.
    pub(super) fn translate(
        &mut self,
        line: &[u8],
        message: &Envelope<'_>,
        out: &mut Step,
    ) -> bool {
        match &message.shape {
            Shape::Answer { id } => match own_number(id.as_bytes()) {
                Some(number) => {
                    self.answered(number, line, message, out);
                    true
                }
                None => false,
            },
            Shape::Request { .. } if self.handshake_client => false,
            Shape::Request { id, method } => {
                self.question(*id, method, message.params, out);
                true
            }
            Shape::Notification { method } => {
                self.tell_streams(method, line, message, out);
                if !self.handshake_client {
                    self.notified(method, line, message.params, out);
                }
                !self.handshake_client
            }
        }
    }

    /// The answer to a request that went out under our number.
    pub(super) fn answered(
        &mut self,
        number: u64,
        line: &[u8],
        message: &Envelope<'_>,
        out: &mut Step,
    ) {
        let kept: usize = self
            .calls
            .parked()
            .filter_map(|(_, parked)| parked.answer.as_ref().map(Vec::len))
            .sum();
        let Some(call) = self.calls.get(number) else {
            return;
        };
        if let Some(parked) = &mut call.parked {
            parked.answer = Some(if kept + line.len() <= KEPT {
                line.to_vec()
            } else {
                let id = own_id(number);
                let why = "the answer came before the retry and was too large to keep";
                wire::refusal(self.hop.name(), Some(id.as_bytes()), Code::TooLarge, why)
            });
            return;
        }
        let Some(call) = self.calls.take(number) else {
            return;
        };
        let line = answer::modern(&call, line, message, &self.hop).unwrap_or_else(|why| {
            let why = format!("the connector's answer cannot be read: {why}");
            wire::refusal(self.hop.name(), Some(&call.id), Code::Internal, &why)
        });
        out.to_engine.push(line);
    }

    /// A notification for a client that speaks the modern era only.
    pub(super) fn notified(
        &mut self,
        method: &str,
        line: &[u8],
        params: Option<&[u8]>,
        out: &mut Step,
    ) {
        let params = params.filter(|params| json::kind(params) == Kind::Object);
        let member = |name| params.and_then(|params| envelope::member(params, name).ok()?);
        match method {
            "notifications/progress" => {
                if let Some(token) = member("progressToken") {
                    out.to_engine.extend(self.progressed(line, token));
                }
            }
            "notifications/message" => {
                let level = member("level").and_then(Level::read);
                let wanted = |call: &Call| call.log.is_some_and(|least| level >= Some(least));
                if self.calls.open().any(|(_, call)| wanted(call)) {
                    out.to_engine.push(line.to_vec());
                }
            }
            "notifications/cancelled" => {
                if let Some(id) = member("requestId").and_then(Id::read) {
                    self.withdraw(id);
                }
            }
            _ => {}
        }
    }

    /// A progress notification under the token that the engine knows.
    pub(super) fn progressed(&self, line: &[u8], token: &[u8]) -> Option<Vec<u8>> {
        let key = Id::read(token)?.key();
        let mut open = self.calls.open();
        let (_, call) = open.find(|(_, call)| call.sent_token.as_ref() == Some(&key))?;
        let known = call.token.as_ref()?;
        Some(edit::splice(line, token, known))
    }
}
