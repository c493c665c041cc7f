//! What must hold of a session in which both eras are spoken, for any lines. How a line of the
//! input begins says what it is:
//!
//! - `<` a line of the connector's, `>N RESULT` its answer to the request of our number N
//! - `~ID METHOD MEMBERS` a modern request with these further members of `params`
//! - `!` the connector ends, `+` it starts; anything else is a line of the engine's
//!
//! No request is answered more often than it was asked, none is left without an answer at the end
//! unless it was cancelled, and no call of a tool that the policy leaves out gets through.

use sema_rules::envelope::{self, Id, IdKey, Shape};
use sema_rules::eras::Eras;
use sema_rules::hop::{Absence, Forward, Hop, Step};
use sema_rules::name::ConnectorName;
use sema_rules::policy::ToolPolicy;
use sema_rules::wire::Code;
use serde_json::Value;
use std::cell::Cell;
use std::collections::HashMap;

const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"roots":{},"elicitation":{}},"progressToken":1}"#;

thread_local! {
    static TOKENS: Cell<usize> = const { Cell::new(0) };
}

fn token() -> Option<String> {
    let count = TOKENS.get() + 1;
    TOKENS.set(count);
    (!count.is_multiple_of(16)).then(|| format!("s{count}"))
}

fn absence() -> Absence {
    Absence {
        code: Code::UpstreamExit,
        reason: "gone".to_owned(),
    }
}

/// A session, and how many answers each id still waits for.
struct Session {
    eras: Eras,
    restricted: bool,
    waiting: HashMap<IdKey, i64>,
}

/// Runs a session over these lines.
pub(crate) fn eras(input: &[u8]) {
    let Some((&mode, stream)) = input.split_first() else {
        return;
    };
    TOKENS.set(0);
    let restricted = mode & 1 == 1;
    let policy = match restricted {
        true => ToolPolicy::parse(br#"{"allow":["safe"]}"#).map_err(|why| why.to_string()),
        false => Ok(ToolPolicy::all()),
    };
    let name = ConnectorName::parse("c").expect("a name");
    let mut session = Session {
        eras: Eras::new(Hop::new(name, "0", policy, absence()), token),
        restricted,
        waiting: HashMap::new(),
    };
    if mode & 2 == 0 {
        session.change(Eras::connector_started);
    }
    for line in stream.split(|byte| *byte == b'\n') {
        session.line(line);
    }
    session.change(|eras| eras.ended(absence()));
    if holds(stream, b"cancelled") {
        return;
    }
    for (id, count) in session.waiting {
        assert_eq!(count, 0, "{id:?} was left without an answer");
    }
}

fn holds(text: &[u8], part: &[u8]) -> bool {
    // A spelling in escapes counts as well.
    text.contains(&b'\\') || text.windows(part.len()).any(|window| window == part)
}

impl Session {
    fn line(&mut self, line: &[u8]) {
        match line.split_first() {
            Some((b'<', line)) => self.connector_says(line),
            Some((b'>', rest)) => {
                let text = String::from_utf8_lossy(rest);
                let (number, result) = text.split_once(' ').unwrap_or((&text, "{}"));
                self.connector_says(
                    format!(
                        r#"{{"jsonrpc":"2.0","id":"sema-connector:{number}","result":{result}}}"#
                    )
                    .as_bytes(),
                );
            }
            Some((b'~', rest)) => {
                let text = String::from_utf8_lossy(rest);
                let mut words = text.splitn(3, ' ');
                let mut next = || words.next().unwrap_or_default();
                let (id, method, members) = (next(), next(), next());
                let comma = if members.is_empty() { "" } else { "," };
                self.engine_says(
                    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{{members}{comma}{META}}}}}"#)
                        .as_bytes(),
                );
            }
            Some((b'!', _)) => self.change(|eras| eras.connector_ended(absence())),
            Some((b'+', _)) => self.change(Eras::connector_started),
            _ => self.engine_says(line),
        }
    }

    fn change(&mut self, change: impl FnOnce(&mut Eras) -> Step) {
        let step = change(&mut self.eras);
        self.check(&step, b"", false);
    }

    fn engine_says(&mut self, line: &[u8]) {
        let message = envelope::read(line);
        let id = match &message {
            Ok(message) => match message.shape {
                Shape::Request { id, .. } => Some(id.key()),
                _ => None,
            },
            Err(malformed) => malformed.id.as_deref().and_then(Id::read).map(Id::key),
        };
        if let Some(id) = id {
            *self.waiting.entry(id).or_default() += 1;
        }
        let step = self.eras.from_engine(line, &message, 0);
        self.check(&step, line, true);
    }

    fn connector_says(&mut self, line: &[u8]) {
        let step = self.eras.from_connector(line, &envelope::read(line), None);
        self.check(&step, line, false);
    }

    fn check(&mut self, step: &Step, line: &[u8], from_engine: bool) {
        let forwarded = match &step.forward {
            Forward::AsIs => Some(line),
            Forward::Replaced(line) => Some(line.as_slice()),
            Forward::Nothing => None,
        };
        let (onward, back) = match from_engine {
            true => (None, forwarded),
            false => (forwarded, None),
        };
        let to_engine = step.to_engine.iter().map(Vec::as_slice);
        for line in to_engine.chain(onward) {
            self.heard_by_engine(line);
        }
        let to_connector = step.to_connector.iter().map(Vec::as_slice);
        for line in to_connector.chain(back) {
            assert!(envelope::read(line).is_ok());
            assert!(
                !(self.restricted && calls_another_tool(line)),
                "a tool slipped through"
            );
        }
    }

    fn heard_by_engine(&mut self, line: &[u8]) {
        let message = match envelope::read(line) {
            Ok(message) => message,
            // An answer to a line without a usable id has none itself.
            Err(why) => {
                assert!(why.to_string().contains("\"id\""), "{why}");
                return;
            }
        };
        if let Shape::Answer { id } = message.shape {
            let count = self.waiting.entry(id.key()).or_default();
            *count -= 1;
            assert!(*count >= 0, "an answer too many");
        }
    }
}

/// As a reader would see it that does not regard case and takes the last of two members.
fn calls_another_tool(line: &[u8]) -> bool {
    let Ok(message) = serde_json::from_slice::<Value>(line) else {
        return false;
    };
    let member = |value: &Value, name: &str| {
        let members = value.as_object()?;
        let mut found = members
            .iter()
            .filter(|(key, _)| key.eq_ignore_ascii_case(name));
        found.next_back().map(|(_, value)| value.clone())
    };
    let text = |value: Option<Value>| value.and_then(|value| value.as_str().map(str::to_owned));
    if text(member(&message, "method")).as_deref() != Some("tools/call") {
        return false;
    }
    let params = member(&message, "params").unwrap_or_default();
    text(member(&params, "name")).as_deref() != Some("safe")
}
