//! Reading from the person: standard input to its end, or a line typed on a terminal.

use super::failure::Failure;
use super::output;
use rustix::io::Errno;
use rustix::termios::{LocalModes, OptionalActions, SpecialCodeIndex, Termios};
use sema_vault::Secret;
use sema_vault::error::Reason;
use sema_vault::input::read_descriptor;
use zeroize::Zeroizing;

const INTERRUPT: u8 = 3;
const END: u8 = 4;
const BACKSPACE: [u8; 2] = [8, 127];
const KILL_LINE: u8 = 21;

/// Whether standard input is a terminal.
pub(super) fn is_terminal() -> bool {
    rustix::termios::isatty(rustix::stdio::stdin())
}

/// Reads standard input to its end, at most `limit` bytes; `None` where there is more.
pub(super) fn to_end(limit: usize) -> Result<Option<Secret>, Failure> {
    match read_descriptor(rustix::stdio::stdin(), limit) {
        Ok(input) => Ok(Some(input)),
        Err(Reason::TooLarge { .. }) => Ok(None),
        Err(reason) => Err(Failure::failed(format_args!("standard input: {reason}"))),
    }
}

/// Reads one line from the terminal, shown as it is typed, without its end.
pub(super) fn shown_line(prompt: &str, limit: usize) -> Result<Secret, Failure> {
    output::say(prompt);
    let mut line = Zeroizing::new(Vec::with_capacity(limit));
    while let Some(byte) = next_byte()? {
        if byte == b'\n' || line.len() == limit {
            break;
        }
        line.push(byte);
    }
    Ok(Secret::new(std::mem::take(&mut *line)))
}

/// Reads one line from the terminal without showing it. The terminal hands over each key at
/// once: a line of its own making holds 4095 bytes, and some tokens are longer.
pub(super) fn hidden_line(prompt: &str, limit: usize) -> Result<Secret, Failure> {
    let quiet = Quiet::new()?;
    output::say(prompt);
    let mut line = Zeroizing::new(Vec::with_capacity(limit));
    loop {
        match next_byte()? {
            None | Some(END | b'\n' | b'\r') => break,
            Some(INTERRUPT) => return Err(Failure::failed("interrupted: nothing was stored")),
            Some(KILL_LINE) => line.clear(),
            Some(byte) if BACKSPACE.contains(&byte) => erase(&mut line),
            Some(_) if line.len() == limit => {
                return Err(Failure::refused(format_args!(
                    "the input is over {limit} bytes"
                )));
            }
            Some(byte) => line.push(byte),
        }
    }
    drop(quiet);
    Ok(Secret::new(std::mem::take(&mut *line)))
}

/// Takes back the last character.
fn erase(line: &mut Vec<u8>) {
    while let Some(byte) = line.pop() {
        if byte & 0xc0 != 0x80 {
            break;
        }
    }
}

fn next_byte() -> Result<Option<u8>, Failure> {
    let mut byte = [0];
    loop {
        match rustix::io::read(rustix::stdio::stdin(), &mut byte) {
            Ok(0) => return Ok(None),
            Ok(_) => return Ok(Some(byte[0])),
            Err(Errno::INTR) => {}
            Err(e) => {
                return Err(Failure::failed(format_args!(
                    "cannot read the terminal: {e}"
                )));
            }
        }
    }
}

/// The terminal without echo; as it was when dropped. Ctrl-C arrives as a byte meanwhile, so that
/// no signal ends us with the echo still off.
struct Quiet(Termios);

impl Quiet {
    fn new() -> Result<Self, Failure> {
        let failed = |e| Failure::failed(format_args!("cannot turn off the terminal's echo: {e}"));
        let stdin = rustix::stdio::stdin();
        let saved = rustix::termios::tcgetattr(stdin).map_err(failed)?;
        let mut quiet = saved.clone();
        quiet.local_modes -= LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG;
        quiet.special_codes[SpecialCodeIndex::VMIN] = 1;
        quiet.special_codes[SpecialCodeIndex::VTIME] = 0;
        rustix::termios::tcsetattr(stdin, OptionalActions::Flush, &quiet).map_err(failed)?;
        Ok(Self(saved))
    }
}

impl Drop for Quiet {
    fn drop(&mut self) {
        let stdin = rustix::stdio::stdin();
        let _ = rustix::termios::tcsetattr(stdin, OptionalActions::Flush, &self.0);
    }
}
