//! What the connector asks of the client while a modern request waits: a multi-round-trip result.
//!
//! A question does not say which request it belongs to, so the oldest that may ask gets it. That
//! request is answered with `input_required` and a `requestState`; the retry that brings the state
//! and the answers takes the place of the first request. The state is a random name for what is
//! kept here: it is worth nothing in another session, for another request, or a second time.

use super::request::{Meta, Refusal, digest};
use super::{Eras, Request};
use crate::edit;
use crate::envelope::{self, Id, Why};
use crate::hop::{Outcome, Step};
use crate::json::{self, Kind};
use crate::wire;
use serde_json::{Value, json};

/// How many questions wait for a request that can carry them.
const HELD: usize = 16;

/// How many requests wait for their retry. The oldest gives way: clients need not come back.
const PARKED: usize = 64;

/// The members of a question that the modern era does not have.
const HANDSHAKE_MEMBERS: [&[u8]; 2] = [b"task", b"elicitationId"];

/// A request of the connector's.
#[derive(Debug)]
pub(super) struct Question {
    id: Vec<u8>,
    method: String,
    params: Option<Vec<u8>>,
}

/// A request that was answered with questions.
#[derive(Debug)]
pub(super) struct Parked {
    state: String,
    asked: Vec<(String, Question)>,
    /// The connector's answer, where it did not wait for those to its questions.
    pub(super) answer: Option<Vec<u8>>,
}

impl Question {
    /// What the client would have to declare for it, where it does not.
    fn missing(&self, capabilities: &[u8]) -> Option<Value> {
        let (group, part) = self.needs();
        let declared = match member(capabilities, group) {
            Some(own) if part == "form" => holds(own, "form") || !holds(own, "url"),
            Some(own) => part.is_empty() || holds(own, part),
            None => false,
        };
        let inner = match part {
            "" => json!({}),
            part => json!({part: {}}),
        };
        (!declared).then(|| json!({group: inner}))
    }

    /// The capability, and the part of it, that the question needs.
    fn needs(&self) -> (&'static str, &'static str) {
        let params = self.params.as_deref().unwrap_or(b"{}");
        match self.method.as_str() {
            "roots/list" => ("roots", ""),
            "sampling/createMessage" if holds(params, "tools") => ("sampling", "tools"),
            "sampling/createMessage" => ("sampling", ""),
            _ if member(params, "mode").is_some_and(|mode| envelope::text_of(mode) == "url") => {
                ("elicitation", "url")
            }
            _ => ("elicitation", "form"),
        }
    }

    /// The question as the value of `inputRequests`.
    fn input_request(&self) -> Result<Vec<u8>, Why> {
        let method = Value::from(self.method.as_str());
        let mut request = format!(r#"{{"method":{method}"#).into_bytes();
        if let Some(params) = &self.params {
            let own = edit::retain_members(params, |name| !HANDSHAKE_MEMBERS.contains(&name))?;
            request.extend_from_slice(br#","params":"#);
            request.extend_from_slice(&own);
        }
        request.push(b'}');
        Ok(request)
    }

    fn refuse(&self, why: &str) -> Vec<u8> {
        wire::error(Some(&self.id), -32601, why, None)
    }
}

impl Eras {
    /// The connector asks something of a client that speaks the modern era only.
    pub(super) fn question(
        &mut self,
        id: Id<'_>,
        method: &str,
        params: Option<&[u8]>,
        out: &mut Step,
    ) {
        if method == "ping" {
            out.to_connector
                .push(wire::result(id.as_bytes(), &json!({})));
            return;
        }
        let question = Question {
            id: id.as_bytes().to_vec(),
            method: method.to_owned(),
            params: params
                .filter(|params| json::kind(params) == Kind::Object)
                .map(<[u8]>::to_vec),
        };
        let known = ["roots/list", "sampling/createMessage", "elicitation/create"];
        if !known.contains(&method) {
            out.to_connector
                .push(question.refuse("the client does not have this method"));
        } else if self.held.len() >= HELD {
            out.to_connector
                .push(question.refuse("too many requests wait for the client"));
        } else {
            self.held.push(question);
            if let Some(number) = self.calls.oldest_asking() {
                self.ask(number, out);
            }
        }
    }

    /// Answers a call with the questions that are held.
    pub(super) fn ask(&mut self, number: u64, out: &mut Step) {
        let Some(call) = self.calls.get(number) else {
            return;
        };
        if self.held.is_empty() {
            return;
        }
        let questions = std::mem::take(&mut self.held);
        let mut missing = questions
            .iter()
            .filter_map(|question| question.missing(&call.capabilities));
        if let Some(first) = missing.next() {
            let required = missing.fold(first, merged);
            self.lack(number, &questions, &required, out);
            return;
        }
        let asked: Vec<(String, Question)> = (1..)
            .map(|count: usize| format!("q{count}"))
            .zip(questions)
            .collect();
        let state = (self.tokens)();
        let line = state
            .as_ref()
            .map(|state| input_required(&call.id, &asked, state));
        let (Some(state), Some(Ok(line))) = (state, line) else {
            let why = "the question cannot be handed on";
            let refused = asked.iter().map(|(_, question)| question.refuse(why));
            out.to_connector.extend(refused);
            return;
        };
        out.answered.push(call.end(line.len(), Outcome::Result));
        out.to_engine.push(line);
        call.parked = Some(Parked {
            state,
            asked,
            answer: None,
        });
        self.bound_parked(out);
    }

    /// The client cannot answer what the connector asks for this call: neither goes on.
    fn lack(&mut self, number: u64, questions: &[Question], required: &Value, out: &mut Step) {
        let why = "the client does not declare the capability that this needs";
        let refused = questions.iter().map(|question| question.refuse(why));
        out.to_connector.extend(refused);
        if let Some(call) = self.calls.get(number) {
            let data = json!({"requiredCapabilities": required});
            let line = wire::error(
                Some(&call.id),
                -32021,
                "missing required client capability",
                Some(data),
            );
            out.answered.push(call.end(line.len(), Outcome::Error));
            out.to_engine.push(line);
        }
        self.give_up(number, out);
    }

    fn bound_parked(&mut self, out: &mut Step) {
        let parked: Vec<u64> = self.calls.parked().map(|(number, _)| number).collect();
        let Some(over) = parked.len().checked_sub(PARKED) else {
            return;
        };
        for number in &parked[..over] {
            if let Some(parked) = self.calls.get(*number).and_then(|call| call.parked.take()) {
                let why = "the client did not answer";
                let refused = parked
                    .asked
                    .iter()
                    .map(|(_, question)| question.refuse(why));
                out.to_connector.extend(refused);
            }
            self.give_up(*number, out);
        }
    }

    /// A request that brings a `requestState`.
    pub(super) fn retry(
        &mut self,
        request: &Request<'_>,
        meta: &Meta<'_>,
        state: &[u8],
        out: &mut Step,
    ) -> Result<(), Refusal> {
        let params = request.params.unwrap_or(b"{}");
        let state = envelope::text_of(state);
        let number = self
            .calls
            .parked()
            .find(|(_, parked)| parked.state == state)
            .map(|(number, _)| number);
        let number = number.ok_or(Refusal::Invalid(
            "requestState is not known: it was used before, or is of another session",
        ))?;
        let digest = digest(request.method, params)?;
        let responses = responses(params)?;
        let call = self
            .calls
            .get(number)
            .filter(|call| call.digest == digest)
            .ok_or(Refusal::Invalid("requestState is of another request"))?;
        let Some(parked) = &call.parked else {
            return Ok(());
        };
        let keys = parked.asked.iter().map(|(key, _)| key.as_str());
        let answers = keys
            .map(|key| response(responses, key))
            .collect::<Result<Vec<_>, Refusal>>()?;
        let parked = call.parked.take();
        call.id = request.id.as_bytes().to_vec();
        (call.started, call.bytes) = (request.now, request.line.len());
        call.capabilities = meta.capabilities.to_vec();
        (call.token, call.log) = (meta.token(), meta.log);
        let Some(Parked { asked, answer, .. }) = parked else {
            return Ok(());
        };
        if let Some(answer) = answer {
            self.outward(answer, out);
            return Ok(());
        }
        let mut missing = Vec::new();
        for ((_, question), answer) in asked.into_iter().zip(answers) {
            match answer {
                Some(value) => out.to_connector.push(delivered(&question.id, value)),
                None => missing.push(question),
            }
        }
        self.held.splice(0..0, missing);
        self.ask(number, out);
        Ok(())
    }

    /// The connector does not want to know any more.
    pub(super) fn withdraw(&mut self, id: Id<'_>) {
        let key = id.key();
        let other =
            |question: &Question| Id::read(&question.id).map(Id::key).as_ref() != Some(&key);
        self.held.retain(other);
        for (_, parked) in self.calls.parked() {
            parked.asked.retain(|(_, question)| other(question));
        }
    }
}

fn input_required(id: &[u8], asked: &[(String, Question)], state: &str) -> Result<Vec<u8>, Why> {
    let requests = asked
        .iter()
        .map(|(key, question)| {
            let key = Value::from(key.as_str()).to_string();
            Ok([key.as_bytes(), b":", &question.input_request()?].concat())
        })
        .collect::<Result<Vec<_>, Why>>()?;
    let state = Value::from(state).to_string();
    let parts: [&[u8]; 7] = [
        br#"{"jsonrpc":"2.0","id":"#,
        id,
        br#","result":{"resultType":"input_required","requestState":"#,
        state.as_bytes(),
        br#","inputRequests":{"#,
        &requests.join(&b","[..]),
        b"}}}",
    ];
    Ok(parts.concat())
}

fn delivered(id: &[u8], result: &[u8]) -> Vec<u8> {
    [
        br#"{"jsonrpc":"2.0","id":"#,
        id,
        br#","result":"#,
        result,
        b"}",
    ]
    .concat()
}

/// The value of `inputResponses`.
fn responses(params: &[u8]) -> Result<&[u8], Refusal> {
    match envelope::member(params, "inputResponses")? {
        None => Ok(b"{}"),
        Some(all) if json::kind(all) == Kind::Object => Ok(all),
        Some(_) => Err(Refusal::Invalid("inputResponses is no object")),
    }
}

/// The answer to the question of this key, if it is there.
fn response<'a>(responses: &'a [u8], key: &str) -> Result<Option<&'a [u8]>, Refusal> {
    let (mut found, mut twice) = (None, false);
    json::object(responses, |name, value| {
        if json::unescape(name).as_ref() == key.as_bytes() {
            twice |= found.replace(value).is_some();
        }
    })
    .map_err(Why::from)?;
    match found {
        _ if twice => Err(Refusal::Invalid(
            "an answer is there twice in inputResponses",
        )),
        Some(value) if json::kind(value) != Kind::Object => {
            Err(Refusal::Invalid("an answer in inputResponses is no object"))
        }
        found => Ok(found),
    }
}

fn member<'a>(object: &'a [u8], name: &'static str) -> Option<&'a [u8]> {
    envelope::member(object, name).ok().flatten()
}

fn holds(object: &[u8], name: &'static str) -> bool {
    json::kind(object) == Kind::Object && member(object, name).is_some()
}

/// Both capabilities.
fn merged(mut one: Value, other: Value) -> Value {
    if let (Value::Object(one), Value::Object(other)) = (&mut one, other) {
        for (group, inner) in other {
            let own = one.entry(group).or_insert_with(|| json!({}));
            if let (Value::Object(own), Value::Object(inner)) = (own, inner) {
                own.extend(inner);
            }
        }
    }
    one
}
