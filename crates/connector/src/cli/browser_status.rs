//! `sema-connector-browser status`: the status that the launcher serves, as one line of JSON.

use super::{Outcome, browser_mount, env, output, run, status};
use sema_rules::name::ConnectorName;
use std::process::ExitCode;

/// Print the connector's status as one line of JSON; it works before `mount`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "The walls, versions and policies: sema-connector status browser\n\n\
    Example:\n  sema-connector-browser status"
)]
pub(super) struct Args {
    /// Hash every file of the pinned build again first.
    #[arg(long)]
    verify: bool,
}

pub(super) fn run(args: &Args) -> Outcome {
    let config = env::create_config()?;
    let name = ConnectorName::parse(browser_mount::NAME)?;
    let dir = config.create_connector(&name)?;
    if args.verify {
        let build = status::pinned(&dir, sema_vault::tree::Depth::Everything)?;
        if let Some(refused) = build["refused"].as_str() {
            let failure = super::failure::Failure::refused(refused);
            return Err(failure.hint(
                build["hint"]
                    .as_str()
                    .unwrap_or("sema-connector-browser install"),
            ));
        }
    }
    let manifest = browser_mount::manifest()?;
    let settings = run::settings(config.path(), &name, dir, manifest);
    let text = crate::launcher::read_status(settings, run::status_patience())?;
    output::data(&format!("{text}\n"))?;
    tell_walls();
    Ok(ExitCode::SUCCESS)
}

/// A word of the walls, for the person.
fn tell_walls() {
    let walls = status::walls();
    let words = walls.as_object().into_iter().flatten();
    let words: Vec<String> = words
        .map(|(name, wall)| format!("{name} {}", wall["state"].as_str().unwrap_or_default()))
        .collect();
    output::say(&format!("walls: {}", words.join(", ")));
}
