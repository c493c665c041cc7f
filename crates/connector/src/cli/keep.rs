//! `keep DIR`: copies the files that a running launch has written.

use super::failure::{Exit, Failure};
use super::output::{self, Label};
use super::{Outcome, env};
use crate::browser::{self, keep};
use sema_rules::name::{ConnectorName, LaunchId};
use sema_vault::foreign::Kept;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Copy the files of a running launch: screenshots, snapshots, downloads.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  sema-connector-browser keep ~/kept")]
pub(super) struct Args {
    /// The folder to copy into; made if it is missing, nothing in it is written over.
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    /// Which launch, where several are running.
    #[arg(long, value_name = "ID")]
    launch: Option<LaunchId>,
    /// Print what was copied as JSON.
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args) -> Outcome {
    let nothing =
        || Failure::refused("no launch is running: the browser connector was never set up");
    let config = env::open_config()?.ok_or_else(nothing)?;
    let connector = config
        .connector(&ConnectorName::parse(browser::NAME)?)?
        .ok_or_else(nothing)?;
    let launch = keep::running(&connector, args.launch.as_ref())?;
    let kept = keep::launch(&launch, &args.dir)?;
    if args.json {
        output::json(&report(&kept, &args.dir))?;
    } else {
        tell(&kept, &args.dir)?;
    }
    Ok(if kept.left.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(Exit::Failed as u8)
    })
}

fn tell(kept: &Kept, dir: &Path) -> Result<(), Failure> {
    for file in &kept.written {
        output::data(&format!("{}\n", dir.join(file).display()))?;
    }
    for (file, reason) in &kept.left {
        output::labelled(
            Label::Warning,
            &format!("{} was not copied: {reason}", file.display()),
        );
    }
    Ok(())
}

fn report(kept: &Kept, dir: &Path) -> serde_json::Value {
    let written: Vec<_> = kept
        .written
        .iter()
        .map(|file| dir.join(file).to_string_lossy().into_owned())
        .collect();
    let left: Vec<_> = kept
        .left
        .iter()
        .map(|(file, reason)| serde_json::json!({"file": file.to_string_lossy(), "reason": reason.to_string()}))
        .collect();
    serde_json::json!({"written": written, "already": kept.already, "left": left})
}
