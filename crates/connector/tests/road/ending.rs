//! Nothing that a launch started outlives it, however it ends.

use crate::lab::{Engine, LAUNCHER, Lab, processes, wait_for};
use serde_json::json;
use std::process::Command;

/// A launch with a browser that has a page open.
fn launch(lab: &Lab) -> Engine {
    let mut engine = lab.engine();
    engine.text("browser_navigate", &json!({"url": "about:blank"}));
    assert!(processes(lab.config()).len() >= 5);
    engine
}

fn signal(signal: &str, pid: i32) {
    let status = Command::new("kill")
        .args([signal, &pid.to_string()])
        .status();
    assert!(status.unwrap().success());
}

/// The process whose command line holds this.
fn process(lab: &Lab, text: &str) -> i32 {
    processes(lab.config())
        .iter()
        .find(|(_, line)| line.contains(text))
        .unwrap()
        .0
}

fn nothing_is_left(lab: &Lab) {
    wait_for("the end of every process", || {
        processes(lab.config()).is_empty()
    });
}

#[test]
fn end_of_input_and_stop_signals_end_everything() {
    let lab = Lab::new();
    assert_eq!(launch(&lab).close(), Some(0));
    nothing_is_left(&lab);
    for (name, code) in [("-TERM", 143), ("-INT", 130)] {
        let mut engine = launch(&lab);
        signal(name, i32::try_from(engine.child.id()).unwrap());
        assert_eq!(engine.child.wait().unwrap().code(), Some(code), "{name}");
        nothing_is_left(&lab);
        assert_eq!(lab.launches(), 0, "{name}");
    }
}

#[test]
fn a_kill_of_the_launcher_ends_everything() {
    let lab = Lab::new();
    for _ in 0..rounds() {
        let mut engine = launch(&lab);
        engine.child.kill().unwrap();
        nothing_is_left(&lab);
    }
    assert!(lab.launches() > 0);
    // The next start takes the directories away.
    assert_eq!(launch(&lab).close(), Some(0));
    assert_eq!(lab.launches(), 0);
}

#[test]
fn a_kill_of_the_connector_or_the_server_is_told_and_ends_everything() {
    let lab = Lab::new();
    for victim in ["sema-connector-browser", "cli.js"] {
        let mut engine = launch(&lab);
        let pid = process(&lab, victim);
        engine.send(r#"{"jsonrpc":"2.0","id":"open","method":"tools/call","params":{"name":"browser_wait_for","arguments":{"time":30}}}"#);
        std::thread::sleep(std::time::Duration::from_millis(100));
        signal("-KILL", pid);
        let told = engine.answer(&json!("open"));
        assert_eq!(
            told["error"]["data"]["code"], "connector.upstream_exit",
            "{victim}: {told}"
        );
        assert_eq!(engine.status()["state"], "failed");
        wait_for("the end of the browser", || {
            !processes(lab.config())
                .iter()
                .any(|(_, line)| line.contains("headless_shell"))
        });
        assert_eq!(engine.close(), Some(0));
        nothing_is_left(&lab);
        assert_eq!(lab.launches(), 0);
    }
}

#[test]
fn a_kill_of_the_browser_costs_its_page_and_leaves_nothing() {
    let lab = Lab::new();
    // The argument of the browser's own first process.
    const PIPE: &str = "--remote-debugging-pipe --no-startup-window";
    let browsers = || -> Vec<i32> {
        let is_browser = |line: &str| line.contains(" --type=") || line.contains(PIPE);
        let all = processes(lab.config()).into_iter();
        all.filter(|(_, line)| is_browser(line))
            .map(|(pid, _)| pid)
            .collect()
    };
    let mut engine = launch(&lab);
    let before = browsers();
    signal("-KILL", process(&lab, PIPE));
    wait_for("the end of the browser", || browsers().is_empty());
    // The server notices and says so once, or begins a browser anew.
    let first = engine.call("browser_navigate", &json!({"url": "about:blank"}));
    assert!(first["result"].is_object(), "{first}");
    engine.text(
        "browser_navigate",
        &json!({"url": "data:text/html,<title>anew</title>"}),
    );
    assert_eq!(engine.evaluate("document.title"), "\"anew\"");
    assert!(!browsers().iter().any(|pid| before.contains(pid)));
    assert_eq!(engine.close(), Some(0));
    nothing_is_left(&lab);
    assert_eq!(lab.launches(), 0);
}

#[test]
fn a_kill_of_the_engine_ends_everything() {
    let lab = Lab::new();
    // The engine is a shell that holds the launcher's pipes.
    let script = "sleep 100 | \"$0\" run browser | cat >/dev/null";
    let mut engine = lab.command("sh", ["-c", script, LAUNCHER]).spawn().unwrap();
    wait_for("a running server", || {
        processes(lab.config())
            .iter()
            .any(|(_, line)| line.contains("cli.js"))
    });
    signal("-KILL", engine_of(&lab));
    nothing_is_left(&lab);
    engine.wait().unwrap();
}

#[test]
fn a_long_configuration_path_works() {
    let lab = Lab::empty(&"d".repeat(200));
    lab.install();
    lab.auth("{}");
    assert!(lab.run(crate::lab::BROWSER, ["mount"]).status.success());
    assert_eq!(launch(&lab).close(), Some(0));
    nothing_is_left(&lab);
}

/// The process that holds the launcher's input: the one whose whole command is this.
fn engine_of(lab: &Lab) -> i32 {
    processes(lab.config())
        .iter()
        .find(|(_, line)| line == "sleep 100 ")
        .unwrap()
        .0
}

/// How often a kill is repeated: a few times, or as often as `cargo xtask soak` says.
fn rounds() -> usize {
    std::env::var("SEMA_SOAK")
        .ok()
        .and_then(|count| count.parse().ok())
        .unwrap_or(3)
}
