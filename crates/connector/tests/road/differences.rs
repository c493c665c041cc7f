//! How the answers that a client was given differ from others, in lines for a snapshot.

use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// What a client was answered, by step.
pub(crate) type Answers = Vec<(String, Value)>;

/// The longest value that is shown whole, in characters.
const SHOWN: usize = 80;

/// A line for each difference, with the steps in which it is.
pub(crate) fn differences(bare: &Answers, ours: &Answers) -> String {
    let mut found: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for ((label, bare), (_, ours)) in bare.iter().zip(ours) {
        let mut lines = Vec::new();
        differ("", bare, ours, &mut lines);
        for line in lines {
            let steps = found.entry(line).or_default();
            if steps.last() != Some(&label.as_str()) {
                steps.push(label);
            }
        }
    }
    let mut all: Vec<&str> = ours.iter().map(|(label, _)| label.as_str()).collect();
    all.dedup();
    let line = |(line, steps): (String, Vec<&str>)| match all.len() - steps.len() {
        // All but the connection and the status resource.
        2 => format!("  each answer: {line}\n"),
        _ => format!("  {}: {line}\n", steps.join(", ")),
    };
    found.into_iter().map(line).collect()
}

/// How two values differ: a line for each member that does.
fn differ(path: &str, bare: &Value, ours: &Value, lines: &mut Vec<String>) {
    match (bare, ours) {
        _ if bare == ours => {}
        (Value::Object(bare), Value::Object(ours)) => match bare.get("error") {
            Some(error) if !ours.contains_key("error") => {
                let keys: Vec<&String> = ours.keys().collect();
                lines.push(format!("{} -> {keys:?}", shown(error)));
            }
            _ => members(path, bare, ours, lines),
        },
        (Value::Array(bare), Value::Array(ours)) if bare.len() == ours.len() => {
            for (bare, ours) in bare.iter().zip(ours) {
                differ(&format!("{path}[]"), bare, ours, lines);
            }
        }
        (Value::Array(bare), Value::Array(ours)) => {
            let missing = bare.iter().filter(|value| !ours.contains(value));
            lines.extend(missing.map(|value| format!("{path}[] - {}", shown(value))));
            let added = ours.iter().filter(|value| !bare.contains(value));
            lines.extend(added.map(|value| format!("{path}[] + {}", shown(value))));
        }
        (Value::Null, ours) => lines.push(format!("{path} + {}", shown(ours))),
        (bare, Value::Null) => lines.push(format!("{path} - {}", shown(bare))),
        _ => lines.push(format!("{path} {} -> {}", shown(bare), shown(ours))),
    }
}

fn members(
    path: &str,
    bare: &Map<String, Value>,
    ours: &Map<String, Value>,
    lines: &mut Vec<String>,
) {
    let added = ours.keys().filter(|key| !bare.contains_key(*key));
    for key in bare.keys().chain(added) {
        let of = |object: &Map<String, Value>| object.get(key).cloned().unwrap_or_default();
        differ(&format!("{path}.{key}"), &of(bare), &of(ours), lines);
    }
}

fn shown(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}
