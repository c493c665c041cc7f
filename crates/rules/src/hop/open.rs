//! The requests that wait for an answer. An id may be open more than once: the hop does not judge
//! that, it hands on as many answers as there were requests.

use crate::envelope::{Id, IdKey};
use crate::traceparent::Traceparent;
use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};

/// How many cancelled requests are remembered, for an answer that comes all the same.
const CANCELLED: usize = 1024;

/// A request on its way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Open {
    pub(super) id: Vec<u8>,
    pub(super) method: String,
    pub(super) tool: Option<String>,
    pub(super) started: u64,
    pub(super) bytes: usize,
    pub(super) traceparent: Option<Traceparent>,
    pub(super) cancelled: bool,
    /// The answer gets the status resource put in.
    pub(super) first_page: bool,
}

/// A request that was answered: what a trace tells of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    /// The method that was asked for.
    pub method: String,
    /// The tool that was called.
    pub tool: Option<String>,
    /// The id, as written.
    pub id: Vec<u8>,
    /// When it came, in the caller's nanoseconds.
    pub started: u64,
    /// The length of the request's line.
    pub request_bytes: usize,
    /// The length of the answer's line.
    pub answer_bytes: usize,
    /// How it ended.
    pub outcome: Outcome,
    /// The span that it came from, where the request names one.
    pub traceparent: Option<Traceparent>,
    /// The address of the status resource, where the request was for that.
    pub uri: Option<String>,
}

/// How a request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// With a result.
    Result,
    /// With a tool's result that says it failed.
    ToolError,
    /// With the connector's error.
    Error,
    /// With one of our own errors.
    Refused(crate::wire::Code),
}

impl Open {
    pub(super) fn end(self, answer_bytes: usize, outcome: Outcome) -> Ended {
        Ended {
            method: self.method,
            tool: self.tool,
            id: self.id,
            started: self.started,
            request_bytes: self.bytes,
            answer_bytes,
            outcome,
            traceparent: self.traceparent,
            uri: None,
        }
    }
}

/// The open requests by id.
#[derive(Debug, Default)]
pub(super) struct OpenRequests {
    by_id: HashMap<IdKey, Queue>,
    cancelled: VecDeque<IdKey>,
}

/// The requests of one id, the oldest first: nearly always one.
#[derive(Debug)]
enum Queue {
    One(Box<Open>),
    More(VecDeque<Open>),
}

impl Queue {
    fn push(&mut self, open: Open) {
        match self {
            Self::More(queue) => queue.push_back(open),
            Self::One(_) => {
                let Self::One(first) = std::mem::replace(self, Self::More(VecDeque::new())) else {
                    return;
                };
                *self = Self::More(VecDeque::from([*first, open]));
            }
        }
    }

    fn first(&mut self) -> Option<&mut Open> {
        match self {
            Self::One(open) => Some(open),
            Self::More(queue) => queue.front_mut(),
        }
    }

    fn len(&self) -> usize {
        match self {
            Self::One(_) => 1,
            Self::More(queue) => queue.len(),
        }
    }

    fn into_all(self) -> VecDeque<Open> {
        match self {
            Self::One(open) => VecDeque::from([*open]),
            Self::More(queue) => queue,
        }
    }
}

impl OpenRequests {
    pub(super) fn insert(&mut self, key: IdKey, open: Open) {
        match self.by_id.entry(key) {
            Entry::Vacant(free) => _ = free.insert(Queue::One(Box::new(open))),
            Entry::Occupied(mut taken) => taken.get_mut().push(open),
        }
    }

    /// Takes the oldest request of this id.
    pub(super) fn take(&mut self, id: Id<'_>) -> Option<Open> {
        let Entry::Occupied(mut entry) = self.by_id.entry(id.key()) else {
            return None;
        };
        match entry.get_mut() {
            Queue::More(queue) if queue.len() > 1 => queue.pop_front(),
            _ => entry.remove().into_all().pop_front(),
        }
    }

    /// Marks a request as cancelled. The oldest cancelled ones are forgotten, so that a connector
    /// that never answers them does not grow the table.
    pub(super) fn cancel(&mut self, id: Id<'_>) {
        let key = id.key();
        let Some(open) = self.by_id.get_mut(&key).and_then(Queue::first) else {
            return;
        };
        open.cancelled = true;
        self.cancelled.push_back(key);
        if self.cancelled.len() > CANCELLED
            && let Some(oldest) = self.cancelled.pop_front()
            && let Some(queue) = self.by_id.remove(&oldest)
        {
            let left = queue.into_all().into_iter().filter(|open| !open.cancelled);
            left.for_each(|open| self.insert(oldest.clone(), open));
        }
    }

    /// Takes every request that still waits for an answer.
    pub(super) fn drain(&mut self) -> Vec<Open> {
        self.cancelled.clear();
        let all = self.by_id.drain();
        let mut open: Vec<Open> = all.flat_map(|(_, queue)| queue.into_all()).collect();
        open.retain(|open| !open.cancelled);
        open.sort_by_key(|open| open.started);
        open
    }

    pub(super) fn len(&self) -> usize {
        self.by_id.values().map(Queue::len).sum()
    }
}
