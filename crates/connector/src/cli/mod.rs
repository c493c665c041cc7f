//! The command lines of both programs: parse, hand to one verb, say what failed.
//!
//! A verb is one file: its `Args` and a `run` that returns an [`Outcome`]. Data goes to standard
//! output, talk to standard error, and nothing here repeats what a person typed where a secret
//! could stand.

mod attempt;
pub mod auth;
pub mod browser;
pub mod browser_auth;
pub mod browser_mount;
mod browser_status;
pub mod clean;
pub mod completions;
pub mod env;
pub mod failure;
mod grant;
mod input;
pub mod install;
mod keep;
pub mod launcher;
pub mod list;
pub mod man;
pub mod mount;
pub mod output;
pub mod pin;
mod run;
mod snippets;
mod status;
mod trace;
pub mod uninstall;
pub mod unmount;
mod usage;

use clap::{CommandFactory, Parser};
use failure::Failure;
use rustix::process::{Resource, Rlimit, setrlimit};
use std::process::ExitCode;

/// What a verb ends with.
pub type Outcome = Result<ExitCode, Failure>;

/// `sema-connector`.
pub fn launcher_main() -> ExitCode {
    main::<launcher::Launcher>(launcher::run)
}

/// `sema-connector-browser`.
pub fn browser_main() -> ExitCode {
    main::<browser::Browser>(browser::run)
}

fn main<C: Parser + CommandFactory>(run: fn(C) -> Outcome) -> ExitCode {
    // Whatever is made from here on is closed to other users from its first moment.
    rustix::process::umask(rustix::fs::Mode::RWXG | rustix::fs::Mode::RWXO);
    // What ends in a fault leaves no copy of its memory, which may hold a secret.
    let none = Rlimit {
        current: Some(0),
        maximum: Some(0),
    };
    _ = setrlimit(Resource::Core, none);
    let outcome = match C::try_parse() {
        Ok(command) => run(command),
        Err(error) => usage::explain(&error, &C::command()),
    };
    outcome.unwrap_or_else(|failure| failure.report())
}
