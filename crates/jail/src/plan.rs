//! What is started, and with what.

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

/// What becomes of one of a program's standard descriptors.
#[derive(Debug)]
pub enum Stdio {
    /// The starter's own.
    Inherit,
    /// `/dev/null`.
    Null,
    /// A new pipe, whose other end is in the [`Child`](crate::Child).
    Pipe,
    /// This descriptor.
    Fd(OwnedFd),
}

/// A program to start. Nothing that is not named here reaches it.
#[derive(Debug)]
pub struct Plan {
    /// The program's absolute path.
    pub program: PathBuf,
    /// Its arguments, without the program's name.
    pub args: Vec<OsString>,
    /// Its whole environment.
    pub env: Vec<(OsString, OsString)>,
    /// Its working directory, an absolute path.
    pub cwd: PathBuf,
    /// Descriptor 0.
    pub stdin: Stdio,
    /// Descriptor 1.
    pub stdout: Stdio,
    /// Descriptor 2.
    pub stderr: Stdio,
    /// For a confined program: existing folders and files that it cannot change, with all that is
    /// below them.
    pub read_only: Vec<PathBuf>,
    /// For a confined program: where its own temporary folder of at most 256 MiB appears, a name
    /// directly below `/` that the machine does not have. It is gone with the program.
    pub private_tmp: Option<PathBuf>,
}
