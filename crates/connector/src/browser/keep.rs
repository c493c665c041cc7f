//! Copies what a launch wrote into its output directory, before the directory goes with it.

use super::saved::is_save;
use crate::cli::failure::Failure;
use sema_rules::name::LaunchId;
use sema_vault::foreign::{self, Kept};
use sema_vault::{ConnectorDir, Dir};
use std::path::{Path, PathBuf};

/// Copies the files of a launch's output directory into `to`. Links are not followed, nothing that
/// exists is written over, and a login state that is being saved is left out.
pub fn launch(path: &Path, to: &Path) -> Result<Kept, Failure> {
    let out = path.join("out");
    match Dir::open_private(&out)? {
        Some(out) => Ok(foreign::copy(&out, to, is_save)?),
        None => Ok(Kept::default()),
    }
}

/// The directory of the running launch: the one named, or the only one.
pub fn running(connector: &ConnectorDir, wanted: Option<&LaunchId>) -> Result<PathBuf, Failure> {
    let mut live = connector.live_launches()?;
    if let Some(wanted) = wanted {
        let found = live.into_iter().find(|(id, _)| id == wanted);
        return found
            .map(|(_, path)| path)
            .ok_or_else(|| Failure::refused(format_args!("no launch {wanted} is running")));
    }
    match (live.pop(), live.is_empty()) {
        (Some((_, path)), true) => Ok(path),
        (None, _) => Err(Failure::refused("no launch is running")
            .hint("start one that keeps its files: sema-connector run browser --keep DIR")),
        (Some((last, _)), false) => {
            let ids = live.iter().map(|(id, _)| id).chain([&last]);
            let ids: Vec<_> = ids.map(|id| id.as_str()).collect();
            Err(Failure::refused(format_args!(
                "{} launches are running: {}",
                ids.len(),
                ids.join(", ")
            ))
            .hint("name one: --launch ID"))
        }
    }
}
