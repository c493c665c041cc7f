//! `uninstall NAME`: gives back what a connector's build takes.

use super::failure::Failure;
use super::{Outcome, env, output};
use crate::install::progress::bytes;
use crate::install::removal::{self, Freed};
use sema_rules::name::ConnectorName;
use std::process::ExitCode;

/// Removes a connector's build and its kept archives. Logins, policies and the catalog stay.
/// Refused while it runs.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  sema-connector uninstall browser")]
pub struct Args {
    /// The connector.
    #[arg(value_name = "NAME")]
    name: ConnectorName,
    /// Print the result as JSON.
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args) -> Outcome {
    let name = &args.name;
    let connector = match env::open_config()? {
        Some(config) => config.connector(name)?,
        None => None,
    };
    let Some(connector) = connector else {
        let path = env::config_path()?;
        return Err(Failure::refused(format!(
            "there is no connector {name} in {}",
            path.display()
        ))
        .hint("see what there is: sema-connector list"));
    };
    let freed = removal::uninstall(name.as_str(), &connector, &mut output::waiting)?;
    report(&freed, name.as_str(), args.json)?;
    Ok(ExitCode::SUCCESS)
}

/// Prints what was freed, a line each and a total.
pub(super) fn report(freed: &[Freed], name: &str, json: bool) -> Result<(), Failure> {
    let total: u64 = freed.iter().map(|freed| freed.bytes).sum();
    if json {
        return output::json(
            &serde_json::json!({"connector": name, "freed": freed, "bytes": total}),
        );
    }
    if freed.is_empty() {
        return output::data(&format!("{name}: nothing to remove\n"));
    }
    let lines = freed
        .iter()
        .map(|freed| format!("{name}: removed {}, {}\n", freed.what, bytes(freed.bytes)));
    output::data(&format!(
        "{}{name}: freed {}\n",
        lines.collect::<String>(),
        bytes(total)
    ))
}
