//! `status NAME`: what stands, what is missing, and why.

mod table;

use super::failure::Failure;
use super::{Outcome, install, output, run};
use crate::install::{self as build, Installed};
use crate::launcher::unenforced::{self, Form};
use sema_rules::manifest::{Confined, Manifest};
use sema_rules::name::{ConnectorName, Handle};
use sema_rules::policy::{self, ToolPolicy};
use sema_vault::ConnectorDir;
use sema_vault::tree::Depth;
use serde_json::{Value, json};
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

/// The longest policy file that is read, in bytes.
const LIMIT: usize = 1024 * 1024;

/// Print a connector's state, command, handles, grants, versions, policies and walls.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  sema-connector status browser --json")]
pub(super) struct Args {
    /// The connector's name.
    name: ConnectorName,
    /// Hash every file of the pinned build again.
    #[arg(long)]
    verify: bool,
    /// Print one JSON object instead.
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args) -> Outcome {
    let status = gather(args)?;
    if args.json {
        output::json(&status)?;
    } else {
        output::data(&table::of(&status))?;
    }
    let broken = status["state"] == "failed" || !status["build"]["refused"].is_null();
    Ok(ExitCode::from(u8::from(broken)))
}

fn gather(args: &Args) -> Result<Value, Failure> {
    let settings = run::mounted(&args.name)?;
    let manifest = settings.manifest.clone();
    let is_browser = manifest.confined == Confined::ByItself;
    let name = args.name.clone();
    let (config, dir) = (settings.config.clone(), reopen(&settings.dir)?);
    let served = crate::launcher::read_status(settings, run::status_patience())?;
    let mut status: Value = serde_json::from_str(&served).unwrap_or_default();
    status["name"] = json!(name);
    status["version"] = json!(env!("CARGO_PKG_VERSION"));
    status["directory"] = json!(config.join("connectors").join(name.as_str()));
    status["command"] = json!(manifest.command);
    status["handles"] = handles(&dir, &manifest);
    status["grants"] = json!({"read": manifest.read, "write": manifest.write, "env": manifest.env});
    status["policies"] = policies(&dir);
    status["unknown_tools"] = unknown_tools(&dir, &status);
    status["walls"] = walls();
    status["launches"] = launches(&dir)?;
    if is_browser {
        let depth = if args.verify {
            Depth::Everything
        } else {
            Depth::Changed
        };
        status["build"] = pinned(&dir, depth)?;
    } else if let Some(walls) = status["walls"].as_object_mut() {
        // Chromium's own.
        walls.remove("sandbox");
    }
    Ok(status)
}

fn reopen(dir: &ConnectorDir) -> Result<ConnectorDir, Failure> {
    let gone = || Failure::failed(format_args!("{} is gone", dir.path().display()));
    ConnectorDir::open(dir.path())?.ok_or_else(gone)
}

/// Each handle that the connector takes: whether it is stored, and what it is for.
fn handles(dir: &ConnectorDir, manifest: &Manifest) -> Value {
    let handle = |handle: &Handle| {
        let stored = dir.dir().check_private(handle.as_str());
        let secret = stored.as_ref().is_ok_and(|stored| *stored);
        let secret = secret.then(|| dir.is_secret(handle).unwrap_or(true));
        json!({
            "name": handle,
            "stored": stored.as_ref().is_ok_and(|stored| *stored),
            "refused": stored.err().map(|error| error.to_string()),
            "required": manifest.required.contains(handle),
            "secret": secret,
            "env": manifest.env.contains(handle),
        })
    };
    manifest.handles.iter().map(handle).collect()
}

/// The tools that the policy names and the connector, which was asked, does not have.
fn unknown_tools(dir: &ConnectorDir, status: &Value) -> Value {
    let policy = dir.dir().read_policy(ToolPolicy::FILE, LIMIT);
    let policy = policy.ok().flatten();
    let policy = policy.and_then(|text| ToolPolicy::parse(&text).ok());
    let (Some(policy), "authorized") = (policy, status["state"].as_str().unwrap_or_default())
    else {
        return json!([]);
    };
    let tools = status["tools"].as_array();
    let has = |tool: &&str| tools.is_some_and(|tools| tools.contains(&json!(tool)));
    policy.named().filter(|tool| !has(tool)).collect()
}

/// The pinned build: what it is, since when, what it takes, or why it is refused.
pub(super) fn pinned(dir: &ConnectorDir, depth: Depth) -> Result<Value, Failure> {
    let carried = install::carried()?;
    let platform = install::platform();
    Ok(match build::check(dir, &carried, &platform, depth) {
        Ok(installed) => describe(&installed),
        Err(error) => json!({"refused": error.to_string(), "hint": error.hint()}),
    })
}

fn describe(installed: &Installed) -> Value {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
        .as_secs();
    json!({
        "playwright-mcp": installed.build.version,
        "browser": installed.browser,
        "groups": installed.groups,
        "pinned": installed.build.pinned.as_str(),
        "pinned_days_ago": days_since(installed.build.pinned.as_str(), now),
        "unpacked_at": installed.unpacked,
        "bytes": installed.bytes,
        "archives": installed.build.archives_for(&install::platform(), &installed.groups)
            .map(|archive| json!({"file": archive.file.as_str(), "sha256": archive.sha256, "bytes": archive.bytes}))
            .collect::<Vec<_>>(),
    })
}

/// Whole days from a day, `YYYY-MM-DD`, to a moment in seconds since 1970.
fn days_since(day: &str, now: u64) -> Option<i64> {
    let mut parts = day.split('-').map(|part| part.parse::<i64>().ok());
    let (year, month, day) = (parts.next()??, parts.next()??, parts.next()??);
    // The civil calendar, with years that begin in March.
    let (year, month) = if month > 2 {
        (year, month - 3)
    } else {
        (year - 1, month + 9)
    };
    let before = year.div_euclid(400);
    let within = year.rem_euclid(400);
    let day_of_year = (153 * month + 2) / 5 + day - 1;
    let days = before * 146_097 + within * 365 + within / 4 - within / 100 + day_of_year - 719_468;
    Some(i64::try_from(now / 86_400).ok()? - days)
}

/// Each policy file: in force, absent, refused, or read and not enforced yet.
fn policies(dir: &ConnectorDir) -> Value {
    let mut policies = serde_json::Map::new();
    let mut tell = |name: &str, state: String| _ = policies.insert(name.to_owned(), json!(state));
    tell(
        "tools.json",
        match dir.dir().read_policy(ToolPolicy::FILE, LIMIT) {
            Ok(None) => "absent: every tool is allowed".to_owned(),
            Ok(Some(text)) => match ToolPolicy::parse(&text) {
                Ok(_) => "in force".to_owned(),
                Err(error) => format!("refused, no tool is allowed: {error}"),
            },
            Err(error) => format!("refused, no tool is allowed: {error}"),
        },
    );
    for file in policy::NOT_ENFORCED {
        tell(
            file,
            match unenforced::read(dir, file) {
                Ok(Form::Absent) => "absent".to_owned(),
                Ok(Form::WellFormed) => "well formed, not enforced by this version".to_owned(),
                Err(failure) => format!("refused, nothing is started: {}", failure.message),
            },
        );
    }
    Value::Object(policies)
}

/// Which walls stand on this machine, with this version.
pub(super) fn walls() -> Value {
    let namespaces = match sema_jail::obstacles() {
        Ok(()) => {
            json!({"state": "stands", "what": "process, user, mount and IPC namespaces: nothing outlives a launch"})
        }
        Err(obstacle) => {
            json!({"state": "missing", "what": obstacle.to_string(), "hint": obstacle.hint()})
        }
    };
    let sandbox = match namespaces["state"].as_str() {
        Some("stands") => {
            json!({"state": "stands", "what": "Chromium's own sandbox, nested inside"})
        }
        _ => json!({"state": "missing", "what": "Chromium's own sandbox needs the namespaces"}),
    };
    json!({
        "namespaces": namespaces,
        "sandbox": sandbox,
        "files": {"state": "missing", "what": "the upstream sees the files that you can see: not built in this version"},
        "egress": {"state": "missing", "what": "the upstream reaches every host that you can reach: not built in this version"},
    })
}

fn launches(dir: &ConnectorDir) -> Result<Value, Failure> {
    let launch = |(id, path): (sema_rules::name::LaunchId, std::path::PathBuf)| json!({"id": id, "out": path.join("out")});
    Ok(dir.live_launches()?.into_iter().map(launch).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_counted_by_the_calendar() {
        assert_eq!(days_since("1970-01-01", 86_400 * 3), Some(3));
        assert_eq!(days_since("2024-02-28", 1_709_251_200), Some(2));
        assert_eq!(days_since("2026-12-01", 1_796_083_200), Some(0));
        assert_eq!(days_since("x", 0), None);
    }
}
