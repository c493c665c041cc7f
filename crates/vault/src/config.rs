//! The configuration directory: where it is, and the connectors in it.

use crate::connector_dir::ConnectorDir;
use crate::dir::Dir;
use crate::error::VaultError;
use crate::lock::{self, Exclusive, WaitNotice};
use rustix::fs::{Mode, OFlags};
use sema_rules::name::ConnectorName;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The file that says what an engine may start.
pub const CATALOG: &str = "catalog.json";
const CONNECTORS: &str = "connectors";
const FOLDER: &str = "sema-connectors";

/// Why there is no configuration directory.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LocateError {
    /// A variable that must hold an absolute path holds something else.
    #[error("{variable} is not an absolute path")]
    Relative {
        /// The variable's name.
        variable: &'static str,
    },
    /// Neither variable is set.
    #[error("no configuration directory: neither CONFIG_LOCAL_DIR nor HOME is set")]
    Nowhere,
}

impl LocateError {
    /// How a person mends it.
    pub fn hint(&self) -> String {
        match self {
            Self::Relative { variable } => format!("export {variable}=/absolute/path"),
            Self::Nowhere => "export CONFIG_LOCAL_DIR=/absolute/path".to_owned(),
        }
    }
}

/// The configuration directory, open and checked.
#[derive(Debug)]
pub struct ConfigDir {
    dir: Dir,
}

impl ConfigDir {
    /// Where the directory is, from the values of `CONFIG_LOCAL_DIR`, `XDG_CONFIG_HOME` and `HOME`.
    pub fn locate(
        config_local_dir: Option<OsString>,
        xdg: Option<OsString>,
        home: Option<OsString>,
    ) -> Result<PathBuf, LocateError> {
        if let Some(path) = config_local_dir {
            return absolute(path, "CONFIG_LOCAL_DIR");
        }
        let set = |value: &OsString| !value.is_empty();
        if let Some(path) = xdg.filter(set).filter(|_| cfg!(not(target_os = "macos"))) {
            return Ok(absolute(path, "XDG_CONFIG_HOME")?.join(FOLDER));
        }
        let home = absolute(home.filter(set).ok_or(LocateError::Nowhere)?, "HOME")?;
        let below = if cfg!(target_os = "macos") {
            "Library/Application Support"
        } else {
            ".config"
        };
        Ok(home.join(below).join(FOLDER))
    }

    /// Opens the directory; `None` where nothing is there.
    pub fn open(path: &Path) -> Result<Option<Self>, VaultError> {
        Ok(Dir::open_private(path)?.map(|dir| Self { dir }))
    }

    /// Opens the directory and makes it first where it is missing.
    pub fn create(path: &Path) -> Result<Self, VaultError> {
        Dir::create_private(path).map(|dir| Self { dir })
    }

    /// The directory itself.
    pub fn dir(&self) -> &Dir {
        &self.dir
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    /// Where a connector's directory is or would be.
    pub fn connector_path(&self, name: &ConnectorName) -> PathBuf {
        self.path().join(CONNECTORS).join(name.as_str())
    }

    /// A connector's directory; `None` where it was never made.
    pub fn connector(&self, name: &ConnectorName) -> Result<Option<ConnectorDir>, VaultError> {
        let Some(all) = self.dir.sub(CONNECTORS)? else {
            return Ok(None);
        };
        Ok(all.sub(name.as_str())?.map(ConnectorDir::new))
    }

    /// A connector's directory, made first where it is missing.
    pub fn create_connector(&self, name: &ConnectorName) -> Result<ConnectorDir, VaultError> {
        let all = self.dir.create_sub(CONNECTORS)?;
        all.create_sub(name.as_str()).map(ConnectorDir::new)
    }

    /// The names of the connectors that have a directory, sorted.
    pub fn connectors(&self) -> Result<Vec<ConnectorName>, VaultError> {
        let Some(all) = self.dir.sub(CONNECTORS)? else {
            return Ok(Vec::new());
        };
        let names = all.names()?;
        Ok(names
            .iter()
            .filter_map(|name| ConnectorName::parse(name.to_str()?).ok())
            .collect())
    }

    /// The lock of the catalog: held while it is read, changed and written.
    pub fn lock_exclusive(
        &self,
        waiting: &mut dyn FnMut(WaitNotice),
    ) -> Result<Exclusive, VaultError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fd = rustix::fs::openat(self.dir.fd(), ".", flags, Mode::empty())
            .map_err(|e| VaultError::io(self.path(), "open it", e))?;
        lock::exclusive(fd, self.path(), waiting)
    }
}

fn absolute(path: OsString, variable: &'static str) -> Result<PathBuf, LocateError> {
    let path = PathBuf::from(path);
    if path.is_absolute() {
        Ok(path)
    } else {
        Err(LocateError::Relative { variable })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn located(config: Option<&str>, xdg: Option<&str>, home: Option<&str>) -> String {
        match ConfigDir::locate(
            config.map(Into::into),
            xdg.map(Into::into),
            home.map(Into::into),
        ) {
            Ok(path) => path.display().to_string(),
            Err(e) => e.to_string(),
        }
    }

    #[test]
    #[cfg(not(target_os = "macos"))]
    fn the_first_variable_that_is_set_decides() {
        let home = Some("/h");
        assert_eq!(located(Some("/c"), Some("/x"), home), "/c");
        assert_eq!(located(None, Some("/x"), home), "/x/sema-connectors");
        assert_eq!(located(None, Some(""), home), "/h/.config/sema-connectors");
        assert_eq!(located(None, None, home), "/h/.config/sema-connectors");
    }

    #[test]
    fn a_relative_directory_is_refused() {
        let refused = "CONFIG_LOCAL_DIR is not an absolute path";
        assert_eq!(located(Some("c"), None, Some("/h")), refused);
        assert_eq!(located(Some(""), None, Some("/h")), refused);
        assert_eq!(
            located(None, None, Some("h")),
            "HOME is not an absolute path"
        );
        assert!(located(None, None, None).starts_with("no configuration directory"));
    }
}
