//! The commands of `sema-connector-browser`. Without one it is the connector process that the
//! launcher starts.

use super::failure::Failure;
use super::{Outcome, completions, man};
use clap::{Parser, Subcommand};

/// A pinned Playwright MCP server and a pinned Chromium, headless, with a login state of yours.
#[derive(Debug, Parser)]
#[command(name = "sema-connector-browser", version)]
#[command(
    after_help = "Without a command this is the connector process that `sema-connector run browser` starts.\n\n\
    Example:\n  sema-connector-browser install\n  echo '{}' | sema-connector-browser auth\n  sema-connector-browser mount"
)]
pub struct Browser {
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    Completions(completions::Args),
    Man(man::Args),
}

pub(super) fn run(browser: Browser) -> Outcome {
    let Some(command) = browser.command else {
        return Err(Failure::refused(
            "the connector process is not part of this build",
        ));
    };
    match command {
        Command::Completions(args) => completions::run::<Browser>(&args),
        Command::Man(args) => man::run::<Browser>(&args),
    }
}
