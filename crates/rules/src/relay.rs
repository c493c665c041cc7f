//! The export relay's decisions: what becomes of each line between the launcher and the upstream
//! while the login state can be saved.
//!
//! Guarantees: no call of a withheld tool, in whatever spelling, reaches the upstream; a call of
//! the save tool reaches it only with a file of our choosing; every line that concerns neither is
//! left as it is, byte for byte. A line that two readers could read differently is not forwarded.

use crate::call::CallScan;
use crate::edit;
use crate::envelope::{self, Envelope, Id, IdKey, Shape, Why};
use crate::json::{self, Kind};
use crate::wire;
use serde_json::{Value, json};
use std::collections::HashMap;

/// Which of the upstream's tools the relay acts on.
#[derive(Debug, Clone, Copy)]
pub struct Tools<'t> {
    /// Never offered, and answered as if the upstream did not have them.
    pub withheld: &'t [&'t str],
    /// Writes the login state to the file that its `filename` argument names.
    pub save: &'t str,
}

/// What becomes of a line from the engine.
#[derive(Debug, PartialEq, Eq)]
pub enum Down {
    /// Forwarded as it is.
    Pass,
    /// Forwarded in this form.
    Send(Vec<u8>),
    /// Not forwarded; the engine gets this line.
    Answer(Vec<u8>),
    /// Not forwarded, and nobody is told: it asks for no answer.
    Drop,
}

/// What becomes of a line from the upstream.
#[derive(Debug, PartialEq, Eq)]
pub enum Up {
    /// Forwarded as it is.
    Pass,
    /// Forwarded in this form.
    Send(Vec<u8>),
    /// It says that the login state lies in this file: to be stored, then forwarded as it is or,
    /// where that failed, as `not_stored` says.
    Saved(String),
    /// It says that the save failed: forwarded as it is, and the file, if there is one, removed.
    NotSaved(String),
}

/// The state of one session: which saves are under way.
#[derive(Debug)]
pub struct Relay<'t> {
    tools: Tools<'t>,
    /// The folder in which a save's file lies, with its last slash.
    folder: String,
    /// The name of each open save's file.
    saves: HashMap<IdKey, String>,
}

impl<'t> Relay<'t> {
    /// A relay whose saves are written into `folder`.
    pub fn new(tools: Tools<'t>, folder: &str) -> Self {
        let folder = format!("{}/", folder.trim_end_matches('/'));
        Self {
            tools,
            folder,
            saves: HashMap::new(),
        }
    }

    /// Decides a line from the engine. `fresh` makes the name of a new file, or says why not.
    pub fn from_engine(
        &mut self,
        line: &[u8],
        fresh: impl FnOnce() -> Result<String, String>,
    ) -> Down {
        let message = match envelope::read(line) {
            Ok(message) => message,
            Err(malformed) => return self.malformed(line, &malformed),
        };
        let (id, method) = match &message.shape {
            Shape::Request { id, method } => (Some(*id), method.as_ref()),
            Shape::Notification { method } => (None, method.as_ref()),
            Shape::Answer { .. } => return Down::Pass,
        };
        if method != "tools/call" {
            return Down::Pass;
        }
        match tool_of(&message) {
            Err(why) => refuse(id, why),
            Ok(Some(name)) if name == self.tools.save => self.save(line, &message, id, fresh),
            Ok(Some(name)) if self.withholds(&name) => not_found(id, &name),
            Ok(_) => Down::Pass,
        }
    }

    /// What becomes of a line from the engine that was forwarded unread, part by part, once all of
    /// it was seen: where this is not `Pass`, the line's end must be spoilt.
    pub fn from_engine_unread(&self, scan: &CallScan) -> Down {
        if scan.ambiguous() {
            return refuse(scan.id(), Why::Twice("name"));
        }
        match scan.tool() {
            Some(name) if name == self.tools.save => answer(scan.id(), |id| {
                failure(
                    id,
                    "The login state was not stored: the call cannot be read",
                )
            }),
            Some(name) if self.withholds(&name) => not_found(scan.id(), &name),
            _ => Down::Pass,
        }
    }

    /// Decides a line from the upstream.
    pub fn from_upstream(&mut self, line: &[u8]) -> Up {
        let Ok(message) = envelope::read(line) else {
            return Up::Pass;
        };
        let Shape::Answer { id } = message.shape else {
            return Up::Pass;
        };
        if let Some(file) = self.saves.remove(&id.key()) {
            return if succeeded(&message) {
                Up::Saved(file)
            } else {
                Up::NotSaved(file)
            };
        }
        match edit::cut_tools(line, &message, |name| !self.withholds(name)) {
            Ok(None) => Up::Pass,
            Ok(Some(line)) => Up::Send(line),
            // A list in which a withheld tool could stand unseen.
            Err(why) => Up::Send(wire::error(
                Some(id.as_bytes()),
                -32603,
                &why.to_string(),
                None,
            )),
        }
    }

    /// The files of the saves that are still open.
    pub fn open_files(&self) -> impl Iterator<Item = &str> {
        self.saves.values().map(String::as_str)
    }

    fn withholds(&self, name: &str) -> bool {
        self.tools.withheld.contains(&name)
    }

    /// A line that is no message. What cannot be JSON to any reader is no call and passes; JSON
    /// that is no message is refused as the launcher refuses it, for the upstream might read one.
    fn malformed(&self, line: &[u8], malformed: &envelope::Malformed) -> Down {
        if !matches!(malformed.why, Why::NotJson(_)) {
            let message = malformed.why.to_string();
            let id = malformed.id.as_deref();
            return Down::Answer(wire::error(id, malformed.why.code(), &message, None));
        }
        if std::str::from_utf8(line).is_ok() {
            return Down::Pass;
        }
        let mut scan = CallScan::default();
        scan.feed(line);
        self.from_engine_unread(&scan)
    }

    fn save(
        &mut self,
        line: &[u8],
        message: &Envelope<'_>,
        id: Option<Id<'_>>,
        fresh: impl FnOnce() -> Result<String, String>,
    ) -> Down {
        let Some(id) = id else { return Down::Drop };
        if self.saves.contains_key(&id.key()) {
            let why = "invalid request: \"id\" is that of an open request";
            return Down::Answer(wire::error(Some(id.as_bytes()), -32600, why, None));
        }
        let params = message.params.unwrap_or(b"{}");
        let old = match envelope::member(params, "arguments") {
            Ok(old) => old,
            Err(why) => return refuse(Some(id), why),
        };
        let file = match fresh() {
            Ok(file) => file,
            Err(reason) => return Down::Answer(failure(id.as_bytes(), &not_stored_text(&reason))),
        };
        let arguments = json!({"filename": format!("{}{file}", self.folder)}).to_string();
        self.saves.insert(id.key(), file);
        Down::Send(match old {
            Some(old) => edit::splice(line, old, arguments.as_bytes()),
            None => {
                let member = format!("\"arguments\":{arguments}");
                edit::splice(
                    line,
                    params,
                    &edit::prepend_members(params, member.as_bytes()),
                )
            }
        })
    }
}

/// The answer `line` of a save, in the upstream's own shape of a failed tool, with the reason why
/// the login state was not stored.
pub fn not_stored(line: &[u8], reason: &str) -> Vec<u8> {
    let id = match envelope::read(line) {
        Ok(Envelope {
            shape: Shape::Answer { id },
            ..
        }) => id.as_bytes(),
        _ => b"null",
    };
    failure(id, &not_stored_text(reason))
}

/// What a person reads when a save was not stored.
pub fn not_stored_text(reason: &str) -> String {
    format!("The login state was not stored: {reason}")
}

/// The tool that a `tools/call` names. An error where two readers could see two.
fn tool_of(message: &Envelope<'_>) -> Result<Option<String>, Why> {
    match message.params {
        Some(params) if json::kind(params) == Kind::Object => {
            let name = envelope::member(params, "name")?;
            let name = name.filter(|name| json::kind(name) == Kind::String);
            Ok(name.map(|name| envelope::text_of(name).into_owned()))
        }
        _ => Ok(None),
    }
}

/// Whether an answer to a call says that the tool did what it was asked.
fn succeeded(message: &Envelope<'_>) -> bool {
    let (Some(result), None) = (message.result, message.error) else {
        return false;
    };
    json::kind(result) == Kind::Object
        && matches!(
            envelope::member(result, "isError"),
            Ok(None | Some(b"false"))
        )
}

fn refuse(id: Option<Id<'_>>, why: Why) -> Down {
    answer(id, |id| {
        wire::error(Some(id), why.code(), &why.to_string(), None)
    })
}

/// The upstream's own answer for a tool that it does not have.
fn not_found(id: Option<Id<'_>>, name: &str) -> Down {
    answer(id, |id| failure(id, &format!("Tool \"{name}\" not found")))
}

/// An answer where one is asked for.
fn answer(id: Option<Id<'_>>, line: impl FnOnce(&[u8]) -> Vec<u8>) -> Down {
    match id {
        Some(id) => Down::Answer(line(id.as_bytes())),
        None => Down::Drop,
    }
}

/// A failed tool, in the upstream's shape and order of members.
fn failure(id: &[u8], text: &str) -> Vec<u8> {
    let text = Value::from(format!("### Error\n{text}"));
    let mut line = format!(
        r####"{{"result":{{"content":[{{"type":"text","text":{text}}}],"isError":true}},"jsonrpc":"2.0","id":"####
    )
    .into_bytes();
    line.extend_from_slice(id);
    line.extend_from_slice(b"}\n");
    line
}

#[cfg(test)]
mod tests;
