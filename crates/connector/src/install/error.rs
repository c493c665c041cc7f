//! What an install, a pin or a removal ends with when it does not do its work.

use super::fetch::FetchError;
use super::progress::bytes;
use super::sources::SourceError;
use sema_rules::lock::LockError;
use sema_vault::VaultError;
use sema_vault::archive::{ArchiveError, Problem};
use sema_vault::error::Reason;
use sema_vault::tree::TreeError;
use std::path::PathBuf;

/// Why the build was not brought onto this machine.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    /// The lock file itself.
    #[error("{path} is refused: {source}", path = path.display())]
    Lock {
        /// The lock file.
        path: PathBuf,
        /// Why.
        source: LockError,
    },
    /// A build that nobody has pinned yet.
    #[error("no chrome-for-testing build is pinned: there is no {path}", path = path.display())]
    NoOwnLock {
        /// Where its lock would be.
        path: PathBuf,
    },
    /// The lock has no build for this machine.
    #[error("binaries.lock.json pins no playwright-mcp build for {platform}")]
    NotPinned {
        /// This machine's platform.
        platform: String,
        /// What the lock does pin.
        pinned: Vec<String>,
    },
    /// The configuration of sources.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// An archive did not come.
    #[error(transparent)]
    Fetch(FetchError),
    /// Without the network, archives are missing.
    #[error("--offline: not in {folder}: {files}", folder = folder.display(), files = files.join(", "))]
    Offline {
        /// Where archives are kept.
        folder: PathBuf,
        /// Which are not.
        files: Vec<String>,
    },
    /// What an archive holds.
    #[error("{file} is refused, nothing was unpacked: {reason}")]
    Contents {
        /// The archive.
        file: String,
        /// What and where.
        reason: String,
    },
    /// What came out of the archives is not a build.
    #[error("the archives hold no {path}, the build was not changed")]
    Incomplete {
        /// What should be there, below `bin/`.
        path: String,
    },
    /// Not enough room, known before anything is fetched.
    #[error("install needs {needed} on the disk of {path}, {free} are free",
        needed = bytes(*needed), free = bytes(*free), path = path.display())]
    Space {
        /// Bytes.
        needed: u64,
        /// Bytes.
        free: u64,
        /// The connector's directory.
        path: PathBuf,
    },
    /// The disk filled up on the way.
    #[error("the disk of {path} is full, {more} more are needed; what was fetched is kept",
        more = bytes(*more), path = path.display())]
    Full {
        /// Bytes.
        more: u64,
        /// The connector's directory.
        path: PathBuf,
    },
    /// A launch that runs now.
    #[error("{name} is in use: the launch {launches} runs", launches = launches.join(", "))]
    Live {
        /// The connector.
        name: String,
        /// Its launches.
        launches: Vec<String>,
    },
    /// What `pin` asked for or found.
    #[error("{0}")]
    Pin(String, &'static str),
    /// What is in place.
    #[error(transparent)]
    Tree(#[from] TreeError),
    /// Our own disk.
    #[error(transparent)]
    Vault(VaultError),
}

impl InstallError {
    /// Whether we refused what we found (true) or something failed us (false).
    pub fn is_refusal(&self) -> bool {
        match self {
            Self::Fetch(error) => {
                matches!(error, FetchError::Size { .. } | FetchError::Hash { .. })
            }
            Self::Space { .. } | Self::Full { .. } => false,
            Self::Tree(TreeError::Vault(error)) | Self::Vault(error) => error.is_refusal(),
            _ => true,
        }
    }

    /// The fix.
    pub fn hint(&self) -> Option<String> {
        let text = match self {
            Self::Lock { .. } => "put the lock file of this release in its place, or pin again".into(),
            Self::NoOwnLock { .. } => {
                "pin one: sema-connector-browser pin --browser chrome-for-testing".into()
            }
            Self::NotPinned { pinned, .. } => format!(
                "pinned are: {}; for another, where Chrome for Testing has a build: \
                 sema-connector-browser pin --browser chrome-for-testing",
                pinned.join(", ")
            ),
            Self::Source(error) => error.hint(),
            Self::Fetch(error) => return error.hint(),
            Self::Offline { .. } => {
                "copy the files there under these names, or install once with the network or --mirror".into()
            }
            Self::Contents { .. } | Self::Incomplete { .. } => {
                "do not use that archive: its hash is pinned, so the lock file itself is wrong".into()
            }
            Self::Space { needed, free, .. } => format!(
                "free {} there, or name a directory on another disk in CONFIG_LOCAL_DIR",
                bytes(needed.saturating_sub(*free))
            ),
            Self::Full { .. } => "free that much there and run install again, it goes on where this one ended".into(),
            Self::Live { .. } => "end the sessions of the engine that use it, then try again".into(),
            Self::Pin(_, hint) => (*hint).into(),
            Self::Tree(TreeError::Vault(error)) | Self::Vault(error) => return error.hint(),
            Self::Tree(_) => "mend it: sema-connector-browser install".into(),
        };
        Some(text)
    }

    /// Whether a disk without room is the reason.
    pub(super) fn is_full(&self) -> bool {
        let error = match self {
            Self::Vault(error)
            | Self::Fetch(FetchError::Disk(error))
            | Self::Tree(TreeError::Vault(error)) => error,
            _ => return false,
        };
        use rustix::io::Errno;
        matches!(
            error.reason(),
            Reason::Io {
                source: Errno::NOSPC | Errno::DQUOT,
                ..
            }
        )
    }
}

impl From<VaultError> for InstallError {
    fn from(error: VaultError) -> Self {
        Self::Vault(error)
    }
}

impl From<ArchiveError> for InstallError {
    fn from(error: ArchiveError) -> Self {
        match error.problem {
            Problem::Write(error) => Self::Vault(error),
            problem => Self::Contents {
                file: error.archive.to_string(),
                reason: problem.to_string(),
            },
        }
    }
}

impl From<FetchError> for InstallError {
    fn from(error: FetchError) -> Self {
        match error {
            FetchError::Disk(error) => Self::Vault(error),
            other => Self::Fetch(other),
        }
    }
}
