//! `run NAME`: the launcher, as an engine starts it.

use super::failure::Failure;
use super::{Outcome, env};
use crate::launcher::{self, Purpose, Settings};
use sema_jail::StopSignals;
use sema_rules::manifest::{self, Manifest};
use sema_rules::name::ConnectorName;
use sema_vault::ConnectorDir;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Run a connector for an engine that speaks MCP over this program's standard input and output.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  sema-connector run browser --keep ~/kept")]
pub(super) struct Args {
    /// The connector's name.
    name: ConnectorName,
    /// Copy the files of this launch (screenshots, snapshots, downloads) into this folder when it
    /// ends.
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
}

pub(super) fn run(args: Args) -> Outcome {
    // Before any thread is started: the signals are blocked in all of them.
    let stops = StopSignals::catch()
        .map_err(|e| Failure::failed(format_args!("cannot catch signals: {e}")))?;
    let keep = match args.keep {
        Some(keep) => Some(env::current_dir()?.join(keep)),
        None => None,
    };
    let settings = Settings {
        keep,
        ..mounted(&args.name)?
    };
    let stdin = own(rustix::stdio::stdin())?;
    let stdout = own(rustix::stdio::stdout())?;
    launcher::run(settings, stdin, stdout, Some(stops))
}

/// A descriptor of our own for one of the standard ones.
fn own(fd: impl AsFd) -> Result<OwnedFd, Failure> {
    rustix::io::fcntl_dupfd_cloexec(fd, 3)
        .map_err(|e| Failure::failed(format_args!("cannot use standard input and output: {e}")))
}

/// How long a connector is asked for its tools, at most: less in a test of a debug build.
pub(super) fn status_patience() -> Duration {
    let test = env::test_var("SEMA_STATUS_SECONDS").and_then(|text| text.parse().ok());
    Duration::from_secs(test.unwrap_or(60))
}

/// What is run for a connector that is mounted.
pub(super) fn mounted(name: &ConnectorName) -> Result<Settings, Failure> {
    let missing = || {
        let failure = Failure::refused(format_args!("no connector {name} is mounted"));
        match name.as_str() {
            crate::browser::NAME => failure.hint("run: sema-connector-browser mount"),
            _ => failure.hint(format_args!("run: sema-connector mount {name} -- COMMAND")),
        }
    };
    let config = env::open_config()?.ok_or_else(missing)?;
    let dir = config.connector(name)?.ok_or_else(missing)?;
    let text = dir
        .dir()
        .read_policy(manifest::FILE, manifest::LIMIT)?
        .ok_or_else(missing)?;
    let manifest = Manifest::parse(&text).map_err(|e| {
        Failure::refused(format_args!("{}: {e}", dir.path().display())).hint("mount it again")
    })?;
    Ok(settings(config.path(), name, dir, manifest))
}

/// What is run for a connector with this manifest.
pub(super) fn settings(
    config: &Path,
    name: &ConnectorName,
    dir: ConnectorDir,
    manifest: Manifest,
) -> Settings {
    let env = env::vars().collect();
    Settings {
        config: config.to_owned(),
        name: name.clone(),
        dir,
        manifest,
        env,
        keep: None,
        purpose: Purpose::Work,
    }
}
