//! Times the programs against what they are made of: the bare upstream, and the tools that hash,
//! inflate, write and flush. Every pair is measured in turns in one run, so that a busy machine
//! slows both; what counts is the ratio of the medians.

mod client;
mod echo;
mod hop;
mod install;
mod mirror;
mod peers;
mod sample;
mod session;

pub(crate) use echo::serve as echo_server;

use crate::run::{Outcome, cargo, run, target};
use hop::{Hop, Row};
use sample::Pair;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

/// How often each pair is measured: starts are short, installs are long.
struct Rounds {
    starts: usize,
    installs: usize,
}

/// One line of the report: what we take, what the other takes, and the most that the ratio may be.
struct Figure {
    what: &'static str,
    ours: Vec<Duration>,
    other: &'static str,
    theirs: Vec<Duration>,
    bar: f64,
}

/// The most that launcher and connector may hold together, in KiB.
const MEMORY_BAR: u64 = 12 * 1024;

pub(crate) fn all(args: &[String]) -> Outcome {
    let rounds = rounds(args)?;
    run(cargo().args(["build", "--release", "--quiet", "--bins"]))?;
    let programs = target().join("release");
    let folder = Folder::new(&target(), "install")?;
    let config = folder.0.join("config");
    let hop = hop::measure(&programs, &folder.0)?;
    if args.iter().any(|arg| arg == "--hop") {
        print(&hop_table(&hop))?;
        return Ok(verdict(
            hop.pairs.iter().all(|pair| pair.met() != Some(false)),
        ));
    }
    let install = install::measure(&programs, &folder.0, &config, rounds.installs)?;
    let sessions = session::measure(&programs, &config, rounds.starts)?;
    let figures = [sessions.start, sessions.page, install];
    let machine = machine();
    if args.iter().any(|arg| arg == "--json") {
        print(&format!(
            "{:#}\n",
            report(&machine, &figures, &hop, sessions.memory)
        ))?;
    } else {
        print(&table(&machine, &figures, sessions.memory))?;
        print(&hop_table(&hop))?;
    }
    let met = figures.iter().all(|figure| figure.ratio() <= figure.bar)
        && hop.pairs.iter().all(|pair| pair.met() != Some(false));
    Ok(verdict(met && sessions.memory <= MEMORY_BAR))
}

fn verdict(met: bool) -> ExitCode {
    if met {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

fn hop_table(hop: &Hop) -> String {
    let mut out = "\nan echo server                                 through us             direct    ratio  bar\n".to_owned();
    hop.pairs
        .iter()
        .for_each(|pair| out += &format!("{pair}\n"));
    out +=
        "\nan echo server                   p50 us    p99 us  1 MB us  calls/s  start ms   MiB\n";
    for row in &hop.rows {
        out += &format!(
            "{:<30}{:>9.1}{:>10.1}{:>9.0}{:>9.0}{:>10.1}{:>6.1}\n",
            row.name,
            row.p50,
            row.p99,
            row.long,
            row.rate,
            row.start,
            row.resident / 1024.0
        );
    }
    out
}

fn rounds(args: &[String]) -> Result<Rounds, String> {
    let known = |arg: &&String| !["--hop", "--json", "--rounds"].contains(&arg.as_str());
    if let Some(other) = args.iter().filter(known).find(|arg| arg.starts_with('-')) {
        return Err(format!(
            "bench has no {other}: it takes --hop, --json, --rounds COUNT"
        ));
    }
    let given = args.iter().position(|arg| arg == "--rounds");
    let count = match given.map(|at| args.get(at + 1)) {
        None => 15,
        Some(count) => count
            .and_then(|count| count.parse().ok())
            .filter(|count| *count > 0)
            .ok_or("--rounds wants a number")?,
    };
    Ok(Rounds {
        starts: count,
        installs: count.div_ceil(3),
    })
}

/// A folder that goes when it is dropped.
struct Folder(PathBuf);

impl Folder {
    fn new(parent: &Path, name: &str) -> Result<Self, String> {
        let path = parent.join(format!("sema-bench-{}-{name}", std::process::id()));
        std::fs::create_dir(&path).map_err(|e| format!("cannot make {}: {e}", path.display()))?;
        Ok(Self(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        _ = std::fs::remove_dir_all(&self.0);
    }
}

impl Figure {
    fn new(what: &'static str, other: &'static str, bar: f64) -> Self {
        Self {
            what,
            ours: Vec::new(),
            other,
            theirs: Vec::new(),
            bar,
        }
    }

    fn ratio(&self) -> f64 {
        median(&self.ours).as_secs_f64() / median(&self.theirs).as_secs_f64()
    }
}

fn median(times: &[Duration]) -> Duration {
    let mut times = times.to_vec();
    times.sort();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

fn ms(times: &[Duration]) -> f64 {
    (median(times).as_secs_f64() * 1e4).round() / 10.0
}

fn report(machine: &str, figures: &[Figure], hop: &Hop, memory: u64) -> Value {
    let one = |figure: &Figure| {
        json!({
            "what": figure.what, "ours_ms": ms(&figure.ours), "against": figure.other,
            "theirs_ms": ms(&figure.theirs), "ratio": (figure.ratio() * 1e3).round() / 1e3,
            "bar": figure.bar, "rounds": figure.ours.len(),
        })
    };
    let proxy = |row: &Row| {
        json!({
            "name": row.name, "p50_us": row.p50, "p99_us": row.p99, "p50_1mb_us": row.long,
            "calls_s": row.rate, "start_ms": row.start, "resident_kib": row.resident,
        })
    };
    json!({
        "machine": machine,
        "figures": figures.iter().map(one).collect::<Vec<_>>(),
        "hop": hop.pairs.iter().map(Pair::json).collect::<Vec<_>>(),
        "proxies": hop.rows.iter().map(proxy).collect::<Vec<_>>(),
        "memory": {"what": "resident memory of launcher and connector", "kib": memory, "bar_kib": MEMORY_BAR},
    })
}

fn table(machine: &str, figures: &[Figure], memory: u64) -> String {
    let mut out = format!("{machine}\n\n");
    out += "median of interleaved runs            ours        other              ratio   bar\n";
    for figure in figures {
        let verdict = if figure.ratio() <= figure.bar {
            "  met"
        } else {
            "  MISSED"
        };
        out += &format!(
            "{:<32}{:>8.1} ms {:>8.1} ms {:<14}{:>6.3} {:>5}{verdict}\n",
            figure.what,
            ms(&figure.ours),
            ms(&figure.theirs),
            figure.other,
            figure.ratio(),
            figure.bar,
        );
    }
    let verdict = if memory <= MEMORY_BAR {
        "  met"
    } else {
        "  MISSED"
    };
    let mib = |kib: u64| kib as f64 / 1024.0;
    out += &format!(
        "{:<32}{:>8.1} MiB{:>36}{verdict}\n",
        "launcher and connector, resident",
        mib(memory),
        mib(MEMORY_BAR)
    );
    out
}

/// The machine, in one line.
fn machine() -> String {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let field = |text: &str, name: &str| {
        let line = text.lines().find(|line| line.starts_with(name));
        let value = line.and_then(|line| line.split(':').nth(1)).map(str::trim);
        value.unwrap_or("unknown").to_owned()
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let memory = field(&read("/proc/meminfo"), "MemTotal");
    let kib: u64 = memory
        .split(' ')
        .next()
        .and_then(|kib| kib.parse().ok())
        .unwrap_or(0);
    format!(
        "{}, {cores} cores, {} GiB, Linux {}",
        field(&read("/proc/cpuinfo"), "model name"),
        (kib + 512 * 1024) / (1024 * 1024),
        read("/proc/sys/kernel/osrelease").trim(),
    )
}

fn print(text: &str) -> Result<(), String> {
    use std::io::Write as _;
    std::io::stdout()
        .write_all(text.as_bytes())
        .map_err(|e| format!("cannot print: {e}"))
}
