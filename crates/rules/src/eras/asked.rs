//! Modern requests on their way to the connector.

use super::calls::{self, Call};
use super::request::{self, Level, Meta, Refusal, own_id};
use super::{Eras, Request, answer};
use crate::edit;
use crate::envelope::{self, Id, Shape};
use crate::hop::{Forward, NEWEST, Progress, Step, request_key};
use crate::traceparent::Traceparent;
use crate::wire::{self, Code};
use serde_json::{Value, json};

/// How many requests wait for the handshake to end, and how many bytes they may have.
const WAITING: usize = 64;
const WAITING_BYTES: usize = 4 << 20;

const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

impl Eras {
    pub(super) fn modern_request(&mut self, request: &Request<'_>) -> Step {
        self.modern = true;
        let mut out = Step::default();
        if let Err(refusal) = self.serve(request, &mut out) {
            out.to_engine.push(refusal.line(request.id));
        }
        self.settle(&mut out);
        out
    }

    /// Serves a modern request, or lets it wait for the handshake.
    pub(super) fn serve(&mut self, request: &Request<'_>, out: &mut Step) -> Result<(), Refusal> {
        let meta = Meta::read(request.method, request.params)?;
        let state = match request.params {
            Some(params) if calls::may_ask(request.method) => {
                envelope::member(params, "requestState")?
            }
            _ => None,
        };
        if let Some(state) = state {
            return self.retry(request, &meta, state, out);
        }
        if matches!(self.hop.handshake(), Progress::None | Progress::Asked) {
            self.greet(&meta, out);
        }
        match self.hop.handshake() {
            Progress::None | Progress::Asked => self.wait(request, out),
            _ if request.method == "server/discover" => {
                let line = answer::discovered(request.id.as_bytes(), &self.hop)?;
                out.to_engine.push(line);
            }
            _ => self.serve_greeted(request, &meta, out)?,
        }
        Ok(())
    }

    /// Serves a request that is no discovery, once the handshake is over.
    pub(super) fn serve_greeted(
        &mut self,
        request: &Request<'_>,
        meta: &Meta<'_>,
        out: &mut Step,
    ) -> Result<(), Refusal> {
        if self.hop.handshake() == Progress::Answered {
            self.tell_hop(INITIALIZED.into(), 0, out);
        }
        match request.method {
            "subscriptions/listen" => self.listen(request, out),
            _ => self.call(request, meta, out),
        }
    }

    /// Sends a request to the connector in the words of the handshake era.
    pub(super) fn call(
        &mut self,
        request: &Request<'_>,
        meta: &Meta<'_>,
        out: &mut Step,
    ) -> Result<(), Refusal> {
        let params = request.params.unwrap_or(b"{}");
        let digest = request::digest(request.method, params)?;
        self.follow_log(meta.log, out);
        let number = self.calls.number();
        let line = meta.handshake_line(request.line, request.id, params, number)?;
        let tool = envelope::member(params, "name")?.filter(|_| request.method == "tools/call");
        self.calls.insert(
            number,
            Call {
                id: request.id.as_bytes().to_vec(),
                method: request.method.to_owned(),
                tool: tool.map(|tool| envelope::text_of(tool).into_owned()),
                started: request.now,
                bytes: request.line.len(),
                traceparent: Traceparent::of_request(request.line, request.params),
                capabilities: meta.capabilities.to_vec(),
                log: meta.log,
                sent_token: meta.progress.map(Id::key),
                token: meta.token(),
                digest,
                parked: None,
            },
        );
        self.tell_hop(line, request.now, out);
        if calls::may_ask(request.method) {
            self.ask(number, out);
        }
        Ok(())
    }

    /// Begins the handshake with the connector, unless it is under way.
    pub(super) fn greet(&mut self, meta: &Meta<'_>, out: &mut Step) {
        if self.hop.handshake() != Progress::None {
            return;
        }
        let own = json!({"name": "sema-connector", "version": self.hop.version()}).to_string();
        let id = own_id(self.calls.number());
        let head = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"initialize","params":"#);
        let version = format!(r#"{{"protocolVersion":"{NEWEST}","capabilities":"#);
        let line: [&[u8]; 6] = [
            head.as_bytes(),
            version.as_bytes(),
            meta.capabilities,
            br#","clientInfo":"#,
            meta.client.unwrap_or(own.as_bytes()),
            b"}}",
        ];
        self.tell_hop(line.concat(), 0, out);
    }

    pub(super) fn wait(&mut self, request: &Request<'_>, out: &mut Step) {
        let bytes: usize = self.waiting.iter().map(|(line, _)| line.len()).sum();
        if self.waiting.len() < WAITING && bytes + request.line.len() <= WAITING_BYTES {
            self.waiting.push((request.line.to_vec(), request.now));
            return;
        }
        let why = "too many requests wait for the connector's handshake";
        let id = Some(request.id.as_bytes());
        out.to_engine
            .push(wire::refusal(self.hop.name(), id, Code::Internal, why));
    }

    /// Serves what waits for the handshake once that is over, or refuses it where it failed.
    pub(super) fn settle(&mut self, out: &mut Step) {
        if self.waiting.is_empty() {
            return;
        }
        let progress = self.hop.handshake();
        if progress == Progress::Asked {
            return;
        }
        for (line, now) in std::mem::take(&mut self.waiting) {
            let Ok(message) = envelope::read(&line) else {
                continue;
            };
            let Shape::Request { id, method } = &message.shape else {
                continue;
            };
            let request = Request {
                line: &line,
                id: *id,
                method,
                params: message.params,
                now,
            };
            if progress == Progress::None {
                let why = "the connector refused the handshake";
                let id = Some(id.as_bytes());
                out.to_engine
                    .push(wire::refusal(self.hop.name(), id, Code::Internal, why));
            } else if let Err(refusal) = self.serve(&request, out) {
                out.to_engine.push(refusal.line(*id));
            }
        }
    }

    /// Asks the connector for log messages of this level, where it has any and was not asked for
    /// as many.
    pub(super) fn follow_log(&mut self, level: Option<Level>, out: &mut Step) {
        let Some(level) = level.filter(|_| answer::has(&self.hop, "logging")) else {
            return;
        };
        if self.log.is_none_or(|asked| level < asked) {
            self.log = Some(level);
            self.tell("logging/setLevel", &json!({"level": level.name()}), out);
        }
    }

    /// Sends a request of our own, whose answer nobody waits for.
    pub(super) fn tell(&mut self, method: &str, params: &Value, out: &mut Step) {
        let id = own_id(self.calls.number());
        let line =
            format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#);
        self.tell_hop(line.into_bytes(), 0, out);
    }

    /// Hands a line to the hop as if the engine had sent it.
    pub(super) fn tell_hop(&mut self, line: Vec<u8>, now: u64, out: &mut Step) {
        let step = self.hop.from_engine(&line, &envelope::read(&line), now);
        match step.forward {
            Forward::AsIs => out.to_connector.push(line),
            Forward::Replaced(line) => out.to_connector.push(line),
            Forward::Nothing => {}
        }
        out.to_connector.extend(step.to_connector);
        for line in step.to_engine {
            self.outward(line, out);
        }
    }

    /// The engine does not want the answer to a modern request any more.
    pub(super) fn cancelled(&mut self, line: &[u8], params: Option<&[u8]>) -> Option<Step> {
        let named = envelope::member(params?, "requestId").ok()??;
        let id = Id::read(named)?;
        let mut out = Step::default();
        let key = id.key();
        let before = self.waiting.len();
        self.waiting
            .retain(|(line, _)| request_key(line).as_ref() != Some(&key));
        if self.waiting.len() < before || self.end_stream(id, &mut out) {
            return Some(out);
        }
        let number = self.calls.number_of(id)?;
        self.calls.take(number);
        let line = edit::splice(line, named, own_id(number).as_bytes());
        self.tell_hop(line, 0, &mut out);
        Some(out)
    }

    /// Takes back a call that nobody waits for.
    pub(super) fn give_up(&mut self, number: u64, out: &mut Step) {
        self.calls.take(number);
        let id = own_id(number);
        let line = format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#
        );
        self.tell_hop(line.into_bytes(), 0, out);
    }
}
