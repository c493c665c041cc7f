//! Blocking reads and writes of a session's two streams. A descriptor may be a pipe, a socket or a
//! terminal, and its other holders may have made it non-blocking.

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use std::os::fd::BorrowedFd;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Reads what is there, waiting for at least one byte. Zero is the end of the stream.
pub(super) fn read(fd: BorrowedFd<'_>, buffer: &mut [u8]) -> Result<usize, Errno> {
    loop {
        match rustix::io::read(fd, &mut *buffer) {
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => wait(fd, PollFlags::IN)?,
            Err(Errno::CONNRESET | Errno::IO) => return Ok(0),
            result => return result,
        }
    }
}

/// Writes every byte.
pub(super) fn write(fd: BorrowedFd<'_>, mut bytes: &[u8]) -> Result<(), Errno> {
    while !bytes.is_empty() {
        match rustix::io::write(fd, bytes) {
            Ok(count) => bytes = &bytes[count..],
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => wait(fd, PollFlags::OUT)?,
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn wait(fd: BorrowedFd<'_>, events: PollFlags) -> Result<(), Errno> {
    match poll(&mut [PollFd::from_borrowed_fd(fd, events)], None) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(error),
    }
}

/// A stream that two threads write whole lines to.
pub(super) struct Shared<'f> {
    fd: BorrowedFd<'f>,
    turn: Mutex<()>,
}

/// The right to write, for as long as it is held: over the parts of one long line, too.
pub(super) struct Turn<'s> {
    fd: BorrowedFd<'s>,
    _held: MutexGuard<'s, ()>,
}

impl<'f> Shared<'f> {
    pub(super) fn new(fd: BorrowedFd<'f>) -> Self {
        Self {
            fd,
            turn: Mutex::new(()),
        }
    }

    /// Waits until nobody else is writing.
    pub(super) fn turn(&self) -> Turn<'_> {
        let held = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        Turn {
            fd: self.fd,
            _held: held,
        }
    }
}

impl Turn<'_> {
    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<(), Errno> {
        write(self.fd, bytes)
    }
}
