//! `install`: brings the pinned build onto this machine.

use super::Outcome;
use super::env;
use super::failure::{Exit, Failure};
use super::output;
use crate::install::http::Patience;
use crate::install::progress::{Talk, bytes};
use crate::install::sources::{Mirror, Sources, Variables};
use crate::install::{self, Browser, Done, InstallError, Network, Order, locks};
use sema_rules::lock::{Build, Group, Platform};
use sema_rules::name::ConnectorName;
use sema_vault::ConnectorDir;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Brings the pinned build onto this machine: fetched, compared with the lock, checked, unpacked.
/// Does nothing where it is there already.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Archives come from the registry that npm is configured for (npm_config_registry, ~/.npmrc \
    and the global npmrc, never the working directory's), through its proxies and with its certificates.\n\n\
    Example:\n  sema-connector-browser install\n  sema-connector-browser install --fonts all\n  \
    sema-connector-browser install --mirror /media/stick/archives"
)]
pub struct Args {
    /// Take archives from here only: a folder with the lock's file names, or an address under
    /// which the file, or the path that the lock's address has, is found.
    #[arg(long, value_name = "URL|FOLDER")]
    mirror: Option<String>,
    /// Fetch nothing: use the archives that are here.
    #[arg(long, conflicts_with = "mirror")]
    offline: bool,
    /// Fonts besides the Latin and emoji ones: Chinese, Japanese, Korean, Arabic and Hebrew.
    #[arg(long, value_enum, value_name = "WHICH")]
    fonts: Option<Fonts>,
    /// Which browser; without this, the one that is in, at first chromium.
    #[arg(long, value_enum, value_name = "BUILD")]
    browser: Option<Browser>,
    /// Print the result as JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Fonts {
    /// All that the lock pins.
    All,
}

/// `sema-connector install browser`.
#[derive(Debug, clap::Args)]
pub struct NamedArgs {
    /// The connector; the browser is the one that has a pinned build.
    #[arg(value_name = "NAME")]
    name: ConnectorName,
    #[command(flatten)]
    args: Args,
}

pub(super) fn run_named(named: &NamedArgs) -> Outcome {
    if named.name.as_str() != BROWSER {
        let message = format!("{} has no pinned build", named.name);
        return Err(Failure::usage(message).hint("the connector with one is: browser"));
    }
    run(&named.args)
}

/// The browser connector's name.
const BROWSER: &str = "browser";

pub(super) fn run(args: &Args) -> Outcome {
    let started = Instant::now();
    let carried = carried()?;
    let sources = sources(args.mirror.as_deref())?;
    let order = Order {
        carried: &carried,
        browser: args.browser,
        platform: platform(),
        groups: args.fonts.iter().map(|Fonts::All| Group::Fonts).collect(),
        sources: &sources,
        network: if args.offline {
            Network::Offline
        } else {
            Network::Allowed
        },
        patience: patience(),
        talk: Talk::Auto,
    };
    let connector = env::create_config()?.create_connector(&browser()?)?;
    let done = install::install(&order, &connector)?;
    report(&done, &connector, started.elapsed(), args.json)?;
    Ok(ExitCode::SUCCESS)
}

fn report(
    done: &Done,
    connector: &ConnectorDir,
    took: Duration,
    json: bool,
) -> Result<(), Failure> {
    let installed = done.installed();
    let bin = connector.path().join("bin");
    if json {
        return output::json(&serde_json::json!({
            "changed": matches!(done, Done::Now(_)),
            "version": installed.build.version,
            "browser": installed.browser,
            "groups": installed.groups,
            "bytes": installed.bytes,
            "path": bin,
            "seconds": took.as_secs_f64(),
        }));
    }
    let build = format!(
        "playwright-mcp {} in {}",
        installed.build.version,
        bin.display()
    );
    output::data(&match done {
        Done::Already(_) => format!("{build} is installed\n"),
        Done::Now(_) => {
            let seconds = took.as_secs_f64();
            format!(
                "installed {build} ({}, {seconds:.1} s)\n",
                bytes(installed.bytes)
            )
        }
    })
}

/// The browser's name as a value.
pub(super) fn browser() -> Result<ConnectorName, Failure> {
    Ok(ConnectorName::parse(BROWSER)?)
}

/// The build that this program carries; in a debug build a test may name another lock file.
pub(super) fn carried() -> Result<Build, Failure> {
    Ok(locks::carried(test_lock())?)
}

/// Another lock file, which only a debug build has a name for.
pub(super) fn test_lock() -> Option<PathBuf> {
    env::test_var("SEMA_LOCK_FILE").map(PathBuf::from)
}

/// This machine's platform; in a debug build a test may name another.
pub(super) fn platform() -> Platform {
    let named = env::test_var("SEMA_PLATFORM").and_then(|text| Platform::parse(&text));
    named.unwrap_or_else(install::this_platform)
}

/// Where archives come from.
pub(super) fn sources(mirror: Option<&str>) -> Result<Sources, Failure> {
    let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
        Some((name.into_string().ok()?, value.into_string().ok()?))
    };
    let variables: Variables = env::vars().filter_map(text).collect();
    let load = || Sources::load(&variables, mirror.map(Mirror::parse).transpose()?);
    Ok(load().map_err(InstallError::from)?)
}

/// How long the network is waited for; a test in a debug build has less time:
/// `SEMA_PATIENCE_MS=stall,pause`.
pub(super) fn patience() -> Patience {
    let patience = Patience::default();
    let Some(text) = env::test_var("SEMA_PATIENCE_MS") else {
        return patience;
    };
    let mut numbers = text
        .split(',')
        .filter_map(|number| number.parse().ok())
        .map(Duration::from_millis);
    Patience {
        stall: numbers.next().unwrap_or(patience.stall),
        pause: numbers.next().unwrap_or(patience.pause),
        ..patience
    }
}

impl From<InstallError> for Failure {
    fn from(error: InstallError) -> Self {
        let exit = if error.is_refusal() {
            Exit::Refused
        } else {
            Exit::Failed
        };
        Self {
            exit,
            message: error.to_string(),
            hint: error.hint(),
        }
    }
}
