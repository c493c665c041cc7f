//! Lines from the connector.

use super::{Ended, Forward, Hop, Open, Outcome, Phase, Step, status};
use crate::edit;
use crate::envelope::{self, Envelope, Id, Malformed, Shape};
use crate::json;
use crate::long::LongLine;
use crate::name::Handle;
use crate::wire::{self, Code};

impl Hop {
    /// A line of the connector's. `withheld` names the secret that was found in it.
    pub fn from_connector(
        &mut self,
        line: &[u8],
        message: &Result<Envelope<'_>, Malformed>,
        withheld: Option<&Handle>,
    ) -> Step {
        let message = match message {
            Ok(message) => message,
            Err(malformed) => return self.unreadable(malformed, line.len()),
        };
        match (&message.shape, withheld) {
            (Shape::Answer { id }, _) => self.connector_answers(line, *id, message, withheld),
            (Shape::Request { .. } | Shape::Notification { .. }, None) => {
                if matches!(self.phase, Phase::Reviving(..)) {
                    Step::default()
                } else {
                    Step::as_is()
                }
            }
            (Shape::Request { id, .. }, Some(handle)) => Step {
                to_connector: vec![self.refusal(*id, Code::Internal, &withheld_words(handle))],
                ..Step::default()
            },
            (Shape::Notification { .. }, Some(_)) => Step::default(),
        }
    }

    /// A line of the connector's that is over the limit: nothing of it is forwarded.
    pub fn long_from_connector(&mut self, long: &LongLine, bytes: usize) -> Step {
        let why = format!("the message is over 4 MiB (4194304 bytes): it has {bytes}");
        let Some(id) = long.id() else {
            return Step::noise();
        };
        if long.has_method() {
            let line = self.refusal(id, Code::TooLarge, &why);
            return Step {
                to_connector: vec![line],
                ..Step::default()
            };
        }
        if let Some(step) = self.unread_by_us(id) {
            return step;
        }
        match self.open.take(id) {
            Some(open) => self.refuse(open, bytes, Code::TooLarge, &why),
            None => Step::noise(),
        }
    }

    /// An answer to a request of our own that cannot be read: the session goes on without it.
    fn unread_by_us(&mut self, id: Id<'_>) -> Option<Step> {
        match &self.phase {
            Phase::Reviving(_, key) if *key == id.key() => Some(self.revived()),
            _ => self.status.asked(id).then(|| self.tools_untold()),
        }
    }

    /// A line that is no message. Where it was meant to answer a request, nothing else will.
    fn unreadable(&mut self, malformed: &Malformed, bytes: usize) -> Step {
        let id = malformed.id.as_deref().filter(|_| malformed.is_answer);
        let Some(id) = id.and_then(Id::read) else {
            return Step::noise();
        };
        if let Some(step) = self.unread_by_us(id) {
            return step;
        }
        match self.open.take(id) {
            Some(open) => {
                let why = format!("the connector's answer cannot be read: {malformed}");
                self.refuse(open, bytes, Code::Internal, &why)
            }
            None => Step::noise(),
        }
    }

    fn connector_answers(
        &mut self,
        line: &[u8],
        id: Id<'_>,
        message: &Envelope<'_>,
        withheld: Option<&Handle>,
    ) -> Step {
        if let Phase::Reviving(_, key) = &self.phase
            && *key == id.key()
        {
            self.keep(message);
            return self.revived();
        }
        if self.status.asked(id) {
            return match withheld {
                None => self.tools_told(message),
                Some(_) => self.tools_untold(),
            };
        }
        let Some(open) = self.open.take(id) else {
            return Step::noise();
        };
        if let Some(handle) = withheld {
            return self.refuse(open, line.len(), Code::Internal, &withheld_words(handle));
        }
        let forward = match open.method.as_str() {
            "initialize" => Ok(self.merge_capability(line, message)),
            "tools/list" => self.cut(line, message),
            "resources/list" if open.first_page => self.merge_status(line, message),
            _ => Ok(Forward::AsIs),
        };
        match forward {
            Ok(forward) => Step {
                forward,
                ended: Some(ended(open, line, message)),
                ..Step::default()
            },
            Err(why) => {
                let why = format!("the connector's answer cannot be read: {why}");
                self.refuse(open, line.len(), Code::Internal, &why)
            }
        }
    }

    fn refuse(&mut self, open: Open, bytes: usize, code: Code, why: &str) -> Step {
        if open.method == "initialize" && !self.handshake.answered {
            self.handshake.initialize = None;
        }
        let line = wire::refusal(&self.name, Some(&open.id), code, why);
        let ended = open.end(bytes, Outcome::Refused(code));
        Step {
            to_engine: vec![line],
            ended: Some(ended),
            ..Step::default()
        }
    }

    fn cut(&self, line: &[u8], message: &Envelope<'_>) -> Result<Forward, envelope::Why> {
        let cut = match &self.policy {
            Ok(policy) if policy.allows_all() => None,
            Ok(policy) => edit::cut_tools(line, message, |tool| policy.allows(tool))?,
            Err(_) => edit::cut_tools(line, message, |_| false)?,
        };
        Ok(cut.map_or(Forward::AsIs, Forward::Replaced))
    }

    /// Keeps what the connector says of itself.
    fn keep(&mut self, message: &Envelope<'_>) {
        self.handshake.said = message.result.map(<[u8]>::to_vec);
        self.handshake.resources = has_resources(message);
    }

    /// The answer to `initialize`, with the resources capability added where there is none.
    fn merge_capability(&mut self, line: &[u8], message: &Envelope<'_>) -> Forward {
        self.keep(message);
        self.handshake.answered = message.result.is_some();
        if !self.handshake.answered {
            self.handshake.initialize = None;
        }
        match capabilities(message) {
            Some(capabilities) if !self.handshake.resources => {
                let merged =
                    edit::prepend_members(capabilities, br#""resources":{"subscribe":true}"#);
                Forward::Replaced(edit::splice(line, capabilities, &merged))
            }
            _ => Forward::AsIs,
        }
    }

    /// The first page of the connector's resources, with the status resource put in front. The
    /// connector's own resource of that name, if it has one, is left as the only one.
    fn merge_status(&self, line: &[u8], message: &Envelope<'_>) -> Result<Forward, envelope::Why> {
        let Some(result) = message.result else {
            return Ok(Forward::AsIs);
        };
        let Some(list) = envelope::member(result, "resources")? else {
            return Ok(Forward::AsIs);
        };
        let uri = status::uri(&self.name);
        let mut there = Ok(false);
        json::each_element(list, |resource| {
            if there == Ok(false) {
                let own = envelope::member(resource, "uri");
                there = own.map(|own| own.is_some_and(|own| envelope::text_of(own) == uri));
            }
        })?;
        if there? {
            return Ok(Forward::AsIs);
        }
        let own = status::resource(&self.name).to_string();
        let merged = edit::prepend_element(list, own.as_bytes());
        Ok(Forward::Replaced(edit::splice(line, list, &merged)))
    }
}

fn withheld_words(handle: &Handle) -> String {
    format!("withheld: the message carries the secret {handle}")
}

fn capabilities<'a>(message: &Envelope<'a>) -> Option<&'a [u8]> {
    let found = envelope::member(message.result?, "capabilities").ok()??;
    (json::kind(found) == json::Kind::Object).then_some(found)
}

fn has_resources(message: &Envelope<'_>) -> bool {
    capabilities(message).is_some_and(|found| envelope::member(found, "resources") != Ok(None))
}

fn ended(open: Open, line: &[u8], message: &Envelope<'_>) -> Ended {
    let outcome = match message.result {
        None => Outcome::Error,
        // Quotes inside a string are escaped, so this is a member wherever it is found.
        Some(result)
            if open.tool.is_some()
                && memchr::memmem::find(result, br#""isError":true"#).is_some() =>
        {
            Outcome::ToolError
        }
        Some(_) => Outcome::Result,
    };
    open.end(line.len(), outcome)
}
