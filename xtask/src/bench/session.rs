//! A session through the launcher, against the same server and browser started without us: the same
//! arguments and environment, read from a running launch, with the paths of a copy of the build.

use super::client::Client;
use super::{Figure, Folder, mirror};
use crate::run::command;
use serde_json::json;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Who runs the bare browser where we are root: its sandbox does not start as root.
const NOBODY: u32 = 65534;

pub(super) struct Sessions {
    pub(super) start: Figure,
    pub(super) page: Figure,
    /// What launcher and connector hold while a page is open, in KiB.
    pub(super) memory: u64,
}

pub(super) fn measure(programs: &Path, config: &Path, rounds: usize) -> Result<Sessions, String> {
    let site = Folder::new(&std::env::temp_dir(), "site")?;
    let page = "<!doctype html><title>A page</title><h1>A page</h1>".as_bytes();
    std::fs::write(site.0.join("page.html"), page).map_err(|e| e.to_string())?;
    let url = mirror::serve(&site.0)? + "/page.html";
    prepare(programs, config)?;
    let ours = || {
        let mut command = Command::new(programs.join("sema-connector"));
        command
            .args(["run", "browser"])
            .env("CONFIG_LOCAL_DIR", config);
        command
    };
    let bare = Folder::new(&std::env::temp_dir(), "bare")?;
    let mut first = Client::start(&mut ours())?;
    first.shake_hands()?;
    first.ask("tools/call", &navigation(&url))?;
    let memory = resident(first.id());
    let upstream = Upstream::of(first.id(), &config.join("connectors/browser"), &bare.0)?;
    first.end()?;
    let mut sessions = Sessions {
        start: Figure::new("run to tools/list", "bare", 1.15),
        page: Figure::new("first page", "bare", 1.1),
        memory,
    };
    // The first round warms the page cache and is not counted.
    for round in 0..=rounds {
        let mut pair = [one(&mut upstream.command(), &url)?, one(&mut ours(), &url)?];
        if round % 2 == 0 {
            pair = [one(&mut upstream.command(), &url)?, pair[1]];
        }
        if round > 0 {
            let [theirs, ours] = pair;
            sessions.start.theirs.push(theirs.0);
            sessions.start.ours.push(ours.0);
            sessions.page.theirs.push(theirs.1);
            sessions.page.ours.push(ours.1);
        }
    }
    Ok(sessions)
}

fn navigation(url: &str) -> serde_json::Value {
    json!({"name": "browser_navigate", "arguments": {"url": url}})
}

/// The time from the start to the answer of `tools/list`, and that of the first page.
fn one(command: &mut Command, url: &str) -> Result<(Duration, Duration), String> {
    let began = Instant::now();
    let mut client = Client::start(command)?;
    client.shake_hands()?;
    client.ask("tools/list", &json!({}))?;
    let started = began.elapsed();
    let began = Instant::now();
    client.ask("tools/call", &navigation(url))?;
    let opened = began.elapsed();
    client.end()?;
    Ok((started, opened))
}

fn prepare(programs: &Path, config: &Path) -> Result<(), String> {
    let line = "echo '{}' | \"$0\" auth && \"$0\" mount";
    let mut shell = Command::new("sh");
    shell
        .args(["-c", line])
        .arg(programs.join("sema-connector-browser"));
    let output = shell.env("CONFIG_LOCAL_DIR", config).output();
    let output = output.map_err(|e| e.to_string())?;
    if output.status.success() {
        return Ok(());
    }
    Err(String::from_utf8_lossy(&output.stderr).into_owned())
}

/// The server without us.
struct Upstream {
    words: Vec<OsString>,
    env: Vec<(OsString, OsString)>,
    out: PathBuf,
    user: Option<u32>,
}

impl Upstream {
    /// A copy of what runs below a launcher.
    fn of(launcher: u32, connector: &Path, bare: &Path) -> Result<Self, String> {
        let texts = |pid: u32, file: &str| -> Vec<String> {
            let text = std::fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
            let texts = text
                .split(|byte| *byte == 0)
                .filter(|text| !text.is_empty());
            texts
                .map(|text| String::from_utf8_lossy(text).into_owned())
                .collect()
        };
        let is_server = |pid: &u32| {
            texts(*pid, "cmdline")
                .iter()
                .any(|word| word.ends_with("/cli.js"))
        };
        let pid = below(launcher)
            .into_iter()
            .find(is_server)
            .ok_or("no server runs")?;
        let (words, env) = (texts(pid, "cmdline"), texts(pid, "environ"));
        let out = std::fs::read_link(format!("/proc/{pid}/cwd")).map_err(|e| e.to_string())?;
        copy(connector, bare)?;
        let tmp = bare.join("t");
        let moved = |text: &str| {
            let text = text.replace(
                &connector.display().to_string(),
                &bare.display().to_string(),
            );
            OsString::from(text.replace("/.sema-tmp", &tmp.display().to_string()))
        };
        let pair = |text: &String| {
            let (name, value) = text.split_once('=')?;
            Some((name.into(), moved(value)))
        };
        Ok(Self {
            words: words.iter().map(|word| moved(word)).collect(),
            env: env.iter().filter_map(pair).collect(),
            out: PathBuf::from(moved(&out.display().to_string())),
            user: own(bare)?,
        })
    }

    fn command(&self) -> Command {
        let mut words = self.words.iter();
        let mut command = Command::new(words.next().cloned().unwrap_or_default());
        command
            .args(words)
            .env_clear()
            .envs(self.env.iter().cloned())
            .current_dir(&self.out);
        if let Some(user) = self.user {
            command.uid(user).gid(user);
        }
        command
    }
}

/// Copies the build and the running launch; the fonts' configuration names the copy.
fn copy(connector: &Path, bare: &Path) -> Result<(), String> {
    let script = "mkdir \"$1/t\" && cd \"$0\" && tar -c --exclude ./bin/archives ./bin ./launches | tar -xC \"$1\" && \
        sed -i \"s|$0|$1|g\" \"$1\"/launches/*/home/fonts.conf";
    shell(script, &[connector, bare])
}

/// Gives the copy to a user as whom the browser's sandbox starts.
fn own(bare: &Path) -> Result<Option<u32>, String> {
    let output = Command::new("id")
        .arg("-u")
        .output()
        .map_err(|e| e.to_string())?;
    if OsString::from_vec(output.stdout) != "0\n" {
        return Ok(None);
    }
    shell(&format!("chown -R {NOBODY}:{NOBODY} \"$0\""), &[bare])?;
    Ok(Some(NOBODY))
}

fn shell(script: &str, args: &[&Path]) -> Result<(), String> {
    let mut shell = command("sh");
    let output = shell
        .args(["-c", script])
        .args(args)
        .stdin(Stdio::null())
        .output();
    let output = output.map_err(|e| e.to_string())?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!(
        "{script}: {}",
        String::from_utf8_lossy(&output.stderr)
    ))
}

/// The processes below one.
fn below(pid: u32) -> Vec<u32> {
    let parent = |pid: u32| -> Option<u32> {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        stat.rsplit(')')
            .next()?
            .split_whitespace()
            .nth(1)?
            .parse()
            .ok()
    };
    let names = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let all: Vec<(u32, u32)> = names
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter_map(|pid| Some((pid, parent(pid)?)))
        .collect();
    let (mut found, mut next) = (Vec::new(), vec![pid]);
    while let Some(parent) = next.pop() {
        let children = all
            .iter()
            .filter(|(_, of)| *of == parent)
            .map(|(pid, _)| *pid);
        next.extend(children.clone());
        found.extend(children);
    }
    found
}

/// What our own processes of a launch hold: launcher, connector, and the first process of its jail.
fn resident(launcher: u32) -> u64 {
    let held = |pid: u32| -> Option<u64> {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name));
        let ours = field("Name:")?.trim().starts_with("sema-connector");
        let kib = field("VmRSS:")?
            .trim()
            .trim_end_matches(" kB")
            .parse()
            .ok()?;
        ours.then_some(kib)
    };
    let below = below(launcher).into_iter().filter_map(held);
    held(launcher).unwrap_or(0) + below.sum::<u64>()
}
