//! Clients that others wrote, of two languages, through the launcher.

use crate::lab::{LAUNCHER, Lab, parts};
use crate::site::Site;
use std::process::Output;

const NODE: &str = include_str!("client.mjs");
const PYTHON: &str = include_str!("client.py");

fn check(output: &Output, screenshot: bool) -> serde_json::Value {
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{text}{said}");
    let seen: serde_json::Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    assert_eq!(seen["tools"], 25, "{seen}");
    assert!(
        seen["snapshot"]
            .as_str()
            .unwrap()
            .contains("heading \"Hello\""),
        "{seen}"
    );
    assert_eq!(seen["status"]["state"], "authorized", "{seen}");
    assert_eq!(seen["image"], screenshot, "{seen}");
    seen
}

#[test]
fn the_client_of_the_protocols_own_typescript_kit_works_in_either_era() {
    let lab = Lab::new();
    let site = Site::html("<h1>Hello</h1>");
    let script = parts().join("npm/client-under-test.mjs");
    std::fs::write(&script, NODE).unwrap();
    let node = lab.connector().join("bin/node/bin/node");
    for (mode, version) in [
        ("legacy", "2025-11-25"),
        ("auto", "2026-07-28"),
        ("2026-07-28", "2026-07-28"),
    ] {
        let mut command = lab.command(&node, [&script]);
        command
            .env_remove("NODE_OPTIONS")
            .args([LAUNCHER, &site.url("/"), mode]);
        let seen = check(&command.output().unwrap(), true);
        assert_eq!(seen["version"], version, "{mode}");
        assert_eq!(seen["asked"], 1, "{mode}");
    }
}

#[test]
fn the_client_of_the_protocols_own_python_kit_works() {
    let lab = Lab::new();
    let site = Site::html("<h1>Hello</h1>");
    let mut command = lab.command(parts().join("venv/bin/python"), ["-c", PYTHON]);
    command.arg(LAUNCHER).arg(site.url("/"));
    check(&command.output().unwrap(), true);
}
