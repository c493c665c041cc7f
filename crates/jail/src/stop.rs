//! How this process is told to stop, and how it ends as its child ended.

use crate::spawn::Exit;
use crate::sys;
use rustix::io::Errno;
use rustix::process::Signal;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// The signals that ask this process to stop: SIGTERM, SIGINT and SIGHUP. From `catch` on they end
/// nothing by themselves and are read here. Programs that are started get them as usual.
#[derive(Debug)]
pub struct StopSignals {
    fd: OwnedFd,
}

impl StopSignals {
    /// Catches them in this thread and in every thread that it starts later: call it first.
    pub fn catch() -> io::Result<Self> {
        let signals = [Signal::TERM, Signal::INT, Signal::HUP].map(Signal::as_raw);
        Ok(Self {
            fd: sys::signal_fd(&signals)?,
        })
    }

    /// Waits for the next one.
    pub fn wait(&self) -> io::Result<Signal> {
        // A signalfd_siginfo, of which the first four bytes are the signal's number.
        let mut info = [0; 128];
        loop {
            match rustix::io::read(&self.fd, &mut info) {
                Ok(128) => {}
                Ok(_) | Err(Errno::INTR) => continue,
                Err(error) => return Err(error.into()),
            }
            let number = i32::from_ne_bytes([info[0], info[1], info[2], info[3]]);
            if let Some(signal) = Signal::from_named_raw(number) {
                return Ok(signal);
            }
        }
    }
}

impl AsFd for StopSignals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Ends this process as a child ended: with its exit code, or by its signal (without a core dump).
pub fn end_as(exit: Exit) -> ! {
    match exit {
        Exit::Code(code) => std::process::exit(code),
        Exit::Signal(signal) => {
            sys::die_by(signal);
            std::process::exit(128 + signal)
        }
    }
}
