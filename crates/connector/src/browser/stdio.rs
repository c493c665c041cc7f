//! A stream that two threads of the relay write to.

use crate::stream;
use rustix::io::Errno;
use std::os::fd::BorrowedFd;
use std::sync::{Mutex, MutexGuard, PoisonError};

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
        stream::write(self.fd, bytes)
    }
}
