//! `pin`: writes down a browser of one's own choice.

use super::{Outcome, env, install, output};
use crate::install::locks;
use crate::install::pin::{self, PinOrder, Pinned};
use crate::install::progress::{Talk, grouped};
use std::process::ExitCode;

/// Fetches the Chrome for Testing that the pinned Playwright names, computes its hash, checks that
/// it holds a browser, and writes a lock that `install --browser chrome-for-testing` uses.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "No hash of this browser is published: what is served today is what is pinned. The \
    answer names what was taken on trust.\n\nExample:\n  sema-connector-browser pin --browser chrome-for-testing\n  \
    sema-connector-browser install --browser chrome-for-testing"
)]
pub struct Args {
    /// Which browser.
    #[arg(long, value_enum, value_name = "BUILD")]
    browser: Pinnable,
    /// Its version; without this, the one that the pinned playwright-core names.
    #[arg(long, value_name = "V")]
    version: Option<String>,
    /// Take archives from here only, as for `install`.
    #[arg(long, value_name = "URL|FOLDER")]
    mirror: Option<String>,
    /// Print the result as JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Pinnable {
    /// Chrome for Testing, from cdn.playwright.dev.
    ChromeForTesting,
}

pub(super) fn run(args: &Args) -> Outcome {
    let Pinnable::ChromeForTesting = args.browser;
    let sources = install::sources(args.mirror.as_deref())?;
    let (carried, text) = (
        install::carried()?,
        locks::carried_text(install::test_lock()),
    );
    let order = PinOrder {
        carried: &text,
        build: &carried,
        platform: install::platform(),
        version: args.version.clone(),
        sources: &sources,
        patience: install::patience(),
        talk: Talk::Auto,
    };
    let connector = env::create_config()?.create_connector(&install::browser()?)?;
    let pinned = pin::pin(&order, &connector)?;
    if args.json {
        output::json(&pinned)?;
    } else {
        output::data(&told(&pinned))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn told(pinned: &Pinned) -> String {
    format!(
        "pinned Chrome for Testing {} for {}\n  file    {}, {} bytes\n  sha256  {}\n  source  {}\n  \
         trust   {}: no published hash was there to compare with\n  lock    {}\n\
         next: sema-connector-browser install --browser chrome-for-testing\n",
        pinned.version,
        pinned.platform,
        pinned.file,
        grouped(pinned.bytes),
        pinned.sha256,
        pinned.source,
        pinned.trust,
        pinned.lock.display()
    )
}
