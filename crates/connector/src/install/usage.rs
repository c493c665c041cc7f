//! What lies on the disk below a private directory, in bytes as the disk counts them.

use rustix::fd::{AsFd, BorrowedFd};
use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use sema_vault::Dir;
use std::collections::BTreeSet;
use std::ffi::CStr;

/// What `name` in a directory takes, and everything below it. A file with several names counts
/// once; what cannot be read counts as nothing.
pub(super) fn below(dir: &Dir, name: &[u8]) -> u64 {
    let Ok(name) = std::ffi::CString::new(name) else {
        return 0;
    };
    entry(dir.fd(), &name, &mut BTreeSet::new())
}

/// What everything in a directory takes.
pub(super) fn of(dir: &Dir) -> u64 {
    entries(dir.fd(), &mut BTreeSet::new())
}

/// The bytes of all files below `name`, and how many entries there are.
pub(super) fn content(dir: &Dir, name: &str) -> (u64, u32) {
    let mut total = (0, 0);
    if let Ok(name) = std::ffi::CString::new(name) {
        count(dir.fd(), &name, &mut total);
    }
    total
}

fn count(folder: BorrowedFd<'_>, name: &CStr, total: &mut (u64, u32)) {
    let Ok(stat) = rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) else {
        return;
    };
    total.1 += 1;
    if FileType::from_raw_mode(stat.st_mode) != FileType::Directory {
        total.0 += u64::try_from(stat.st_size).unwrap_or(0);
        return;
    }
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let Ok(inner) = rustix::fs::openat(folder, name, flags, Mode::empty()) else {
        return;
    };
    let Ok(names) = rustix::fs::Dir::read_from(&inner) else {
        return;
    };
    for found in names.flatten() {
        if !matches!(found.file_name().to_bytes(), b"." | b"..") {
            count(inner.as_fd(), found.file_name(), total);
        }
    }
}

fn entry(folder: BorrowedFd<'_>, name: &CStr, seen: &mut BTreeSet<u64>) -> u64 {
    let Ok(stat) = rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) else {
        return 0;
    };
    if stat.st_nlink > 1 && !seen.insert(stat.st_ino) {
        return 0;
    }
    let own = u64::try_from(stat.st_blocks).unwrap_or(0) * 512;
    if FileType::from_raw_mode(stat.st_mode) != FileType::Directory {
        return own;
    }
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match rustix::fs::openat(folder, name, flags, Mode::empty()) {
        Ok(inner) => own + entries(inner.as_fd(), seen),
        Err(_) => own,
    }
}

fn entries(folder: BorrowedFd<'_>, seen: &mut BTreeSet<u64>) -> u64 {
    let Ok(names) = rustix::fs::Dir::read_from(folder) else {
        return 0;
    };
    let inside = |name: &CStr| !matches!(name.to_bytes(), b"." | b"..");
    names
        .flatten()
        .filter(|found| inside(found.file_name()))
        .map(|found| entry(folder, found.file_name(), seen))
        .sum()
}
