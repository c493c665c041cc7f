//! An open directory that was checked, and what is read and written in it.
//!
//! A `Dir` is a descriptor: whoever renames the path or puts a link in its place afterwards
//! changes nothing for its holder. Names given to its methods are single components.

use crate::bytes::{random_name, read_all, write_all};
use crate::check::{self, Demand};
use crate::error::{Reason, VaultError};
use crate::fault;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

/// How the name of a file that is not finished begins.
pub(crate) const TEMPORARY: &str = ".tmp-";

const OPEN_DIR: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);
// NONBLOCK: a FIFO that somebody put in a file's place must not stop us.
const OPEN_FILE: OFlags = OFlags::RDONLY
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOCTTY)
    .union(OFlags::CLOEXEC);

/// A private directory (ours, 0700, no link), held open.
#[derive(Debug)]
pub struct Dir {
    fd: OwnedFd,
    path: PathBuf,
}

impl Dir {
    /// Opens an existing private directory; `None` where nothing is there. Links in the path
    /// before its last component are followed.
    pub fn open_private(path: &Path) -> Result<Option<Self>, VaultError> {
        absolute(path)?;
        Self::opened(rustix::fs::open(path, OPEN_DIR, Mode::empty()), path, None)
    }

    /// Opens a private directory and makes it first, with its parents, where it is missing.
    pub fn create_private(path: &Path) -> Result<Self, VaultError> {
        absolute(path)?;
        let mut parent = open_path("/".as_ref()).map_err(|e| VaultError::io("/", "open it", e))?;
        let mut so_far = PathBuf::from("/");
        let mut parts = path
            .components()
            .skip_while(|c| *c == Component::RootDir)
            .peekable();
        while let Some(part) = parts.next() {
            so_far.push(part);
            let name = part.as_os_str();
            match rustix::fs::mkdirat(&parent, name, Mode::RWXU) {
                // A parent that exists may refuse the attempt for another reason first.
                Ok(()) | Err(Errno::EXIST | Errno::ACCESS | Errno::ROFS | Errno::PERM) => {}
                Err(e) => return Err(VaultError::io(so_far, "create it", e)),
            }
            if parts.peek().is_none() {
                let fd = rustix::fs::openat(&parent, name, OPEN_DIR, Mode::empty());
                return Self::opened(fd, path, Some(&parent))?
                    .ok_or_else(|| VaultError::io(path, "create it", Errno::ACCESS));
            }
            parent = rustix::fs::openat(
                &parent,
                name,
                OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC,
                Mode::empty(),
            )
            .map_err(|e| match e {
                Errno::NOENT => VaultError::io(&so_far, "create it", Errno::ACCESS),
                Errno::NOTDIR => VaultError::new(&so_far, Reason::NotDirectory),
                e => VaultError::io(&so_far, "open it", e),
            })?;
        }
        // Only "/" has no last component: never private.
        Self::open_private(path)?.ok_or_else(|| VaultError::new(path, Reason::NotDirectory))
    }

    /// Opens a private directory below this one; `None` where nothing is there.
    pub fn sub(&self, name: impl AsRef<OsStr>) -> Result<Option<Self>, VaultError> {
        let name = name.as_ref();
        let fd = rustix::fs::openat(&self.fd, name, OPEN_DIR, Mode::empty());
        Self::opened(fd, &self.path.join(name), Some(&self.fd))
    }

    /// Opens a private directory below this one and makes it first where it is missing.
    pub fn create_sub(&self, name: impl AsRef<OsStr>) -> Result<Self, VaultError> {
        let name = name.as_ref();
        let path = self.path.join(name);
        match rustix::fs::mkdirat(&self.fd, name, Mode::RWXU) {
            Ok(()) => self.flush()?,
            Err(Errno::EXIST) => {}
            Err(e) => return Err(VaultError::io(path, "create it", e)),
        }
        self.sub(name)?
            .ok_or_else(|| VaultError::io(path, "create it", Errno::NOENT))
    }

    fn opened(
        fd: Result<OwnedFd, Errno>,
        path: &Path,
        parent: Option<&OwnedFd>,
    ) -> Result<Option<Self>, VaultError> {
        let fd = match fd {
            Ok(fd) => fd,
            Err(Errno::NOENT) => return Ok(None),
            Err(e @ (Errno::LOOP | Errno::NOTDIR)) => {
                return Err(VaultError::new(path, link_or_not(path, parent, e)));
            }
            Err(e) => return Err(VaultError::io(path, "open it", e)),
        };
        let dir = Self {
            fd,
            path: path.to_owned(),
        };
        let stat = dir.stat()?;
        check::private(&stat, 0o700).map_err(|reason| VaultError::new(path, reason))?;
        Ok(Some(dir))
    }

    fn stat(&self) -> Result<Stat, VaultError> {
        rustix::fs::fstat(&self.fd).map_err(|e| VaultError::io(&self.path, "examine it", e))
    }

    /// The same directory, held open a second time.
    pub fn reopen(&self) -> Result<Self, VaultError> {
        let fd = rustix::io::fcntl_dupfd_cloexec(&self.fd, 3);
        Self::opened(fd, &self.path, None)?
            .ok_or_else(|| VaultError::io(&self.path, "open it", Errno::NOENT))
    }

    /// Where the directory was when it was opened.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The descriptor, for calls that this type does not wrap.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// The names in it, sorted, without `.` and `..`.
    pub fn names(&self) -> Result<Vec<OsString>, VaultError> {
        let read = || {
            let mut names = Vec::new();
            for entry in rustix::fs::Dir::read_from(&self.fd)? {
                let entry = entry?;
                let name = OsStr::from_bytes(entry.file_name().to_bytes());
                if name != "." && name != ".." {
                    names.push(name.to_owned());
                }
            }
            names.sort();
            Ok(names)
        };
        read().map_err(|e| VaultError::io(&self.path, "list it", e))
    }

    /// Reads a secret of at most `limit` bytes: a regular file of ours, 0600, one name, no link.
    /// `None` where nothing is there.
    pub fn read_private(
        &self,
        name: impl AsRef<OsStr>,
        limit: usize,
    ) -> Result<Option<Vec<u8>>, VaultError> {
        self.read(name.as_ref(), limit, Demand::Secret)
    }

    /// Reads a file that a person writes by hand: refused where another user owns it or could
    /// write it. `None` where nothing is there.
    pub fn read_policy(
        &self,
        name: impl AsRef<OsStr>,
        limit: usize,
    ) -> Result<Option<Vec<u8>>, VaultError> {
        self.read(name.as_ref(), limit, Demand::Policy)
    }

    /// Checks a secret as `read_private` does and reads nothing. False where nothing is there.
    pub fn check_private(&self, name: impl AsRef<OsStr>) -> Result<bool, VaultError> {
        Ok(self.open_file(name.as_ref(), Demand::Secret)?.is_some())
    }

    fn read(
        &self,
        name: &OsStr,
        limit: usize,
        demand: Demand,
    ) -> Result<Option<Vec<u8>>, VaultError> {
        let Some((fd, size)) = self.open_file(name, demand)? else {
            return Ok(None);
        };
        read_all(&fd, size, limit)
            .map(Some)
            .map_err(|reason| VaultError::new(self.path.join(name), reason))
    }

    pub(crate) fn open_file(
        &self,
        name: &OsStr,
        demand: Demand,
    ) -> Result<Option<(OwnedFd, u64)>, VaultError> {
        let path = || self.path.join(name);
        let flags = match demand {
            Demand::Secret => OPEN_FILE | OFlags::NOFOLLOW,
            Demand::Policy => OPEN_FILE,
        };
        let fd = match rustix::fs::openat(&self.fd, name, flags, Mode::empty()) {
            Ok(fd) => fd,
            Err(Errno::NOENT) => return Ok(None),
            Err(Errno::LOOP) => return Err(VaultError::new(path(), Reason::Link)),
            // A socket or a device without a driver.
            Err(Errno::NXIO) => return Err(VaultError::new(path(), Reason::NotFile)),
            Err(e) => return Err(VaultError::io(path(), "open it", e)),
        };
        let stat = rustix::fs::fstat(&fd).map_err(|e| VaultError::io(path(), "examine it", e))?;
        check::file(&stat, demand).map_err(|reason| VaultError::new(path(), reason))?;
        Ok(Some((fd, u64::try_from(stat.st_size).unwrap_or(0))))
    }

    /// Writes a file so that a reader, or a crash at any instruction, sees the old one or the new
    /// one: a temporary file, flushed, renamed over the name, the directory flushed.
    pub fn write_atomic(
        &self,
        name: impl AsRef<OsStr>,
        bytes: &[u8],
        mode: u32,
    ) -> Result<(), VaultError> {
        let name = name.as_ref();
        let temporary = format!("{TEMPORARY}{}", random_name(12));
        let shown = name.to_string_lossy();
        fault::point(&format!("write.{shown}"));
        let result = self
            .write_new(&temporary, bytes, mode, Flush::Yes)
            .and_then(|()| {
                fault::point(&format!("rename.{shown}"));
                self.rename(&temporary, name)
            });
        if result.is_err() {
            let _ = rustix::fs::unlinkat(&self.fd, &temporary, AtFlags::empty());
        }
        result?;
        fault::point(&format!("flush.{shown}"));
        self.flush()?;
        fault::point(&format!("done.{shown}"));
        Ok(())
    }

    /// Makes a file that must not exist, 0600, to be written at offsets: a file opened to append
    /// would not obey them.
    pub(crate) fn create_journal(&self, name: &str) -> Result<OwnedFd, VaultError> {
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        rustix::fs::openat(&self.fd, name, flags, Mode::RUSR | Mode::WUSR)
            .map_err(|e| VaultError::io(self.path.join(name), "create it", e))
    }

    /// Writes a file that must not exist.
    pub(crate) fn write_new(
        &self,
        name: impl AsRef<OsStr>,
        bytes: &[u8],
        mode: u32,
        flush: Flush,
    ) -> Result<(), VaultError> {
        let name = name.as_ref();
        let failed = |doing| move |e| VaultError::io(self.path.join(name), doing, e);
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mode = Mode::from_raw_mode(mode);
        let fd = rustix::fs::openat(&self.fd, name, flags, mode & (Mode::RUSR | Mode::WUSR))
            .map_err(failed("create it"))?;
        // Whatever the umask left.
        rustix::fs::fchmod(&fd, mode).map_err(failed("set its mode"))?;
        fault::point("created");
        write_all(&fd, bytes).map_err(failed("write it"))?;
        fault::point("written");
        if flush == Flush::Yes {
            rustix::fs::fsync(&fd).map_err(failed("flush it"))?;
        }
        Ok(())
    }

    /// Renames within this directory, over what is there.
    pub fn rename(&self, from: impl AsRef<OsStr>, to: impl AsRef<OsStr>) -> Result<(), VaultError> {
        let to = to.as_ref();
        rustix::fs::renameat(&self.fd, from.as_ref(), &self.fd, to)
            .map_err(|e| VaultError::io(self.path.join(to), "put it in place", e))
    }

    /// Removes a file or a link and flushes the directory. False where nothing was there.
    pub fn remove(&self, name: impl AsRef<OsStr>) -> Result<bool, VaultError> {
        let name = name.as_ref();
        match rustix::fs::unlinkat(&self.fd, name, AtFlags::empty()) {
            Ok(()) => self.flush().map(|()| true),
            Err(Errno::NOENT) => Ok(false),
            Err(e) => Err(VaultError::io(self.path.join(name), "remove it", e)),
        }
    }

    /// Removes a directory and all that is below it; links are removed, not followed. False where
    /// nothing was there.
    pub fn remove_tree(&self, name: impl AsRef<OsStr>) -> Result<bool, VaultError> {
        let name = name.as_ref();
        crate::sweep::remove_tree(self.fd(), name)
            .map_err(|e| VaultError::io(self.path.join(name), "remove it", e))
    }

    /// Flushes the directory itself: the names in it.
    pub fn flush(&self) -> Result<(), VaultError> {
        match rustix::fs::fsync(&self.fd) {
            // Some network file systems know no flush of a directory.
            Ok(()) | Err(Errno::INVAL) => Ok(()),
            Err(e) => Err(VaultError::io(&self.path, "flush it", e)),
        }
    }
}

/// Whether a written file is flushed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flush {
    Yes,
    /// What ends with the launch needs none.
    No,
}

fn absolute(path: &Path) -> Result<(), VaultError> {
    if path.is_absolute() {
        return Ok(());
    }
    Err(VaultError::new(path, Reason::Relative))
}

fn open_path(path: &Path) -> Result<OwnedFd, Errno> {
    rustix::fs::open(
        path,
        OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC,
        Mode::empty(),
    )
}

/// A directory opened with NOFOLLOW that is not one: a link (the kernel says ENOTDIR for it when
/// DIRECTORY is asked for, too) or something else. Only for the words of the refusal.
fn link_or_not(path: &Path, parent: Option<&OwnedFd>, e: Errno) -> Reason {
    if e == Errno::LOOP {
        return Reason::Link;
    }
    let name = path.file_name().unwrap_or(path.as_os_str());
    let stat = match parent {
        Some(parent) => rustix::fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW),
        None => rustix::fs::lstat(path),
    };
    match stat {
        Ok(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::Symlink => Reason::Link,
        _ => Reason::NotDirectory,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn disk() -> (tempfile::TempDir, Dir) {
        let disk = tempfile::tempdir().unwrap();
        let dir = Dir::create_private(&disk.path().join("a/b c/é")).unwrap();
        (disk, dir)
    }

    fn put(dir: &Dir, name: &str, bytes: &[u8], mode: u32) {
        let path = dir.path().join(name);
        let _ = fs::remove_file(&path);
        fs::write(&path, bytes).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn a_descriptor_survives_a_swap_of_its_path() {
        let (disk, dir) = disk();
        dir.write_atomic("X", b"old", 0o600).unwrap();
        fs::rename(dir.path(), disk.path().join("moved")).unwrap();
        symlink("/etc", dir.path()).unwrap();
        dir.write_atomic("X", b"new", 0o600).unwrap();
        assert_eq!(fs::read(disk.path().join("moved/X")).unwrap(), b"new");
        assert_eq!(dir.read_private("X", 9).unwrap().unwrap(), b"new");
        let refused = Dir::open_private(dir.path()).unwrap_err();
        assert_eq!(refused.reason(), &Reason::Link);
        let refused = Dir::create_private(dir.path()).unwrap_err();
        assert_eq!(refused.reason(), &Reason::Link);
    }

    #[test]
    fn a_secret_of_exactly_the_limit_is_read() {
        let (_disk, dir) = disk();
        for size in [0, 1, 4095, 4096, 5000] {
            put(&dir, "X", &vec![7; size], 0o600);
            assert_eq!(dir.read_private("X", size).unwrap().unwrap().len(), size);
            if size > 0 {
                let refused = dir.read_private("X", size - 1).unwrap_err();
                assert_eq!(refused.reason(), &Reason::TooLarge { limit: size - 1 });
            }
        }
        assert_eq!(dir.read_private("missing", 1).unwrap(), None);
        // A file that says nothing of its size, and one that grows while it is read.
        let fd = rustix::fs::open("/proc/self/status", OPEN_FILE, Mode::empty()).unwrap();
        assert!(read_all(&fd, 0, 1 << 20).unwrap().len() > 100);
    }

    #[test]
    fn a_policy_may_be_read_by_all_and_written_by_one() {
        let (_disk, dir) = disk();
        for (mode, fine) in [
            (0o644, true),
            (0o600, true),
            (0o444, true),
            (0o664, false),
            (0o602, false),
        ] {
            put(&dir, "tools.json", b"{}", mode);
            assert_eq!(dir.read_policy("tools.json", 9).is_ok(), fine, "{mode:o}");
        }
        put(&dir, "real", b"{}", 0o644);
        symlink("real", dir.path().join("jail.json")).unwrap();
        assert!(dir.read_policy("jail.json", 9).unwrap().is_some());
        assert_eq!(
            dir.read_private("jail.json", 9).unwrap_err().reason(),
            &Reason::Link
        );
        symlink("/dev/zero", dir.path().join("device")).unwrap();
        assert_eq!(
            dir.read_policy("device", 9).unwrap_err().reason(),
            &Reason::NotFile
        );
    }

    #[test]
    fn what_is_no_directory_is_said_to_be_none() {
        let (_disk, dir) = disk();
        put(&dir, "file", b"", 0o600);
        assert_eq!(dir.sub("file").unwrap_err().reason(), &Reason::NotDirectory);
        let below = dir.path().join("file/x");
        assert_eq!(
            Dir::create_private(&below).unwrap_err().reason(),
            &Reason::NotDirectory
        );
        assert_eq!(
            Dir::create_private(Path::new("x")).unwrap_err().reason(),
            &Reason::Relative
        );
        assert!(Dir::create_private(Path::new("/")).is_err());
    }

    #[test]
    fn names_are_random() {
        let names: std::collections::BTreeSet<String> = (0..100).map(|_| random_name(8)).collect();
        assert_eq!(names.len(), 100);
        assert!(
            names
                .iter()
                .all(|name| sema_rules::name::LaunchId::parse(name).is_ok())
        );
    }
}
