//! The status that the launcher serves, read by a client of our own in the same process.

use super::{Purpose, Settings, run};
use crate::cli::failure::Failure;
use sema_rules::envelope;
use serde_json::{Value, json};
use std::io::{BufReader, Write as _};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// Runs a session that asks for nothing but the status, and ends it. A connector that does not
/// answer within `patience` has failed.
pub fn read(mut settings: Settings, patience: Duration) -> Result<String, Failure> {
    settings.purpose = Purpose::Status;
    let failed = |error| Failure::failed(format_args!("cannot read the status: {error}"));
    let (input, mut to) = std::io::pipe().map_err(failed)?;
    let (from, output) = std::io::pipe().map_err(failed)?;
    let uri = format!("sema-connector://{}/status", settings.name);
    let session = std::thread::spawn(move || run(settings, input.into(), output.into(), None));
    let answers = Answers::of(from, Instant::now() + patience);
    let client = json!({"name": "sema-connector status", "version": env!("CARGO_PKG_VERSION")});
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client});
    let mut ask = || {
        let mut say = |line: Value| writeln!(to, "{line}");
        say(json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}))?;
        answers.to(b"1")?;
        say(json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))?;
        say(
            json!({"jsonrpc": "2.0", "id": 2, "method": "resources/read", "params": {"uri": uri}}),
        )?;
        answers.to(b"2")
    };
    let answer = match ask() {
        Err(error) if error.kind() == std::io::ErrorKind::TimedOut => Ok(None),
        answer => answer.map(Some),
    };
    drop(to);
    if let Ok(result) = session.join() {
        result?;
    }
    let Some(answer) = answer.map_err(failed)? else {
        let reason = format!("the connector did not answer within {patience:?}");
        return Ok(json!({"state": "failed", "tools": [], "reason": reason}).to_string());
    };
    let text = answer["result"]["contents"][0]["text"]
        .as_str()
        .map(str::to_owned);
    text.ok_or_else(|| Failure::failed("the launcher did not tell its status"))
}

/// The answers of a session, read in a thread of its own.
struct Answers {
    told: mpsc::Receiver<(Vec<u8>, Value)>,
    until: Instant,
}

impl Answers {
    fn of(from: std::io::PipeReader, until: Instant) -> Self {
        let (tell, told) = mpsc::channel();
        let mut from = BufReader::new(from);
        std::thread::spawn(move || {
            while let Ok(answer) = next(&mut from)
                && tell.send(answer).is_ok()
            {}
        });
        Self { told, until }
    }

    /// The answer to the request of this id.
    fn to(&self, id: &[u8]) -> std::io::Result<Value> {
        loop {
            let left = self.until.saturating_duration_since(Instant::now());
            match self.told.recv_timeout(left) {
                Ok((own, answer)) if own == id => return Ok(answer),
                Ok(_) => {}
                Err(mpsc::RecvTimeoutError::Timeout) => {
                    return Err(std::io::ErrorKind::TimedOut.into());
                }
                Err(mpsc::RecvTimeoutError::Disconnected) => {
                    return Err(std::io::ErrorKind::UnexpectedEof.into());
                }
            }
        }
    }
}

/// The next answer and its id; other messages are passed over.
fn next(from: &mut impl std::io::BufRead) -> std::io::Result<(Vec<u8>, Value)> {
    let mut line = Vec::new();
    loop {
        line.clear();
        if from.read_until(b'\n', &mut line)? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        if let Ok(message) = envelope::read(&line)
            && let envelope::Shape::Answer { id } = message.shape
        {
            return Ok((id.as_bytes().to_vec(), serde_json::from_slice(&line)?));
        }
    }
}
