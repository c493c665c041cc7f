//! `sema-connector-browser` without the pinned build: what it refuses to start with, and `keep`.

use super::bare::{CLEAN, Lab, PROGRAM};
use insta::assert_snapshot;
use std::os::unix::fs::symlink;
use std::process::Command;

#[test]
fn it_is_started_by_the_launcher() {
    let mut lab = Lab::new(&[("BROWSER_STORAGE_STATE", CLEAN)]);
    assert_snapshot!(lab.unset("CONNECTOR_DIR").refusal(), @r"
    exit 1
    error: CONNECTOR_DIR is not set
    hint: start it through the launcher: sema-connector run browser
    ");
    lab.set("CONNECTOR_DIR", "relative");
    assert_snapshot!(lab.refusal(), @r"
    exit 1
    error: relative: is not an absolute path
    hint: name a directory of its own: export CONFIG_LOCAL_DIR=/absolute/path
    ");
    lab.set("CONNECTOR_DIR", "/nowhere");
    assert_snapshot!(lab.refusal(), @r"
    exit 1
    error: CONNECTOR_DIR /nowhere is not there
    hint: echo '{}' | sema-connector-browser auth
    ");
}

#[test]
fn without_a_login_state_it_says_how_to_store_one() {
    let mut lab = Lab::new(&[("BROWSER_STORAGE_STATE", CLEAN)]);
    assert_snapshot!(lab.unset("BROWSER_STORAGE_STATE_FILE").refusal(), @r"
    exit 1
    error: no login state: the handle BROWSER_STORAGE_STATE is not stored
    hint: echo '{}' | sema-connector-browser auth
    ");
}

#[test]
fn a_copy_lies_in_the_launch_and_is_no_link() {
    let mut lab = Lab::new(&[("BROWSER_STORAGE_STATE", CLEAN)]);
    lab.set("BROWSER_STORAGE_STATE_FILE", "/etc/passwd");
    assert_snapshot!(lab.refusal(), @r"
    exit 1
    error: BROWSER_STORAGE_STATE_FILE is not a regular file in a launch's directory of CONNECTOR_DIR: /etc/passwd
    hint: start it through the launcher: sema-connector run browser
    ");
    let away = lab.connector.path().join("launches/../../../x");
    lab.set("BROWSER_STORAGE_STATE_FILE", away);
    assert!(lab.refusal().contains("is not a regular file"));
    symlink("/etc/passwd", lab.launch.path().join("LINK")).unwrap();
    lab.set("BROWSER_STORAGE_STATE_FILE", lab.launch.path().join("LINK"));
    assert_snapshot!(lab.refusal().lines().take(2).collect::<Vec<_>>().join("\n"), @r"
    exit 1
    error: TMP/config/connectors/browser/launches/ID/LINK: is a symbolic link
    ");
    let lab = Lab::new(&[("BROWSER_STORAGE_STATE", CLEAN), ("BROWSER_EXPORT", "on")]);
    std::fs::remove_file(lab.launch.path().join("BROWSER_EXPORT")).unwrap();
    assert_snapshot!(lab.refusal(), @r"
    exit 1
    error: BROWSER_EXPORT_FILE is not a regular file in a launch's directory of CONNECTOR_DIR: TMP/config/connectors/browser/launches/ID/BROWSER_EXPORT
    hint: start it through the launcher: sema-connector run browser
    ");
}

#[test]
fn without_the_pinned_build_it_says_how_to_install_it() {
    let lab = Lab::new(&[("BROWSER_STORAGE_STATE", CLEAN)]);
    let refusal = lab.refusal();
    assert!(
        refusal.starts_with("exit 1\nerror: connector.not_installed: "),
        "{refusal}"
    );
    assert!(
        refusal.contains("sema-connector-browser install"),
        "{refusal}"
    );
}

#[test]
fn keep_wants_one_running_launch() {
    let lab = Lab::new(&[("BROWSER_STORAGE_STATE", CLEAN)]);
    std::fs::write(lab.out().join("page.yml"), "text").unwrap();
    symlink("/etc/passwd", lab.out().join("link")).unwrap();
    let kept = lab.root.path().join("kept");
    let keep = |extra: &[&str]| {
        let mut command = Command::new(PROGRAM);
        command
            .env_clear()
            .env("CONFIG_LOCAL_DIR", &lab.config)
            .arg("keep")
            .arg(&kept)
            .args(extra);
        let output = command.output().unwrap();
        let text = [output.stdout, output.stderr].concat();
        let text = String::from_utf8(text)
            .unwrap()
            .replace(lab.root.path().to_str().unwrap(), "TMP");
        format!("exit {}\n{text}", output.status.code().unwrap())
    };
    assert_snapshot!(keep(&[]), @r"
    exit 2
    TMP/kept/page.yml
    warning: link was not copied: is a symbolic link
    ");
    assert_eq!(
        std::fs::read_to_string(kept.join("page.yml")).unwrap(),
        "text"
    );
    let held = lab.connector.lock_shared(&mut |_| {}).unwrap();
    let other = lab.connector.new_launch(&held, &[]).unwrap();
    drop(held);
    let two = keep(&[]);
    assert!(
        two.starts_with("exit 1\nerror: 2 launches are running: "),
        "{two}"
    );
    assert!(two.ends_with("hint: name one: --launch ID\n"), "{two}");
    assert_eq!(keep(&["--launch", other.id().as_str()]), "exit 0\n");
    assert_snapshot!(keep(&["--launch", "nosuch"]), @r"
    exit 1
    error: no launch nosuch is running
    ");
}
