//! `man`: the manual pages of this program, made from the same definitions as its `--help`.

use super::failure::Failure;
use super::{Outcome, output};
use clap::CommandFactory;
use std::path::PathBuf;
use std::process::ExitCode;

/// Print the manual page, or write all pages into a folder.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  sema-connector man | man -l -\n  sema-connector man --dir ~/.local/share/man/man1"
)]
pub struct Args {
    /// Write one page a command into this folder, which must exist.
    #[arg(long)]
    dir: Option<PathBuf>,
}

pub(super) fn run<C: CommandFactory>(args: &Args) -> Outcome {
    // Each page is what `help` would print of its command.
    let mut command = C::command().disable_help_subcommand(true);
    command.build();
    if let Some(dir) = &args.dir {
        // Pages are for everybody.
        rustix::process::umask(rustix::fs::Mode::WGRP | rustix::fs::Mode::WOTH);
        clap_mangen::generate_to(command, dir).map_err(|e| {
            Failure::failed(format_args!(
                "{}: cannot write the pages: {e}",
                dir.display()
            ))
        })?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut page = Vec::new();
    clap_mangen::Man::new(command)
        .render(&mut page)
        .map_err(|e| Failure::failed(format_args!("cannot make the page: {e}")))?;
    output::data(&String::from_utf8_lossy(&page))?;
    Ok(ExitCode::SUCCESS)
}
