//! The pinned build as it stands on the disk: moved, copied, harmed, mended.

use crate::lab::{BROWSER, Engine, LAUNCHER, Lab};
use crate::trying::mirror;
use serde_json::{Value, json};
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::process::Command;

/// A session with a page in a configuration directory that stands elsewhere now.
fn works_in(lab: &Lab, config: &Path) {
    let mut command = lab.command(LAUNCHER, ["run", "browser"]);
    command.env("CONFIG_LOCAL_DIR", config);
    let mut engine = Engine::start(command);
    assert_eq!(engine.tools().len(), 25);
    engine.text(
        "browser_navigate",
        &json!({"url": "data:text/html,<title>there</title>"}),
    );
    assert_eq!(engine.evaluate("document.title"), "\"there\"");
    assert_eq!(engine.close(), Some(0));
}

#[test]
fn a_configuration_that_was_moved_or_copied_works() {
    let lab = Lab::new();
    let (moved, copied) = (lab.folder().join("moved"), lab.folder().join("a copy"));
    std::fs::rename(lab.config(), &moved).unwrap();
    works_in(&lab, &moved);
    let mut copy = Command::new("cp");
    assert!(
        copy.arg("-a")
            .args([&moved, &copied])
            .status()
            .unwrap()
            .success()
    );
    works_in(&lab, &copied);
    works_in(&lab, &moved);
}

fn state(lab: &Lab) -> (String, String) {
    let line = lab.run(BROWSER, ["status"]).stdout;
    let status: Value = serde_json::from_slice(&line).unwrap();
    let text = |name: &str| status[name].as_str().unwrap_or_default().to_owned();
    (text("state"), text("reason"))
}

/// Turns one bit over and sets the file's times back.
fn flip(path: &Path) {
    let file = std::fs::File::options()
        .read(true)
        .write(true)
        .open(path)
        .unwrap();
    let modified = file.metadata().unwrap().modified().unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, 4321).unwrap();
    file.write_all_at(&[byte[0] ^ 1], 4321).unwrap();
    file.set_modified(modified).unwrap();
}

/// The status names what is wrong; the session stands, says so to the engine, and starts nothing.
fn refused(lab: &Lab, what: &str) {
    let (is, reason) = state(lab);
    assert_eq!(is, "failed", "{what}");
    assert!(reason.contains(what), "{what}: {reason}");
    let mut engine = lab.engine();
    assert!(engine.tools().is_empty());
    let refused = engine.call("browser_navigate", &json!({"url": "about:blank"}));
    assert_eq!(
        refused["error"]["data"]["code"], "connector.not_installed",
        "{refused}"
    );
    assert_eq!(refused["error"]["code"], -32015);
    let words = refused["error"]["message"].as_str().unwrap();
    assert!(
        words.contains(what) && words.contains("sema-connector-browser install"),
        "{words}"
    );
    assert_eq!(engine.close(), Some(0));
}

#[test]
fn a_harmed_build_is_refused_by_name_and_install_mends_it() {
    let lab = Lab::new();
    let bin = lab.connector().join("bin");
    let aside = lab.folder().join("aside");
    let server = bin.join("node_modules/playwright-core/package.json");
    let (library, browser) = (
        bin.join("chrome/libEGL.so"),
        bin.join("chrome/headless_shell"),
    );
    // Hashes all of it once: from here on only what changed is hashed again.
    assert_eq!(state(&lab).0, "authorized");
    // Each harm is taken back, so that the next one is seen by itself; the last one is mended.
    std::fs::rename(&server, &aside).unwrap();
    refused(&lab, "node_modules/playwright-core/package.json");
    std::fs::rename(&aside, &server).unwrap();
    std::fs::rename(&library, &aside).unwrap();
    std::os::unix::fs::symlink(&aside, &library).unwrap();
    refused(&lab, "chrome/libEGL.so");
    std::fs::rename(&aside, &library).unwrap();
    assert_eq!(state(&lab).0, "authorized");
    flip(&browser);
    refused(&lab, "chrome/headless_shell");
    let mended = lab.run(BROWSER, ["install", "--mirror", &mirror()]);
    assert!(
        mended.status.success(),
        "{}",
        String::from_utf8_lossy(&mended.stderr)
    );
    assert_eq!(state(&lab).0, "authorized");
    works_in(&lab, lab.config());
}
