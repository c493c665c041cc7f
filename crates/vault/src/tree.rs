//! The unpacked build: what lies below `bin/`, and whether it still is what was unpacked.
//!
//! The record, `bin/record.json`, holds every entry's kind, size, mode, link target and SHA-256. A
//! check compares the whole tree with it, nothing missing and nothing extra. A file whose inode,
//! size and times are those that it had when it was hashed is not hashed again; any other is, and
//! when its bytes are right the record is renewed: a tree that was copied, moved or restored costs
//! one hashing. No absolute path is in the record.
//!
//! It does not guard against one who may write below `bin/` and set the clock: such a one may
//! write the record too.

use crate::archive::Written;
use crate::dir::Dir;
use crate::error::VaultError;
use crate::hash::Hasher;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;
use sema_rules::digest::Sha256;
use sema_rules::lock::{ARCHIVES, Group, RECORD};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The longest record that is read, in bytes.
const RECORD_LIMIT: usize = 16 * 1024 * 1024;
/// How deep a tree may be.
const DEPTH: usize = 64;

/// What was unpacked, entry by entry.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// The build that it is: the SHA-256 over what the lock says of it.
    pub build: Sha256,
    /// The groups that were asked for.
    pub groups: Vec<Group>,
    /// When it was unpacked, in seconds since 1970.
    pub unpacked: u64,
    entries: BTreeMap<String, Entry>,
}

/// One entry of the tree.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
enum Entry {
    File {
        size: u64,
        mode: u32,
        sha256: Sha256,
        seen: Seen,
    },
    Folder {
        mode: u32,
    },
    Link {
        target: String,
    },
}

/// What a file looked like when it was hashed: inode, then modification and change time in
/// nanoseconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
struct Seen(u64, i64, i64);

/// How thorough a check is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// Only files that changed since they were hashed are hashed.
    Changed,
    /// Every file is hashed.
    Everything,
}

/// Why a tree is not the pinned build.
#[derive(Debug, thiserror::Error)]
pub enum TreeError {
    /// There is none.
    #[error("{}: the pinned build is not there", .0.display())]
    Missing(PathBuf),
    /// There is one, of another lock.
    #[error("{}: holds another build than the one that is pinned", .0.display())]
    OtherBuild(PathBuf),
    /// Its record cannot be read.
    #[error("{}: is no record of a build", .0.display())]
    BadRecord(PathBuf),
    /// An entry differs from the record.
    #[error("{}: {why}", path.display())]
    Differs {
        /// The entry.
        path: PathBuf,
        /// How.
        why: &'static str,
    },
    /// The system failed us.
    #[error(transparent)]
    Vault(#[from] VaultError),
}

impl TreeError {
    fn differs(path: PathBuf, why: &'static str) -> Self {
        Self::Differs { path, why }
    }
}

impl Record {
    /// Records the tree below `root`, of which `written` names every file with its digest.
    pub fn of(
        root: &Dir,
        written: &[Written],
        build: Sha256,
        groups: &[Group],
        unpacked: u64,
    ) -> Result<Self, TreeError> {
        let digests: BTreeMap<&str, Sha256> = written
            .iter()
            .map(|file| (file.path.as_str(), file.sha256))
            .collect();
        let mut entries = BTreeMap::new();
        walk(root, &mut |found| {
            let entry = match found.kind {
                FileType::Directory => Entry::Folder { mode: found.mode() },
                FileType::Symlink => Entry::Link {
                    target: found.target()?,
                },
                _ => match digests.get(found.name.as_str()) {
                    Some(sha256) => Entry::File {
                        size: found.size(),
                        mode: found.mode(),
                        sha256: *sha256,
                        seen: Seen::of(&found.stat),
                    },
                    None => return Err(TreeError::differs(found.path(), "is not of the build")),
                },
            };
            entries.insert(found.name.clone(), entry);
            Ok(())
        })?;
        Ok(Self {
            build,
            groups: groups.to_vec(),
            unpacked,
            entries,
        })
    }

    /// Reads the record of the tree below `root`.
    pub fn read(root: &Dir) -> Result<Self, TreeError> {
        let text = root.read_private(RECORD, RECORD_LIMIT)?;
        let text = text.ok_or_else(|| TreeError::Missing(root.path().to_owned()))?;
        serde_json::from_slice(&text).map_err(|_| TreeError::BadRecord(root.path().join(RECORD)))
    }

    /// Writes the record beside what it records.
    pub fn write(&self, root: &Dir) -> Result<(), TreeError> {
        let text =
            serde_json::to_vec(self).map_err(|_| TreeError::BadRecord(root.path().join(RECORD)))?;
        Ok(root.write_atomic(RECORD, &text, 0o600)?)
    }

    /// Compares the tree below `root` with the record. Where a file had to be hashed and was right,
    /// the record is renewed; on a read-only disk it is not, and the next check hashes again.
    pub fn check(&self, root: &Dir, depth: Depth) -> Result<(), TreeError> {
        let mut renewed = self.clone();
        let mut left = self.entries.len();
        walk(root, &mut |found| {
            let entry = renewed.entries.get_mut(&found.name);
            let entry =
                entry.ok_or_else(|| TreeError::differs(found.path(), "is not of the build"))?;
            left -= 1;
            compare(found, entry, depth)
        })?;
        if left > 0 {
            return Err(self.first_missing(root));
        }
        if renewed != *self {
            // The tree is good either way.
            _ = renewed.write(root);
        }
        Ok(())
    }

    fn first_missing(&self, root: &Dir) -> TreeError {
        let flags = AtFlags::SYMLINK_NOFOLLOW;
        let gone = |name: &&String| rustix::fs::statat(root.fd(), name.as_str(), flags).is_err();
        let name = self.entries.keys().find(gone).cloned().unwrap_or_default();
        TreeError::differs(root.path().join(name), "is missing")
    }

    /// How many bytes the files take.
    pub fn bytes(&self) -> u64 {
        let size = |entry: &Entry| {
            if let Entry::File { size, .. } = entry {
                *size
            } else {
                0
            }
        };
        self.entries.values().map(size).sum()
    }
}

fn compare(found: &Found<'_>, entry: &mut Entry, depth: Depth) -> Result<(), TreeError> {
    let differs = |why| Err(TreeError::differs(found.path(), why));
    match (entry, found.kind) {
        (Entry::Folder { mode }, FileType::Directory) => {
            if *mode != found.mode() {
                differs("has another mode")
            } else {
                Ok(())
            }
        }
        (Entry::Link { target }, FileType::Symlink) => {
            if *target != found.target()? {
                differs("is a link to elsewhere")
            } else {
                Ok(())
            }
        }
        (
            Entry::File {
                size,
                mode,
                sha256,
                seen,
            },
            FileType::RegularFile,
        ) => {
            if *size != found.size() {
                return differs("has another size");
            }
            if *mode != found.mode() {
                return differs("has another mode");
            }
            let now = Seen::of(&found.stat);
            if depth == Depth::Changed && *seen == now {
                return Ok(());
            }
            if found.hash()? != *sha256 {
                return differs("has other content");
            }
            *seen = now;
            Ok(())
        }
        _ => differs("is of another kind"),
    }
}

impl Seen {
    fn of(stat: &Stat) -> Self {
        let time = |seconds: i64, nanoseconds| {
            let nanoseconds = i64::try_from(nanoseconds).unwrap_or(0);
            seconds
                .wrapping_mul(1_000_000_000)
                .wrapping_add(nanoseconds)
        };
        Self(
            stat.st_ino,
            time(stat.st_mtime, stat.st_mtime_nsec),
            time(stat.st_ctime, stat.st_ctime_nsec),
        )
    }
}

/// An entry that a walk came by.
struct Found<'a> {
    root: &'a Dir,
    folder: BorrowedFd<'a>,
    leaf: &'a std::ffi::CStr,
    name: String,
    kind: FileType,
    stat: Stat,
}

impl Found<'_> {
    fn path(&self) -> PathBuf {
        self.root.path().join(&self.name)
    }

    fn mode(&self) -> u32 {
        self.stat.st_mode & 0o7777
    }

    fn size(&self) -> u64 {
        u64::try_from(self.stat.st_size).unwrap_or(0)
    }

    fn failed(&self, doing: &'static str, errno: Errno) -> TreeError {
        VaultError::io(self.path(), doing, errno).into()
    }

    fn target(&self) -> Result<String, TreeError> {
        let target = rustix::fs::readlinkat(self.folder, self.leaf, Vec::new())
            .map_err(|errno| self.failed("read the link", errno))?;
        target
            .into_string()
            .map_err(|_| TreeError::differs(self.path(), "is a link to elsewhere"))
    }

    fn hash(&self) -> Result<Sha256, TreeError> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let fd = rustix::fs::openat(self.folder, self.leaf, flags, Mode::empty())
            .map_err(|errno| self.failed("open it", errno))?;
        let mut hasher = Hasher::default();
        let mut chunk = vec![0; 1 << 18];
        loop {
            match rustix::io::read(&fd, &mut chunk) {
                Ok(0) => return Ok(hasher.finish()),
                Ok(count) => hasher.update(&chunk[..count]),
                Err(Errno::INTR) => {}
                Err(errno) => return Err(self.failed("read it", errno)),
            }
        }
    }
}

type Visit<'v> = dyn FnMut(&Found<'_>) -> Result<(), TreeError> + 'v;

/// Comes by every entry below `root` but the record and the archives.
fn walk(root: &Dir, visit: &mut Visit<'_>) -> Result<(), TreeError> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let fd = rustix::fs::openat(root.fd(), c".", flags, Mode::empty())
        .map_err(|errno| VaultError::io(root.path(), "open it", errno))?;
    walk_folder(root, &fd, "", visit)
}

fn walk_folder(
    root: &Dir,
    folder: &OwnedFd,
    prefix: &str,
    visit: &mut Visit<'_>,
) -> Result<(), TreeError> {
    let at = |errno| TreeError::from(VaultError::io(root.path().join(prefix), "list it", errno));
    if prefix.matches('/').count() > DEPTH {
        return Err(TreeError::differs(
            root.path().join(prefix),
            "is not of the build",
        ));
    }
    for entry in rustix::fs::Dir::read_from(folder).map_err(at)? {
        let entry = entry.map_err(at)?;
        let leaf = entry.file_name();
        let text = leaf.to_string_lossy();
        if matches!(text.as_ref(), "." | "..") {
            continue;
        }
        if prefix.is_empty()
            && (text == RECORD || text == ARCHIVES || text.starts_with(crate::dir::TEMPORARY))
        {
            continue;
        }
        let name = if prefix.is_empty() {
            text.into_owned()
        } else {
            format!("{prefix}/{text}")
        };
        let stat = rustix::fs::statat(folder, leaf, AtFlags::SYMLINK_NOFOLLOW).map_err(at)?;
        let kind = FileType::from_raw_mode(stat.st_mode);
        visit(&Found {
            root,
            folder: folder.as_fd(),
            leaf,
            name: name.clone(),
            kind,
            stat,
        })?;
        if kind == FileType::Directory {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let inner =
                rustix::fs::openat(folder, leaf, flags, Mode::empty()).map_err(|errno| {
                    VaultError::io(root.path().join(Path::new(&name)), "open it", errno)
                })?;
            walk_folder(root, &inner, &name, visit)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
