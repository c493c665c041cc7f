//! `unmount NAME`: takes away what `mount` wrote, and nothing else.

use super::failure::Failure;
use super::mount::{foreign, read_catalog, write_catalog};
use super::{Outcome, env, output};
use sema_rules::catalog::Found;
use sema_rules::manifest::{self, Manifest};
use sema_rules::name::ConnectorName;
use std::process::ExitCode;

/// Take a connector away from engines: remove its entry from catalog.json
#[derive(Debug, clap::Args)]
#[command(after_help = "Its secrets stay.\n\nExample:\n  sema-connector unmount github")]
pub struct Args {
    /// The connector.
    name: ConnectorName,
}

/// Take the browser away from engines: remove its entry from catalog.json
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Its login state and the pinned build stay.\n\nExample:\n  sema-connector-browser unmount"
)]
pub struct BrowserArgs {}

pub(super) fn run(args: &Args) -> Outcome {
    unmount(&args.name)
}

pub(super) fn run_browser(_args: &BrowserArgs) -> Outcome {
    unmount(&ConnectorName::parse(super::browser_mount::NAME)?)
}

fn unmount(name: &ConnectorName) -> Outcome {
    let not_mounted = || Failure::refused(format_args!("{name} is not mounted"));
    let config = env::open_config()?.ok_or_else(not_mounted)?;
    let _catalog_held = config.lock_exclusive(&mut output::waiting)?;
    let mut catalog = read_catalog(&config)?;
    let found = catalog.find(name);
    if found == Some(Found::Foreign) {
        return Err(foreign(&config, name));
    }
    let connector = config.connector(name)?;
    let manifest = match &connector {
        Some(connector) => connector
            .dir()
            .read_policy(manifest::FILE, manifest::LIMIT)?,
        None => None,
    };
    if found.is_none() && manifest.is_none() {
        return Err(not_mounted());
    }
    if let Some(text) = &manifest {
        Manifest::parse(text).map_err(|e| {
            let path = config.connector_path(name).join(manifest::FILE);
            Failure::refused(format_args!(
                "{}: is not what mount writes: {e}",
                path.display()
            ))
            .hint("it was left alone; remove it by hand if nothing needs it")
        })?;
    }
    // The catalog first: no engine starts what has no manifest any more.
    if found.is_some() {
        catalog.remove(name);
        write_catalog(&config, &catalog)?;
    }
    if let Some(connector) = connector {
        let _held = connector.lock_exclusive(&mut output::waiting)?;
        connector.dir().remove(manifest::FILE)?;
    }
    output::say(&format!("unmounted {name}"));
    Ok(ExitCode::SUCCESS)
}
