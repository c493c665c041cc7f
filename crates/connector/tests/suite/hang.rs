//! Sides that stop reading or writing: the session goes on where it can, and ends where it must.

use super::stage::{Stage, run};
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

/// Longer than the four seconds that an ending may take, and than the two that words may.
const ENDING: Duration = Duration::from_secs(20);

/// A launcher whose connector is this shell script.
fn launch(stage: &Stage, script: &str) -> Child {
    let mount = ["mount", "c", "--", "/bin/sh", "-c", script];
    assert_eq!(run(&mut stage.launcher(&mount), "").code, Some(0));
    let mut command = stage.launcher(&["run", "c"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    command.stderr(Stdio::null()).spawn().unwrap()
}

fn ends(launcher: &mut Child) -> bool {
    let begun = Instant::now();
    while begun.elapsed() < ENDING {
        if launcher.try_wait().unwrap().is_some() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    launcher.kill().unwrap();
    false
}

#[test]
fn a_connector_that_closes_its_output_and_lives_is_ended_and_the_session_goes_on() {
    let stage = Stage::new();
    let mut launcher = launch(&stage, "read line; exec >&-; while :; do sleep 1; done");
    let mut input = launcher.stdin.take().unwrap();
    let mut output = BufReader::new(launcher.stdout.take().unwrap()).lines();
    writeln!(input, r#"{{"jsonrpc":"2.0","id":1,"method":"x"}}"#).unwrap();
    let answer = output.next().unwrap().unwrap();
    assert!(
        answer.contains(r#""id":1,"error":{"code":-32013"#),
        "{answer}"
    );
    writeln!(input, r#"{{"jsonrpc":"2.0","id":2,"method":"ping"}}"#).unwrap();
    assert_eq!(
        output.next().unwrap().unwrap(),
        r#"{"jsonrpc":"2.0","id":2,"result":{}}"#
    );
    drop(input);
    assert!(ends(&mut launcher));
}

#[test]
fn a_signal_ends_a_launch_whose_connector_does_not_read() {
    let stage = Stage::new();
    let mut launcher = launch(&stage, "while :; do sleep 1; done");
    let mut input = launcher.stdin.take().unwrap();
    let line = format!(
        r#"{{"jsonrpc":"2.0","method":"{}"}}"#,
        "x".repeat(1_000_000)
    );
    writeln!(input, "{line}").unwrap();
    // More than every pipe on the way holds: written by a thread that the end of the launcher ends.
    let writer = std::thread::spawn(move || _ = writeln!(input, "{}", line.repeat(2)));
    std::thread::sleep(Duration::from_millis(100));
    assert!(launcher.try_wait().unwrap().is_none());
    let pid = rustix::process::Pid::from_child(&launcher);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    assert!(ends(&mut launcher));
    writer.join().unwrap();
}

#[test]
fn a_closed_engine_is_noticed_behind_a_connector_that_does_not_read() {
    let stage = Stage::new();
    let mut launcher = launch(&stage, "while :; do sleep 1; done");
    let mut input = launcher.stdin.take().unwrap();
    let line = format!(r#"{{"jsonrpc":"2.0","method":"{}"}}"#, "x".repeat(100_000));
    writeln!(input, "{line}").unwrap();
    drop(input);
    assert!(ends(&mut launcher));
}

#[test]
fn an_engine_that_reads_nothing_cannot_keep_the_launcher() {
    let stage = Stage::new();
    let flood = r#"while echo '{"jsonrpc":"2.0","method":"n"}'; do :; done"#;
    let mut launcher = launch(&stage, flood);
    let mut output = launcher.stdout.take().unwrap();
    // It has begun, and fills the pipe from here on.
    output.read_exact(&mut [0; 1]).unwrap();
    drop(launcher.stdin.take());
    assert!(ends(&mut launcher));
    drop(output);
}

#[test]
fn an_engine_that_asks_reads_nothing_and_goes_cannot_keep_the_launcher() {
    let stage = Stage::new();
    let mut launcher = launch(&stage, "exit 0");
    let mut input = launcher.stdin.take().unwrap();
    rustix::io::ioctl_fionbio(&input, true).unwrap();
    // Until every pipe on the way is full: the launcher waits for us to read its answers.
    let ping = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n".repeat(1000);
    let mut full = None;
    while full.is_none_or(|since: Instant| since.elapsed() < Duration::from_millis(500)) {
        match input.write(ping.as_bytes()) {
            Ok(count) if count > 0 => full = None,
            _ => _ = full.get_or_insert_with(Instant::now),
        }
    }
    drop(input);
    assert!(ends(&mut launcher));
}
