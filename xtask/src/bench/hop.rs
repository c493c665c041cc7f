//! The round trip to an echo server: through the launcher, without it, and through other proxies.

use super::client::{Client, Ends};
use super::echo::request;
use super::peers;
use super::sample::{Bar, Pair, Samples};
use serde_json::json;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

/// How often a round of each is made, in turns.
const ROUNDS: usize = 7;
/// Answers of so many bytes, and how many calls make a round one at a time and pipelined.
const SIZES: [(usize, usize, usize); 3] = [
    (100, 3000, 30_000),
    (10_000, 2000, 10_000),
    (1_000_000, 60, 100),
];

/// The most that the launcher holds, in KiB.
const LAUNCHER: f64 = 6.0 * 1024.0;
/// How many calls a round of a peer has: they are slow.
const PEER_CALLS: usize = 300;

/// The figures against the bare server, and those of each proxy.
pub(super) struct Hop {
    pub(super) pairs: Vec<Pair>,
    pub(super) rows: Vec<Row>,
}

/// One proxy, or none: what a call with an answer of 100 bytes takes, and what the proxy itself does.
pub(super) struct Row {
    pub(super) name: &'static str,
    pub(super) p50: f64,
    pub(super) p99: f64,
    /// The median of answers of 1 MB.
    pub(super) long: f64,
    /// Calls a second, pipelined.
    pub(super) rate: f64,
    /// From the start to the answer of `tools/list`, in milliseconds.
    pub(super) start: f64,
    /// What the process holds, in KiB.
    pub(super) resident: f64,
}

pub(super) fn measure(programs: &Path, folder: &Path) -> Result<Hop, String> {
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    let launcher = |args: &[&str]| {
        let mut command = Command::new(programs.join("sema-connector"));
        command
            .args(args)
            .env("CONFIG_LOCAL_DIR", folder.join("echo"));
        command
    };
    let server = || {
        let mut server = Command::new(&own);
        server.arg("echo-server");
        server
    };
    let ours = || launcher(&["run", "echo"]);
    let mut mount = launcher(&["mount", "echo", "--"]);
    mount.arg(&own).arg("echo-server").stdin(Stdio::null());
    let output = mount.output().map_err(|error| error.to_string())?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    let mut pairs = Vec::new();
    for (size, calls, many) in SIZES {
        pairs.extend(one_size(size, calls, many, &server, &ours)?);
    }
    for (size, calls, _) in [SIZES[0], SIZES[2]] {
        pairs.push(sockets(size, calls, &server, &ours)?);
    }
    pairs.push(start(&server, &ours)?);
    let mut rows = vec![row("direct", &server)?, row("sema-connector run", &ours)?];
    for peer in peers::installed()? {
        rows.push(row(peer.name, &|| peer.before(&own))?);
    }
    pairs.extend(against_peers(&rows));
    Ok(Hop { pairs, rows })
}

/// What the best peer adds, as a multiple of what we add; and what the launcher holds.
fn against_peers(rows: &[Row]) -> [Pair; 2] {
    let added = |row: &Row| row.p50 - rows[0].p50;
    let best = rows[2..].iter().map(added).fold(f64::INFINITY, f64::min);
    [
        Pair {
            what: "added by the best peer; by us".to_owned(),
            unit: "us",
            ours: best,
            other: added(&rows[1]),
            bar: Bar::AtLeast(20.0),
        },
        Pair {
            what: "resident launcher; bar".to_owned(),
            unit: "KiB",
            ours: rows[1].resident,
            other: LAUNCHER,
            bar: Bar::AtMost(1.0),
        },
    ]
}

fn row(name: &'static str, command: &impl Fn() -> Command) -> Result<Row, String> {
    let (mut p50, mut p99, mut long) = (Samples::default(), Samples::default(), Samples::default());
    let (mut rate, mut start, mut resident) = (p50.clone(), p50.clone(), 0);
    for _ in 0..3 {
        let began = Instant::now();
        let mut session = Client::start(&mut command())?;
        session.shake_hands()?;
        session.ask("tools/list", &json!({}))?;
        start.push(began.elapsed().as_secs_f64() * 1e3);
        one_at_a_time(&mut session, 100, PEER_CALLS / 10)?;
        let took = one_at_a_time(&mut session, 100, PEER_CALLS)?;
        p50.push(took.median());
        p99.push(took.at(99, 100));
        resident = session.resident();
        // What a proxy cannot do is told as no figure.
        let many = session.patiently(|session| pipelined(session, 100, PEER_CALLS));
        rate.extend(many.ok());
        let long_calls = |session: &mut Client| one_at_a_time(session, 1_000_000, 20);
        long.extend(session.patiently(long_calls).ok().map(|took| took.median()));
        session.end()?;
    }
    Ok(Row {
        name,
        p50: p50.median(),
        p99: p99.median(),
        long: long.median(),
        rate: rate.median(),
        start: start.median(),
        resident: resident as f64,
    })
}

/// One call at a time where the engine's ends are a socket pair each.
fn sockets(
    size: usize,
    calls: usize,
    server: &impl Fn() -> Command,
    ours: &impl Fn() -> Command,
) -> Result<Pair, String> {
    let start = |mut command: Command| Client::start_with(&mut command, Ends::Sockets);
    let mut sides = [start(server())?, start(ours())?];
    let mut p50 = [Samples::default(), Samples::default()];
    for session in &mut sides {
        session.shake_hands()?;
        one_at_a_time(session, size, calls / 10)?;
    }
    for _ in 0..ROUNDS {
        for (side, session) in sides.iter_mut().enumerate() {
            p50[side].push(one_at_a_time(session, size, calls)?.median());
        }
    }
    let (bytes, bar) = named(size);
    Ok(Pair {
        what: format!("sockets, p50, answers of {bytes}"),
        unit: "us",
        ours: p50[1].median(),
        other: p50[0].median(),
        bar,
    })
}

/// A size in words, and what must hold of its round trip.
fn named(size: usize) -> (&'static str, Bar) {
    match size {
        1_000_000 => ("1 MB", Bar::AtMost(1.1)),
        10_000 => ("10 kB", Bar::Adds(20.0)),
        _ => ("100 B", Bar::Adds(20.0)),
    }
}

fn one_size(
    size: usize,
    calls: usize,
    many: usize,
    server: &impl Fn() -> Command,
    ours: &impl Fn() -> Command,
) -> Result<[Pair; 3], String> {
    let mut sides = [Client::start(&mut server())?, Client::start(&mut ours())?];
    let mut p50 = [Samples::default(), Samples::default()];
    let mut p99 = p50.clone();
    let mut rate = p50.clone();
    for session in &mut sides {
        session.shake_hands()?;
        session.ask("tools/list", &json!({}))?;
        one_at_a_time(session, size, calls / 10)?;
    }
    for _ in 0..ROUNDS {
        for (side, session) in sides.iter_mut().enumerate() {
            let took = one_at_a_time(session, size, calls)?;
            p50[side].push(took.median());
            p99[side].push(took.at(99, 100));
        }
        for (side, session) in sides.iter_mut().enumerate() {
            rate[side].push(pipelined(session, size, many)?);
        }
    }
    let (bytes, bar) = named(size);
    let figure = |what: &str, unit, [other, ours]: &[Samples; 2], bar| Pair {
        what: format!("{what}, answers of {bytes}"),
        unit,
        ours: ours.median(),
        other: other.median(),
        bar,
    };
    Ok([
        figure("round trip, p50", "us", &p50, bar),
        figure("round trip, p99", "us", &p99, Bar::None),
        figure("pipelined", "calls/s", &rate, Bar::AtLeast(0.9)),
    ])
}

/// Microseconds a call.
fn one_at_a_time(session: &mut Client, size: usize, calls: usize) -> Result<Samples, String> {
    let mut took = Samples::default();
    let mut line = Vec::new();
    let (input, output) = session.pipes();
    for id in 0..calls {
        let request = request(id + 1_000_000, size);
        let began = Instant::now();
        input
            .write_all(request.as_bytes())
            .map_err(|error| error.to_string())?;
        answer(output, &mut line, size)?;
        took.push(began.elapsed().as_secs_f64() * 1e6);
    }
    Ok(took)
}

/// Calls a second.
fn pipelined(session: &mut Client, size: usize, calls: usize) -> Result<f64, String> {
    let requests: String = (0..calls).map(|id| request(id + 1_000_000, size)).collect();
    let began = Instant::now();
    let (input, output) = session.pipes();
    std::thread::scope(|scope| {
        let writer = scope.spawn(move || input.write_all(requests.as_bytes()));
        let mut line = Vec::new();
        for _ in 0..calls {
            answer(output, &mut line, size)?;
        }
        match writer.join() {
            Ok(result) => result.map_err(|error| error.to_string()),
            Err(_) => Err("the writer failed".to_owned()),
        }
    })?;
    Ok(calls as f64 / began.elapsed().as_secs_f64())
}

fn answer(
    output: &mut impl std::io::BufRead,
    line: &mut Vec<u8>,
    size: usize,
) -> Result<(), String> {
    line.clear();
    output
        .read_until(b'\n', line)
        .map_err(|error| error.to_string())?;
    if line.len() < size {
        return Err(format!("a short answer: {}", String::from_utf8_lossy(line)));
    }
    Ok(())
}

/// From the start of the program to the answer of `tools/list`.
fn start(server: &impl Fn() -> Command, ours: &impl Fn() -> Command) -> Result<Pair, String> {
    let mut took = [Samples::default(), Samples::default()];
    for _ in 0..ROUNDS * 3 {
        for (side, mut command) in [server(), ours()].into_iter().enumerate() {
            let began = Instant::now();
            let mut session = Client::start(&mut command)?;
            session.shake_hands()?;
            session.ask("tools/list", &json!({}))?;
            took[side].push(began.elapsed().as_secs_f64() * 1e3);
            session.end()?;
        }
    }
    Ok(Pair {
        what: "start to `tools/list` of the echo server".to_owned(),
        unit: "ms",
        ours: took[1].median(),
        other: took[0].median(),
        bar: Bar::Adds(3.0),
    })
}
