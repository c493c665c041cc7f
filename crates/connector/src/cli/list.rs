//! `list`: the connectors that are mounted.

use super::mount::read_catalog;
use super::{Outcome, env, output};
use std::process::ExitCode;

/// Print the connectors that are mounted in the configuration directory
#[derive(Debug, clap::Args)]
#[command(
    after_help = "An entry of catalog.json that mount did not write is not listed.\n\n\
    Example:\n  sema-connector list --json"
)]
pub struct Args {
    /// Print one JSON object instead.
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args) -> Outcome {
    let entries = match env::open_config()? {
        Some(config) => read_catalog(&config)?.entries(),
        None => Vec::new(),
    };
    if args.json {
        let entry = |(name, entry): &(_, sema_rules::catalog::Entry)| {
            let name: &sema_rules::name::ConnectorName = name;
            serde_json::json!({"name": name, "command": entry.command, "args": entry.args})
        };
        let connectors: Vec<_> = entries.iter().map(entry).collect();
        output::json(&serde_json::json!({ "connectors": connectors }))?;
    } else {
        let lines: String = entries
            .iter()
            .map(|(name, _)| format!("{name}\n"))
            .collect();
        output::data(&lines)?;
    }
    Ok(ExitCode::SUCCESS)
}
