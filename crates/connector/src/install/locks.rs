//! The two lock files: the one that this program carries, and the one that `pin` wrote beside the
//! connector's other files.

use super::error::InstallError;
use sema_rules::lock::{Build, Lock};
use sema_vault::ConnectorDir;
use std::path::PathBuf;

/// The key of the browser's build.
pub const KEY: &str = "playwright-mcp";
/// The name of both files.
pub const FILE: &str = "binaries.lock.json";

pub(super) const CARRIED: &[u8] = include_bytes!("../../../../binaries.lock.json");
const LIMIT: usize = 1 << 20;

/// Which browser a build holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Browser {
    /// The Chromium headless shell that this program pins.
    Chromium,
    /// A Chrome for Testing that `pin` wrote down.
    ChromeForTesting,
}

/// The build that this program pins. A test names another lock file; a release build has no way
/// to.
pub fn carried(other: Option<PathBuf>) -> Result<Build, InstallError> {
    let path = other.clone().unwrap_or_else(|| PathBuf::from(FILE));
    read(path, &carried_text(other))
}

/// The text of that lock.
pub fn carried_text(other: Option<PathBuf>) -> Vec<u8> {
    match other.filter(|_| cfg!(debug_assertions)) {
        None => CARRIED.to_vec(),
        Some(path) => super::files::read_small(&path)
            .ok()
            .flatten()
            .unwrap_or_default(),
    }
}

/// The build that `pin` wrote, if it did.
pub fn own(connector: &ConnectorDir) -> Result<Option<Build>, InstallError> {
    match connector.dir().read_policy(FILE, LIMIT)? {
        None => Ok(None),
        Some(text) => read(connector.path().join(FILE), &text).map(Some),
    }
}

/// The build of one browser.
pub fn of(
    browser: Browser,
    connector: &ConnectorDir,
    carried: &Build,
) -> Result<Build, InstallError> {
    match browser {
        Browser::Chromium => Ok(carried.clone()),
        Browser::ChromeForTesting => own(connector)?.ok_or_else(|| InstallError::NoOwnLock {
            path: connector.path().join(FILE),
        }),
    }
}

pub(super) fn read(path: PathBuf, text: &[u8]) -> Result<Build, InstallError> {
    let lock = Lock::parse(text).map_err(|source| InstallError::Lock {
        path: path.clone(),
        source,
    })?;
    let build = lock.build(KEY).cloned();
    build
        .ok_or_else(|| InstallError::Pin(format!("{} names no {KEY}", path.display()), "pin again"))
}
