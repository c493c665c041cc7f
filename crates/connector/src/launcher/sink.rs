//! Where the lines for one side go.
//!
//! Two roads lead there. [`Sink::send`] writes at once and waits for a side that does not read.
//! [`Sink::put`] never waits: its lines stand in a short queue until the next writer, or the thread
//! in [`Sink::pump`], takes them along. What was put goes out before what is sent after it.

use crate::stream::write;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// How many lines may stand in a connector's queue: one that asks for more while it reads nothing
/// loses the answers. The engine's has no limit, since it gets no more than it asked for.
const QUEUE: usize = 256;

/// Where whole messages are written, by several threads.
pub(super) struct Sink {
    fd: Mutex<Option<OwnedFd>>,
    queue: Mutex<Queue>,
    wake: Condvar,
}

struct Queue {
    lines: VecDeque<Vec<u8>>,
    limit: usize,
    finished: bool,
}

/// The other side does not read any more.
pub(super) struct Closed;

/// The queue holds as much as it may.
pub(super) struct Full;

impl Sink {
    /// The engine's, at `fd`.
    pub(super) fn engine(fd: OwnedFd) -> Self {
        Self::new(Some(fd), usize::MAX)
    }

    /// The connector's, closed until there is one.
    pub(super) fn connector() -> Self {
        Self::new(None, QUEUE)
    }

    fn new(fd: Option<OwnedFd>, limit: usize) -> Self {
        let lines = VecDeque::new();
        Self {
            fd: Mutex::new(fd),
            queue: Mutex::new(Queue {
                lines,
                limit,
                finished: false,
            }),
            wake: Condvar::new(),
        }
    }

    /// Writes to `fd` from now on. What was put for the one before is forgotten.
    pub(super) fn open(&self, fd: OwnedFd) {
        let mut guard = lock(&self.fd);
        lock(&self.queue).lines.clear();
        *guard = Some(fd);
    }

    /// Writes one line whole; a last line that came without its end gets one, so that what follows
    /// is not glued to it.
    pub(super) fn send(&self, line: &[u8]) -> Result<(), Closed> {
        let mut guard = lock(&self.fd);
        self.send_put(&mut guard)?;
        write_line(&mut guard, line)
    }

    /// Puts a line into the queue.
    pub(super) fn put(&self, line: Vec<u8>) -> Result<(), Full> {
        let mut queue = lock(&self.queue);
        if queue.lines.len() >= queue.limit {
            return Err(Full);
        }
        queue.lines.push_back(line);
        self.wake.notify_one();
        Ok(())
    }

    /// Writes what is put, until [`Sink::finish`].
    pub(super) fn pump(&self) {
        loop {
            let waits = |queue: &mut Queue| queue.lines.is_empty() && !queue.finished;
            let queue = self.wake.wait_while(lock(&self.queue), waits);
            if queue.unwrap_or_else(PoisonError::into_inner).finished {
                return;
            }
            self.flush();
        }
    }

    /// Writes what is put, now.
    pub(super) fn flush(&self) {
        _ = self.send_put(&mut lock(&self.fd));
    }

    /// Ends [`Sink::pump`].
    pub(super) fn finish(&self) {
        lock(&self.queue).finished = true;
        self.wake.notify_all();
    }

    /// Writes the queue, in order.
    fn send_put(&self, fd: &mut Option<OwnedFd>) -> Result<(), Closed> {
        loop {
            // Not held while writing: whoever puts a line never waits for the other side.
            let line = lock(&self.queue).lines.pop_front();
            match line {
                Some(line) => write_line(fd, &line)?,
                None => return Ok(()),
            }
        }
    }

    /// Looks at the descriptor, unless a write is under way.
    pub(super) fn with_fd<R>(&self, look: impl FnOnce(BorrowedFd<'_>) -> Option<R>) -> Option<R> {
        look(self.fd.try_lock().ok()?.as_ref()?.as_fd())
    }

    /// Whether nobody can read what is written any more.
    pub(super) fn is_closed(&self) -> bool {
        let unread = |fd: &OwnedFd| {
            let mut fds = [PollFd::new(fd, PollFlags::empty())];
            let polled = poll(&mut fds, Some(&Timespec::default()));
            polled.is_ok() && fds[0].revents().contains(PollFlags::ERR)
        };
        let guard = self.fd.try_lock();
        guard.is_ok_and(|fd| fd.as_ref().is_none_or(unread))
    }

    /// Closes the descriptor, unless a write is under way.
    pub(super) fn try_close(&self) {
        if let Ok(mut guard) = self.fd.try_lock() {
            *guard = None;
        }
    }
}

fn write_line(target: &mut Option<OwnedFd>, line: &[u8]) -> Result<(), Closed> {
    let Some(fd) = target.as_ref() else {
        return Err(Closed);
    };
    let mut result = write(fd.as_fd(), line);
    if result.is_ok() && !line.ends_with(b"\n") {
        result = write(fd.as_fd(), b"\n");
    }
    if result.is_err() {
        *target = None;
        return Err(Closed);
    }
    Ok(())
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read as _;

    #[test]
    fn a_non_blocking_descriptor_gets_every_byte() {
        let (mut reader, writer) = std::io::pipe().unwrap();
        rustix::io::ioctl_fionbio(&writer, true).unwrap();
        let sink = Sink::new(Some(writer.into()), QUEUE);
        let line = vec![b'x'; 1_000_000];
        std::thread::scope(|scope| {
            scope.spawn(|| {
                assert!(sink.send(&line).is_ok());
                sink.try_close();
            });
            let mut seen = Vec::new();
            reader.read_to_end(&mut seen).unwrap();
            assert_eq!(seen.len(), line.len() + 1);
        });
        assert!(sink.send(b"y\n").is_err());
    }

    #[test]
    fn what_is_put_waits_for_nobody_and_goes_out_first() {
        let (mut reader, writer) = std::io::pipe().unwrap();
        let sink = Sink::new(Some(writer.into()), QUEUE);
        let long = vec![b'x'; 1_000_000];
        std::thread::scope(|scope| {
            scope.spawn(|| _ = sink.send(&long));
            let mut seen = vec![0; 10];
            reader.read_exact(&mut seen).unwrap();
            // The writer is in the middle of its line and the pipe is full.
            for _ in 0..QUEUE {
                assert!(sink.put(b"put\n".to_vec()).is_ok());
            }
            assert!(sink.put(b"put\n".to_vec()).is_err());
            scope.spawn(|| {
                sink.send(b"sent\n").ok();
                sink.try_close();
            });
            let mut rest = Vec::new();
            reader.read_to_end(&mut rest).unwrap();
            let tail = String::from_utf8(rest[1_000_000 - 9..].to_vec()).unwrap();
            assert_eq!(tail, format!("{}sent\n", "put\n".repeat(QUEUE)));
        });
    }

    #[test]
    fn a_reader_that_has_gone_is_noticed_without_a_write() {
        let (reader, writer) = std::io::pipe().unwrap();
        let sink = Sink::new(Some(writer.into()), QUEUE);
        assert!(sink.send(b"never read\n").is_ok());
        assert!(!sink.is_closed());
        drop(reader);
        assert!(sink.is_closed());
    }

    #[test]
    fn a_pump_takes_what_is_put_and_ends_when_told() {
        let (mut reader, writer) = std::io::pipe().unwrap();
        let sink = Sink::new(Some(writer.into()), QUEUE);
        std::thread::scope(|scope| {
            scope.spawn(|| sink.pump());
            assert!(sink.put(b"put\n".to_vec()).is_ok());
            let mut seen = [0; 4];
            reader.read_exact(&mut seen).unwrap();
            assert_eq!(&seen, b"put\n");
            sink.finish();
        });
    }
}
