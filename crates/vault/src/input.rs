//! What a person gives us to read: standard input, or a file that they name. The bytes may be a
//! secret, so they go straight into a [`Secret`], and a refusal tells the reason without the path:
//! the path itself was read from somewhere that must not be repeated.

use crate::bytes::read_all;
use crate::error::Reason;
use crate::secret::Secret;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;
use std::path::Path;

const CHUNK: u64 = 64 * 1024;

/// Reads a descriptor to its end, at most `limit` bytes.
pub fn read_descriptor(fd: impl AsFd, limit: usize) -> Result<Secret, Reason> {
    read_all(fd, CHUNK, limit).map(Secret::new)
}

/// Reads a regular file of at most `limit` bytes: no link, no device, no FIFO. Also tells whether
/// other users can read it.
pub fn read_plain_file(path: &Path, limit: usize) -> Result<(Secret, bool), Reason> {
    let (fd, stat) = open(path, OFlags::NOFOLLOW)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(Reason::NotFile);
    }
    let bytes = read_all(&fd, u64::try_from(stat.st_size).unwrap_or(0), limit)?;
    Ok((Secret::new(bytes), stat.st_mode & 0o044 != 0))
}

/// Reads a file or a pipe of at most `limit` bytes, through links: `<(command)` of a shell is one.
pub fn read_any_file(path: &Path, limit: usize) -> Result<Secret, Reason> {
    let (fd, stat) = open(path, OFlags::empty())?;
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => {}
        // Opened without waiting for a writer; read with waiting.
        FileType::Fifo => {
            rustix::fs::fcntl_setfl(&fd, OFlags::empty()).map_err(failed("read it"))?;
        }
        _ => return Err(Reason::NotFile),
    }
    read_descriptor(&fd, limit)
}

fn open(path: &Path, links: OFlags) -> Result<(OwnedFd, rustix::fs::Stat), Reason> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC | links;
    let fd = match rustix::fs::open(path, flags, Mode::empty()) {
        Ok(fd) => fd,
        Err(Errno::LOOP) => return Err(Reason::Link),
        Err(Errno::NXIO) => return Err(Reason::NotFile),
        Err(e) => return Err(failed("open it")(e)),
    };
    let stat = rustix::fs::fstat(&fd).map_err(failed("examine it"))?;
    Ok((fd, stat))
}

fn failed(doing: &'static str) -> impl Fn(Errno) -> Reason {
    move |source| Reason::Io { doing, source }
}
