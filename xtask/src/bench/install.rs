//! `install` from a mirror on loopback, against the fastest tools at hand doing the same work on the
//! same bytes: copy the archive, hash it, inflate what is taken from it, hash that, flush.

use super::{Figure, mirror};
use crate::parts;
use crate::run::{command, root, succeeds};
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

const NEEDED: [(&str, &str); 3] = [
    ("brotli", "brotli"),
    ("libdeflate-gunzip", "libdeflate-tools"),
    ("openssl", "openssl"),
];

/// Leaves the last of the configuration directories that were made.
pub(super) fn measure(
    programs: &Path,
    folder: &Path,
    config: &Path,
    rounds: usize,
) -> Result<Figure, String> {
    let archives = parts::archives(programs)?;
    tools()?;
    let mut figure = Figure::new("install from a loopback mirror", "with tools", 1.3);
    let url = mirror::serve(&archives)?;
    let jobs = jobs(&archives)?;
    // The first round warms the page cache and is not counted.
    for round in 0..=rounds {
        let theirs = with_tools(&jobs, &folder.join("tools"))?;
        let ours = ours(programs, config, &url)?;
        if round > 0 {
            figure.theirs.push(theirs);
            figure.ours.push(ours);
        }
    }
    Ok(figure)
}

/// Installs into a new configuration directory.
fn ours(programs: &Path, config: &Path, url: &str) -> Result<Duration, String> {
    emptied(config)?;
    let mut install = Command::new(programs.join("sema-connector-browser"));
    install
        .args(["install", "--mirror", url])
        .env("CONFIG_LOCAL_DIR", config);
    timed(&mut install)
}

/// Does the jobs, as many at once as there are cores, and flushes.
fn with_tools(jobs: &[String], folder: &Path) -> Result<Duration, String> {
    emptied(folder)?;
    std::fs::create_dir_all(folder).map_err(|e| e.to_string())?;
    let left = Mutex::new(jobs.iter());
    let failed = Mutex::new(None);
    let work = || {
        while let Some(job) = left.lock().ok().and_then(|mut left| left.next()) {
            if let Err(error) = shell(job, folder)
                && let Ok(mut failed) = failed.lock()
            {
                *failed = Some(error);
            }
        }
    };
    let began = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(work);
        }
    });
    shell("sync -f .", folder)?;
    let took = began.elapsed();
    match failed.into_inner() {
        Ok(None) => Ok(took),
        Ok(Some(error)) => Err(error),
        Err(_) => Err("a job of the tools panicked".to_owned()),
    }
}

fn shell(script: &str, folder: &Path) -> Result<(), String> {
    timed(
        Command::new("bash")
            .args(["-ceuo", "pipefail", script])
            .current_dir(folder),
    )?;
    Ok(())
}

fn timed(command: &mut Command) -> Result<Duration, String> {
    let began = Instant::now();
    let output = command.stdin(Stdio::null()).output();
    let took = began.elapsed();
    let output = output.map_err(|e| format!("{}: {e}", command.get_program().display()))?;
    if output.status.success() {
        return Ok(took);
    }
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    Err(format!("{:?}: {said}", command))
}

fn emptied(folder: &Path) -> Result<(), String> {
    match std::fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(format!("cannot empty {}: {error}", folder.display()))
        }
        _ => Ok(()),
    }
}

/// One shell script an archive that `install` takes by default, the largest first.
fn jobs(archives: &Path) -> Result<Vec<String>, String> {
    let text = std::fs::read(root().join("binaries.lock.json")).map_err(|e| e.to_string())?;
    let lock: Value = serde_json::from_slice(&text).map_err(|e| e.to_string())?;
    let all = lock["playwright-mcp"]["archives"].as_array();
    let mut taken: Vec<&Value> = all
        .into_iter()
        .flatten()
        .filter(|archive| archive.get("group").is_none())
        .collect();
    taken.sort_by_key(|archive| std::cmp::Reverse(archive["bytes"].as_u64()));
    Ok(taken
        .into_iter()
        .map(|archive| job(archive, archives))
        .collect())
}

fn job(archive: &Value, archives: &Path) -> String {
    let file = archive["file"].as_str().unwrap_or_default();
    let nested = || archive["nested"].as_array().into_iter().flatten();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut members: Vec<String> = archive["take"]
        .as_object()
        .into_iter()
        .flat_map(|take| take.keys().cloned())
        .collect();
    members.extend(nested().map(|nested| text(&nested["from"])));
    let mut job = format!(
        "cp {:?} {file:?}; mkdir 'x {file}'; openssl dgst -sha256 {file:?} & openssl dgst -sha512 {file:?} & \
         libdeflate-gunzip -c {file:?} | tar -xC 'x {file}' {}; wait; cd 'x {file}'",
        archives.join(file),
        members.join(" "),
    );
    for nested in nested() {
        let from = text(&nested["from"]);
        let take = nested["take"]
            .as_object()
            .map(|take| take.keys().cloned().collect::<Vec<_>>());
        job += &match take {
            None => format!("; brotli -dj {from}"),
            Some(take) => format!("; brotli -dc {from} | tar -x {}; rm {from}", take.join(" ")),
        };
    }
    job + "; find . -type f -print0 | xargs -0 openssl dgst -sha256"
}

/// Installs the tools where they are missing.
fn tools() -> Result<(), String> {
    let there = |tool: &str| succeeds(command("which").arg(tool));
    let missing: Vec<&str> = NEEDED
        .iter()
        .filter(|(tool, _)| !there(tool))
        .map(|(_, package)| *package)
        .collect();
    parts::packages(&missing, "the tools to compare with")
}
