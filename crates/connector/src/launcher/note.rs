//! What the trace is told of a line that went by. Nothing here changes what is sent.

use super::session::Session;
use super::trace::{self, More};
use sema_rules::envelope::{self, Envelope, Id, Malformed, Shape};
use sema_rules::hop::{Ended, Forward, Outcome, Step};
use sema_rules::long::LongLine;
use sema_rules::traceparent::Traceparent;
use sema_rules::wire::Code;

/// The errors with which a request is answered before it reaches the connector.
const OWN: [Code; 6] = [
    Code::Unauthorized,
    Code::ForbiddenScope,
    Code::TooLarge,
    Code::UpstreamExit,
    Code::Internal,
    Code::NotInstalled,
];

/// What the conventions call a method that is not known.
const UNKNOWN: &str = "_OTHER";

impl Session {
    /// A line of the engine's: a request that was answered here has ended with that, and the
    /// arguments of one that goes on are kept where they are wanted.
    pub(super) fn note_request(
        &self,
        line: &[u8],
        message: &Result<Envelope<'_>, Malformed>,
        step: &Step,
        now: u64,
    ) {
        let message = match message {
            Ok(message) => message,
            Err(malformed) => return self.note_malformed(malformed, line.len(), step, now),
        };
        let Shape::Request { id, method } = &message.shape else {
            return;
        };
        let call = method == "tools/call";
        match (&step.forward, step.to_engine.first()) {
            (Forward::Nothing, Some(reply)) => {
                let ended = Ended {
                    method: method.clone().into_owned(),
                    tool: text(message.params, "name").filter(|_| call),
                    traceparent: Traceparent::of_request(line, message.params),
                    uri: text(message.params, "uri").filter(|uri| self.is_status(uri)),
                    ..unread(id.as_bytes(), line.len(), now)
                };
                let more = More {
                    arguments: self.arguments(message.params).filter(|_| call),
                    result: None,
                };
                self.note_reply(ended, reply, more);
            }
            (Forward::Nothing, None) => {}
            _ if call => self.keep_arguments(*id, message.params, now),
            _ => {}
        }
    }

    /// A line of the engine's that is no message.
    fn note_malformed(&self, malformed: &Malformed, bytes: usize, step: &Step, now: u64) {
        if let (Some(id), Some(reply)) = (&malformed.id, step.to_engine.first()) {
            self.note_reply(unread(id, bytes, now), reply, More::default());
        }
    }

    /// A line of the engine's that was over the limit.
    pub(super) fn note_long(&self, long: &LongLine, bytes: usize, step: &Step) {
        if let (Some(id), Some(reply)) = (long.id(), step.to_engine.first()) {
            let mut ended = unread(id.as_bytes(), bytes, self.trace.now());
            ended.method = long.method().unwrap_or(ended.method);
            self.note_reply(ended, reply, More::default());
        }
    }

    /// A request that ended with a reply of ours.
    fn note_reply(&self, ended: Ended, reply: &[u8], more: More) {
        let code = code(reply);
        let ended = Ended {
            answer_bytes: reply.len(),
            outcome: outcome(code.as_deref()),
            ..ended
        };
        self.trace.ended(ended, code, more);
    }

    /// The end of a request, by the connector's line.
    pub(super) fn note_answer(&self, ended: Ended, line: &[u8]) {
        let initialized = ended.method == "initialize";
        let (mut more, mut error) = (More::default(), None);
        if ended.outcome == Outcome::Error {
            error = code(line);
        }
        if initialized && let Some(version) = answer(line, "protocolVersion") {
            self.trace.version(&version);
        }
        if ended.tool.is_some() && self.trace.wants_content() {
            let result = envelope::read(line).ok().and_then(|message| message.result);
            more.result = result.map(|text| trace::content(text, self.withheld(text)));
        }
        self.trace.ended(ended, error, more);
    }

    /// Requests that waited for the connector and were answered here.
    pub(super) fn note_answered(&self, answered: Vec<Ended>) {
        for ended in answered {
            self.trace.ended(ended, None, More::default());
        }
    }

    fn keep_arguments(&self, id: Id<'_>, params: Option<&[u8]>, now: u64) {
        if let Some(text) = self.arguments(params) {
            self.trace.arguments(id.as_bytes(), now, text);
        }
    }

    fn arguments(&self, params: Option<&[u8]>) -> Option<String> {
        let params = params.filter(|_| self.trace.wants_content())?;
        let text = envelope::member(params, "arguments").ok()??;
        Some(trace::content(text, self.withheld(text)))
    }

    /// Only the URI of our own resource is traced: another one may hold anything.
    fn is_status(&self, uri: &str) -> bool {
        let own = uri.strip_prefix("sema-connector://");
        own.and_then(|rest| rest.strip_suffix("/status")) == Some(self.trace.connector())
    }
}

/// A request of which no more is known than this.
fn unread(id: &[u8], bytes: usize, now: u64) -> Ended {
    Ended {
        method: UNKNOWN.to_owned(),
        tool: None,
        id: id.to_vec(),
        started: now,
        request_bytes: bytes,
        answer_bytes: 0,
        outcome: Outcome::Error,
        traceparent: None,
        uri: None,
    }
}

/// How a request ended whose answer is ours.
fn outcome(code: Option<&str>) -> Outcome {
    let own = OWN
        .into_iter()
        .find(|own| code == Some(own.number().to_string().as_str()));
    match (own, code) {
        (Some(own), _) => Outcome::Refused(own),
        (None, Some(_)) => Outcome::Error,
        (None, None) => Outcome::Result,
    }
}

fn text(object: Option<&[u8]>, name: &'static str) -> Option<String> {
    let value = envelope::member(object?, name).ok()??;
    Some(envelope::text_of(value).into_owned())
}

/// A text in the result of an answer.
fn answer(line: &[u8], name: &'static str) -> Option<String> {
    text(envelope::read(line).ok()?.result, name)
}

/// The error code of an answer, as written.
fn code(line: &[u8]) -> Option<String> {
    let error = envelope::read(line).ok()?.error?;
    let code = envelope::member(error, "code").ok()??;
    let text = std::str::from_utf8(code).ok()?;
    let number: Result<i64, _> = text.parse();
    Some(number.map_or_else(|_| UNKNOWN.to_owned(), |number| number.to_string()))
}
