//! `completions SHELL`: the completion script of this program.

use super::{Outcome, output};
use clap::CommandFactory;
use clap_complete::Shell;
use std::process::ExitCode;

/// Print a shell's completion script.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  sema-connector completions bash > ~/.local/share/bash-completion/completions/sema-connector"
)]
pub struct Args {
    /// The shell.
    shell: Shell,
}

pub(super) fn run<C: CommandFactory>(args: &Args) -> Outcome {
    let mut command = C::command();
    let name = command.get_name().to_owned();
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, name, &mut script);
    output::data(&String::from_utf8_lossy(&script))?;
    Ok(ExitCode::SUCCESS)
}
