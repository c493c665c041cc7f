//! Where the lines for one side go.

use crate::stream::write;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Mutex;

/// Where whole messages are written, by several threads.
#[derive(Default)]
pub(super) struct Sink {
    fd: Mutex<Option<OwnedFd>>,
}

/// The other side does not read any more.
pub(super) struct Closed;

impl Sink {
    pub(super) fn new(fd: OwnedFd) -> Self {
        Self {
            fd: Mutex::new(Some(fd)),
        }
    }

    /// Writes to `fd` from now on.
    pub(super) fn open(&self, fd: OwnedFd) {
        *self.lock() = Some(fd);
    }

    /// Writes one line whole; a last line that came without its end gets one, so that what follows
    /// is not glued to it.
    pub(super) fn send(&self, line: &[u8]) -> Result<(), Closed> {
        let mut guard = self.lock();
        let Some(fd) = guard.as_ref() else {
            return Err(Closed);
        };
        let mut result = write(fd.as_fd(), line);
        if result.is_ok() && !line.ends_with(b"\n") {
            result = write(fd.as_fd(), b"\n");
        }
        if result.is_err() {
            *guard = None;
            return Err(Closed);
        }
        Ok(())
    }

    /// Closes the descriptor, unless a write is under way.
    pub(super) fn try_close(&self) {
        if let Ok(mut guard) = self.fd.try_lock() {
            *guard = None;
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<OwnedFd>> {
        self.fd
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read as _;

    #[test]
    fn a_non_blocking_descriptor_gets_every_byte() {
        let (mut reader, writer) = std::io::pipe().unwrap();
        rustix::io::ioctl_fionbio(&writer, true).unwrap();
        let sink = Sink::new(writer.into());
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
}
