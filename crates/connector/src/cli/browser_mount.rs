//! `sema-connector-browser mount`: the browser's manifest and catalog entry.

use super::failure::Failure;
use super::mount::{self, Mounted};
use super::{Outcome, env};
pub use crate::browser::{EXPORT, NAME, STATE};
use sema_rules::manifest::{Confined, Manifest};
use sema_rules::name::{ConnectorName, Handle};
use std::path::Path;

/// Let engines start the browser: write its entry into catalog.json
#[derive(Debug, clap::Args)]
#[command(
    after_help = "It ends by printing what to add to the configuration of your client.\n\n\
    Example:\n  sema-connector-browser mount"
)]
pub struct Args {
    /// Print one JSON object instead.
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args) -> Outcome {
    mount_browser()?.print(args.json)
}

/// Mounts the browser. Works from both programs: the other one stands beside it.
pub fn mount_browser() -> Result<Mounted, Failure> {
    mount::mount(
        ConnectorName::parse(NAME)?,
        manifest()?,
        &sibling("sema-connector")?,
    )
}

/// What `mount` writes for the browser.
pub(super) fn manifest() -> Result<Manifest, Failure> {
    Ok(Manifest {
        command: vec![sibling("sema-connector-browser")?],
        handles: vec![handle(STATE)?, handle(EXPORT)?],
        required: vec![handle(STATE)?],
        confined: Confined::ByItself,
        read: Vec::new(),
        write: Vec::new(),
        env: Vec::new(),
    })
}

/// The program of this name beside this one.
pub(super) fn sibling(name: &str) -> Result<String, Failure> {
    let exe = env::current_exe()?;
    mount::program(&exe.parent().unwrap_or(Path::new("/")).join(name))
}

/// One of the names above as a handle.
pub(super) fn handle(name: &str) -> Result<Handle, Failure> {
    Ok(Handle::parse(name)?)
}
