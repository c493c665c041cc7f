//! Archives that are here: their sizes, and their bytes once they are known to be the pinned ones.

use super::error::InstallError;
use super::fetch::FetchError;
use super::part::errno;
use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;
use sema_rules::lock::Archive;
use sema_vault::{Dir, VaultError, hash};
use std::fs::File;
use std::io::Read;

/// The bytes of an archive if it is there and has the pinned hash; another file under its name is
/// an error that names both hashes.
pub(super) fn pinned(folder: &Dir, archive: &Archive) -> Result<Option<Vec<u8>>, InstallError> {
    let Some(bytes) = read(folder, archive.file.as_str(), archive.bytes)? else {
        return Ok(None);
    };
    let (seen, long) = match archive.integrity {
        Some(_) => {
            let (seen, long) = hash::both(&bytes);
            (seen, Some(long))
        }
        None => (hash::sha256(&bytes), None),
    };
    if seen != archive.sha256 {
        let (expected, seen) = (archive.sha256.to_string(), seen.to_string());
        return Err(other(folder, archive, "sha256", expected, seen));
    }
    if let (Some(pinned), Some(seen)) = (archive.integrity, long)
        && seen != pinned
    {
        let (expected, seen) = (pinned.to_string(), seen.to_string());
        return Err(other(folder, archive, "integrity", expected, seen));
    }
    Ok(Some(bytes))
}

fn other(
    folder: &Dir,
    archive: &Archive,
    kind: &'static str,
    expected: String,
    seen: String,
) -> InstallError {
    let place = folder.path().display().to_string();
    FetchError::Hash {
        file: archive.file.to_string(),
        kind,
        expected,
        seen,
        place,
    }
    .into()
}

/// The bytes of a file that should hold `bytes` of them; of a longer one, one more.
pub(super) fn read(folder: &Dir, name: &str, bytes: u64) -> Result<Option<Vec<u8>>, InstallError> {
    let Some(file) = open(folder, name)? else {
        return Ok(None);
    };
    let mut content = Vec::with_capacity(usize::try_from(bytes).unwrap_or(0));
    let read = file.take(bytes + 1).read_to_end(&mut content);
    read.map_err(|error| VaultError::io(folder.path().join(name), "read it", errno(&error)))?;
    Ok(Some(content))
}

/// The bytes of a small file in a tree that was just unpacked.
pub(super) fn read_below(tree: &Dir, path: &str) -> Result<Vec<u8>, InstallError> {
    Ok(read(tree, path, 1 << 20)?.unwrap_or_default())
}

/// Whether a file of such a tree is a program of this kind of machine, by its mode and first bytes.
pub(super) fn is_program(tree: &Dir, path: &str) -> Result<bool, InstallError> {
    let Ok(stat) = rustix::fs::statat(tree.fd(), path, AtFlags::SYMLINK_NOFOLLOW) else {
        return Ok(false);
    };
    let start = read(tree, path, 3)?.unwrap_or_default();
    let known = [b"\x7fELF", b"\xcf\xfa\xed\xfe", b"\xca\xfe\xba\xbe"];
    Ok(stat.st_mode & 0o100 != 0 && known.iter().any(|magic| start == *magic))
}

fn open(folder: &Dir, name: &str) -> Result<Option<File>, VaultError> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    match rustix::fs::openat(folder.fd(), name, flags, Mode::empty()) {
        Ok(descriptor) => Ok(Some(File::from(descriptor))),
        Err(Errno::NOENT) => Ok(None),
        // A link or a socket in an archive's place is no archive.
        Err(Errno::LOOP | Errno::NXIO) => folder.remove(name).map(|_| None),
        Err(errno) => Err(VaultError::io(folder.path().join(name), "open it", errno)),
    }
}

/// The size of a regular file, where there is one.
pub(super) fn size_of(folder: &Dir, name: &str) -> Option<u64> {
    let stat = rustix::fs::statat(folder.fd(), name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
    let regular = FileType::from_raw_mode(stat.st_mode).is_file();
    u64::try_from(stat.st_size).ok().filter(|_| regular)
}
