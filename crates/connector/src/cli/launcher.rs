//! The commands of `sema-connector`.

use super::{
    Outcome, attempt, auth, clean, completions, install, list, man, mount, run, status, trace,
    uninstall, unmount,
};
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
    Try(attempt::Args),
    Status(status::Args),
    Trace(trace::Args),
    Run(run::Args),
    Install(install::NamedArgs),
    Uninstall(uninstall::Args),
    Clean(clean::Args),
    Auth(auth::Args),
    Mount(mount::Args),
    Unmount(unmount::Args),
    List(list::Args),
    Completions(completions::Args),
    Man(man::Args),
}

pub(super) fn run(launcher: Launcher) -> Outcome {
    match launcher.command {
        Command::Try(args) => attempt::run(&args),
        Command::Status(args) => status::run(&args),
        Command::Trace(args) => trace::run(&args),
        Command::Run(args) => run::run(args),
        Command::Install(args) => install::run_named(&args),
        Command::Uninstall(args) => uninstall::run(&args),
        Command::Clean(args) => clean::run(&args),
        Command::Auth(args) => auth::run(&args),
        Command::Mount(args) => mount::run(&args),
        Command::Unmount(args) => unmount::run(&args),
        Command::List(args) => list::run(&args),
        Command::Completions(args) => completions::run::<Launcher>(&args),
        Command::Man(args) => man::run::<Launcher>(&args),
    }
}
