//! A connector that misbehaves as it is told, for tests of the launcher. It answers each request
//! with the line that it read, in hexadecimal, unless it is told otherwise: by its arguments at the
//! start, and by the words in the member `do` of a message, at its outermost level or in the
//! arguments of a call.
//!
//! | word | what it does |
//! | --- | --- |
//! | `say:HEX`, `err:HEX` | writes these bytes to its output, to its standard error |
//! | `say:COUNT:HEX`, `err:COUNT:HEX` | the same so many times |
//! | `answer` | answers the request that carries the word |
//! | `answer:ID` | answers a request of this id |
//! | `seen` | answers with every line that was read since it was last asked |
//! | `hold` | answers nothing, until |
//! | `release` | answers all that is held, the last one first, then the request itself |
//! | `wait:MS` | does nothing for so long |
//! | `spin` | does nothing for ever, and takes a processor for it |
//! | `flood` | tells something without an end, and goes on with the next word |
//! | `exit:CODE` | ends |
//! | `child` | starts a program that has its output, and lives on |
//! | `mute` | closes its output, and lives on |
//! | `blind` | closes its input, and goes on with the next word |
//! | `stubborn` | is not ended by SIGTERM from here on, and goes on with the next word |
#![expect(
    clippy::disallowed_methods,
    clippy::panic,
    reason = "a program of the tests, not of the product"
)]

use std::io::{BufRead, Write};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// A longer line is shown by its length and a hash.
const SHOWN: usize = 64 * 1024;
/// How long one lives that has nothing more to do.
const LONG: &str = "1000000";

const INITIALIZE: &str = r#"{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"wild","version":"1"}}"#;
const TOOLS: &str = r#"{"tools":[{"name":"safe","inputSchema":{"type":"object"}},{"name":"secret_tool","inputSchema":{"type":"object"}}]}"#;

/// A line of another thread than the one that floods is on its way.
static WAITING: AtomicBool = AtomicBool::new(false);

fn main() {
    let mut wild = Wild::default();
    let words: Vec<String> = std::env::args().skip(1).collect();
    wild.obey(&words, &Request::default());
    let mut input = std::io::stdin().lock();
    let mut line = Vec::new();
    while input
        .read_until(b'\n', &mut line)
        .is_ok_and(|count| count > 0)
    {
        wild.take(&line);
        line.clear();
    }
}

#[derive(Default)]
struct Wild {
    seen: Vec<String>,
    held: Vec<Request>,
}

#[derive(Default, Clone)]
struct Request {
    id: Option<Vec<u8>>,
    shown: String,
}

impl Wild {
    fn take(&mut self, line: &[u8]) {
        let method = member(line, "method");
        let request = Request {
            id: member(line, "id")
                .filter(|_| method.is_some())
                .map(<[u8]>::to_vec),
            shown: shown(line),
        };
        self.seen.push(request.shown.clone());
        let words = words(line);
        match method {
            _ if !words.is_empty() => self.obey(&words, &request),
            Some(br#""initialize""#) => answer(&request, INITIALIZE),
            Some(br#""tools/list""#) => answer(&request, TOOLS),
            _ => answer(&request, &text(&request.shown)),
        }
    }

    fn obey(&mut self, words: &[String], request: &Request) {
        for (at, word) in words.iter().enumerate() {
            let rest = &words[at + 1..];
            match word.split_once(':').unwrap_or((word, "")) {
                ("say", what) => each_block(what, write),
                ("err", what) => each_block(what, |bytes| {
                    _ = std::io::stderr().write_all(bytes);
                }),
                ("answer", "") => answer(request, &text(&request.shown)),
                ("answer", id) => {
                    let id = Some(id.into());
                    answer(
                        &Request {
                            id,
                            ..Request::default()
                        },
                        "{}",
                    );
                }
                ("seen", _) => answer(request, &text(&std::mem::take(&mut self.seen).join(" "))),
                ("hold", _) => self.held.push(request.clone()),
                ("release", _) => self.release(request),
                ("wait", ms) => wait(ms),
                ("spin", _) => loop {
                    std::hint::spin_loop();
                },
                ("flood", _) => _ = std::thread::spawn(flood),
                ("exit", code) => std::process::exit(number(code)),
                ("child", _) => {
                    // It has this process's output and outlives it, if it may.
                    _ = Command::new("/bin/sleep")
                        .arg(LONG)
                        .stdin(Stdio::null())
                        .spawn();
                }
                ("mute", _) => {
                    become_another(Command::new("/bin/sleep").arg(LONG).stdout(Stdio::null()))
                }
                ("blind", _) => become_another(itself(&[]).args(rest).stdin(Stdio::null())),
                // What is ignored stays so in the program that takes this one's place.
                ("stubborn", _) => become_another(
                    itself(&["/bin/sh", "-c", r#"trap "" TERM; exec "$0" "$@""#]).args(rest),
                ),
                _ => panic!("no such word: {word}"),
            }
        }
    }

    fn release(&mut self, request: &Request) {
        while let Some(held) = self.held.pop() {
            answer(&held, &text(&held.shown));
        }
        answer(request, &text(&request.shown));
    }
}

/// This program, after these words.
fn itself(before: &[&str]) -> Command {
    let exe = std::env::current_exe().unwrap_or_default();
    match before.split_first() {
        Some((program, args)) => {
            let mut command = Command::new(program);
            command.args(args).arg(exe);
            command
        }
        None => Command::new(exe),
    }
}

fn become_another(command: &mut Command) {
    panic!("cannot go on as another program: {}", command.exec());
}

fn wait(ms: &str) {
    std::thread::sleep(Duration::from_millis(number(ms)));
}

fn flood() {
    for count in 0_u64.. {
        while WAITING.load(Ordering::SeqCst) {
            std::thread::yield_now();
        }
        let line = format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":"flood","progress":{count}}}}}"#
        );
        put(format!("{line}\n").as_bytes());
    }
}

fn answer(request: &Request, result: &str) {
    if let Some(id) = &request.id {
        let begin = [br#"{"jsonrpc":"2.0","id":"#, id.as_slice()].concat();
        write(
            &[
                begin.as_slice(),
                br#","result":"#,
                result.as_bytes(),
                b"}\n",
            ]
            .concat(),
        );
    }
}

fn text(text: &str) -> String {
    format!(r#"{{"content":[{{"type":"text","text":"{text}"}}]}}"#)
}

fn write(bytes: &[u8]) {
    WAITING.store(true, Ordering::SeqCst);
    put(bytes);
    WAITING.store(false, Ordering::SeqCst);
}

fn put(bytes: &[u8]) {
    let mut output = std::io::stdout().lock();
    if output
        .write_all(bytes)
        .and_then(|()| output.flush())
        .is_err()
    {
        std::process::exit(3);
    }
}

/// A line in hexadecimal; a long one as its length and its FNV-1a hash.
fn shown(line: &[u8]) -> String {
    if line.len() <= SHOWN {
        return line.iter().map(|byte| format!("{byte:02x}")).collect();
    }
    let hash = line.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    });
    format!("{}:{hash:016x}", line.len())
}

/// Tells the bytes that `HEX` or `COUNT:HEX` means, a block at a time.
fn each_block(what: &str, mut tell: impl FnMut(&[u8])) {
    let (count, hex) = what.split_once(':').unwrap_or(("1", what));
    let byte = |at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap_or(b'?');
    let once: Vec<u8> = (0..hex.len()).step_by(2).map(byte).collect();
    let mut count: usize = number(count);
    let block = once.repeat(count.min(SHOWN.div_ceil(once.len())));
    while count > 0 {
        let now = count.min(block.len() / once.len());
        tell(&block[..now * once.len()]);
        count -= now;
    }
}

fn number<T: std::str::FromStr>(text: &str) -> T {
    match text.parse() {
        Ok(number) => number,
        Err(_) => panic!("not a number: {text}"),
    }
}

/// The words of `do`: at the outermost level, or in the arguments of a call.
fn words(line: &[u8]) -> Vec<String> {
    let arguments = member(line, "params").and_then(|params| member(params, "arguments"));
    let words = member(line, "do").or_else(|| member(arguments?, "do"));
    let words = String::from_utf8_lossy(words.unwrap_or_default());
    words
        .trim_matches('"')
        .split_whitespace()
        .map(str::to_owned)
        .collect()
}

/// The value of a member of the outermost object, as written.
fn member<'a>(line: &'a [u8], name: &str) -> Option<&'a [u8]> {
    let name = format!("\"{name}\"");
    let (mut depth, mut begun, mut quoted, mut found, mut at) = (0, 0, false, false, 0);
    while at < line.len() {
        match line[at] {
            b'\\' if quoted => at += 1,
            b'"' => quoted = !quoted,
            _ if quoted => {}
            b'{' | b'[' => {
                depth += 1;
                if depth == 1 {
                    begun = at + 1;
                }
            }
            b':' if depth == 1 => {
                found = line[begun..at].trim_ascii() == name.as_bytes();
                begun = at + 1;
            }
            b',' | b'}' if depth == 1 && found => return Some(line[begun..at].trim_ascii()),
            b',' if depth == 1 => begun = at + 1,
            b'}' | b']' => depth -= 1,
            _ => {}
        }
        at += 1;
    }
    None
}
