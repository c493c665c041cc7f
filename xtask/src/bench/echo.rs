//! A small MCP server whose one tool answers with as many bytes as it is asked for.

use std::io::{self, BufRead as _, Write as _};
use std::process::ExitCode;

const HELLO: &str = r#""result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"echo","version":"1"}}"#;
const TOOLS: &str = r#""result":{"tools":[{"name":"echo","inputSchema":{"type":"object"}}]}"#;

/// A line that asks for an answer of `size` bytes of text.
pub(crate) fn request(id: usize, size: usize) -> String {
    format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"tools/call\",\"params\":{{\"name\":\"echo\",\"arguments\":{{\"size\":{size}}}}}}}\n"
    )
}

/// Answers until the input ends: each answer with one write, as the protocol's own libraries do.
pub(crate) fn serve() -> ExitCode {
    let mut input = io::BufReader::with_capacity(1 << 16, io::stdin().lock());
    let mut output = io::stdout().lock();
    let (mut line, mut text) = (Vec::new(), Vec::new());
    while input
        .read_until(b'\n', &mut line)
        .is_ok_and(|count| count > 0)
    {
        text.clear();
        answer(&line, &mut text);
        line.clear();
        if output
            .write_all(&text)
            .and_then(|()| output.flush())
            .is_err()
        {
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

fn answer(line: &[u8], answer: &mut Vec<u8>) {
    let Some(id) = number(line, b"\"id\":") else {
        return;
    };
    _ = write!(answer, "{{\"jsonrpc\":\"2.0\",\"id\":{id},");
    match number(line, b"\"size\":") {
        Some(size) => {
            answer.extend_from_slice(b"\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"");
            answer.resize(answer.len() + size, b'x');
            answer.extend_from_slice(b"\"}]}");
        }
        None if find(line, b"\"initialize\"").is_some() => {
            answer.extend_from_slice(HELLO.as_bytes());
        }
        None => answer.extend_from_slice(TOOLS.as_bytes()),
    }
    answer.extend_from_slice(b"}\n");
}

/// The number after `key`.
fn number(line: &[u8], key: &[u8]) -> Option<usize> {
    let digits = &line[find(line, key)? + key.len()..];
    let end = digits.iter().position(|byte| !byte.is_ascii_digit())?;
    std::str::from_utf8(&digits[..end]).ok()?.parse().ok()
}

fn find(line: &[u8], part: &[u8]) -> Option<usize> {
    line.windows(part.len()).position(|window| window == part)
}
