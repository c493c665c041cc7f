//! Passes a connector's standard error on and keeps what it says of its own end: the last line
//! `error: ...` and the line `hint: ...` after it.

use crate::stream::read;
use rustix::io::Errno;
use sema_rules::frame::{Piece, Place, Splitter, content};
use sema_rules::hop::Absence;
use sema_rules::wire::Code;
use std::os::fd::{AsFd, BorrowedFd};

/// What stands in the place of a line over the limit: it cannot be searched for secrets as a whole.
const LEFT_OUT: &[u8] = b"sema-connector: left out a line of over 4 MiB\n";

/// The most that is kept of a line, in bytes: each open request is answered with it.
const KEPT: usize = 2048;

/// How a program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Code(i32),
    Signal(i32),
}

/// The last words of a connector.
#[derive(Debug, Default)]
pub(super) struct LastWords {
    error: Option<String>,
    hint: Option<String>,
}

impl LastWords {
    /// Reads `stderr` to its end and tells each line, with its end, to `pass`. A line is told whole
    /// or not at all. One that `pass` holds back, because it carries a secret, is not kept.
    pub(super) fn listen(
        &mut self,
        stderr: impl AsFd,
        mut pass: impl FnMut(&[u8]) -> bool,
    ) -> Result<(), Errno> {
        let mut splitter = Splitter::default();
        let stderr: BorrowedFd<'_> = stderr.as_fd();
        loop {
            let count = read(stderr, splitter.space())?;
            if count == 0 {
                break;
            }
            splitter.filled(count);
            while let Some(piece) = splitter.take() {
                self.take(&piece, &mut pass);
            }
        }
        if let Some(piece) = splitter.finish() {
            self.take(&piece, &mut pass);
        }
        Ok(())
    }

    fn take(&mut self, piece: &Piece<'_>, pass: &mut impl FnMut(&[u8]) -> bool) {
        match piece {
            Piece::Line(line) => {
                if pass(line) {
                    let line = content(line);
                    self.hear(&String::from_utf8_lossy(&line[..line.len().min(KEPT)]));
                }
            }
            Piece::Part { place, .. } if *place == Place::Last => _ = pass(LEFT_OUT),
            Piece::Part { .. } => {}
        }
    }

    fn hear(&mut self, line: &str) {
        if let Some(error) = line.strip_prefix("error: ") {
            self.error = Some(error.to_owned());
            self.hint = None;
        } else if let Some(hint) = line.strip_prefix("hint: ") {
            self.hint = Some(hint.to_owned());
        }
    }

    /// Why there is no connector any more.
    pub(super) fn absence(&self, end: End) -> Absence {
        let Some(error) = &self.error else {
            let how = match end {
                End::Code(code) => format!("with exit code {code}"),
                End::Signal(signal) => format!("by signal {signal}"),
            };
            return Absence {
                code: Code::UpstreamExit,
                reason: format!("the connector ended {how}"),
            };
        };
        let (code, error) = match error.strip_prefix("connector.not_installed: ") {
            Some(rest) => (Code::NotInstalled, rest),
            None => (Code::UpstreamExit, error.as_str()),
        };
        let reason = match &self.hint {
            Some(hint) => format!("{error}; hint: {hint}"),
            None => error.to_owned(),
        };
        Absence { code, reason }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn absence(stderr: &str) -> (Absence, String) {
        let (reader, mut writer) = std::io::pipe().unwrap();
        std::io::Write::write_all(&mut writer, stderr.as_bytes()).unwrap();
        drop(writer);
        let (mut words, mut passed) = (LastWords::default(), Vec::new());
        words
            .listen(reader, |line| {
                passed.extend_from_slice(line);
                true
            })
            .unwrap();
        (
            words.absence(End::Code(1)),
            String::from_utf8(passed).unwrap(),
        )
    }

    #[test]
    fn the_last_error_and_its_hint_are_the_reason() {
        let said = "noise\nerror: old\nhint: old\nerror: connector.not_installed: bin/ is missing\nhint: run install\n";
        let (absence, passed) = absence(said);
        assert_eq!(absence.code, Code::NotInstalled);
        assert_eq!(absence.reason, "bin/ is missing; hint: run install");
        assert_eq!(passed, said);
    }

    #[test]
    fn a_silent_end_is_told_by_its_code() {
        assert_eq!(absence("").0.reason, "the connector ended with exit code 1");
    }

    #[test]
    fn a_line_is_passed_whole_or_not_at_all() {
        let mut words = LastWords::default();
        let long = [vec![b'x'; 100_000], b"\n".to_vec()].concat();
        let endless = [vec![b'y'; 5_000_000], b"\nafter\n".to_vec()].concat();
        let (reader, mut writer) = std::io::pipe().unwrap();
        let mut passed = Vec::new();
        std::thread::scope(|scope| {
            scope.spawn(move || {
                std::io::Write::write_all(&mut writer, &[long, endless].concat()).unwrap();
            });
            let pass = |line: &[u8]| {
                passed.push(line.to_vec());
                true
            };
            words.listen(reader, pass).unwrap();
        });
        assert_eq!(passed[0].len(), 100_001);
        assert_eq!(passed[1..], [LEFT_OUT.to_vec(), b"after\n".to_vec()]);
    }
}
