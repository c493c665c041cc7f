//! The modern requests that wait for the connector, under our numbers.

use super::question::Parked;
use super::request::Level;
use crate::envelope::{Id, IdKey};
use crate::hop::{Ended, Outcome};
use crate::traceparent::Traceparent;
use std::collections::BTreeMap;

/// The requests that may be answered with a question of the server's.
const ASKING: [&str; 3] = ["tools/call", "prompts/get", "resources/read"];

/// One request.
#[derive(Debug)]
pub(super) struct Call {
    /// The engine's id for it, as written: after a retry, the retry's.
    pub(super) id: Vec<u8>,
    pub(super) method: String,
    pub(super) tool: Option<String>,
    pub(super) started: u64,
    pub(super) bytes: usize,
    pub(super) traceparent: Option<Traceparent>,
    /// The client's capabilities, as written.
    pub(super) capabilities: Vec<u8>,
    pub(super) log: Option<Level>,
    /// The token that the connector knows.
    pub(super) sent_token: Option<IdKey>,
    /// The token that the engine knows, as written.
    pub(super) token: Option<Vec<u8>>,
    /// What a retry must agree with.
    pub(super) digest: u64,
    /// It was answered with questions and waits for the retry that brings the answers.
    pub(super) parked: Option<Parked>,
}

impl Call {
    /// How it ended, where it did not by a line of the connector's.
    pub(super) fn end(&self, answer_bytes: usize, outcome: Outcome) -> Ended {
        Ended {
            method: self.method.clone(),
            tool: self.tool.clone(),
            id: self.id.clone(),
            started: self.started,
            request_bytes: self.bytes,
            answer_bytes,
            outcome,
            traceparent: self.traceparent,
            uri: None,
        }
    }
}

/// The calls by number, and so by age.
#[derive(Debug, Default)]
pub(super) struct Calls {
    by_number: BTreeMap<u64, Call>,
    count: u64,
}

impl Calls {
    /// The next number of ours.
    pub(super) fn number(&mut self) -> u64 {
        self.count += 1;
        self.count
    }

    pub(super) fn insert(&mut self, number: u64, call: Call) {
        self.by_number.insert(number, call);
    }

    pub(super) fn get(&mut self, number: u64) -> Option<&mut Call> {
        self.by_number.get_mut(&number)
    }

    pub(super) fn take(&mut self, number: u64) -> Option<Call> {
        self.by_number.remove(&number)
    }

    /// The oldest call that the engine waits for and that may be answered with a question.
    pub(super) fn oldest_asking(&self) -> Option<u64> {
        let mut open = self.by_number.iter();
        open.find(|(_, call)| call.parked.is_none() && ASKING.contains(&call.method.as_str()))
            .map(|(number, _)| *number)
    }

    /// The call that the engine waits for under this id.
    pub(super) fn number_of(&self, id: Id<'_>) -> Option<u64> {
        let key = id.key();
        let mut open = self.open();
        open.find(|(_, call)| Id::read(&call.id).map(Id::key).as_ref() == Some(&key))
            .map(|(number, _)| *number)
    }

    /// The calls that the engine waits for.
    pub(super) fn open(&self) -> impl Iterator<Item = (&u64, &Call)> {
        let all = self.by_number.iter();
        all.filter(|(_, call)| call.parked.is_none())
    }

    /// The calls whose retry has not come, the oldest first.
    pub(super) fn parked(&mut self) -> impl Iterator<Item = (u64, &mut Parked)> {
        let all = self.by_number.iter_mut();
        all.filter_map(|(number, call)| Some((*number, call.parked.as_mut()?)))
    }
}

/// Whether a request of this method may be answered with a question.
pub(super) fn may_ask(method: &str) -> bool {
    ASKING.contains(&method)
}
