//! The lock of a directory: `flock`, waited for with a word to the person, given up after 30 s.
//!
//! A guard is a value: the lock is held until it is dropped, and the kernel drops it when the
//! process ends, however it ends. Its descriptor is close-on-exec, so no child keeps it.

use crate::error::{Reason, VaultError};
use crate::fault;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::FlockOperation;
use rustix::io::Errno;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// When the person is told that we wait.
const NOTICE: Duration = Duration::from_secs(1);
/// When we give up.
const GIVE_UP: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(10);

/// Told once, when a lock has been waited for for a second.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitNotice {
    /// The lock's path.
    pub path: PathBuf,
    /// The process that holds it, where the kernel tells.
    pub pid: Option<u32>,
}

impl std::fmt::Display for WaitNotice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let holder = crate::error::holder(self.pid);
        write!(
            f,
            "waiting for {holder}, which holds the lock {}",
            self.path.display()
        )
    }
}

/// A lock held with others that read.
#[derive(Debug)]
pub struct Shared {
    _fd: OwnedFd,
}

/// A lock held alone. It is good wherever a shared one is asked for.
#[derive(Debug)]
pub struct Exclusive(Shared);

impl Deref for Exclusive {
    type Target = Shared;
    fn deref(&self) -> &Shared {
        &self.0
    }
}

/// Takes the lock on `fd` for reading.
pub(crate) fn shared(
    fd: OwnedFd,
    path: &Path,
    waiting: &mut dyn FnMut(WaitNotice),
) -> Result<Shared, VaultError> {
    take(
        &fd,
        FlockOperation::NonBlockingLockShared,
        path,
        give_up(),
        waiting,
    )?;
    Ok(Shared { _fd: fd })
}

/// Takes the lock on `fd` alone.
pub(crate) fn exclusive(
    fd: OwnedFd,
    path: &Path,
    waiting: &mut dyn FnMut(WaitNotice),
) -> Result<Exclusive, VaultError> {
    let exclusive = FlockOperation::NonBlockingLockExclusive;
    take(&fd, exclusive, path, give_up(), waiting)?;
    Ok(Exclusive(Shared { _fd: fd }))
}

/// Takes the lock on `fd` alone and waits for it as long as it takes.
pub(crate) fn turn(
    fd: OwnedFd,
    path: &Path,
    waiting: &mut dyn FnMut(WaitNotice),
) -> Result<Exclusive, VaultError> {
    let exclusive = FlockOperation::NonBlockingLockExclusive;
    take(&fd, exclusive, path, Duration::MAX, waiting)?;
    Ok(Exclusive(Shared { _fd: fd }))
}

/// Whether somebody else holds the lock on `fd`. Where nobody does, it is held afterwards.
pub(crate) fn try_exclusive(fd: impl AsFd) -> Result<bool, Errno> {
    match flock(&fd, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(true),
        Err(Errno::WOULDBLOCK) => Ok(false),
        Err(e) => Err(e),
    }
}

fn flock(fd: impl AsFd, operation: FlockOperation) -> Result<(), Errno> {
    rustix::io::retry_on_intr(|| rustix::fs::flock(&fd, operation))
}

fn give_up() -> Duration {
    fault::give_up_ms().map_or(GIVE_UP, Duration::from_millis)
}

fn take(
    fd: &OwnedFd,
    operation: FlockOperation,
    path: &Path,
    give_up: Duration,
    waiting: &mut dyn FnMut(WaitNotice),
) -> Result<(), VaultError> {
    let start = Instant::now();
    let mut told = false;
    loop {
        match flock(fd, operation) {
            Ok(()) => return Ok(()),
            Err(Errno::WOULDBLOCK) => {}
            Err(e) => return Err(VaultError::io(path, "lock it", e)),
        }
        let waited = start.elapsed();
        if waited >= give_up {
            let reason = Reason::Locked {
                pid: holder(fd),
                seconds: waited.as_secs(),
            };
            return Err(VaultError::new(path, reason));
        }
        if !told && waited >= NOTICE {
            told = true;
            waiting(WaitNotice {
                path: path.to_owned(),
                pid: holder(fd),
            });
        }
        sleep(PAUSE);
    }
}

/// Who holds a lock on this file, as the kernel lists it: true for readers and for a holder that
/// was killed a moment ago, which a process id written into the file would not be.
fn holder(fd: &OwnedFd) -> Option<u32> {
    let inode = rustix::fs::fstat(fd).ok()?.st_ino;
    let flags = rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::CLOEXEC;
    let locks = rustix::fs::open("/proc/locks", flags, rustix::fs::Mode::empty()).ok()?;
    let text = crate::bytes::read_all(&locks, 4096, 1 << 20).ok()?;
    holder_in(std::str::from_utf8(&text).ok()?, inode)
}

/// Lines as `1: FLOCK  ADVISORY  WRITE 1234 08:01:5678 0 EOF`; one that waits has `->` second.
/// The device is not compared: on an overlay it is not the one that `fstat` tells.
fn holder_in(text: &str, inode: u64) -> Option<u32> {
    text.lines().find_map(|line| {
        let mut words = line.split_ascii_whitespace().skip(1);
        if words.next() != Some("FLOCK") {
            return None;
        }
        let pid = words.nth(2)?.parse().ok()?;
        let found = words.next()?.rsplit(':').next()?.parse::<u64>().ok()?;
        (found == inode && pid != 0).then_some(pid)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_names_the_holder() {
        let text = "1: POSIX  ADVISORY  WRITE 7 08:01:99 0 EOF\n\
                    2: FLOCK  ADVISORY  READ 1234 08:01:99 0 EOF\n\
                    2: -> FLOCK  ADVISORY  WRITE 5 08:01:98 0 EOF\n";
        assert_eq!(holder_in(text, 99), Some(1234));
        assert_eq!(holder_in(text, 98), None);
    }

    #[test]
    fn the_notice_names_pid_and_path() {
        let notice = WaitNotice {
            path: "/c/.lock".into(),
            pid: Some(9),
        };
        assert_eq!(
            notice.to_string(),
            "waiting for process 9, which holds the lock /c/.lock"
        );
    }
}
