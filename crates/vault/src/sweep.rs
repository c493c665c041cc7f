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
        let up = format!(".swept-{}", crate::dir::random_name(16));
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
