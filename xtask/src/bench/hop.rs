//! The round trip to an echo server: through the launcher, and without it. Both ends are pipes.

use super::client::Client;
use super::echo::request;
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

pub(super) fn measure(programs: &Path, folder: &Path) -> Result<Vec<Pair>, String> {
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
    pairs.push(start(&server, &ours)?);
    Ok(pairs)
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
    let bytes = match size {
        1_000_000 => "1 MB".to_owned(),
        10_000 => "10 kB".to_owned(),
        size => format!("{size} B"),
    };
    let bar = if size < 1_000_000 {
        Bar::Adds(20.0)
    } else {
        Bar::AtMost(1.1)
    };
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
        bar: Bar::None,
    })
}
