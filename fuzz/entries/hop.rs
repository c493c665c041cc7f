//! What must hold of a session for any lines, from either side. Each line of the input begins with
//! the side that it comes from: `<` the connector, anything else the engine.
//!
//! The oracle is another reader of JSON, which takes the last of two equal members and compares
//! names without regard to case: whatever it reads as a call of a tool that is not allowed must not
//! have been forwarded. With a policy that allows all, what is forwarded is what came.

use sema_rules::envelope;
use sema_rules::hop::{Absence, Forward, Hop, Step};
use sema_rules::long::LongLine;
use sema_rules::name::ConnectorName;
use sema_rules::policy::ToolPolicy;
use sema_rules::wire::Code;
use serde_json::Value;

const INITIALIZE: &[u8] = br#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{}}"#;
const INITIALIZED: &[u8] = br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
const SERVER: &[u8] = br#"{"jsonrpc":"2.0","id":0,"result":{"capabilities":{"tools":{}}}}"#;

/// Runs a session over these lines.
pub(crate) fn hop(input: &[u8]) {
    let Some((&mode, stream)) = input.split_first() else {
        return;
    };
    let restricted = mode & 1 == 1;
    let policy = if restricted {
        br#"{"allow":["safe"]}"#.as_slice()
    } else {
        b""
    };
    let policy = if restricted {
        ToolPolicy::parse(policy).ok()
    } else {
        Some(ToolPolicy::all())
    };
    let (Some(policy), Ok(name)) = (policy, ConnectorName::parse("c")) else {
        return;
    };
    let absence = Absence {
        code: Code::Unauthorized,
        reason: "parked".to_owned(),
    };
    let mut hop = Hop::new(name, "0", Ok(policy), absence.clone());
    if mode & 2 == 0 {
        check(&hop.connector_started());
    }
    feed(&mut hop, INITIALIZE, true, restricted);
    feed(&mut hop, SERVER, false, restricted);
    feed(&mut hop, INITIALIZED, true, restricted);
    if mode & 2 == 2 {
        check(&hop.connector_started());
        feed(&mut hop, SERVER, false, restricted);
    }
    for line in stream.split(|byte| *byte == b'\n') {
        match line.split_first() {
            Some((b'<', line)) => feed(&mut hop, line, false, restricted),
            Some((b'!', _)) => check(&hop.connector_ended(absence.clone())),
            Some((b'+', _)) => check(&hop.connector_started()),
            Some((b'^', line)) => {
                let mut long = LongLine::default();
                line.chunks(7).for_each(|part| long.feed(part));
                check(&hop.long_from_engine(&long));
                check(&hop.long_from_connector(&long, line.len()));
            }
            _ => feed(&mut hop, line, true, restricted),
        }
    }
    let open = hop.open_requests();
    let answered = hop.connector_ended(absence);
    let answers = answered
        .to_engine
        .iter()
        .filter(|line| line.starts_with(br#"{"jsonrpc":"2.0","id""#));
    assert!(
        answers.count() <= open + stream.len(),
        "more answers than requests"
    );
    assert_eq!(hop.open_requests(), 0);
}

fn feed(hop: &mut Hop, line: &[u8], from_engine: bool, restricted: bool) {
    let message = envelope::read(line);
    let step = match from_engine {
        true => hop.from_engine(line, &message, 0),
        false => hop.from_connector(line, &message, None),
    };
    check(&step);
    match &step.forward {
        Forward::Nothing => {}
        Forward::Replaced(line) => assert!(!from_engine && is_message(line)),
        Forward::AsIs => {
            assert!(message.is_ok() && is_message(line));
            assert!(
                !(from_engine && restricted && calls_another_tool(line)),
                "a tool slipped through"
            );
        }
    }
}

/// Whatever we make up is a message on a line of its own.
fn check(step: &Step) {
    for line in step.to_engine.iter().chain(&step.to_connector) {
        let (last, rest) = line.split_last().unwrap_or((&b'\n', &[]));
        assert!(*last == b'\n' || is_message(line));
        assert!(is_message(rest) || is_message(line));
    }
}

fn is_message(line: &[u8]) -> bool {
    // Deeper than this the other reader gives up; a lone surrogate it does not read at all.
    let deep = line
        .iter()
        .filter(|byte| matches!(byte, b'{' | b'['))
        .count()
        > 100;
    let surrogate = line
        .windows(3)
        .any(|bytes| bytes.eq_ignore_ascii_case(b"\\ud"));
    let numbers = line
        .windows(2)
        .any(|bytes| bytes[0].eq_ignore_ascii_case(&b'e') && !bytes[1].is_ascii_alphabetic());
    deep || surrogate
        || numbers
        || serde_json::from_slice::<Value>(line).is_ok_and(|value| value.is_object())
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
