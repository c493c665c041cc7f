//! Writes what was found good. Every path is opened below the root's descriptor without following
//! a link, and every file must not exist yet.

use super::compressed::Brotli;
use super::entries::Kind;
use super::{Item, Problem};
use crate::dir::Dir;
use crate::error::VaultError;
use crate::hash::{self, Hasher};
use rustix::fd::OwnedFd;
use rustix::fs::{Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use sema_rules::digest::Sha256;
use sema_rules::lock::RelPath;
use std::io::Read as _;
use std::path::Path;
use std::sync::mpsc;

/// Larger files are sent to the disk as soon as they are written, while others are decompressed.
const EARLY_FLUSH: usize = 1 << 20;

/// How much is decompressed before it is handed on, in bytes.
const CHUNK: u64 = 1 << 20;
/// How many chunks may wait to be written.
const BEHIND: usize = 16;
/// How much is written before it is sent to the disk, in bytes.
const FLUSH: usize = 32 << 20;

/// A file that was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// Its path below the root.
    pub path: String,
    /// The SHA-256 of its bytes.
    pub sha256: Sha256,
}

pub(super) fn items(
    root: &Dir,
    content: &[u8],
    items: &[Item],
    written: &mut Vec<Written>,
    progress: &mut impl FnMut(u64),
) -> Result<(), Problem> {
    for item in items {
        make_parents(root, &item.to)?;
        match &item.kind {
            Kind::Folder => make_folder(root, &item.to)?,
            Kind::Link { target } => {
                let made = rustix::fs::symlinkat(target, root.fd(), &item.to);
                made.map_err(|errno| failed(root, &item.to, "make the link", errno))?;
            }
            Kind::File {
                content: range,
                executable,
            } => {
                let bytes = &content[range.clone()];
                let sha256 = file(root, &item.to, bytes, *executable, progress)?;
                written.push(Written {
                    path: item.to.clone(),
                    sha256,
                });
            }
        }
    }
    Ok(())
}

/// Writes a file that is compressed with brotli, as it is decompressed.
pub(super) fn brotli(
    root: &Dir,
    source: &[u8],
    to: &RelPath,
    bytes: u64,
    executable: bool,
    progress: &mut impl FnMut(u64),
) -> Result<Written, Problem> {
    let path = to.as_str();
    make_parents(root, path)?;
    let fd = create(root, path, executable)?;
    let length = || Problem::Length {
        from: path.to_owned(),
        bytes,
    };
    let mut decoder = Brotli::new(source);
    let sink = Behind {
        root,
        path,
        fd: &fd,
    };
    let (total, sha256) = std::thread::scope(|scope| {
        let (full, filled) = mpsc::sync_channel::<Vec<u8>>(BEHIND);
        let (empty, emptied) = mpsc::channel();
        let writer = scope.spawn(move || sink.write(&filled, &empty));
        let mut total = 0;
        loop {
            let mut chunk = emptied.try_recv().unwrap_or_default();
            chunk.clear();
            let count = (&mut decoder)
                .take(CHUNK)
                .read_to_end(&mut chunk)
                .map_err(|_| Problem::Unreadable("a brotli file"))?;
            total += count as u64;
            if total > bytes {
                return Err(length());
            }
            // A writer that failed takes no more, and says why below.
            if full.send(chunk).is_err() {
                break;
            }
            progress(count as u64);
            // The decoder has seen its end. Asked once more, it would speak of what lies behind it.
            if (count as u64) < CHUNK {
                break;
            }
        }
        drop(full);
        let written = writer.join();
        let sha256 = written.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        Ok((total, sha256))
    })?;
    decoder.finish()?;
    if total != bytes {
        return Err(length());
    }
    flush(root, path, &fd)?;
    Ok(Written {
        path: path.to_owned(),
        sha256,
    })
}

/// What follows a decompressor in a thread of its own: it hashes, writes, and sends what it wrote
/// to the disk long before the end.
struct Behind<'w> {
    root: &'w Dir,
    path: &'w str,
    fd: &'w OwnedFd,
}

impl Behind<'_> {
    fn write(
        self,
        filled: &mpsc::Receiver<Vec<u8>>,
        empty: &mpsc::Sender<Vec<u8>>,
    ) -> Result<Sha256, Problem> {
        let mut hasher = Hasher::default();
        let mut unflushed = 0;
        for chunk in filled {
            hasher.update(&chunk);
            write_all(self.fd, &chunk)
                .map_err(|errno| failed(self.root, self.path, "write it", errno))?;
            unflushed += chunk.len();
            if unflushed >= FLUSH {
                flush(self.root, self.path, self.fd)?;
                unflushed = 0;
            }
            // The decompressor may have ended.
            _ = empty.send(chunk);
        }
        Ok(hasher.finish())
    }
}

fn file(
    root: &Dir,
    path: &str,
    bytes: &[u8],
    executable: bool,
    progress: &mut impl FnMut(u64),
) -> Result<Sha256, Problem> {
    let fd = create(root, path, executable)?;
    for chunk in bytes.chunks(1 << 20) {
        write_all(&fd, chunk).map_err(|errno| failed(root, path, "write it", errno))?;
        progress(chunk.len() as u64);
    }
    if bytes.len() < EARLY_FLUSH {
        return Ok(hash::sha256(bytes));
    }
    // The disk works while the processor does.
    std::thread::scope(|scope| {
        let flushed = scope.spawn(|| flush(root, path, &fd));
        let sha256 = hash::sha256(bytes);
        let flushed = flushed.join();
        flushed.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        Ok(sha256)
    })
}

fn flush(root: &Dir, path: &str, fd: &OwnedFd) -> Result<(), Problem> {
    rustix::fs::fdatasync(fd).map_err(|errno| failed(root, path, "flush it", errno))
}

fn create(root: &Dir, path: &str, executable: bool) -> Result<OwnedFd, Problem> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mode = if executable {
        Mode::from_raw_mode(0o755)
    } else {
        Mode::from_raw_mode(0o644)
    };
    let open = || {
        let beneath = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        let fd = rustix::fs::openat2(root.fd(), path, flags, mode, beneath)?;
        // Whatever the umask left.
        rustix::fs::fchmod(&fd, mode)?;
        Ok(fd)
    };
    open().map_err(|errno| failed(root, path, "create it", errno))
}

/// Makes the folders above `path`.
fn make_parents(root: &Dir, path: &str) -> Result<(), Problem> {
    path.match_indices('/')
        .try_for_each(|(at, _)| make_folder(root, &path[..at]))
}

fn make_folder(root: &Dir, path: &str) -> Result<(), Problem> {
    let mode = Mode::from_raw_mode(0o755);
    let made = match rustix::fs::mkdirat(root.fd(), path, mode) {
        Ok(()) => rustix::fs::chmodat(root.fd(), path, mode, rustix::fs::AtFlags::empty()),
        Err(Errno::EXIST) => Ok(()),
        Err(errno) => Err(errno),
    };
    made.map_err(|errno| failed(root, path, "create it", errno))
}

fn write_all(fd: &OwnedFd, mut bytes: &[u8]) -> Result<(), Errno> {
    while !bytes.is_empty() {
        match rustix::io::write(fd, bytes) {
            Ok(count) => bytes = &bytes[count..],
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}

fn failed(root: &Dir, path: &str, doing: &'static str, errno: Errno) -> Problem {
    Problem::Write(VaultError::io(
        root.path().join(Path::new(path)),
        doing,
        errno,
    ))
}
