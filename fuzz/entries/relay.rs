//! What must hold of the export relay for any stream: what the upstream would read of it, as a
//! reader that mends broken UTF-8 and takes the last of two equal members, calls no withheld tool
//! and saves to no file but ours. The first byte of the input chooses the chunking.

use sema_rules::call::CallScan;
use sema_rules::frame::{Piece, Place, Splitter};
use sema_rules::relay::{Down, Relay, Tools, Up};
use serde_json::Value;

const TOOLS: Tools<'static> = Tools {
    withheld: &["browser_cookie_list", "browser_set_storage_state"],
    save: "browser_storage_state",
};
/// Small, so that over-long lines are short enough to be found.
const LIMIT: usize = 200;

/// Relays `input` in both directions.
pub(crate) fn relay(input: &[u8]) {
    let Some((&chunk, stream)) = input.split_first() else {
        return;
    };
    let mut relay = Relay::new(TOOLS, "/out");
    let mut saves = 0;
    let mut to_upstream = Vec::new();
    let mut scan = CallScan::default();
    pieces(stream, usize::from(chunk) + 1, |piece| {
        let fresh = || {
            saves += 1;
            Ok(format!("f{saves}"))
        };
        match piece {
            Piece::Line(line) => match relay.from_engine(line, fresh) {
                Down::Pass => to_upstream.extend_from_slice(line),
                Down::Send(line) => to_upstream.extend_from_slice(&line),
                Down::Answer(line) => assert_answer(&line),
                Down::Drop => {}
            },
            Piece::Part { bytes, place } => {
                if place == Place::First {
                    scan = CallScan::default();
                }
                scan.feed(bytes);
                match (place, relay.from_engine_unread(&scan)) {
                    (Place::First | Place::Middle, _) | (Place::Last, Down::Pass) => {
                        to_upstream.extend_from_slice(bytes);
                    }
                    (Place::Last, Down::Answer(line)) => {
                        to_upstream.extend_from_slice(b"\0\n");
                        assert_answer(&line);
                    }
                    (Place::Last, _) => to_upstream.extend_from_slice(b"\0\n"),
                }
            }
        }
    });
    to_upstream
        .split(|&byte| byte == b'\n')
        .for_each(assert_harmless);
    pieces(stream, usize::from(chunk) + 1, |piece| {
        if let Piece::Line(line) = piece
            && let Up::Send(line) = relay.from_upstream(line)
        {
            assert_answer(&line);
            assert!(
                !listed(&line)
                    .iter()
                    .any(|name| TOOLS.withheld.contains(&name.as_str()))
            );
        }
    });
}

fn pieces(stream: &[u8], chunk: usize, mut take: impl FnMut(Piece<'_>)) {
    let mut splitter = Splitter::with_limit(LIMIT);
    for part in stream.chunks(chunk) {
        splitter.space()[..part.len()].copy_from_slice(part);
        splitter.filled(part.len());
        while let Some(piece) = splitter.take() {
            take(piece);
        }
    }
    while let Some(piece) = splitter.finish() {
        take(piece);
    }
}

/// An answer of ours is one line of JSON.
fn assert_answer(line: &[u8]) {
    let text = line.strip_suffix(b"\n").unwrap_or(line);
    assert!(!text.contains(&b'\n'));
    assert!(serde_json::from_slice::<Value>(text).is_ok() || line.iter().any(|byte| *byte >= 0x80));
}

/// What Node.js would read of a line.
fn assert_harmless(line: &[u8]) {
    let text = String::from_utf8_lossy(line);
    let Ok(message) = serde_json::from_str::<Value>(&text) else {
        return;
    };
    if message["method"] != "tools/call" {
        return;
    }
    let name = message["params"]["name"].as_str().unwrap_or_default();
    assert!(!TOOLS.withheld.contains(&name), "{text}");
    if name == TOOLS.save {
        let file = message["params"]["arguments"]["filename"]
            .as_str()
            .unwrap_or_default();
        assert!(file.starts_with("/out/f"), "{text}");
        assert_eq!(
            message["params"]["arguments"]
                .as_object()
                .map(|all| all.len()),
            Some(1)
        );
    }
}

fn listed(line: &[u8]) -> Vec<String> {
    let message: Value = serde_json::from_slice(line).unwrap_or_default();
    let tools = message["result"]["tools"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    tools
        .iter()
        .filter_map(|tool| Some(tool["name"].as_str()?.to_owned()))
        .collect()
}
