//! The commands of `sema-connector-browser`. Without one it is the connector process that the
//! launcher starts.

use super::{
    Outcome, browser_auth, browser_mount, browser_status, completions, env, install, keep, list,
    man, pin, unmount,
};
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
    Status(browser_status::Args),
    Install(install::Args),
    Pin(pin::Args),
    Keep(keep::Args),
    Auth(browser_auth::Args),
    Mount(browser_mount::Args),
    Unmount(unmount::BrowserArgs),
    List(list::Args),
    Completions(completions::Args),
    Man(man::Args),
}

pub(super) fn run(browser: Browser) -> Outcome {
    let Some(command) = browser.command else {
        let own: Vec<_> = env::vars().collect();
        sema_jail::end_as(crate::browser::run(&own)?)
    };
    match command {
        Command::Status(args) => browser_status::run(&args),
        Command::Install(args) => install::run(&args),
        Command::Pin(args) => pin::run(&args),
        Command::Auth(args) => browser_auth::run(&args),
        Command::Mount(args) => browser_mount::run(&args),
        Command::Unmount(args) => unmount::run_browser(&args),
        Command::List(args) => list::run(&args),
        Command::Keep(args) => keep::run(&args),
        Command::Completions(args) => completions::run::<Browser>(&args),
        Command::Man(args) => man::run::<Browser>(&args),
    }
}
