//! `try`: prepares what is missing, then is a client of the real launcher: opens a page, reads it,
//! clicks, takes a screenshot, and says what it saw. On a page of somebody else's it clicks only
//! what it was told to: the session may be logged in there.

mod client;
mod page;
mod snapshot;

use super::failure::Failure;
use super::{Outcome, browser_auth, browser_mount, env, install, output, status};
use crate::install::progress::Talk;
use crate::install::{self as build, Network, Order};
use client::Client;
use page::Page;
use sema_rules::name::ConnectorName;
use sema_vault::{ConfigDir, ConnectorDir};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Prepare the browser and try it: open a page, read it, take a screenshot.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Without an address it opens a page of its own on this machine and clicks the button there. \
    On another page it clicks nothing but what --click names.\n\n\
    Example:\n  sema-connector try\n  sema-connector try https://example.com --click \"Learn more\""
)]
pub(super) struct Args {
    /// The page to open.
    url: Option<String>,
    /// Click the element that has this name on it, such as a button or a link.
    #[arg(long, value_name = "NAME", requires = "url")]
    click: Option<String>,
    /// Where archives come from, where the build is not installed yet: see `install --mirror`.
    #[arg(long, value_name = "URL|FOLDER")]
    mirror: Option<String>,
    /// Print one JSON object instead.
    #[arg(long)]
    json: bool,
}

/// What was done, and how long it took.
#[derive(Default)]
struct Steps(Vec<(&'static str, Duration, String)>);

impl Steps {
    /// Does a step. A failure names it.
    fn run<T>(
        &mut self,
        name: &'static str,
        step: impl FnOnce() -> Result<(T, String), Failure>,
    ) -> Result<T, Failure> {
        let began = Instant::now();
        let (value, seen) = step().map_err(|mut failure| {
            failure.message = format!("the step {name:?} failed: {}", failure.message);
            failure
        })?;
        self.0.push((name, began.elapsed(), seen));
        Ok(value)
    }
}

pub(super) fn run(args: &Args) -> Outcome {
    let mut steps = Steps::default();
    let config = env::create_config()?;
    let name = ConnectorName::parse(browser_mount::NAME)?;
    let dir = config.create_connector(&name)?;
    steps.run("install", || install_build(args, &dir))?;
    steps.run("login state", || store_profile(&dir))?;
    let engine = steps.run("mount", || {
        let mounted = browser_mount::mount_browser()?;
        Ok((
            mounted.engine()?,
            "catalog.json has the entry browser".to_owned(),
        ))
    })?;
    let page = match &args.url {
        Some(_) => None,
        None => Some(Page::serve().map_err(|e| {
            Failure::failed(format_args!("cannot serve a page on this machine: {e}"))
        })?),
    };
    let visit = visit(args, page.as_ref());
    let mut client = steps.run("start", Client::start)?;
    let screenshot = use_browser(&mut steps, &mut client, &visit, &config)?;
    steps.run("stop", || client.stop())?;
    let report = report(&steps, &dir, &screenshot, &engine)?;
    if args.json {
        output::json(&report)?;
    } else {
        output::data(&table(&report))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn install_build(args: &Args, dir: &ConnectorDir) -> Result<((), String), Failure> {
    let carried = install::carried()?;
    let sources = install::sources(args.mirror.as_deref())?;
    let order = Order {
        carried: &carried,
        browser: None,
        platform: install::platform(),
        groups: Vec::new(),
        sources: &sources,
        network: Network::Allowed,
        patience: install::patience(),
        talk: Talk::Auto,
    };
    let done = build::install(&order, dir)?;
    let how = match done {
        build::Done::Already(_) => "was there",
        build::Done::Now(_) => "installed now",
    };
    let version = &done.installed().build.version;
    Ok((
        (),
        format!("playwright-mcp {version} and its browser: {how}"),
    ))
}

fn store_profile(dir: &ConnectorDir) -> Result<((), String), Failure> {
    let state = browser_mount::handle(browser_mount::STATE)?;
    if dir.read_handle(&state)?.is_some() {
        return Ok(((), "the stored one".to_owned()));
    }
    browser_auth::store_clean_profile(dir)?;
    Ok(((), "none was stored: a clean profile is now".to_owned()))
}

/// What is done on which page.
struct Visit {
    url: String,
    /// The name of the element to click.
    click: Option<String>,
    /// What the page shows after the click, where that is known.
    shows: Option<&'static str>,
}

fn visit(args: &Args, own: Option<&Page>) -> Visit {
    match own {
        Some(page) => Visit {
            url: page.url(),
            click: Some(page::BUTTON.to_owned()),
            shows: Some(page::CLICKED),
        },
        None => Visit {
            url: args.url.clone().unwrap_or_default(),
            click: args.click.clone(),
            shows: None,
        },
    }
}

/// Opens, reads, clicks, looks. Tells where the screenshot is.
fn use_browser(
    steps: &mut Steps,
    client: &mut Client,
    visit: &Visit,
    config: &ConfigDir,
) -> Result<PathBuf, Failure> {
    steps.run("tools/list", || {
        let answer = client.request("tools/list", &json!({}))?;
        let count = answer["tools"].as_array().map_or(0, Vec::len);
        if count == 0 {
            return Err(client.why_no_tools()?);
        }
        Ok(((), format!("{count} tools")))
    })?;
    steps.run("open", || {
        client.call("browser_navigate", &json!({"url": visit.url}))?;
        Ok(((), visit.url.clone()))
    })?;
    let snapshot = steps.run("read", || {
        let text = client.call("browser_snapshot", &json!({}))?.text;
        let seen = snapshot::heading(&text);
        let seen = seen.unwrap_or_else(|| format!("{} characters", text.len()));
        Ok((text, seen))
    })?;
    if let Some(name) = &visit.click {
        steps.run("click", || {
            click(client, &snapshot, name, visit.shows).map(|seen| ((), seen))
        })?;
    }
    steps.run("screenshot", || {
        let image = client.call("browser_take_screenshot", &json!({}))?.image;
        let image = image.ok_or_else(|| Failure::failed("the answer holds no image"))?;
        config.dir().write_atomic("try.png", &image, 0o600)?;
        let path = config.path().join("try.png");
        Ok((path, format!("{} bytes of PNG", image.len())))
    })
}

/// Clicks the element of this name.
fn click(
    client: &mut Client,
    snapshot: &str,
    name: &str,
    shows: Option<&str>,
) -> Result<String, Failure> {
    let (role, target) = snapshot::named(snapshot, name)?;
    client.call("browser_click", &json!({"element": name, "target": target}))?;
    let after = client.call("browser_snapshot", &json!({}))?.text;
    if shows.is_some_and(|shown| !after.contains(shown)) {
        return Err(Failure::failed("the click did not reach the page"));
    }
    Ok(format!("the {role} {name:?}"))
}

fn report(
    steps: &Steps,
    dir: &ConnectorDir,
    screenshot: &std::path::Path,
    engine: &Value,
) -> Result<Value, Failure> {
    let step = |(name, took, seen): &(&str, Duration, String)| json!({"step": name, "ms": took.as_secs_f64() * 1e3, "saw": seen});
    Ok(json!({
        "build": status::pinned(dir, sema_vault::tree::Depth::Changed)?,
        "steps": steps.0.iter().map(step).collect::<Vec<_>>(),
        "walls": status::walls(),
        "screenshot": screenshot,
        "engine": {"mcpServers": {browser_mount::NAME: engine}},
    }))
}

fn table(report: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut out = String::from("pinned\n");
    for archive in report["build"]["archives"].as_array().into_iter().flatten() {
        let hash = text(&archive["sha256"]);
        let hash = hash.get(..16).unwrap_or_default();
        out.push_str(&format!(
            "  {:<48} sha256 {hash}...\n",
            text(&archive["file"])
        ));
    }
    out.push_str("\nsteps\n");
    for step in report["steps"].as_array().into_iter().flatten() {
        let ms = step["ms"].as_f64().unwrap_or(0.0);
        out.push_str(&format!(
            "  {:<12}{ms:>9.1} ms  {}\n",
            text(&step["step"]),
            text(&step["saw"])
        ));
    }
    out.push_str("\nwalls\n");
    for (name, wall) in report["walls"].as_object().into_iter().flatten() {
        out.push_str(&format!(
            "  {name:<12}{:<8} {}\n",
            text(&wall["state"]),
            text(&wall["what"])
        ));
    }
    out.push_str(&format!("\nscreenshot  {}\n", text(&report["screenshot"])));
    let engine = serde_json::to_string_pretty(&report["engine"]).unwrap_or_default();
    out.push_str(&format!(
        "\nfor your agent's configuration (other formats: sema-connector-browser mount)\n{engine}\n"
    ));
    out
}
