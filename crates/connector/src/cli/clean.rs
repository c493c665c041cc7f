//! `clean`: removes what nobody needs any more.

use super::{Outcome, env, output, uninstall};
use crate::install::removal::{self, Kept};
use std::process::ExitCode;

/// Removes leftovers of every connector: unfinished and replaced builds, dead launches, temporary
/// files. What runs, what is installed and what is stored stays.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  sema-connector clean\n  sema-connector clean --archives")]
pub struct Args {
    /// The kept archives too; `install --offline` then has none.
    #[arg(long)]
    archives: bool,
    /// Print the results as JSON, a line a connector.
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args) -> Outcome {
    let kept = if args.archives {
        Kept::Nothing
    } else {
        Kept::Archives
    };
    let Some(config) = env::open_config()? else {
        return Ok(ExitCode::SUCCESS);
    };
    for name in config.connectors()? {
        if let Some(connector) = config.connector(&name)? {
            let freed = removal::clean(&connector, kept, &mut output::waiting)?;
            uninstall::report(&freed, name.as_str(), args.json)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
