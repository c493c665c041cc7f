//! What must hold of the readers of lines: the splitter, the envelope, and what is merged into an
//! answer. The oracle is another reader of JSON.

use sema_rules::envelope::{self, Shape};
use sema_rules::frame::{Piece, Place, Splitter};
use sema_rules::hop::{Absence, Forward, Hop};
use sema_rules::name::ConnectorName;
use sema_rules::policy::ToolPolicy;
use sema_rules::wire::Code;
use serde_json::{Value, json};
use std::collections::HashSet;

/// The longest line of the splitter under test: short, so that long lines are met.
const LIMIT: usize = 16;

/// Any stream in any chunks: the pieces are the stream, and each is what it says.
pub(crate) fn frame(input: &[u8]) {
    let Some((&seed, stream)) = input.split_first() else {
        return;
    };
    let mut splitter = Splitter::with_limit(LIMIT);
    let (mut seen, mut in_long) = (Vec::new(), false);
    let mut rest = stream;
    let mut chunk = usize::from(seed) % 29 + 1;
    while !rest.is_empty() {
        let space = splitter.space();
        let count = chunk.min(rest.len()).min(space.len());
        space[..count].copy_from_slice(&rest[..count]);
        splitter.filled(count);
        rest = &rest[count..];
        chunk = chunk * 7 % 29 + 1;
        while let Some(piece) = splitter.take() {
            tell(&piece, &mut seen, &mut in_long);
        }
    }
    if let Some(piece) = splitter.finish() {
        tell(&piece, &mut seen, &mut in_long);
    }
    assert!(!in_long, "a long line did not end");
    assert_eq!(seen, stream);
}

fn tell(piece: &Piece<'_>, seen: &mut Vec<u8>, in_long: &mut bool) {
    match piece {
        Piece::Line(line) => {
            let content = line.strip_suffix(b"\n").unwrap_or(line);
            let content = content.strip_suffix(b"\r").unwrap_or(content);
            assert!(!*in_long && content.len() <= LIMIT && !content.contains(&b'\n'));
            seen.extend_from_slice(line);
        }
        Piece::Part { bytes, place } => {
            assert_eq!(*in_long, *place != Place::First, "{place:?}");
            *in_long = *place != Place::Last;
            seen.extend_from_slice(bytes);
        }
    }
}

/// Any line: what is read of it is what another reader reads.
pub(crate) fn envelope(input: &[u8]) {
    let read = envelope::read(input);
    let Ok(other) = serde_json::from_slice::<Value>(input) else {
        return;
    };
    let Ok(message) = read else {
        let id = other.get("id");
        let usable = id.is_none_or(|id| id.is_string() || id.is_u64() || id.is_i64());
        let fine = usable && other["jsonrpc"] == "2.0" && other["method"].is_string();
        let twice = read.is_err_and(|why| why.to_string().contains("twice"));
        assert!(twice || !fine);
        return;
    };
    let value = |part: Option<&[u8]>| {
        part.map(|part| serde_json::from_slice::<Value>(part).expect("a value"))
    };
    assert_eq!(value(message.params).as_ref(), other.get("params"));
    assert_eq!(value(message.result).as_ref(), other.get("result"));
    assert_eq!(value(message.error).as_ref(), other.get("error"));
    let (id, method) = match &message.shape {
        Shape::Request { id, method } => (Some(id.as_bytes()), Some(method)),
        Shape::Notification { method } => (None, Some(method)),
        Shape::Answer { id } => (Some(id.as_bytes()), None),
    };
    assert_eq!(value(id).as_ref(), other.get("id"));
    assert_eq!(
        method.map(|method| Value::from(method.as_ref())).as_ref(),
        other.get("method")
    );
}

/// Any result of the three answers that are changed: nothing but what is ours comes or goes.
pub(crate) fn merge(input: &[u8]) {
    if input.contains(&b'\n') {
        return;
    }
    for (method, with) in [
        ("initialize", initialized as Merged),
        ("resources/list", listed),
        ("tools/list", cut),
    ] {
        let line = [br#"{"jsonrpc":"2.0","id":1,"result":"#, input, b"}"].concat();
        let Ok(mut expected) = serde_json::from_slice::<Value>(&line) else {
            return;
        };
        if has_twins(&expected["result"]) {
            return;
        }
        let mut hop = live();
        let ask = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}"}}"#);
        if method == "resources/list" {
            connector_with_resources(&mut hop);
        }
        hop.from_engine(ask.as_bytes(), &envelope::read(ask.as_bytes()), 0);
        let step = hop.from_connector(&line, &envelope::read(&line), None);
        let out = match step.forward {
            Forward::AsIs => line,
            Forward::Replaced(line) => line,
            // A member that is read here is there twice.
            Forward::Nothing => continue,
        };
        with(&mut expected["result"]);
        let out: Value = serde_json::from_slice(&out).expect("a message");
        if method == "tools/list" && left_out(&out, &expected) {
            continue;
        }
        assert_eq!(out, expected, "{method}");
    }
}

/// Whether only tools are missing: one whose name is there twice is left out, which the other reader
/// does not see.
fn left_out(out: &Value, expected: &Value) -> bool {
    let tools = |value: &Value| value["result"]["tools"].as_array().cloned();
    let (Some(left), Some(all)) = (tools(out), tools(expected)) else {
        return false;
    };
    let mut without = expected.clone();
    without["result"]["tools"] = Value::from(left.clone());
    let mut all = all.iter();
    without == *out && left.iter().all(|tool| all.any(|other| other == tool))
}

/// Whether two members differ in case only: readers disagree on which is meant.
fn has_twins(result: &Value) -> bool {
    let Some(members) = result.as_object() else {
        return false;
    };
    let folded: HashSet<String> = members.keys().map(|key| key.to_lowercase()).collect();
    folded.len() < members.len() || members.values().any(has_twins)
}

/// What a result becomes.
type Merged = fn(&mut Value);

fn live() -> Hop {
    let name = ConnectorName::parse("c").expect("a name");
    let policy = ToolPolicy::parse(br#"{"allow":["safe"]}"#).expect("a policy");
    let absence = Absence {
        code: Code::Unauthorized,
        reason: String::new(),
    };
    let mut hop = Hop::new(name, "0", Ok(policy), absence);
    hop.connector_started();
    hop
}

fn connector_with_resources(hop: &mut Hop) {
    let ask = br#"{"jsonrpc":"2.0","id":0,"method":"initialize"}"#;
    hop.from_engine(ask, &envelope::read(ask), 0);
    let answer = br#"{"jsonrpc":"2.0","id":0,"result":{"capabilities":{"resources":{}}}}"#;
    hop.from_connector(answer, &envelope::read(answer), None);
}

fn initialized(result: &mut Value) {
    let Some(capabilities) = result
        .get_mut("capabilities")
        .and_then(Value::as_object_mut)
    else {
        return;
    };
    if !capabilities.contains_key("resources") {
        capabilities.insert("resources".to_owned(), json!({"subscribe": true}));
    }
}

fn listed(result: &mut Value) {
    let uri = "sema-connector://c/status";
    let Some(list) = result.get_mut("resources").and_then(Value::as_array_mut) else {
        return;
    };
    if !list.iter().any(|resource| resource["uri"] == uri) {
        let description = "Whether the connector c can be used, and its tools.";
        let own = json!({"uri": uri, "name": "status", "description": description, "mimeType": "application/json"});
        list.insert(0, own);
    }
}

fn cut(result: &mut Value) {
    if let Some(list) = result.get_mut("tools").and_then(Value::as_array_mut) {
        list.retain(|tool| tool["name"] == "safe");
    }
}
