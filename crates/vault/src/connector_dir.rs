//! One connector's directory: its lock, its handles, its launches.
//!
//! Handles are written in groups under the exclusive lock and read in groups under the shared
//! one: a reader sees a group before or after. After a crash at any instruction each handle is
//! wholly old or wholly new, those earlier in the group first; a handle whose kind was being
//! changed counts as a secret.

use crate::dir::Dir;
use crate::error::{Reason, VaultError};
use crate::fault;
use crate::launch::{self, LaunchDir};
use crate::lock::{self, Exclusive, Shared, WaitNotice};
use crate::secret::Secret;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use sema_rules::name::{Handle, LaunchId};
use std::path::{Path, PathBuf};

/// The most bytes that a handle holds: the reference's 4 MiB of a login state.
pub const HANDLE_LIMIT: usize = 4 * 1024 * 1024;
const LOCK: &str = ".lock";
const INSTALL_LOCK: &str = ".install.lock";
const PUBLIC: &[u8] = b"{\"secret\": false}\n";

/// One step of a group.
#[derive(Debug)]
pub enum Change {
    /// Stores a handle's bytes.
    Put {
        /// Which.
        handle: Handle,
        /// Its bytes.
        bytes: Secret,
        /// Whether they are a secret (withheld from the engine) or a switch.
        secret: bool,
    },
    /// Takes a handle away, if it is there.
    Remove(Handle),
}

/// A connector's directory, open and checked.
#[derive(Debug)]
pub struct ConnectorDir {
    dir: Dir,
}

impl ConnectorDir {
    pub(crate) fn new(dir: Dir) -> Self {
        Self { dir }
    }

    /// Opens a connector's directory by its path, as the launcher names it in `CONNECTOR_DIR`;
    /// `None` where nothing is there.
    pub fn open(path: &Path) -> Result<Option<Self>, VaultError> {
        Ok(Dir::open_private(path)?.map(Self::new))
    }

    /// The directory itself.
    pub fn dir(&self) -> &Dir {
        &self.dir
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    /// Takes the lock alone, for writing. `waiting` is called once, after a second.
    pub fn lock_exclusive(
        &self,
        waiting: &mut dyn FnMut(WaitNotice),
    ) -> Result<Exclusive, VaultError> {
        lock::exclusive(self.lock_file(LOCK)?, &self.path().join(LOCK), waiting)
    }

    /// Takes the turn to install, which is not the directory's lock: an install takes minutes, and
    /// launches and `auth` go on meanwhile. Waited for without end; `waiting` is called once.
    pub fn lock_install(
        &self,
        waiting: &mut dyn FnMut(WaitNotice),
    ) -> Result<Exclusive, VaultError> {
        let path = self.path().join(INSTALL_LOCK);
        lock::turn(self.lock_file(INSTALL_LOCK)?, &path, waiting)
    }

    /// Takes the lock with other readers.
    pub fn lock_shared(&self, waiting: &mut dyn FnMut(WaitNotice)) -> Result<Shared, VaultError> {
        lock::shared(self.lock_file(LOCK)?, &self.path().join(LOCK), waiting)
    }

    fn lock_file(&self, name: &str) -> Result<rustix::fd::OwnedFd, VaultError> {
        let path = || self.path().join(name);
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let mode = Mode::RUSR | Mode::WUSR;
        let open = |flags| rustix::fs::openat(self.dir.fd(), name, flags, mode);
        // A directory on a read-only disk that has a lock file can still be read.
        let fd = match open(flags | OFlags::CREATE) {
            Err(Errno::ROFS) => open(flags).map_err(|_| Errno::ROFS),
            other => other,
        };
        match fd {
            Ok(fd) => Ok(fd),
            Err(Errno::LOOP) => Err(VaultError::new(path(), Reason::Link)),
            Err(e) => Err(VaultError::io(path(), "open it", e)),
        }
    }

    /// Reads one handle; `None` where it is not stored.
    pub fn read_handle(&self, handle: &Handle) -> Result<Option<Secret>, VaultError> {
        let bytes = self.dir.read_private(handle.as_str(), HANDLE_LIMIT)?;
        Ok(bytes.map(Secret::new))
    }

    /// Whether the handle's bytes are a secret: they are, unless its metadata says otherwise.
    pub fn is_secret(&self, handle: &Handle) -> Result<bool, VaultError> {
        let Some(text) = self.dir.read_private(meta(handle), 4096)? else {
            return Ok(true);
        };
        let meta: Result<serde_json::Map<String, serde_json::Value>, _> =
            serde_json::from_slice(&text);
        Ok(meta.ok().and_then(|meta| meta.get("secret")?.as_bool()) != Some(false))
    }

    /// Reads those of `handles` that are stored, in that order, each with whether it is a secret.
    pub fn read_group(
        &self,
        _held: &Shared,
        handles: &[Handle],
    ) -> Result<Vec<(Handle, Secret, bool)>, VaultError> {
        let mut group = Vec::new();
        for handle in handles {
            if let Some(secret) = self.read_handle(handle)? {
                group.push((handle.clone(), secret, self.is_secret(handle)?));
            }
        }
        Ok(group)
    }

    /// Makes the changes in their order, each of them whole or not at all.
    pub fn write_group(&self, _held: &Exclusive, changes: &[Change]) -> Result<(), VaultError> {
        fault::point("group.start");
        for change in changes {
            self.apply(change)?;
        }
        fault::point("group.end");
        Ok(())
    }

    /// The order of the two files of a handle: a crash between them leaves a secret that is
    /// called one, or a switch that is taken for a secret, never the reverse.
    fn apply(&self, change: &Change) -> Result<(), VaultError> {
        match change {
            Change::Put {
                handle,
                bytes,
                secret: true,
            } => {
                self.dir.remove(meta(handle))?;
                fault::point("meta.removed");
                self.dir.write_atomic(handle.as_str(), bytes.bytes(), 0o600)
            }
            Change::Put {
                handle,
                bytes,
                secret: false,
            } => {
                self.dir
                    .write_atomic(handle.as_str(), bytes.bytes(), 0o600)?;
                self.dir.write_atomic(meta(handle), PUBLIC, 0o600)
            }
            Change::Remove(handle) => {
                self.dir.remove(handle.as_str())?;
                fault::point("handle.removed");
                self.dir.remove(meta(handle)).map(|_| ())
            }
        }
    }

    /// The handles that are stored, sorted. What is not a handle's name is passed over.
    pub fn handle_names(&self) -> Result<Vec<Handle>, VaultError> {
        let names = self.dir.names()?;
        Ok(names
            .iter()
            .filter_map(|name| Handle::parse(name.to_str()?).ok())
            .collect())
    }

    /// Checks the mode, owner and links of every handle and its metadata, without reading them.
    pub fn check_handles(&self) -> Result<(), VaultError> {
        for handle in self.handle_names()? {
            self.dir.check_private(handle.as_str())?;
            self.dir.check_private(meta(&handle))?;
        }
        Ok(())
    }

    /// Makes the directory of a new launch with a copy of each handle given. The lock keeps a
    /// sweep from taking a directory that is not marked as live yet.
    pub fn new_launch(
        &self,
        _held: &Shared,
        handles: &[(&Handle, &Secret)],
    ) -> Result<LaunchDir, VaultError> {
        LaunchDir::create(&self.dir, handles)
    }

    /// The launches that run now, with their directories.
    pub fn live_launches(&self) -> Result<Vec<(LaunchId, PathBuf)>, VaultError> {
        launch::live(&self.dir)
    }

    /// Removes the leftovers of writers and launches that are dead; returns how many.
    pub fn sweep(&self, _held: &Exclusive) -> Result<usize, VaultError> {
        launch::sweep(&self.dir)
    }
}

fn meta(handle: &Handle) -> String {
    format!("{handle}.meta.json")
}
