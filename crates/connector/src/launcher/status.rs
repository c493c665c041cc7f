//! The status that the launcher serves, read by a client of our own in the same process.

use super::{Purpose, Settings, run};
use crate::cli::failure::Failure;
use sema_rules::envelope;
use serde_json::{Value, json};
use std::io::{BufReader, Write as _};

/// Runs a session that asks for nothing but the status, and ends it.
pub fn read(mut settings: Settings) -> Result<String, Failure> {
    settings.purpose = Purpose::Status;
    let failed = |error| Failure::failed(format_args!("cannot read the status: {error}"));
    let (input, mut to) = std::io::pipe().map_err(failed)?;
    let (from, output) = std::io::pipe().map_err(failed)?;
    let uri = format!("sema-connector://{}/status", settings.name);
    let session = std::thread::spawn(move || run(settings, input.into(), output.into(), None));
    let mut from = BufReader::new(from);
    let client = json!({"name": "sema-connector status", "version": env!("CARGO_PKG_VERSION")});
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client});
    let mut ask = |line: Value| writeln!(to, "{line}").map_err(failed);
    ask(json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}))?;
    answer(&mut from, b"1").map_err(failed)?;
    ask(json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))?;
    ask(json!({"jsonrpc": "2.0", "id": 2, "method": "resources/read", "params": {"uri": uri}}))?;
    let answer = answer(&mut from, b"2").map_err(failed)?;
    drop(to);
    if let Ok(result) = session.join() {
        result?;
    }
    let text = answer["result"]["contents"][0]["text"]
        .as_str()
        .map(str::to_owned);
    text.ok_or_else(|| Failure::failed("the launcher did not tell its status"))
}

/// The answer to the request of this id; other messages are passed over.
fn answer(from: &mut impl std::io::BufRead, id: &[u8]) -> std::io::Result<Value> {
    let mut line = Vec::new();
    loop {
        line.clear();
        if from.read_until(b'\n', &mut line)? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        if let Ok(message) = envelope::read(&line)
            && let envelope::Shape::Answer { id: own } = message.shape
            && own.as_bytes() == id
        {
            return Ok(serde_json::from_slice(&line)?);
        }
    }
}
