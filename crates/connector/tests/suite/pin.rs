//! `pin`: a browser that nobody has published a hash of, and its install.

use super::machine::*;
use super::registry::{Act, Registry};
use insta::assert_snapshot;
use std::io::Write;
use std::process::{Command, Stdio};

const ZIP: &str = "chrome-linux64.zip";

/// A zip archive with entries stored as they are.
fn zip(files: &[(&str, &[u8], u32)]) -> Vec<u8> {
    let mut zip = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (name, bytes, mode) in files {
        let options = zip::write::SimpleFileOptions::default()
            .compression_method(zip::CompressionMethod::Stored)
            .unix_permissions(*mode);
        zip.start_file(*name, options).unwrap();
        zip.write_all(bytes).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

/// A machine whose lock pins a playwright-core that names Chrome for Testing 155.0.8059.12.
fn machine() -> Machine {
    let mut machine = Machine::new();
    let browsers = r#"{"browsers": [{"name": "chromium", "browserVersion": "155.0.8059.12"}]}"#;
    let core = tgz(&[("package/browsers.json", browsers.into(), 0o644)]);
    machine.registry.put(CORE, &core);
    machine.archives.push((CORE.into(), core));
    machine.write_lock(&lock("1", &machine.archives));
    machine
}

fn browser() -> Vec<u8> {
    let program = std::fs::read("/bin/true").unwrap();
    zip(&[
        ("chrome-linux64/chrome", &program, 0o755),
        ("chrome-linux64/locales/en-US.pak", b"words", 0o644),
    ])
}

const PIN: [&str; 3] = ["pin", "--browser", "chrome-for-testing"];
const INSTALL: [&str; 3] = ["install", "--browser", "chrome-for-testing"];

/// Digests and sizes as what they are of.
fn settled(text: &str) -> String {
    let line = |line: &str| match line.split_once("sha256  ") {
        Some((before, _)) => format!("{before}sha256  [SHA256]"),
        None => match line.split_once(".zip, ") {
            Some((before, _)) => format!("{before}.zip, [SIZE] bytes"),
            None => line.to_owned(),
        },
    };
    text.trim_end()
        .lines()
        .map(line)
        .collect::<Vec<_>>()
        .join("\n")
}

#[test]
fn what_playwright_names_is_pinned_and_installed() {
    let machine = machine();
    let refusal = machine.browser(&INSTALL).refusal();
    assert_snapshot!(refusal, @"
    1
    error: no chrome-for-testing build is pinned: there is no [DIR]/config/connectors/browser/binaries.lock.json
    hint: pin one: sema-connector-browser pin --browser chrome-for-testing
    ");
    machine.registry.put(ZIP, &browser());
    machine
        .registry
        .script(ZIP, [Act::Status(500), Act::Break(0), Act::Break(100)]);
    let url = machine.registry.url();
    let said = machine
        .browser(&[&PIN[..], &["--mirror", &url]].concat())
        .ok();
    assert_snapshot!(settled(&said.out), @"
    pinned Chrome for Testing 155.0.8059.12 for linux-x64
      file    chrome-linux64.zip, [SIZE] bytes
      sha256  [SHA256]
      source  [REGISTRY]/chrome-linux64.zip
      trust   the host and everyone on the way to it, for it was not encrypted: no published hash was there to compare with
      lock    [DIR]/config/connectors/browser/binaries.lock.json
    next: sema-connector-browser install --browser chrome-for-testing
    ");
    assert!(!machine.connector("bin").exists());
    machine
        .browser(&[&INSTALL[..], &["--mirror", &url]].concat())
        .ok();
    let meta = std::fs::metadata(machine.connector("bin/chrome/chrome")).unwrap();
    assert_eq!(meta.len(), std::fs::metadata("/bin/true").unwrap().len());
    assert!(!machine.connector("bin/chrome/headless_shell").exists());
    // A plain install keeps the browser that is in; naming the other changes back.
    assert!(machine.install(&[]).ok().out.contains("is installed"));
    machine.install(&["--browser", "chromium"]).ok();
    assert!(machine.connector("bin/chrome/headless_shell").exists());
    assert!(!machine.connector("bin/chrome/chrome").exists());
}

#[test]
fn its_own_host_is_asked_for_the_version_and_no_credential_is_sent() {
    let mut machine = machine();
    // Nobody answers for the host here: the proxy is asked to reach it.
    let proxy = Registry::start();
    machine.set("HTTPS_PROXY", &proxy.url());
    let said = machine.browser(&PIN);
    assert!(
        said.refusal()
            .contains("chrome-linux64.zip was not fetched"),
        "{}",
        said.refusal()
    );
    assert_eq!(machine.registry.seen(CORE).len(), 1);
    let asked = proxy.seen("cdn.playwright.dev:443");
    assert!(!asked.is_empty() && asked.iter().all(|seen| seen.authorization.is_none()));
}

#[test]
fn a_version_can_be_given_and_must_be_one() {
    let machine = machine();
    machine.registry.put(ZIP, &browser());
    let url = machine.registry.url();
    let pin = |version: &str| {
        machine.browser(&[&PIN[..], &["--version", version, "--mirror", &url]].concat())
    };
    let said = pin("150.0.1.2").ok().out;
    assert!(
        said.starts_with("pinned Chrome for Testing 150.0.1.2 "),
        "{said}"
    );
    assert_eq!(machine.registry.seen(CORE).len(), 0);
    assert_snapshot!(pin("../../150").refusal(), @"
    1
    error: --version is not a version of Chrome for Testing
    hint: it has four numbers, such as 155.0.8059.12
    ");
}

#[test]
fn what_is_no_browser_is_not_pinned() {
    let machine = machine();
    let url = machine.registry.url();
    let pin = || {
        machine
            .browser(&[&PIN[..], &["--mirror", &url]].concat())
            .refusal()
    };
    assert_snapshot!(pin(), @"
    1
    error: chrome-linux64.zip is not there: looked in [REGISTRY]/chrome-linux64.zip and [REGISTRY]/builds/cft/155.0.8059.12/linux64/chrome-linux64.zip
    hint: name another version with --version, or another source with --mirror URL|FOLDER
    ");
    machine.registry.put(ZIP, b"<html>not found</html>");
    assert_snapshot!(pin(), @"
    1
    error: chrome-linux64.zip is refused, nothing was unpacked: is not a zip archive that can be read
    hint: name another version with --version, or another source with --mirror URL|FOLDER
    ");
    machine.registry.put(
        ZIP,
        &zip(&[("chrome-linux64/chrome", b"#!/bin/sh\n", 0o755)]),
    );
    assert_snapshot!(pin(), @"
    1
    error: chrome-linux64.zip holds no program chrome-linux64/chrome
    hint: name another version with --version, or another source with --mirror URL|FOLDER
    ");
    machine
        .registry
        .put(ZIP, &zip(&[("chrome-linux64/../chrome", b"x", 0o755)]));
    assert_snapshot!(pin(), @r#"
    1
    error: chrome-linux64.zip is refused, nothing was unpacked: the entry "chrome-linux64/../chrome" is not a path of ordinary names below the archive's root
    hint: name another version with --version, or another source with --mirror URL|FOLDER
    "#);
    machine
        .registry
        .put(ZIP, &zip(&[("other/chrome", b"x", 0o755)]));
    assert_snapshot!(pin(), @r#"
    1
    error: chrome-linux64.zip is refused, nothing was unpacked: holds no "chrome-linux64"
    hint: name another version with --version, or another source with --mirror URL|FOLDER
    "#);
    assert!(!machine.connector("binaries.lock.json").exists());
}

#[test]
fn a_platform_without_one_is_said() {
    let mut machine = machine();
    machine.set("SEMA_PLATFORM", "linux-arm64");
    assert_snapshot!(machine.browser(&PIN).refusal(), @"
    1
    error: there is no Chrome for Testing for linux-arm64
    hint: it is built for linux-x64 and darwin-arm64
    ");
    machine.set("SEMA_PLATFORM", "darwin-arm64");
    machine.registry.put("chrome-mac-arm64.zip", &browser());
    let url = machine.registry.url();
    assert_snapshot!(machine.browser(&[&PIN[..], &["--mirror", &url]].concat()).refusal(), @"
    1
    error: binaries.lock.json pins no Node.js for darwin-arm64, only for linux-x64
    hint: pin and install on a machine of such a platform
    ");
}

#[test]
fn a_pinned_browser_that_changes_is_refused() {
    let machine = machine();
    machine.registry.put(ZIP, &browser());
    let url = machine.registry.url();
    machine
        .browser(&[&PIN[..], &["--mirror", &url]].concat())
        .ok();
    std::fs::remove_dir_all(machine.connector("bin.staging")).unwrap();
    machine.registry.always(ZIP, Act::Lie);
    let refusal = machine
        .browser(&[&INSTALL[..], &["--mirror", &url]].concat())
        .refusal();
    assert!(
        refusal
            .contains("chrome-linux64.zip is not the pinned archive and was removed: sha256 is "),
        "{refusal}"
    );
}

/// The real Chromium in an archive of Chrome for Testing's shape.
#[test]
fn a_real_browser_in_that_shape_is_pinned_and_installed() {
    let mirror = real_mirror();
    let folder = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| {
        let mut command = Command::new(browser_program());
        command
            .args(arguments)
            .args(["--mirror", folder.path().join("mirror").to_str().unwrap()]);
        command
            .env("CONFIG_LOCAL_DIR", folder.path().join("config"))
            .stdin(Stdio::null());
        let output = command.output().unwrap();
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8(output.stdout).unwrap()
    };
    std::os::unix::fs::symlink(&mirror, folder.path().join("mirror")).unwrap();
    run(&["install"]);
    let chrome = folder.path().join("config/connectors/browser/bin/chrome");
    let mut files = Vec::new();
    for name in [
        "headless_shell",
        "libEGL.so",
        "libGLESv2.so",
        "libvulkan.so.1",
    ] {
        files.push((
            name.replace("headless_shell", "chrome"),
            std::fs::read(chrome.join(name)).unwrap(),
        ));
    }
    for entry in std::fs::read_dir(chrome.join("lib")).unwrap().flatten() {
        let name = format!("lib/{}", entry.file_name().to_string_lossy());
        files.push((name, std::fs::read(entry.path()).unwrap()));
    }
    let named: Vec<_> = files
        .iter()
        .map(|(name, bytes)| (format!("chrome-linux64/{name}"), bytes))
        .collect();
    let entries: Vec<_> = named
        .iter()
        .map(|(name, bytes)| (name.as_str(), bytes.as_slice(), 0o755))
        .collect();
    std::fs::remove_file(folder.path().join("mirror")).unwrap();
    std::fs::create_dir(folder.path().join("mirror")).unwrap();
    for entry in std::fs::read_dir(&mirror).unwrap().flatten() {
        std::os::unix::fs::symlink(
            entry.path(),
            folder.path().join("mirror").join(entry.file_name()),
        )
        .unwrap();
    }
    std::fs::write(folder.path().join("mirror").join(ZIP), zip(&entries)).unwrap();
    let said = run(&PIN);
    assert!(
        said.starts_with("pinned Chrome for Testing 155.0.8059.12 for linux-x64\n"),
        "{said}"
    );
    run(&INSTALL);
    let version = Command::new(chrome.join("chrome"))
        .env("LD_LIBRARY_PATH", chrome.join("lib"))
        .arg("--version")
        .output()
        .unwrap();
    assert!(
        String::from_utf8_lossy(&version.stdout).contains("153."),
        "{version:?}"
    );
    assert!(chrome.with_file_name("fonts").join("open-sans").exists());
}
