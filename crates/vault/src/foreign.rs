//! Files that a program which is not trusted has written: read one, and copy what lies there.
//!
//! Nothing here follows a symbolic link of that program's, opens a device or waits on a FIFO, and
//! nothing that exists is written over. Its names are bytes of its own choosing and are told as
//! such.

use crate::bytes::read_all;
use crate::dir::Dir;
use crate::error::{Reason, VaultError};
use crate::secret::Secret;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

/// How many folders deep a copy goes.
const DEPTH: u32 = 32;
/// How many names are tried for one file.
const NAMES: u32 = 1000;
const CHUNK: usize = 64 * 1024;

// NONBLOCK: a FIFO in the file's place must not stop us.
const OPEN_FILE: OFlags = OFlags::RDONLY
    .union(OFlags::NOFOLLOW)
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOCTTY)
    .union(OFlags::CLOEXEC);
const OPEN_FOLDER: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// Reads a regular file of at most `limit` bytes.
pub fn read(dir: &Dir, name: &str, limit: usize) -> Result<Secret, VaultError> {
    let failed = |reason| VaultError::new(dir.path().join(name), reason);
    let (fd, size) = open_regular(dir.fd(), name.as_ref()).map_err(failed)?;
    read_all(&fd, size, limit).map(Secret::new).map_err(failed)
}

fn open_regular(dir: BorrowedFd<'_>, name: &OsStr) -> Result<(OwnedFd, u64), Reason> {
    let io = |doing| move |source| Reason::Io { doing, source };
    let fd = match rustix::fs::openat(dir, name, OPEN_FILE, Mode::empty()) {
        Ok(fd) => fd,
        Err(Errno::LOOP) => return Err(Reason::Link),
        Err(Errno::NXIO) => return Err(Reason::NotFile),
        Err(error) => return Err(io("open it")(error)),
    };
    let stat = rustix::fs::fstat(&fd).map_err(io("examine it"))?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(Reason::NotFile);
    }
    Ok((fd, u64::try_from(stat.st_size).unwrap_or(0)))
}

/// What a copy did.
#[derive(Debug, Default)]
pub struct Kept {
    /// The files written, below the folder copied to.
    pub written: Vec<PathBuf>,
    /// How many lay there already with the same content.
    pub already: usize,
    /// What was left out, below the folder copied from, and why.
    pub left: Vec<(PathBuf, Reason)>,
}

/// Copies every regular file of `from` into the folder `to`, which is made where it is missing. A
/// file whose name is taken by another content gets a name of its own: `page (2).yml`. Names for
/// which `skip` is true are passed over.
pub fn copy(from: &Dir, to: &Path, skip: impl Fn(&OsStr) -> bool) -> Result<Kept, VaultError> {
    let to_fd = folder(to)?;
    let mut copy = Copy {
        skip: &skip,
        kept: Kept::default(),
    };
    copy.tree(from.fd(), to_fd.as_fd(), Path::new(""), 0)
        .map_err(|error| VaultError::new(to.join(error.path()), error.reason().clone()))?;
    Ok(copy.kept)
}

/// Opens the folder that a person named, made with its parents where it is missing.
fn folder(path: &Path) -> Result<OwnedFd, VaultError> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let mut missing = Vec::new();
    let mut at = path;
    loop {
        match rustix::fs::open(at, flags, Mode::empty()) {
            Ok(mut fd) => {
                while let Some(name) = missing.pop() {
                    fd = make(fd.as_fd(), name).map_err(|reason| VaultError::new(path, reason))?;
                }
                return Ok(fd);
            }
            Err(Errno::NOENT) => {
                let (Some(parent), Some(name)) = (at.parent(), at.file_name()) else {
                    return Err(VaultError::io(path, "open it", Errno::NOENT));
                };
                missing.push(name);
                at = if parent.as_os_str().is_empty() {
                    Path::new(".")
                } else {
                    parent
                };
            }
            Err(Errno::NOTDIR) => return Err(VaultError::new(at, Reason::NotDirectory)),
            Err(error) => return Err(VaultError::io(at, "open it", error)),
        }
    }
}

/// A folder below one that is open, made where it is missing.
fn make(parent: BorrowedFd<'_>, name: &OsStr) -> Result<OwnedFd, Reason> {
    let io = |doing| move |source| Reason::Io { doing, source };
    match rustix::fs::mkdirat(parent, name, Mode::RWXU) {
        Ok(()) | Err(Errno::EXIST) => {}
        Err(error) => return Err(io("create it")(error)),
    }
    match rustix::fs::openat(parent, name, OPEN_FOLDER, Mode::empty()) {
        Ok(fd) => Ok(fd),
        Err(Errno::LOOP | Errno::NOTDIR) => Err(Reason::NotDirectory),
        Err(error) => Err(io("open it")(error)),
    }
}

struct Copy<'s> {
    skip: &'s dyn Fn(&OsStr) -> bool,
    kept: Kept,
}

impl Copy<'_> {
    /// Copies one folder. What cannot be read is left out; what cannot be written ends the copy.
    fn tree(
        &mut self,
        from: BorrowedFd<'_>,
        to: BorrowedFd<'_>,
        below: &Path,
        depth: u32,
    ) -> Result<(), VaultError> {
        let read = |source| VaultError::io(below, "list it", source);
        for entry in rustix::fs::Dir::read_from(from).map_err(read)? {
            let entry = entry.map_err(read)?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if name == "." || name == ".." || (self.skip)(name) {
                continue;
            }
            let path = below.join(name);
            match rustix::fs::openat(from, name, OPEN_FOLDER, Mode::empty()) {
                Ok(_) if depth == DEPTH => self.left(
                    path,
                    Reason::Io {
                        doing: "go deeper",
                        source: Errno::NAMETOOLONG,
                    },
                ),
                Ok(sub) => match make(to, name) {
                    Ok(target) => self.tree(sub.as_fd(), target.as_fd(), &path, depth + 1)?,
                    Err(reason) => return Err(VaultError::new(path, reason)),
                },
                Err(_) => self.entry(from, to, name, below)?,
            }
        }
        Ok(())
    }

    fn entry(
        &mut self,
        from: BorrowedFd<'_>,
        to: BorrowedFd<'_>,
        name: &OsStr,
        below: &Path,
    ) -> Result<(), VaultError> {
        let (source, size) = match open_regular(from, name) {
            Ok(open) => open,
            // Removed in the meantime: the program still runs.
            Err(Reason::Io {
                source: Errno::NOENT,
                ..
            }) => return Ok(()),
            Err(reason) => {
                self.left(below.join(name), reason);
                return Ok(());
            }
        };
        for number in 1..=NAMES {
            let target = numbered(name, number);
            match rustix::fs::openat(to, &target, CREATE, Mode::RUSR | Mode::WUSR) {
                Ok(fd) => {
                    self.kept.written.push(below.join(&target));
                    return pour(&source, &fd).map_err(|error| {
                        _ = rustix::fs::unlinkat(to, &target, AtFlags::empty());
                        VaultError::io(below.join(&target), "write it", error)
                    });
                }
                Err(Errno::EXIST) if same(to, &target, &source, size) => {
                    self.kept.already += 1;
                    return Ok(());
                }
                Err(Errno::EXIST) => {}
                Err(error) => return Err(VaultError::io(below.join(&target), "create it", error)),
            }
        }
        Err(VaultError::io(
            below.join(name),
            "find a free name for it",
            Errno::EXIST,
        ))
    }

    fn left(&mut self, path: PathBuf, reason: Reason) {
        self.kept.left.push((path, reason));
    }
}

const CREATE: OFlags = OFlags::WRONLY
    .union(OFlags::CREATE)
    .union(OFlags::EXCL)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// `page.yml`, `page (2).yml`, `page (3).yml`: the number stands before the last dot.
fn numbered(name: &OsStr, number: u32) -> OsString {
    if number == 1 {
        return name.to_owned();
    }
    let bytes = name.as_bytes();
    let dot = bytes
        .iter()
        .rposition(|&byte| byte == b'.')
        .filter(|&at| at > 0);
    let (stem, extension) = bytes.split_at(dot.unwrap_or(bytes.len()));
    OsString::from_vec([stem, format!(" ({number})").as_bytes(), extension].concat())
}

fn pour(from: &OwnedFd, to: &OwnedFd) -> Result<(), Errno> {
    let mut chunk = vec![0; CHUNK];
    loop {
        let count = rustix::io::retry_on_intr(|| rustix::io::read(from, &mut *chunk))?;
        if count == 0 {
            return Ok(());
        }
        let mut rest = &chunk[..count];
        while !rest.is_empty() {
            rest = &rest[rustix::io::retry_on_intr(|| rustix::io::write(to, rest))?..];
        }
    }
}

/// Whether the file `name` holds what `source` holds. `source` is read from its start again.
fn same(to: BorrowedFd<'_>, name: &OsStr, source: &OwnedFd, size: u64) -> bool {
    let Ok((there, there_size)) = open_regular(to, name) else {
        return false;
    };
    there_size == size && equal(&there, source, size) == Ok(true)
}

fn equal(one: &OwnedFd, other: &OwnedFd, size: u64) -> Result<bool, Errno> {
    let (mut left, mut right) = (vec![0; CHUNK], vec![0; CHUNK]);
    let mut at = 0;
    while at < size {
        let count = rustix::io::retry_on_intr(|| rustix::io::pread(one, &mut *left, at))?;
        let there = rustix::io::retry_on_intr(|| rustix::io::pread(other, &mut *right, at))?;
        if count == 0 || count != there || left[..count] != right[..there] {
            return Ok(false);
        }
        at += u64::try_from(count).unwrap_or(u64::MAX);
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    fn dir(root: &Path) -> Dir {
        let path = root.join("out");
        fs::create_dir(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
        Dir::open_private(&path).unwrap().unwrap()
    }

    #[test]
    fn only_a_regular_file_within_the_limit_is_read() {
        let root = tempfile::tempdir().unwrap();
        let out = dir(root.path());
        fs::write(out.path().join("file"), b"12345").unwrap();
        symlink("file", out.path().join("link")).unwrap();
        fs::create_dir(out.path().join("folder")).unwrap();
        rustix::fs::mknodat(out.fd(), "fifo", FileType::Fifo, Mode::RUSR, 0).unwrap();
        assert_eq!(read(&out, "file", 5).unwrap().bytes(), b"12345");
        let reason = |name, limit| read(&out, name, limit).unwrap_err().reason().clone();
        assert_eq!(reason("file", 4), Reason::TooLarge { limit: 4 });
        assert_eq!(reason("link", 9), Reason::Link);
        assert_eq!(reason("folder", 9), Reason::NotFile);
        assert_eq!(reason("fifo", 9), Reason::NotFile);
        assert!(matches!(
            reason("none", 9),
            Reason::Io {
                source: Errno::NOENT,
                ..
            }
        ));
    }

    #[test]
    fn a_copy_follows_nothing_and_writes_over_nothing() {
        let root = tempfile::tempdir().unwrap();
        let out = dir(root.path());
        let secret = root.path().join("secret");
        fs::write(&secret, b"secret").unwrap();
        fs::create_dir(out.path().join("sub")).unwrap();
        fs::write(out.path().join("sub/a.b.yml"), b"new").unwrap();
        fs::write(out.path().join("same.png"), b"same").unwrap();
        fs::write(out.path().join(".skipped"), b"x").unwrap();
        symlink(&secret, out.path().join("link")).unwrap();
        symlink(root.path(), out.path().join("linked")).unwrap();
        let to = root.path().join("made/kept");
        fs::create_dir_all(to.join("sub")).unwrap();
        fs::write(to.join("sub/a.b.yml"), b"old").unwrap();
        fs::write(to.join("same.png"), b"same").unwrap();
        let kept = copy(&out, &to, |name| name == ".skipped").unwrap();
        assert_eq!(kept.written, [PathBuf::from("sub/a.b (2).yml")]);
        assert_eq!(kept.already, 1);
        let mut left: Vec<_> = kept
            .left
            .iter()
            .map(|(path, _)| path.to_str().unwrap())
            .collect();
        left.sort_unstable();
        assert_eq!(left, ["link", "linked"]);
        assert_eq!(fs::read(to.join("sub/a.b.yml")).unwrap(), b"old");
        assert_eq!(fs::read(to.join("sub/a.b (2).yml")).unwrap(), b"new");
        let again = copy(&out, &to, |name| name == ".skipped").unwrap();
        assert_eq!((again.written.len(), again.already), (0, 2));
    }

    #[test]
    fn a_link_in_the_targets_place_is_not_written_through() {
        let root = tempfile::tempdir().unwrap();
        let out = dir(root.path());
        let victim = root.path().join("victim");
        fs::write(&victim, b"victim").unwrap();
        fs::write(out.path().join("a"), b"new").unwrap();
        let to = root.path().join("kept");
        fs::create_dir(&to).unwrap();
        symlink(&victim, to.join("a")).unwrap();
        copy(&out, &to, |_| false).unwrap();
        assert_eq!(fs::read(&victim).unwrap(), b"victim");
        assert_eq!(fs::read(to.join("a (2)")).unwrap(), b"new");
    }
}
