//! The parts of the pinned build that are started.

use crate::cli::failure::Failure;
use rustix::fs::{Access, AtFlags, CWD};
use sema_rules::lock::Lock;
use std::path::{Path, PathBuf};

const LOCK: &[u8] = include_bytes!("../../../../binaries.lock.json");
const KEY: &str = "playwright-mcp";
const INSTALL: &str = "sema-connector-browser install";

/// Where the parts lie.
pub(super) struct Build {
    pub(super) node: PathBuf,
    pub(super) script: PathBuf,
    pub(super) browser: PathBuf,
    pub(super) fonts: PathBuf,
}

impl Build {
    /// The build in `bin/` of a connector's directory.
    pub(super) fn find(connector: &Path) -> Result<Self, Failure> {
        let bin = connector.join("bin");
        let lock = Lock::parse(LOCK).map_err(|error| not_installed(error).hint(INSTALL))?;
        let build = lock
            .build(KEY)
            .ok_or_else(|| not_installed("the lock names no build").hint(INSTALL))?;
        let part = |path: &str| {
            let path = bin.join(path);
            match rustix::fs::stat(&path) {
                Ok(_) => Ok(path),
                Err(error) => {
                    Err(not_installed(format_args!("{}: {error}", path.display())).hint(INSTALL))
                }
            }
        };
        Ok(Self {
            node: part(build.node.as_str())?,
            script: part(build.script.as_str())?,
            browser: bin.join(build.browser.as_str()),
            fonts: bin.join("fonts"),
        })
    }

    /// Checks that the browser is there and can be executed.
    pub(super) fn check_browser(&self) -> Result<(), Failure> {
        rustix::fs::accessat(CWD, &self.browser, Access::EXEC_OK, AtFlags::EACCESS).map_err(
            |error| {
                let text = format_args!(
                    "the browser {} cannot be executed: {error}",
                    self.browser.display()
                );
                not_installed(text).hint(INSTALL)
            },
        )
    }

    /// The libraries that come with the browser: in `lib` beside its executable.
    pub(super) fn libraries(&self) -> PathBuf {
        self.browser.with_file_name("lib")
    }
}

fn not_installed(why: impl std::fmt::Display) -> Failure {
    Failure::refused(format_args!("connector.not_installed: {why}"))
}
