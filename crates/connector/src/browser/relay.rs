//! Carries the lines of a session while the export of the login state is on. What becomes of each
//! is decided in [`sema_rules::relay`]; here they are read and written, and saves are stored.
//!
//! Two threads, one a direction, with blocking descriptors. A side that does not read stops what
//! is written to it and nothing else: before an answer of our own waits for the engine, what was
//! read for the upstream is handed to it.

use super::saved::Store;
use super::stdio::{Shared, Turn};
use super::table::TOOLS;
use crate::cli::failure::Failure;
use crate::cli::output::{self, Label};
use crate::stream;
use rustix::io::Errno;
use rustix::process::Signal;
use sema_jail::{Child, Exit};
use sema_rules::call::CallScan;
use sema_rules::frame::{Piece, Place, Splitter};
use sema_rules::relay::{self, Down, Relay, Up};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Lines that pass are written together up to this many bytes.
const BATCH: usize = 64 * 1024;
/// What is sent for the end of a line that must not be read: no JSON holds a NUL.
const SPOIL: &[u8] = b"\0\n";

/// The upstream's ends.
pub(super) struct Upstream {
    pub(super) stdin: OwnedFd,
    pub(super) stdout: OwnedFd,
}

/// Relays between our standard streams and those of the upstream until it has ended.
pub(super) fn run(child: &Child, upstream: Upstream, store: Store) -> Result<Exit, Failure> {
    let Upstream { stdin, stdout } = upstream;
    let session = Arc::new(Session::new(store, rustix::stdio::stdout()));
    let down = Arc::clone(&session);
    // Not joined: it may wait for the engine for ever after the upstream has ended. The end of its
    // input closes the upstream's.
    std::thread::spawn(move || {
        _ = pump(
            rustix::stdio::stdin(),
            &mut ToUpstream::new(&down, stdin.as_fd()),
        );
    });
    if pump(stdout.as_fd(), &mut ToEngine::new(&session)).is_err() {
        // The engine is gone: nobody will ask for anything more.
        child.signal(Signal::TERM);
    }
    drop(stdout);
    let exit = child.wait();
    session.remove_open();
    Ok(exit)
}

/// What both directions share.
struct Session<'f> {
    relay: Mutex<Relay<'static>>,
    engine: Shared<'f>,
    store: Store,
}

impl<'f> Session<'f> {
    fn new(store: Store, engine: BorrowedFd<'f>) -> Self {
        let relay = Mutex::new(Relay::new(TOOLS, &store.folder()));
        Self {
            relay,
            engine: Shared::new(engine),
            store,
        }
    }

    fn relay(&self) -> MutexGuard<'_, Relay<'static>> {
        self.relay.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stores what an answered save wrote, and says what the engine gets instead where that fails.
    fn store(&self, file: &str, line: &[u8]) -> Option<Vec<u8>> {
        let stored = self.store.store(file);
        self.store.remove(file);
        let reason = stored.err()?;
        output::labelled(Label::Warning, &relay::not_stored_text(&reason));
        Some(relay::not_stored(line, &reason))
    }

    /// Removes what the saves wrote whose answer never came.
    fn remove_open(&self) {
        for file in self.relay().open_files() {
            self.store.remove(file);
        }
    }
}

/// One direction of a session.
trait Way {
    fn take(&mut self, piece: Piece<'_>) -> Result<(), Errno>;
    /// Writes what was kept back.
    fn flush(&mut self) -> Result<(), Errno>;
}

/// Carries a stream from its source to its end, whatever the chunks it comes in.
fn pump(from: BorrowedFd<'_>, way: &mut impl Way) -> Result<(), Errno> {
    let mut splitter = Splitter::default();
    loop {
        let count = stream::read(from, splitter.space())?;
        if count == 0 {
            break;
        }
        splitter.filled(count);
        while let Some(piece) = splitter.take() {
            way.take(piece)?;
        }
        way.flush()?;
    }
    while let Some(piece) = splitter.finish() {
        way.take(piece)?;
    }
    way.flush()
}

/// From the engine to the upstream.
struct ToUpstream<'s> {
    session: &'s Session<'s>,
    upstream: BorrowedFd<'s>,
    batch: Vec<u8>,
    /// What an over-long line was seen to call.
    scan: CallScan,
}

impl<'s> ToUpstream<'s> {
    fn new(session: &'s Session<'s>, upstream: BorrowedFd<'s>) -> Self {
        Self {
            session,
            upstream,
            batch: Vec::new(),
            scan: CallScan::default(),
        }
    }

    fn send(&mut self, line: &[u8]) -> Result<(), Errno> {
        self.batch.extend_from_slice(line);
        if self.batch.len() < BATCH {
            Ok(())
        } else {
            self.flush()
        }
    }

    fn carry_out(&mut self, down: Down) -> Result<(), Errno> {
        match down {
            Down::Pass | Down::Drop => Ok(()),
            Down::Send(line) => self.send(&line),
            Down::Answer(line) => {
                self.flush()?;
                self.session.engine.turn().write(&line)
            }
        }
    }

    /// Forwards an over-long line part by part. Its end is spoilt where it turns out to be a call
    /// that must not reach the upstream.
    fn part(&mut self, bytes: &[u8], place: Place) -> Result<(), Errno> {
        self.flush()?;
        if place == Place::First {
            self.scan = CallScan::default();
        }
        self.scan.feed(bytes);
        if place != Place::Last {
            return stream::write(self.upstream, bytes);
        }
        match self.session.relay().from_engine_unread(&self.scan) {
            Down::Pass => stream::write(self.upstream, bytes),
            other => {
                stream::write(self.upstream, SPOIL)?;
                self.carry_out(other)
            }
        }
    }
}

impl Way for ToUpstream<'_> {
    fn take(&mut self, piece: Piece<'_>) -> Result<(), Errno> {
        let line = match piece {
            Piece::Line(line) => line,
            Piece::Part { bytes, place } => return self.part(bytes, place),
        };
        let store = &self.session.store;
        let down = self.session.relay().from_engine(line, || store.fresh());
        match down {
            Down::Pass => self.send(line),
            other => self.carry_out(other),
        }
    }

    fn flush(&mut self) -> Result<(), Errno> {
        let result = stream::write(self.upstream, &self.batch);
        self.batch.clear();
        result
    }
}

/// From the upstream to the engine.
struct ToEngine<'s> {
    session: &'s Session<'s>,
    batch: Vec<u8>,
    /// Held over the parts of an over-long line, so that nothing is written into it.
    turn: Option<Turn<'s>>,
}

impl<'s> ToEngine<'s> {
    fn new(session: &'s Session<'s>) -> Self {
        Self {
            session,
            batch: Vec::new(),
            turn: None,
        }
    }

    fn send(&mut self, line: &[u8]) -> Result<(), Errno> {
        self.batch.extend_from_slice(line);
        if self.batch.len() < BATCH {
            Ok(())
        } else {
            self.flush()
        }
    }

    fn part(&mut self, bytes: &[u8], place: Place) -> Result<(), Errno> {
        self.flush()?;
        let session = self.session;
        let result = self
            .turn
            .get_or_insert_with(|| session.engine.turn())
            .write(bytes);
        if place == Place::Last {
            self.turn = None;
        }
        result
    }
}

impl Way for ToEngine<'_> {
    fn take(&mut self, piece: Piece<'_>) -> Result<(), Errno> {
        let line = match piece {
            Piece::Line(line) => line,
            Piece::Part { bytes, place } => return self.part(bytes, place),
        };
        let up = self.session.relay().from_upstream(line);
        match up {
            Up::Pass => self.send(line),
            Up::Send(line) => self.send(&line),
            Up::NotSaved(file) => {
                self.session.store.remove(&file);
                self.send(line)
            }
            Up::Saved(file) => {
                // Storing may wait for a lock: what came before goes first.
                self.flush()?;
                match self.session.store(&file, line) {
                    Some(instead) => self.send(&instead),
                    None => self.send(line),
                }
            }
        }
    }

    fn flush(&mut self) -> Result<(), Errno> {
        if self.batch.is_empty() {
            return Ok(());
        }
        let result = self.session.engine.turn().write(&self.batch);
        self.batch.clear();
        result
    }
}

#[cfg(test)]
mod tests;
