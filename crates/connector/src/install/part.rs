//! An archive that is coming: a file in the archive folder of the staging area, hashed as it is
//! written, kept when the program is killed and continued by the next run.

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use sema_rules::digest::Sha256;
use sema_vault::hash::Hasher;
use sema_vault::{Dir, VaultError};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::PathBuf;

/// The end of the name of a file that is not whole yet.
pub(super) const SUFFIX: &str = ".part";

pub(super) struct Part {
    file: File,
    path: PathBuf,
    written: u64,
    hasher: Hasher,
    inherited: bool,
}

impl Part {
    /// Opens what an earlier run left of `name`, at most `limit` bytes, or begins it.
    pub(super) fn open(folder: &Dir, name: &str, limit: u64) -> Result<Self, VaultError> {
        let name = format!("{name}{SUFFIX}");
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let path = folder.path().join(&name);
        let opened = rustix::fs::openat(folder.fd(), &name, flags, Mode::RUSR | Mode::WUSR);
        let file = File::from(opened.map_err(|errno| VaultError::io(&path, "create it", errno))?);
        let mut part = Self {
            file,
            path,
            written: 0,
            hasher: Hasher::default(),
            inherited: false,
        };
        part.take_over(limit)?;
        Ok(part)
    }

    /// Hashes what is there, so that the rest can follow.
    fn take_over(&mut self, limit: u64) -> Result<(), VaultError> {
        let size = self
            .file
            .metadata()
            .map_err(|error| self.failed("examine it", &error))?
            .len();
        if size == 0 {
            return Ok(());
        }
        if size > limit {
            return self.restart();
        }
        let mut buffer = vec![0; 256 << 10];
        loop {
            let read = self
                .file
                .read(&mut buffer)
                .map_err(|error| self.failed("read it", &error))?;
            if read == 0 {
                break;
            }
            self.hasher.update(&buffer[..read]);
            self.written += read as u64;
        }
        self.inherited = true;
        Ok(())
    }

    pub(super) fn append(&mut self, bytes: &[u8]) -> Result<(), VaultError> {
        self.file
            .write_all(bytes)
            .map_err(|error| self.failed("write it", &error))?;
        self.hasher.update(bytes);
        self.written += bytes.len() as u64;
        Ok(())
    }

    /// Forgets everything.
    pub(super) fn restart(&mut self) -> Result<(), VaultError> {
        let emptied = self
            .file
            .set_len(0)
            .and_then(|()| self.file.seek(SeekFrom::Start(0)));
        emptied.map_err(|error| self.failed("empty it", &error))?;
        self.written = 0;
        self.hasher = Hasher::default();
        self.inherited = false;
        Ok(())
    }

    /// The file is whole: sends it to the disk, and does not wait for that. Who uses it hashes it
    /// first, so one that a crash tore is fetched anew; the build that it is a part of is flushed
    /// before it is put in place.
    pub(super) fn finish(self) {
        std::thread::spawn(move || _ = self.file.sync_data());
    }

    pub(super) fn written(&self) -> u64 {
        self.written
    }

    /// Whether some of it was written by an earlier run, and may be torn.
    pub(super) fn inherited(&self) -> bool {
        self.inherited
    }

    pub(super) fn sha256(&self) -> Sha256 {
        self.hasher.clone().finish()
    }

    fn failed(&self, doing: &'static str, error: &io::Error) -> VaultError {
        VaultError::io(&self.path, doing, errno(error))
    }
}

/// The system's number of an I/O error.
pub(super) fn errno(error: &io::Error) -> Errno {
    error
        .raw_os_error()
        .map_or(Errno::IO, Errno::from_raw_os_error)
}
