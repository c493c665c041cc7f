//! Giving disk space back: the build as a whole, or what lies about besides it.

use super::error::InstallError;
use super::usage;
use sema_rules::lock::ARCHIVES;
use sema_vault::{ConnectorDir, Dir, WaitNotice};
use std::os::unix::ffi::OsStrExt;

/// The build.
const BIN: &str = "bin";
/// How the names begin of what an install that did not end, or a running launch, left.
const LEFTOVERS: &str = "bin.";

/// What was removed.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Freed {
    /// What it was, in words.
    pub what: String,
    /// What it took, in bytes.
    pub bytes: u64,
}

/// Whether kept archives go too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kept {
    /// They stay.
    Archives,
    /// They go.
    Nothing,
}

type Waiting<'a> = &'a mut dyn FnMut(WaitNotice);

/// Removes `bin/` and what installs left beside it. Refused while a launch runs.
pub fn uninstall(
    name: &str,
    connector: &ConnectorDir,
    waiting: Waiting<'_>,
) -> Result<Vec<Freed>, InstallError> {
    let _turn = connector.lock_install(waiting)?;
    let held = connector.lock_exclusive(waiting)?;
    let launches: Vec<_> = connector
        .live_launches()?
        .iter()
        .map(|(id, _)| id.to_string())
        .collect();
    if !launches.is_empty() {
        return Err(InstallError::Live {
            name: name.to_owned(),
            launches,
        });
    }
    let mut freed = remove(connector.dir(), "the build", |name| name == BIN.as_bytes())?;
    freed.extend(remove(
        connector.dir(),
        "an unfinished or replaced build",
        is_leftover,
    )?);
    connector.sweep(&held)?;
    Ok(freed)
}

/// Removes what installs and dead launches left, and the kept archives where asked.
pub fn clean(
    connector: &ConnectorDir,
    kept: Kept,
    waiting: Waiting<'_>,
) -> Result<Vec<Freed>, InstallError> {
    let _turn = connector.lock_install(waiting)?;
    let held = connector.lock_exclusive(waiting)?;
    let dir = connector.dir();
    let mut freed = Vec::new();
    if connector.live_launches()?.is_empty() {
        freed.extend(remove(dir, "an unfinished or replaced build", is_leftover)?);
    }
    if kept == Kept::Nothing
        && let Some(bin) = dir.sub(BIN)?
    {
        freed.extend(remove(&bin, "kept archives", |name| {
            name == ARCHIVES.as_bytes()
        })?);
    }
    freed.extend(sweep(connector, &held)?);
    Ok(freed)
}

fn sweep(
    connector: &ConnectorDir,
    held: &sema_vault::Exclusive,
) -> Result<Option<Freed>, InstallError> {
    let before = usage::of(connector.dir());
    let count = connector.sweep(held)?;
    let bytes = before.saturating_sub(usage::of(connector.dir()));
    let what = match count {
        0 => return Ok(None),
        1 => "1 dead launch or temporary file".to_owned(),
        count => format!("{count} dead launches and temporary files"),
    };
    Ok(Some(Freed { what, bytes }))
}

fn remove(dir: &Dir, what: &str, is: impl Fn(&[u8]) -> bool) -> Result<Vec<Freed>, InstallError> {
    let mut freed = Vec::new();
    for name in dir.names()?.into_iter().filter(|name| is(name.as_bytes())) {
        let bytes = usage::below(dir, name.as_bytes());
        dir.remove_tree(&name)?;
        dir.flush()?;
        freed.push(Freed {
            what: what.to_owned(),
            bytes,
        });
    }
    Ok(freed)
}

fn is_leftover(name: &[u8]) -> bool {
    name.starts_with(LEFTOVERS.as_bytes())
}
