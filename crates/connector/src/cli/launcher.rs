//! The commands of `sema-connector`.

use super::{Outcome, completions, man};
use clap::{Parser, Subcommand};

/// Runs connectors for an agent engine: their secrets stay here, their programs run behind walls.
#[derive(Debug, Parser)]
#[command(
    name = "sema-connector",
    version,
    subcommand_required = true,
    arg_required_else_help = true
)]
#[command(after_help = "Example:\n  sema-connector run browser")]
pub struct Launcher {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Completions(completions::Args),
    Man(man::Args),
}

pub(super) fn run(launcher: Launcher) -> Outcome {
    match launcher.command {
        Command::Completions(args) => completions::run::<Launcher>(&args),
        Command::Man(args) => man::run::<Launcher>(&args),
    }
}
