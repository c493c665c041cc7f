//! Where words go: data to standard output, talk to standard error, colour only on a terminal
//! and only while `NO_COLOR` is unset.

use super::env;
use super::failure::Failure;
use sema_vault::WaitNotice;
use std::io::{ErrorKind, IsTerminal, Write};

/// What stands before a line of talk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Label {
    /// Why the command fails.
    Error,
    /// How to mend it.
    Hint,
    /// What went well but should be known.
    Warning,
}

/// Prints data, as it is, on standard output. A reader that went away is no failure: `| head`.
pub fn data(text: &str) -> Result<(), Failure> {
    read_on(text).map(|_| ())
}

/// Prints data and tells whether the reader is still there.
pub fn read_on(text: &str) -> Result<bool, Failure> {
    let mut stdout = std::io::stdout().lock();
    match stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush())
    {
        Ok(()) => Ok(true),
        Err(e) if e.kind() == ErrorKind::BrokenPipe => Ok(false),
        Err(e) => Err(Failure::failed(format_args!(
            "cannot write to standard output: {e}"
        ))),
    }
}

/// Prints a value as one line of JSON on standard output.
pub fn json(value: &impl serde::Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string(value)
        .map_err(|e| Failure::failed(format_args!("cannot write JSON: {e}")))?;
    data(&format!("{text}\n"))
}

/// Prints a line of talk on standard error.
pub fn say(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{}", printable(text));
}

/// Prints a line of talk with its label.
pub fn labelled(label: Label, text: &str) {
    let (word, colour) = match label {
        Label::Error => ("error:", "\x1b[1;31m"),
        Label::Hint => ("hint:", "\x1b[1;36m"),
        Label::Warning => ("warning:", "\x1b[1;33m"),
    };
    let text = printable(text);
    let mut stderr = std::io::stderr().lock();
    let _ = if coloured(&stderr) {
        writeln!(stderr, "{colour}{word}\x1b[0m {text}")
    } else {
        writeln!(stderr, "{word} {text}")
    };
}

/// Whether colour may be used on this stream.
pub fn coloured(stream: &impl IsTerminal) -> bool {
    stream.is_terminal() && !env::no_color()
}

/// Tells the person that a lock is waited for. For the `waiting` argument of the vault.
pub fn waiting(notice: WaitNotice) {
    say(&notice.to_string());
}

/// The text without what a terminal would obey: a path may hold anything.
fn printable(text: &str) -> String {
    let shown = |c: char| {
        if c.is_control() && c != '\n' && c != '\t' {
            '\u{fffd}'
        } else {
            c
        }
    };
    text.chars().map(shown).collect()
}
