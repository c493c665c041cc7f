//! The parts of the pinned build that are started, once the whole of it was compared with its
//! record.

use crate::cli::failure::Failure;
use crate::install::{self, InstallError, Installed, locks};
use rustix::fs::{Access, AtFlags, CWD};
use sema_vault::ConnectorDir;
use sema_vault::tree::Depth;
use std::path::PathBuf;

const INSTALL: &str = "sema-connector-browser install";

/// Where the parts lie.
pub(super) struct Build {
    /// The folder that holds all of it.
    pub(super) root: PathBuf,
    pub(super) node: PathBuf,
    pub(super) script: PathBuf,
    pub(super) browser: PathBuf,
    pub(super) fonts: PathBuf,
}

impl Build {
    /// The build in `bin/` of a connector's directory: every entry of it is what was unpacked.
    pub(super) fn find(connector: &ConnectorDir) -> Result<Self, Failure> {
        let Installed { build, .. } = installed(connector).map_err(|error| {
            let hint = error.hint();
            not_installed(&error).hint(hint.unwrap_or_else(|| INSTALL.to_owned()))
        })?;
        let bin = connector.path().join("bin");
        Ok(Self {
            node: bin.join(build.node.as_str()),
            script: bin.join(build.script.as_str()),
            browser: bin.join(build.browser.as_str()),
            fonts: bin.join("fonts"),
            root: bin,
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

fn installed(connector: &ConnectorDir) -> Result<Installed, InstallError> {
    let carried = locks::carried(None)?;
    install::check(
        connector,
        &carried,
        &install::this_platform(),
        Depth::Changed,
    )
}

fn not_installed(why: impl std::fmt::Display) -> Failure {
    Failure::refused(format_args!("connector.not_installed: {why}"))
}
