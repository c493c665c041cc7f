//! What went wrong on disk: the path, the reason, and the command that mends it.

use rustix::io::Errno;
use sema_rules::quote;
use std::path::{Path, PathBuf};

/// A refused or failed access to one path.
#[derive(Debug, thiserror::Error)]
#[error("{}: {reason}", path.display())]
pub struct VaultError {
    path: PathBuf,
    #[source]
    reason: Reason,
}

/// Why a path was refused, or what failed on it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Reason {
    /// The last part of the path is a symbolic link.
    #[error("is a symbolic link")]
    Link,
    /// Another user owns it.
    #[error("is owned by user id {owner}, not by user id {us} that runs this")]
    Owner {
        /// The owner found.
        owner: u32,
        /// Who we are.
        us: u32,
    },
    /// A private file or directory that group or others can use.
    #[error("is open to other users (mode {mode:04o})")]
    Exposed {
        /// The mode found.
        mode: u32,
        /// The mode that it should have.
        want: u32,
    },
    /// A policy file that group or others can write.
    #[error("can be written by other users (mode {mode:04o})")]
    Writable {
        /// The mode found.
        mode: u32,
    },
    /// A secret with a second name.
    #[error("has a second name (a hard link) on this disk")]
    HardLinked,
    /// A directory was expected.
    #[error("is not a directory")]
    NotDirectory,
    /// A regular file was expected.
    #[error("is not a regular file")]
    NotFile,
    /// The file is larger than what is read of it.
    #[error("is larger than {limit} bytes")]
    TooLarge {
        /// The most that is read.
        limit: usize,
    },
    /// The path must begin at the root.
    #[error("is not an absolute path")]
    Relative,
    /// The lock was held for longer than we wait.
    #[error("is locked by {}, waited {seconds} s", holder(*.pid))]
    Locked {
        /// The process that holds it, where the kernel tells.
        pid: Option<u32>,
        /// How long we waited.
        seconds: u64,
    },
    /// The system refused.
    #[error("cannot {doing}: {source}")]
    Io {
        /// What was tried, as a verb.
        doing: &'static str,
        /// The system's answer.
        source: Errno,
    },
}

/// The holder of a lock in words.
pub(crate) fn holder(pid: Option<u32>) -> String {
    pid.map_or_else(
        || "another process".to_owned(),
        |pid| format!("process {pid}"),
    )
}

impl VaultError {
    /// An error about `path`.
    pub fn new(path: impl Into<PathBuf>, reason: Reason) -> Self {
        Self {
            path: path.into(),
            reason,
        }
    }

    /// A failed system call on `path`.
    pub fn io(path: impl Into<PathBuf>, doing: &'static str, source: Errno) -> Self {
        Self::new(path, Reason::Io { doing, source })
    }

    /// The path it is about.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The reason.
    pub fn reason(&self) -> &Reason {
        &self.reason
    }

    /// Whether we refused what we found (true) or the system failed us (false).
    pub fn is_refusal(&self) -> bool {
        !matches!(self.reason, Reason::Io { .. } | Reason::Locked { .. })
    }

    /// How a person mends it, where we know.
    pub fn hint(&self) -> Option<String> {
        let text = self.path.to_string_lossy();
        let path = quote::shell(&text);
        // What would mend `/` or `/etc` would be worse than what it mends.
        if self.is_refusal() && self.path.components().count() <= 2 {
            return Some(
                "name a directory of its own: export CONFIG_LOCAL_DIR=/absolute/path".to_owned(),
            );
        }
        match &self.reason {
            Reason::Link => Some(format!(
                "put the real file or directory in its place, or remove the link: rm {path}"
            )),
            Reason::Owner { us, .. } => Some(format!(
                "run this as its owner, or give it to you: chown {us} {path}"
            )),
            Reason::Exposed { want, .. } => Some(format!("chmod {want:o} {path}")),
            Reason::Writable { .. } => Some(format!("chmod go-w {path}")),
            Reason::HardLinked => Some(format!("remove it and store it again: rm {path}")),
            Reason::NotDirectory | Reason::NotFile => Some(format!("move it away: {path}")),
            Reason::Locked { pid: Some(pid), .. } => Some(format!(
                "wait for process {pid} to end, or end it: kill {pid}"
            )),
            Reason::Io {
                source: Errno::NOSPC | Errno::DQUOT,
                ..
            } => Some("free some space on that disk".to_owned()),
            Reason::Io {
                doing: "lock it", ..
            } => Some("put the configuration directory on a local disk".to_owned()),
            Reason::Io {
                source: Errno::ROFS,
                ..
            } => Some(
                "the file system is read-only: name a writable directory in CONFIG_LOCAL_DIR"
                    .to_owned(),
            ),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use insta::assert_snapshot;

    fn text(reason: Reason) -> String {
        let error = VaultError::new("/c/my dir/X", reason);
        format!("{error}\n{}", error.hint().unwrap_or_default())
    }

    #[test]
    fn each_refusal_names_path_reason_and_fix() {
        let all = [
            Reason::Link,
            Reason::Owner { owner: 1000, us: 0 },
            Reason::Exposed {
                mode: 0o644,
                want: 0o600,
            },
            Reason::Writable { mode: 0o666 },
            Reason::HardLinked,
            Reason::NotDirectory,
            Reason::NotFile,
            Reason::TooLarge { limit: 4_194_304 },
            Reason::Relative,
            Reason::Locked {
                pid: Some(41),
                seconds: 30,
            },
            Reason::Locked {
                pid: None,
                seconds: 30,
            },
            Reason::Io {
                doing: "open it",
                source: Errno::ACCESS,
            },
            Reason::Io {
                doing: "write it",
                source: Errno::NOSPC,
            },
            Reason::Io {
                doing: "create it",
                source: Errno::ROFS,
            },
        ];
        assert_snapshot!(all.map(text).join("\n"), @"
        /c/my dir/X: is a symbolic link
        put the real file or directory in its place, or remove the link: rm '/c/my dir/X'
        /c/my dir/X: is owned by user id 1000, not by user id 0 that runs this
        run this as its owner, or give it to you: chown 0 '/c/my dir/X'
        /c/my dir/X: is open to other users (mode 0644)
        chmod 600 '/c/my dir/X'
        /c/my dir/X: can be written by other users (mode 0666)
        chmod go-w '/c/my dir/X'
        /c/my dir/X: has a second name (a hard link) on this disk
        remove it and store it again: rm '/c/my dir/X'
        /c/my dir/X: is not a directory
        move it away: '/c/my dir/X'
        /c/my dir/X: is not a regular file
        move it away: '/c/my dir/X'
        /c/my dir/X: is larger than 4194304 bytes

        /c/my dir/X: is not an absolute path

        /c/my dir/X: is locked by process 41, waited 30 s
        wait for process 41 to end, or end it: kill 41
        /c/my dir/X: is locked by another process, waited 30 s

        /c/my dir/X: cannot open it: Permission denied (os error 13)

        /c/my dir/X: cannot write it: No space left on device (os error 28)
        free some space on that disk
        /c/my dir/X: cannot create it: Read-only file system (os error 30)
        the file system is read-only: name a writable directory in CONFIG_LOCAL_DIR
        ");
    }
}
