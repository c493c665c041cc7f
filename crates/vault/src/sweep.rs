//! Removing a tree that a hostile program may have made: any depth, any mode, links never
//! followed, a constant number of descriptors.
//!
//! A directory inside a directory is first moved up to the top of the tree, so nothing recurses.

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;
use std::ffi::{CString, OsStr};
use std::os::unix::ffi::OsStrExt;

/// Removes `name` below `parent`. False where nothing was there.
pub(crate) fn remove_tree(parent: BorrowedFd<'_>, name: &OsStr) -> Result<bool, Errno> {
    let top = match open(parent, name) {
        Ok(top) => top,
        Err(Errno::NOENT) => return Ok(false),
        Err(Errno::NOTDIR | Errno::LOOP) => {
            rustix::fs::unlinkat(parent, name, AtFlags::empty())?;
            return Ok(true);
        }
        Err(e) => return Err(e),
    };
    loop {
        let directories = remove_files(&top)?;
        if directories.is_empty() {
            break;
        }
        for inner in directories {
            empty(&top, OsStr::from_bytes(inner.as_bytes()))?;
            rustix::fs::unlinkat(&top, &inner, AtFlags::REMOVEDIR)?;
        }
    }
    rustix::fs::unlinkat(parent, name, AtFlags::REMOVEDIR)?;
    Ok(true)
}

/// Removes what is in `name` and moves its directories up to `top`.
fn empty(top: &OwnedFd, name: &OsStr) -> Result<(), Errno> {
    let dir = open(top.as_fd(), name)?;
    for inner in remove_files(&dir)? {
        // To move a directory the kernel writes its "..", so it must be ours to write.
        drop(open(dir.as_fd(), OsStr::from_bytes(inner.as_bytes()))?);
        let up = format!(".swept-{}", crate::bytes::random_name(16));
        rustix::fs::renameat(&dir, &inner, top, up)?;
    }
    Ok(())
}

/// Removes all but directories, whose names it returns.
fn remove_files(dir: &OwnedFd) -> Result<Vec<CString>, Errno> {
    let mut directories = Vec::new();
    for entry in rustix::fs::Dir::read_from(dir)? {
        let name = entry?.file_name().to_owned();
        if matches!(name.as_bytes(), b"." | b"..") {
            continue;
        }
        match rustix::fs::unlinkat(dir, &name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(Errno::ISDIR | Errno::PERM) => directories.push(name),
            Err(e) => return Err(e),
        }
    }
    Ok(directories)
}

/// Opens a directory for removal and makes it usable for us where its mode forbids it.
pub(crate) fn open(parent: BorrowedFd<'_>, name: &OsStr) -> Result<OwnedFd, Errno> {
    let handle = rustix::fs::openat(
        parent,
        name,
        OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC,
        Mode::empty(),
    )?;
    let mode = rustix::fs::fstat(&handle)?.st_mode;
    if mode & 0o700 != 0o700 {
        let through = format!("/proc/self/fd/{}", rustix::fd::AsRawFd::as_raw_fd(&handle));
        rustix::fs::chmod(through, Mode::RWXU)?;
    }
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::openat(&handle, ".", flags, Mode::empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dir::Dir;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn disk() -> (tempfile::TempDir, Dir) {
        let disk = tempfile::tempdir().unwrap();
        fs::set_permissions(disk.path(), fs::Permissions::from_mode(0o700)).unwrap();
        let dir = Dir::open_private(disk.path()).unwrap().unwrap();
        (disk, dir)
    }

    #[test]
    fn links_are_removed_and_not_followed() {
        let (disk, dir) = disk();
        fs::create_dir_all(disk.path().join("tree/a")).unwrap();
        fs::create_dir(disk.path().join("kept")).unwrap();
        fs::write(disk.path().join("kept/file"), "x").unwrap();
        symlink(disk.path().join("kept"), disk.path().join("tree/a/link")).unwrap();
        symlink(disk.path().join("kept"), disk.path().join("link")).unwrap();
        assert!(dir.remove_tree("tree").unwrap());
        assert!(dir.remove_tree("link").unwrap());
        assert!(!dir.remove_tree("tree").unwrap());
        assert_eq!(dir.names().unwrap(), ["kept"]);
        assert!(disk.path().join("kept/file").exists());
    }

    #[test]
    fn a_tree_deeper_than_any_path_is_removed() {
        let (disk, dir) = disk();
        fs::create_dir(disk.path().join("tree")).unwrap();
        let mut at = open(dir.fd(), OsStr::new("tree")).unwrap();
        for depth in 0..3000 {
            rustix::fs::mkdirat(&at, "deeper", Mode::RWXU).unwrap();
            if depth % 500 == 0 {
                rustix::fs::mkdirat(&at, "closed", Mode::empty()).unwrap();
            }
            at = open(at.as_fd(), OsStr::new("deeper")).unwrap();
        }
        rustix::fs::fchmod(&at, Mode::empty()).unwrap();
        drop(at);
        assert!(dir.remove_tree("tree").unwrap());
        assert!(dir.names().unwrap().is_empty());
    }
}
