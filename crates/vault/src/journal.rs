//! A folder of JSON lines: each writer appends to files of its own, and a reader reads all of them.
//!
//! A writer goes on in a new file at [`FILE_LIMIT`]; before it begins one it removes the files that
//! were written to longest ago, so that the folder stays under [`FOLDER_LIMIT`] with the new one
//! full. A write that fails leaves nothing of itself that a later one could be glued to, and the
//! next one may succeed. A reader sees whole lines only, of files that are private and no links.

use crate::bytes::random_name;
use crate::check::Demand;
use crate::dir::Dir;
use crate::error::VaultError;
use rustix::fd::OwnedFd;
use rustix::fs::AtFlags;
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::time::{SystemTime, UNIX_EPOCH};

/// A file is not written to beyond this length, but for the lines that came at once.
pub const FILE_LIMIT: u64 = 8 * 1024 * 1024;
/// What all files of the folder hold at most.
pub const FOLDER_LIMIT: u64 = 64 * 1024 * 1024;
/// How many files are kept at most: most launches write little.
const FILES: usize = 1024;
const ENDING: &str = ".jsonl";

/// The writer's end of a folder of JSON lines.
#[derive(Debug)]
pub struct Journal {
    folder: Dir,
    id: String,
    stem: String,
    number: u32,
    file: Option<File>,
}

#[derive(Debug)]
struct File {
    fd: OwnedFd,
    name: String,
    length: u64,
}

impl Journal {
    /// A writer in this folder. No file is made before the first line.
    pub fn new(folder: Dir) -> Self {
        let id = random_name(8);
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        Self {
            folder,
            stem: format!("{:013}-{id}", now.as_millis()),
            id,
            number: 0,
            file: None,
        }
    }

    /// The name of this writer among those of the folder.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Appends whole lines.
    pub fn append(&mut self, lines: &[u8]) -> Result<(), VaultError> {
        if self.file.as_ref().is_none_or(File::is_over) {
            self.file = None;
            self.begin()?;
        }
        let Some(file) = &mut self.file else {
            return Ok(());
        };
        let failed = |e| VaultError::io(self.folder.path().join(&file.name), "write it", e);
        write_at(&file.fd, lines, file.length)
            .inspect_err(|_| _ = rustix::fs::ftruncate(&file.fd, file.length))
            .map_err(failed)?;
        file.length += lines.len() as u64;
        Ok(())
    }

    fn begin(&mut self) -> Result<(), VaultError> {
        prune(&self.folder, FOLDER_LIMIT - FILE_LIMIT, FILES - 1)?;
        let name = format!("{}-{:04}{ENDING}", self.stem, self.number);
        self.number += 1;
        self.file = Some(File {
            fd: self.folder.create_journal(&name)?,
            name,
            length: 0,
        });
        Ok(())
    }
}

impl File {
    /// Whether it is full, or was removed while it was written.
    fn is_over(&self) -> bool {
        self.length >= FILE_LIMIT
            || rustix::fs::fstat(&self.fd).is_ok_and(|stat| stat.st_nlink == 0)
    }
}

/// Writes at an offset: what a failed write left there is written over.
fn write_at(fd: &OwnedFd, mut bytes: &[u8], mut at: u64) -> Result<(), Errno> {
    while !bytes.is_empty() {
        match rustix::io::pwrite(fd, bytes, at) {
            Ok(0) => return Err(Errno::NOSPC),
            Ok(count) => {
                bytes = &bytes[count..];
                at += count as u64;
            }
            Err(Errno::INTR) => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

/// Removes the files that were written to longest ago, until `files` and `bytes` are kept.
fn prune(folder: &Dir, bytes: u64, files: usize) -> Result<(), VaultError> {
    let mut all: Vec<(i64, OsString, u64)> = Vec::new();
    for name in names(folder)? {
        if let Ok(stat) = rustix::fs::statat(folder.fd(), &name, AtFlags::SYMLINK_NOFOLLOW) {
            let size = u64::try_from(stat.st_size).unwrap_or(0);
            all.push((stat.st_mtime, name, size));
        }
    }
    all.sort();
    let mut sum: u64 = all.iter().map(|(_, _, size)| size).sum();
    let mut count = all.len();
    for (_, name, size) in &all {
        if sum <= bytes && count <= files {
            break;
        }
        folder.remove(name)?;
        sum -= size;
        count -= 1;
    }
    Ok(())
}

/// The files of the folder, in the order in which they were begun.
pub fn names(folder: &Dir) -> Result<Vec<OsString>, VaultError> {
    let mut names = folder.names()?;
    names.retain(|name| name.as_bytes().ends_with(ENDING.as_bytes()));
    Ok(names)
}

/// The whole lines of a file from `offset` on, and the offset behind them. A file that is gone, or
/// shorter than `offset`, has none.
pub fn read_from(folder: &Dir, name: &OsStr, offset: u64) -> Result<(Vec<u8>, u64), VaultError> {
    let Some((fd, size)) = folder.open_file(name, Demand::Secret)? else {
        return Ok((Vec::new(), offset));
    };
    let failed = |e| VaultError::io(folder.path().join(name), "read it", e);
    let mut bytes = read_at(&fd, offset, size).map_err(failed)?;
    bytes.truncate(whole(&bytes));
    let end = offset + bytes.len() as u64;
    Ok((bytes, end))
}

/// The last `lines` whole lines of a file, or all that it has, and the offset behind them. Only as
/// much of it is read as is needed.
pub fn read_last(folder: &Dir, name: &OsStr, lines: usize) -> Result<(Vec<u8>, u64), VaultError> {
    let Some((fd, size)) = folder.open_file(name, Demand::Secret)? else {
        return Ok((Vec::new(), 0));
    };
    let failed = |e| VaultError::io(folder.path().join(name), "read it", e);
    let mut window = 64 * 1024;
    loop {
        let from = size.saturating_sub(window);
        let mut bytes = read_at(&fd, from, size).map_err(failed)?;
        bytes.truncate(whole(&bytes));
        let end = from + bytes.len() as u64;
        let ends = bytes.iter().enumerate().rev().filter(|(_, b)| **b == b'\n');
        if let Some((before, _)) = { ends }.nth(lines) {
            bytes.drain(..=before);
            return Ok((bytes, end));
        }
        if from == 0 {
            return Ok((bytes, end));
        }
        window *= 4;
    }
}

/// How many of the bytes are whole lines.
fn whole(bytes: &[u8]) -> usize {
    bytes
        .iter()
        .rposition(|b| *b == b'\n')
        .map_or(0, |at| at + 1)
}

fn read_at(fd: &OwnedFd, from: u64, to: u64) -> Result<Vec<u8>, Errno> {
    let wanted = usize::try_from(to.saturating_sub(from)).unwrap_or(0);
    let (mut bytes, mut filled) = (vec![0; wanted], 0);
    while filled < wanted {
        match rustix::io::pread(fd, &mut bytes[filled..], from + filled as u64) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(Errno::INTR) => {}
            Err(e) => return Err(e),
        }
    }
    bytes.truncate(filled);
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Reason;
    use std::os::unix::fs::PermissionsExt as _;

    fn folder() -> (tempfile::TempDir, Dir) {
        let disk = tempfile::tempdir().unwrap();
        let dir = Dir::create_private(&disk.path().join("trace")).unwrap();
        (disk, dir)
    }

    fn sizes(dir: &Dir) -> Vec<u64> {
        let size = |name: OsString| std::fs::metadata(dir.path().join(name)).unwrap().len();
        names(dir).unwrap().into_iter().map(size).collect()
    }

    #[test]
    fn a_full_file_is_followed_by_another_and_the_oldest_go() {
        let (_disk, dir) = folder();
        let mut journal = Journal::new(dir.reopen().unwrap());
        let line = [vec![b'x'; 1024 * 1024 - 1], vec![b'\n']].concat();
        for _ in 0..9 {
            journal.append(&line).unwrap();
        }
        assert_eq!(sizes(&dir), [8 << 20, 1 << 20]);
        let first = names(&dir).unwrap().remove(0);
        for _ in 0..80 {
            journal.append(&line).unwrap();
            assert!(sizes(&dir).iter().sum::<u64>() <= FOLDER_LIMIT);
        }
        assert!(!names(&dir).unwrap().contains(&first));
        assert_eq!(sizes(&dir).len(), 8);
        let mode = std::fs::metadata(dir.path().join(&names(&dir).unwrap()[0])).unwrap();
        assert_eq!(mode.permissions().mode() & 0o7777, 0o600);
    }

    #[test]
    fn a_file_that_was_removed_is_begun_again() {
        let (_disk, dir) = folder();
        let mut journal = Journal::new(dir.reopen().unwrap());
        journal.append(b"1\n").unwrap();
        dir.remove(&names(&dir).unwrap()[0]).unwrap();
        journal.append(b"2\n").unwrap();
        assert_eq!(sizes(&dir), [2]);
    }

    #[test]
    fn only_whole_lines_are_read_and_the_last_ones_from_the_end() {
        let (_disk, dir) = folder();
        let mut journal = Journal::new(dir.reopen().unwrap());
        let long = [vec![b'x'; 200_000], b"\n".to_vec()].concat();
        journal.append(&long).unwrap();
        journal.append(b"2\n3\nhalf").unwrap();
        let name = names(&dir).unwrap().remove(0);
        let last = |lines| read_last(&dir, &name, lines).unwrap();
        assert_eq!(last(1), (b"3\n".to_vec(), 200_005));
        assert_eq!(last(2), (b"2\n3\n".to_vec(), 200_005));
        for lines in [3, 4, usize::MAX] {
            assert_eq!(last(lines).0.len(), 200_005);
        }
        assert_eq!(
            read_from(&dir, &name, 200_003).unwrap(),
            (b"3\n".to_vec(), 200_005)
        );
        assert_eq!(
            read_from(&dir, &name, 200_005).unwrap(),
            (Vec::new(), 200_005)
        );
        assert_eq!(
            read_from(&dir, "gone".as_ref(), 0).unwrap(),
            (Vec::new(), 0)
        );
    }

    #[test]
    fn a_write_that_failed_leaves_no_half_line() {
        let (_disk, dir) = folder();
        let mut journal = Journal::new(dir.reopen().unwrap());
        journal.append(b"1\n").unwrap();
        let file = journal.file.as_mut().unwrap();
        let path = dir.path().join(&file.name);
        let real = std::mem::replace(
            &mut file.fd,
            std::fs::File::open("/dev/null").unwrap().into(),
        );
        assert!(journal.append(b"lost\n").is_err());
        // What a disk that filled up in the middle leaves where it cannot be cut off either.
        std::fs::write(&path, "1\nlo").unwrap();
        journal.file.as_mut().unwrap().fd = real;
        journal.append(b"2 longer\n").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"1\n2 longer\n");
    }

    #[test]
    fn a_link_or_an_open_file_is_not_read() {
        let (_disk, dir) = folder();
        std::fs::write(dir.path().join("a.jsonl"), "1\n").unwrap();
        let open = std::fs::Permissions::from_mode(0o644);
        std::fs::set_permissions(dir.path().join("a.jsonl"), open).unwrap();
        std::os::unix::fs::symlink("a.jsonl", dir.path().join("b.jsonl")).unwrap();
        let reason = |name: &str| {
            let refused = read_from(&dir, name.as_ref(), 0).unwrap_err();
            refused.reason().clone()
        };
        assert!(matches!(reason("a.jsonl"), Reason::Exposed { .. }));
        assert_eq!(reason("b.jsonl"), Reason::Link);
    }
}
