//! Puts a new build in the place of the old one, so that at any instruction `bin/` is the one or
//! the other.
//!
//! ```text
//! bin.staging/archives/   what is fetched: it survives a kill, so that the next run goes on
//! bin.staging/tree/       what is unpacked: begun anew by each run
//! ```
//!
//! The caller holds the lock that lets one installer work at a time.

use crate::connector_dir::ConnectorDir;
use crate::dir::Dir;
use crate::error::VaultError;
use crate::fault;
use crate::lock::WaitNotice;
use rustix::fs::{AtFlags, RenameFlags};
use rustix::io::Errno;
use sema_rules::lock::{ARCHIVES, FileName};

const BIN: &str = "bin";
const STAGING: &str = "bin.staging";
const TREE: &str = "tree";
/// How the names of replaced builds begin that a launch may still read from.
const ASIDE: &str = "bin.replaced-";

/// The place where a build is made.
#[derive(Debug)]
pub struct Staging {
    connector: Dir,
    staging: Dir,
    archives: Dir,
    tree: Dir,
}

impl Staging {
    /// Opens the place where a build is made below a connector's directory, with what an earlier
    /// run fetched and nothing that it unpacked.
    pub fn begin(connector: &Dir) -> Result<Self, VaultError> {
        let connector = connector.reopen()?;
        let staging = connector.create_sub(STAGING)?;
        staging.remove_tree(TREE)?;
        let archives = staging.create_sub(ARCHIVES)?;
        let tree = staging.create_sub(TREE)?;
        Ok(Self {
            connector,
            staging,
            archives,
            tree,
        })
    }

    /// Where archives are fetched to.
    pub fn archives(&self) -> &Dir {
        &self.archives
    }

    /// Where the build is unpacked to.
    pub fn tree(&self) -> &Dir {
        &self.tree
    }

    /// Makes an archive that the present build keeps available here, without copying it. False
    /// where it keeps none of that name.
    pub fn reuse(&self, file: &FileName) -> Result<bool, VaultError> {
        let Some(kept) = archives_of(&self.connector)? else {
            return Ok(false);
        };
        let name = file.as_str();
        match rustix::fs::linkat(kept.fd(), name, self.archives.fd(), name, AtFlags::empty()) {
            Ok(()) | Err(Errno::EXIST) => Ok(true),
            // None, or a file system without links: it is fetched.
            Err(Errno::NOENT | Errno::PERM | Errno::OPNOTSUPP | Errno::MLINK) => Ok(false),
            Err(errno) => Err(VaultError::io(
                self.archives.path().join(name),
                "link it",
                errno,
            )),
        }
    }

    /// Puts the unpacked tree, with these archives, in the place of `bin/`. Everything is on the
    /// disk before and after. The build before it goes, unless a launch runs that may still read
    /// from it: then it is left beside `bin/` for a later cleaning.
    pub fn finish(
        self,
        keep: &[&FileName],
        connector: &ConnectorDir,
        waiting: &mut dyn FnMut(WaitNotice),
    ) -> Result<(), VaultError> {
        self.keep(keep)?;
        fault::point("install.kept");
        rustix::fs::syncfs(self.tree.fd())
            .map_err(|errno| VaultError::io(self.tree.path(), "flush it", errno))?;
        fault::point("install.flushed");
        let _held = connector.lock_exclusive(waiting)?;
        self.swap()?;
        fault::point("install.swapped");
        self.connector.flush()?;
        fault::point("install.done");
        // What lies in the staging folder now is the old build.
        if connector.live_launches()?.is_empty() {
            self.connector.remove_tree(STAGING)?;
        } else {
            let aside = format!("{ASIDE}{}", crate::bytes::random_name(8));
            self.connector.rename(STAGING, aside)?;
        }
        fault::point("install.removed");
        self.connector.flush()
    }

    /// A second name in the tree rather than a new place: a run that is killed before the end
    /// finds its archives where it left them.
    fn keep(&self, keep: &[&FileName]) -> Result<(), VaultError> {
        let kept = self.tree.create_sub(ARCHIVES)?;
        let (from, to) = (self.archives.fd(), kept.fd());
        for file in keep {
            let name = file.as_str();
            let linked = match rustix::fs::linkat(from, name, to, name, AtFlags::empty()) {
                Err(Errno::PERM | Errno::OPNOTSUPP | Errno::MLINK) => {
                    rustix::fs::renameat(from, name, to, name)
                }
                other => other,
            };
            linked.map_err(|errno| VaultError::io(kept.path().join(name), "keep it", errno))?;
        }
        Ok(())
    }

    fn swap(&self) -> Result<(), VaultError> {
        let (from, to) = (self.staging.fd(), self.connector.fd());
        let exchanged = rustix::fs::renameat_with(from, TREE, to, BIN, RenameFlags::EXCHANGE);
        let result = match exchanged {
            Err(Errno::NOENT) => {
                rustix::fs::renameat_with(from, TREE, to, BIN, RenameFlags::NOREPLACE)
            }
            other => other,
        };
        result.map_err(|errno| {
            VaultError::io(self.connector.path().join(BIN), "put it in place", errno)
        })
    }
}

/// The folder with the archives of the build that is in place.
pub fn archives_of(connector: &Dir) -> Result<Option<Dir>, VaultError> {
    match connector.sub(BIN)? {
        Some(bin) => bin.sub(ARCHIVES),
        None => Ok(None),
    }
}

/// The build that is in place.
pub fn bin_of(connector: &Dir) -> Result<Option<Dir>, VaultError> {
    connector.sub(BIN)
}
