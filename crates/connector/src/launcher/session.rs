//! One session: the threads that carry lines between the engine and the connector.
//!
//! ```text
//! engine ──▶ carry_engine (the caller's thread) ──▶ connector
//! engine ◀── carry_connector (a thread a launch) ◀── connector
//! ```
//!
//! Each direction blocks by itself: a side that does not read stops the other side's writer, and
//! nothing else. What the connector's thread has to tell the connector (an error for a request of
//! its own), and what a change from outside has to tell either, is put into the sink's queue, so
//! that nobody is waited for in a circle.

use super::pipes::Pipes;
use super::sink::Sink;
use super::trace::Trace;
use crate::stream::read;
use rustix::io::Errno;
use sema_rules::envelope;
use sema_rules::eras::Eras;
use sema_rules::frame::{Piece, Place, Splitter, content};
use sema_rules::hop::{Forward, Step};
use sema_rules::long::LongLine;
use sema_rules::name::Handle;
use sema_rules::withhold::Withhold;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

/// The most that is gathered for one write, in bytes: what a pipe holds.
const GATHERED: usize = 64 * 1024;

/// What the threads of one session share.
pub(super) struct Session {
    eras: Mutex<Eras>,
    withhold: RwLock<Arc<Withhold>>,
    pub(super) engine: Sink,
    pub(super) connector: Sink,
    pub(super) trace: Trace,
    /// How often the engine was read from.
    reads: AtomicU64,
}

impl Session {
    pub(super) fn new(eras: Eras, withhold: Withhold, engine: Sink, trace: Trace) -> Self {
        Self {
            eras: Mutex::new(eras),
            withhold: RwLock::new(Arc::new(withhold)),
            engine,
            connector: Sink::connector(),
            trace,
            reads: AtomicU64::new(0),
        }
    }

    /// Grows while the engine is read from, and stands still while a connector that does not read
    /// is waited for.
    pub(super) fn reads(&self) -> u64 {
        self.reads.load(Ordering::Relaxed)
    }

    /// The handle of a secret that a line carries.
    pub(super) fn withheld(&self, line: &[u8]) -> Option<Handle> {
        let withhold = Arc::clone(&self.withhold.read().unwrap_or_else(PoisonError::into_inner));
        withhold.find(line, &mut Vec::new()).cloned()
    }

    /// Withholds these secrets from now on.
    pub(super) fn withhold(&self, withhold: Withhold) {
        *self
            .withhold
            .write()
            .unwrap_or_else(PoisonError::into_inner) = Arc::new(withhold);
    }

    /// Changes the session's state outside the two directions. What follows from it goes out
    /// before any line that is judged later.
    pub(super) fn change(&self, change: impl FnOnce(&mut Eras) -> Step) {
        let mut eras = self.eras();
        let step = change(&mut eras);
        self.put(&self.connector, step.to_connector);
        self.put(&self.engine, step.to_engine);
        drop(eras);
        self.note_answered(step.answered);
    }

    /// Puts lines of ours; those that find no room are counted.
    fn put(&self, sink: &Sink, lines: Vec<Vec<u8>>) {
        for line in lines {
            if sink.put(line).is_err() {
                self.trace.noise();
            }
        }
    }

    pub(super) fn eras(&self) -> MutexGuard<'_, Eras> {
        self.eras.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Carries the engine's lines until its stream ends.
    pub(super) fn carry_engine(&self, input: BorrowedFd<'_>) -> Result<(), Errno> {
        let (mut long, mut out) = (Long::default(), Gathered::new(&self.connector));
        let pipes = Pipes::new(input, &self.connector);
        each_piece(input, pipes, |piece| match piece {
            None => {
                out.send();
                self.reads.fetch_add(1, Ordering::Relaxed);
            }
            Some(Piece::Line(line)) => self.engine_line(line, &mut out),
            Some(Piece::Part { bytes, place }) => {
                if let Some((line, length)) = long.take(bytes, place) {
                    let step = self.judge(|eras| eras.long_from_engine(&line));
                    self.note_long(&line, length, &step);
                    self.send_from_engine(step, &[], &mut out);
                }
            }
        })
    }

    fn engine_line(&self, line: &[u8], out: &mut Gathered<'_>) {
        let message = envelope::read(line);
        let now = self.trace.now();
        let step = self.judge(|eras| eras.from_engine(line, &message, now));
        self.note_request(line, &message, &step, now);
        self.send_from_engine(step, line, out);
    }

    /// Judges a line of the engine's. What it is answered is put while the state is held: nothing
    /// that is judged later can pass it.
    fn judge(&self, judge: impl FnOnce(&mut Eras) -> Step) -> Step {
        let mut eras = self.eras();
        let step = judge(&mut eras);
        self.put(&self.engine, step.to_engine.clone());
        step
    }

    fn send_from_engine(&self, step: Step, line: &[u8], out: &mut Gathered<'_>) {
        out.forward(&step.forward, line);
        step.to_connector.iter().for_each(|line| out.add(line));
        if !step.to_engine.is_empty() {
            // An engine that does not read its answers is not read from.
            self.engine.flush();
        }
        self.note_answered(step.answered);
    }

    /// Carries the connector's lines until its stream ends.
    pub(super) fn carry_connector(&self, output: impl AsFd) -> Result<(), Errno> {
        let (mut long, mut scratch) = (Long::default(), Vec::new());
        let mut out = Gathered::new(&self.engine);
        let pipes = Pipes::new(output.as_fd(), &self.engine);
        each_piece(output.as_fd(), pipes, |piece| match piece {
            None => out.send(),
            Some(Piece::Line(line)) => {
                let step = self.connector_line(line, &mut scratch);
                self.send_from_connector(step, line, &mut out);
            }
            Some(Piece::Part { bytes, place }) => {
                if let Some((line, length)) = long.take(bytes, place) {
                    let step = self.eras().long_from_connector(&line, length);
                    self.send_from_connector(step, &[], &mut out);
                }
            }
        })
    }

    fn connector_line(&self, line: &[u8], scratch: &mut Vec<u8>) -> Step {
        let withhold = Arc::clone(&self.withhold.read().unwrap_or_else(PoisonError::into_inner));
        let withheld = withhold.find(line, scratch);
        if scratch.capacity() > 1 << 20 {
            *scratch = Vec::new();
        }
        let message = envelope::read(line);
        let mut eras = self.eras();
        let mut step = eras.from_connector(line, &message, withheld);
        // While the state is held: the repeated handshake ends before any request of the engine's
        // can pass it.
        self.put(&self.connector, std::mem::take(&mut step.to_connector));
        step
    }

    fn send_from_connector(&self, step: Step, line: &[u8], out: &mut Gathered<'_>) {
        out.forward(&step.forward, line);
        step.to_engine.iter().for_each(|line| out.add(line));
        self.put(&self.connector, step.to_connector);
        if let Some(ended) = step.ended {
            self.note_answer(ended, line);
        }
        self.note_answered(step.answered);
        if step.noise {
            self.trace.noise();
        }
    }
}

/// Lines on their way to one side, in order. Short ones that came with one read go with one write:
/// nothing waits while the next read does.
struct Gathered<'s> {
    sink: &'s Sink,
    lines: Vec<u8>,
}

impl<'s> Gathered<'s> {
    fn new(sink: &'s Sink) -> Self {
        Self {
            sink,
            lines: Vec::new(),
        }
    }

    /// Sends on what a stage left of a line.
    fn forward(&mut self, forward: &Forward, line: &[u8]) {
        match forward {
            Forward::AsIs => self.add(line),
            Forward::Replaced(line) => self.add(line),
            Forward::Nothing => {}
        }
    }

    fn add(&mut self, line: &[u8]) {
        if self.lines.len() + line.len() > GATHERED {
            self.send();
        }
        if line.len() > GATHERED {
            _ = self.sink.send(line);
            return;
        }
        self.lines.extend_from_slice(line);
        if !line.ends_with(b"\n") {
            self.lines.push(b'\n');
        }
    }

    /// Sends what was gathered. A peer that does not read any more is noticed by the thread that
    /// reads from it.
    fn send(&mut self) {
        if !self.lines.is_empty() {
            _ = self.sink.send(&self.lines);
            self.lines.clear();
        }
    }
}

/// Reads a stream to its end and tells each piece of it, and `None` before each wait for more.
fn each_piece(
    input: BorrowedFd<'_>,
    mut pipes: Pipes<'_>,
    mut tell: impl FnMut(Option<Piece<'_>>),
) -> Result<(), Errno> {
    let mut splitter = Splitter::default();
    loop {
        tell(None);
        pipes.rest()?;
        let count = read(input, splitter.space())?;
        if count == 0 {
            break;
        }
        splitter.filled(count);
        while let Some(piece) = splitter.take() {
            tell(Some(piece));
        }
        pipes.waiting(splitter.pending());
    }
    if let Some(piece) = splitter.finish() {
        tell(Some(piece));
    }
    tell(None);
    Ok(())
}

/// An over-long line going by.
#[derive(Default)]
struct Long {
    line: LongLine,
    length: usize,
}

impl Long {
    /// Takes a part; the line and its length without its end, once that has come.
    fn take(&mut self, bytes: &[u8], place: Place) -> Option<(LongLine, usize)> {
        self.line.feed(bytes);
        if place != Place::Last {
            self.length += bytes.len();
            return None;
        }
        self.length += content(bytes).len();
        let length = std::mem::take(&mut self.length);
        Some((std::mem::take(&mut self.line), length))
    }
}
