//! Blocking reads and writes on a descriptor that may be a pipe, a socket, a file or a terminal, and
//! that its other holders may have made non-blocking.

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use std::os::fd::BorrowedFd;

/// Reads what is there, waiting for at least one byte. Zero is the end of the stream.
pub(crate) fn read(fd: BorrowedFd<'_>, buffer: &mut [u8]) -> Result<usize, Errno> {
    loop {
        match rustix::io::read(fd, &mut *buffer) {
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => wait(fd, PollFlags::IN)?,
            // A socket whose other end was killed with bytes unread, a terminal that hung up.
            Err(Errno::CONNRESET | Errno::IO) => return Ok(0),
            result => return result,
        }
    }
}

/// Writes every byte.
pub(crate) fn write(fd: BorrowedFd<'_>, mut bytes: &[u8]) -> Result<(), Errno> {
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
