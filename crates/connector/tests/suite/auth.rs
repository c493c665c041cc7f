//! `auth` of both programs, from the outside.

use crate::suite::stage::{Done, Stage, am_root, chmod, mode, run};
use sema_rules::name::Handle;
use sema_vault::{ConfigDir, ConnectorDir};
use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::process::CommandExt;

const CLEAN: &str = r#"{"cookies":[],"origins":[]}"#;

fn state(mark: &str) -> String {
    format!(r#"{{"cookies":[{{"name":"{mark}"}}], "origins":[]}}"#)
}

fn request(path: &std::path::Path, export: &str) -> String {
    format!("{{\"storageStateFile\": {path:?}, \"export\": \"{export}\"}}\n")
}

fn connector(stage: &Stage) -> ConnectorDir {
    ConnectorDir::open(&stage.browser_dir("")).unwrap().unwrap()
}

/// The stored login state and whether the export is on, as a reader sees them.
fn stored(stage: &Stage) -> (String, bool) {
    let connector = connector(stage);
    let held = connector.lock_shared(&mut |_| {}).unwrap();
    let handles = ["BROWSER_STORAGE_STATE", "BROWSER_EXPORT"].map(|h| Handle::parse(h).unwrap());
    let group = connector.read_group(&held, &handles).unwrap();
    let text = String::from_utf8(group[0].1.bytes().to_vec()).unwrap();
    (
        text,
        group.get(1).is_some_and(|(_, on, _)| on.bytes() == b"on"),
    )
}

#[test]
fn a_clean_profile_is_stored_privately() {
    let stage = Stage::new();
    let done = stage.auth("{}\n");
    assert_eq!((done.code, done.stdout.as_str()), (Some(0), ""));
    assert_eq!(
        stage.shown(&done.stderr),
        "stored a clean profile in [STAGE]/config/connectors/browser; export off\n"
    );
    assert_eq!(stored(&stage), (CLEAN.to_owned(), false));
    for (path, expected) in [
        (stage.config(), 0o700),
        (stage.config().join("connectors"), 0o700),
        (stage.browser_dir(""), 0o700),
        (stage.browser_dir("BROWSER_STORAGE_STATE"), 0o600),
        (stage.browser_dir(".lock"), 0o600),
    ] {
        assert_eq!(mode(&path), expected, "{path:?}");
    }
}

#[test]
fn each_auth_states_the_whole_configuration() {
    let stage = Stage::new();
    let text = format!("\n{}\r\n", state("é"));
    let file = stage.write("a state.json", &text);
    assert_eq!(stage.auth(request(&file, "on")).code, Some(0));
    assert_eq!(stored(&stage), (text.clone(), true));
    let meta = fs::read_to_string(stage.browser_dir("BROWSER_EXPORT.meta.json")).unwrap();
    assert_eq!(meta, "{\"secret\": false}\n");
    assert_eq!(stage.auth(r#"{"export":"on"}"#).code, Some(0));
    assert_eq!(stored(&stage), (CLEAN.to_owned(), true));
    assert_eq!(
        stage
            .auth(format!("{{\"storageStateFile\":{file:?}}}"))
            .code,
        Some(0)
    );
    assert_eq!(stored(&stage), (text, false));
    assert!(!stage.browser_dir("BROWSER_EXPORT").exists());
    assert!(!stage.browser_dir("BROWSER_EXPORT.meta.json").exists());
}

#[test]
fn a_refused_line_changes_nothing_and_is_not_repeated() {
    let stage = Stage::new();
    stage.auth(r#"{"export":"on"}"#);
    let said: Vec<String> = [
        "",
        "\n",
        "{}\n{}\n",
        "hunter2",
        "[]",
        r#"{"hunter2":""}"#,
        r#"{"export":"on","export":"on"}"#,
        r#"{"export":true}"#,
        r#"{"export":"hunter2"}"#,
        r#"{"storageStateFile":"hunter2/state.json"}"#,
        &format!("{{}}{}", " ".repeat(64 * 1024)),
    ]
    .iter()
    .map(|input| stage.auth(input).said(&stage))
    .collect();
    assert!(!said.concat().contains("hunter2"));
    assert_eq!(stored(&stage), (CLEAN.to_owned(), true));
    insta::assert_snapshot!(said.concat(), @r#"
    1: error: the input is empty
    hint: for a clean profile: echo '{}' | sema-connector-browser auth
    1: error: the input is empty
    hint: for a clean profile: echo '{}' | sema-connector-browser auth
    1: error: the input is more than one line
    hint: give one line on standard input: {} or {"storageStateFile": "/absolute/path", "export": "on"}, each key optional
    1: error: the input is not JSON (byte 0)
    hint: give one line on standard input: {} or {"storageStateFile": "/absolute/path", "export": "on"}, each key optional
    1: error: the input is not a JSON object
    hint: give one line on standard input: {} or {"storageStateFile": "/absolute/path", "export": "on"}, each key optional
    1: error: the input has a key other than storageStateFile and export
    hint: give one line on standard input: {} or {"storageStateFile": "/absolute/path", "export": "on"}, each key optional
    1: error: the input gives export twice
    hint: give one line on standard input: {} or {"storageStateFile": "/absolute/path", "export": "on"}, each key optional
    1: error: export is not a string
    hint: give one line on standard input: {} or {"storageStateFile": "/absolute/path", "export": "on"}, each key optional
    1: error: export is neither "on" nor "off"
    hint: give one line on standard input: {} or {"storageStateFile": "/absolute/path", "export": "on"}, each key optional
    1: error: storageStateFile is not an absolute path
    hint: give one line on standard input: {} or {"storageStateFile": "/absolute/path", "export": "on"}, each key optional
    1: error: the input is over 64 KiB
    hint: give one line on standard input: {} or {"storageStateFile": "/absolute/path", "export": "on"}, each key optional
    "#);
}

#[test]
fn a_refused_file_changes_nothing_and_is_not_repeated() {
    let stage = Stage::new();
    stage.auth("{}");
    let good = stage.write("hunter2.json", state("hunter2"));
    chmod(&good, 0o600);
    symlink(&good, stage.path("link")).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        stage.path("fifo"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR,
        0,
    )
    .unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(stage.path("socket")).unwrap();
    let big = [state("hunter2").as_bytes(), &vec![b' '; 4 * 1024 * 1024]].concat();
    let files = [
        stage.path("missing-hunter2"),
        stage.path("link"),
        stage.path("fifo"),
        stage.path("socket"),
        stage.path("home"),
        "/dev/null".into(),
        "/dev/stdin".into(),
        stage.write("big", big),
        stage.write("utf16", b"\xff\xfe{\0}\0"),
        stage.write("text", "hunter2"),
        stage.write("list", "[]"),
        stage.write("keys", r#"{"cookies":[],"origins":[],"hunter2":1}"#),
        stage.write("twice", r#"{"cookies":[],"cookies":[],"origins":[]}"#),
        stage.write("kind", r#"{"cookies":{},"origins":[]}"#),
    ];
    let said: Vec<String> = files
        .iter()
        .map(|file| stage.auth(request(file, "on")).said(&stage))
        .collect();
    assert!(!said.concat().contains("hunter2"));
    assert_eq!(stored(&stage), (CLEAN.to_owned(), false));
    insta::assert_snapshot!(said.concat(), @"
    1: error: the file of storageStateFile: cannot open it: No such file or directory (os error 2)
    hint: name the regular file itself, by its absolute path
    1: error: the file of storageStateFile: is a symbolic link
    hint: name the regular file itself, by its absolute path
    1: error: the file of storageStateFile: is not a regular file
    hint: name the regular file itself, by its absolute path
    1: error: the file of storageStateFile: is not a regular file
    hint: name the regular file itself, by its absolute path
    1: error: the file of storageStateFile: is not a regular file
    hint: name the regular file itself, by its absolute path
    1: error: the file of storageStateFile: is not a regular file
    hint: name the regular file itself, by its absolute path
    1: error: the file of storageStateFile: is a symbolic link
    hint: name the regular file itself, by its absolute path
    1: error: the login state is over 4 MiB
    1: error: the login state is not UTF-8
    hint: save one with Playwright: await context.storageState({ path: 'state.json' })
    1: error: the login state is not JSON (byte 0)
    hint: save one with Playwright: await context.storageState({ path: 'state.json' })
    1: error: the login state is not a JSON object
    hint: save one with Playwright: await context.storageState({ path: 'state.json' })
    1: error: the login state does not hold exactly the keys cookies and origins
    hint: save one with Playwright: await context.storageState({ path: 'state.json' })
    1: error: the login state gives cookies twice
    hint: save one with Playwright: await context.storageState({ path: 'state.json' })
    1: error: cookies of the login state is not a list
    hint: save one with Playwright: await context.storageState({ path: 'state.json' })
    ");
}

#[test]
fn a_state_file_that_others_can_read_is_warned_of() {
    let stage = Stage::new();
    let file = stage.write("state", state("a"));
    chmod(&file, 0o644);
    let done = stage.auth(request(&file, "off"));
    insta::assert_snapshot!(done.said(&stage), @"
    0: warning: other users can read the file of storageStateFile: delete it, it holds the session's cookies
    stored the login state in [STAGE]/config/connectors/browser; export off
    ");
}

/// Kills `auth` at each of its steps in turn, until it comes through.
#[test]
fn killed_at_any_step_each_handle_is_old_or_new() {
    for (old, new) in [("off", "on"), ("on", "off"), ("on", "on")] {
        let stage = Stage::new();
        let (a, b) = (
            stage.write("a", state("old")),
            stage.write("b", state("new")),
        );
        let mut steps = 0;
        loop {
            steps += 1;
            assert_eq!(stage.auth(request(&a, old)).code, Some(0));
            let mut auth = stage.browser(&["auth"]);
            let done = run(auth.env("SEMA_FAULT", steps.to_string()), request(&b, new));
            let (text, export) = stored(&stage);
            let is_new = text == state("new");
            assert!(is_new || text == state("old"), "step {steps}");
            assert!(
                export == (new == "on") || export == (old == "on"),
                "step {steps}"
            );
            // The switch is written first.
            assert!(!is_new || export == (new == "on"), "step {steps}");
            assert_eq!(mode(&stage.browser_dir("BROWSER_STORAGE_STATE")), 0o600);
            if done.code == Some(0) {
                assert!(is_new);
                break;
            }
            assert_eq!(done.code, None, "step {steps}: {}", done.stderr);
        }
        assert!(steps > 10, "only {steps} steps");
        sweep_leaves_nothing(&stage);
    }
}

fn sweep_leaves_nothing(stage: &Stage) {
    let connector = connector(stage);
    let held = connector.lock_exclusive(&mut |_| {}).unwrap();
    assert!(
        connector.sweep(&held).unwrap() > 0,
        "the killed left temporary files"
    );
    for name in connector.dir().names().unwrap() {
        let name = name.into_string().unwrap();
        assert!(!name.starts_with(".tmp-"), "{name}");
    }
}

#[test]
fn a_reader_sees_the_group_before_or_after() {
    let stage = Stage::new();
    let (a, b) = (stage.write("a", state("a")), stage.write("b", state("b")));
    stage.auth(request(&a, "on"));
    let writing = std::sync::atomic::AtomicBool::new(true);
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for _ in 0..20 {
                assert_eq!(stage.auth(request(&b, "off")).code, Some(0));
                assert_eq!(stage.auth(request(&a, "on")).code, Some(0));
            }
            writing.store(false, std::sync::atomic::Ordering::Relaxed);
        });
        let mut reads = 0;
        while writing.load(std::sync::atomic::Ordering::Relaxed) {
            let (text, export) = stored(&stage);
            assert_eq!(export, text == state("a"));
            reads += 1;
        }
        writer.join().unwrap();
        assert!(reads > 20, "only {reads} reads");
    });
}

#[test]
fn two_auths_at_once_both_end_well() {
    let stage = Stage::new();
    let (a, b) = (stage.write("a", state("a")), stage.write("b", state("b")));
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| assert_eq!(stage.auth(request(&a, "on")).code, Some(0)));
            scope.spawn(|| assert_eq!(stage.auth(request(&b, "off")).code, Some(0)));
        }
    });
    let (text, export) = stored(&stage);
    assert_eq!(export, text == state("a"));
}

#[test]
fn a_held_lock_is_waited_for_with_a_word_and_given_up() {
    let stage = Stage::new();
    stage.auth("{}");
    let connector = connector(&stage);
    let held = connector.lock_exclusive(&mut |_| {}).unwrap();
    let mut auth = stage.browser(&["auth"]);
    let done = run(
        auth.env("SEMA_LOCK_GIVE_UP_MS", "1300"),
        r#"{"export":"on"}"#,
    );
    let said = done
        .said(&stage)
        .replace(&format!("process {}", std::process::id()), "process [PID]");
    let said = said.replace(&format!("kill {}", std::process::id()), "kill [PID]");
    insta::assert_snapshot!(said, @"
    2: waiting for process [PID], which holds the lock [STAGE]/config/connectors/browser/.lock
    error: [STAGE]/config/connectors/browser/.lock: is locked by process [PID], waited 1 s
    hint: wait for process [PID] to end, or end it: kill [PID]
    ");
    drop(held);
    assert_eq!(stored(&stage), (CLEAN.to_owned(), false));
    assert_eq!(stage.auth(r#"{"export":"on"}"#).code, Some(0));
}

#[test]
fn a_lock_let_go_in_time_is_taken() {
    let stage = Stage::new();
    stage.auth("{}");
    let connector = connector(&stage);
    let held = connector.lock_exclusive(&mut |_| {}).unwrap();
    std::thread::scope(|scope| {
        let auth = scope.spawn(|| stage.auth(r#"{"export":"on"}"#));
        std::thread::sleep(std::time::Duration::from_millis(300));
        drop(held);
        let done = auth.join().unwrap();
        assert_eq!(done.code, Some(0));
        assert!(!done.stderr.contains("waiting"));
    });
}

#[test]
fn modes_do_not_hang_on_the_umask() {
    for umask in ["000", "022", "077", "777"] {
        let stage = Stage::new();
        let script = format!("umask {umask}; exec \"$0\" auth");
        let mut shell = stage.command("/bin/sh", &["-c", &script, crate::suite::stage::BROWSER]);
        let done = run(&mut shell, r#"{"export":"on"}"#);
        assert_eq!(done.code, Some(0), "{umask}: {}", done.stderr);
        for (below, expected) in [
            ("", 0o700),
            ("BROWSER_STORAGE_STATE", 0o600),
            ("BROWSER_EXPORT", 0o600),
            ("BROWSER_EXPORT.meta.json", 0o600),
            (".lock", 0o600),
        ] {
            assert_eq!(mode(&stage.browser_dir(below)), expected, "{umask} {below}");
        }
    }
}

#[test]
fn what_others_could_read_is_refused_with_the_fix() {
    let refusal = |spoil: &dyn Fn(&Stage)| {
        let stage = Stage::new();
        stage.auth(r#"{"export":"on"}"#);
        spoil(&stage);
        let said = stage.auth("{}").said(&stage);
        assert!(stage.browser_dir("BROWSER_EXPORT").exists());
        said
    };
    let state = |stage: &Stage| stage.browser_dir("BROWSER_STORAGE_STATE");
    let said = [
        refusal(&|stage| chmod(&state(stage), 0o644)),
        refusal(&|stage| chmod(&state(stage), 0o620)),
        refusal(&|stage| chmod(&stage.browser_dir("BROWSER_EXPORT.meta.json"), 0o604)),
        refusal(&|stage| {
            fs::rename(state(stage), stage.path("elsewhere")).unwrap();
            symlink(stage.path("elsewhere"), state(stage)).unwrap();
        }),
        refusal(&|stage| fs::hard_link(state(stage), stage.path("other")).unwrap()),
        refusal(&|stage| {
            fs::remove_file(state(stage)).unwrap();
            fs::create_dir(state(stage)).unwrap();
        }),
        refusal(&|stage| chmod(&stage.browser_dir(""), 0o755)),
        refusal(&|stage| chmod(&stage.config(), 0o750)),
        refusal(&|stage| {
            fs::rename(stage.browser_dir(""), stage.path("elsewhere")).unwrap();
            symlink(
                stage.path("elsewhere"),
                stage.config().join("connectors/browser"),
            )
            .unwrap();
        }),
        refusal(&|stage| {
            fs::remove_file(stage.browser_dir(".lock")).unwrap();
            symlink(stage.path("elsewhere"), stage.browser_dir(".lock")).unwrap();
        }),
    ];
    insta::assert_snapshot!(said.concat(), @"
    1: error: [STAGE]/config/connectors/browser/BROWSER_STORAGE_STATE: is open to other users (mode 0644)
    hint: chmod 600 '[STAGE]/config/connectors/browser/BROWSER_STORAGE_STATE'
    1: error: [STAGE]/config/connectors/browser/BROWSER_STORAGE_STATE: is open to other users (mode 0620)
    hint: chmod 600 '[STAGE]/config/connectors/browser/BROWSER_STORAGE_STATE'
    1: error: [STAGE]/config/connectors/browser/BROWSER_EXPORT.meta.json: is open to other users (mode 0604)
    hint: chmod 600 '[STAGE]/config/connectors/browser/BROWSER_EXPORT.meta.json'
    1: error: [STAGE]/config/connectors/browser/BROWSER_STORAGE_STATE: is a symbolic link
    hint: put the real file or directory in its place, or remove the link: rm '[STAGE]/config/connectors/browser/BROWSER_STORAGE_STATE'
    1: error: [STAGE]/config/connectors/browser/BROWSER_STORAGE_STATE: has a second name (a hard link) on this disk
    hint: remove it and store it again: rm '[STAGE]/config/connectors/browser/BROWSER_STORAGE_STATE'
    1: error: [STAGE]/config/connectors/browser/BROWSER_STORAGE_STATE: is not a regular file
    hint: move it away: '[STAGE]/config/connectors/browser/BROWSER_STORAGE_STATE'
    1: error: [STAGE]/config/connectors/browser: is open to other users (mode 0755)
    hint: chmod 700 '[STAGE]/config/connectors/browser'
    1: error: [STAGE]/config: is open to other users (mode 0750)
    hint: chmod 700 '[STAGE]/config'
    1: error: [STAGE]/config/connectors/browser: is a symbolic link
    hint: put the real file or directory in its place, or remove the link: rm '[STAGE]/config/connectors/browser'
    1: error: [STAGE]/config/connectors/browser/.lock: is a symbolic link
    hint: put the real file or directory in its place, or remove the link: rm '[STAGE]/config/connectors/browser/.lock'
    ");
}

#[test]
fn what_another_user_owns_is_refused() {
    let stage = Stage::new();
    if !am_root() {
        // Only root can give a file away: what root owns is there to be refused.
        let mut auth = stage.browser(&["auth"]);
        let refused = run(auth.env("CONFIG_LOCAL_DIR", "/usr"), "{}");
        assert!(
            refused.stderr.contains("/usr: is owned by user id 0"),
            "{refused:?}"
        );
        return;
    }
    stage.auth("{}");
    let chown = |path, uid| std::os::unix::fs::chown(path, Some(uid), None).unwrap();
    chown(stage.browser_dir("BROWSER_STORAGE_STATE"), 12345);
    let secret = stage.auth("{}").said(&stage);
    chown(stage.browser_dir("BROWSER_STORAGE_STATE"), 0);
    chown(stage.config(), 12345);
    let directory = stage.auth("{}").said(&stage);
    insta::assert_snapshot!(format!("{secret}{directory}"), @"
    1: error: [STAGE]/config/connectors/browser/BROWSER_STORAGE_STATE: is owned by user id 12345, not by user id 0 that runs this
    hint: run this as its owner, or give it to you: chown 0 '[STAGE]/config/connectors/browser/BROWSER_STORAGE_STATE'
    1: error: [STAGE]/config: is owned by user id 12345, not by user id 0 that runs this
    hint: run this as its owner, or give it to you: chown 0 '[STAGE]/config'
    ");
}

#[test]
fn a_directory_that_was_moved_or_copied_works() {
    let stage = Stage::new();
    stage.auth(r#"{"export":"on"}"#);
    fs::rename(stage.config(), stage.path("moved")).unwrap();
    let copied = run(
        &mut stage.command(
            "/bin/cp",
            &[
                "-a",
                stage.path("moved").to_str().unwrap(),
                stage.config().to_str().unwrap(),
            ],
        ),
        "",
    );
    assert_eq!(copied.code, Some(0));
    assert_eq!(stored(&stage), (CLEAN.to_owned(), true));
    assert_eq!(stage.auth("{}").code, Some(0));
}

#[test]
fn the_directory_must_be_absolute() {
    let stage = Stage::new();
    let run_with = |value: &str| {
        let mut auth = stage.browser(&["auth"]);
        run(
            auth.env("CONFIG_LOCAL_DIR", value)
                .current_dir(stage.path("home")),
            "{}",
        )
        .said(&stage)
    };
    let nowhere = {
        let mut auth = stage.browser(&["auth"]);
        run(auth.env_remove("CONFIG_LOCAL_DIR").env_remove("HOME"), "{}").said(&stage)
    };
    let said = [
        run_with("config"),
        run_with("./config"),
        run_with(""),
        nowhere,
    ];
    // Nobody is told to close the whole disk.
    let whole_disk = run_with("/");
    assert!(whole_disk.starts_with("1: error: /: is o"), "{whole_disk}");
    assert!(
        whole_disk.contains("hint: name a directory of its own"),
        "{whole_disk}"
    );
    assert_eq!(fs::read_dir(stage.path("home")).unwrap().count(), 0);
    insta::assert_snapshot!(said.concat(), @"
    1: error: CONFIG_LOCAL_DIR is not an absolute path
    hint: export CONFIG_LOCAL_DIR=/absolute/path
    1: error: CONFIG_LOCAL_DIR is not an absolute path
    hint: export CONFIG_LOCAL_DIR=/absolute/path
    1: error: CONFIG_LOCAL_DIR is not an absolute path
    hint: export CONFIG_LOCAL_DIR=/absolute/path
    1: error: no configuration directory: neither CONFIG_LOCAL_DIR nor HOME is set
    hint: export CONFIG_LOCAL_DIR=/absolute/path
    ");
}

#[test]
fn unset_it_lies_in_the_users_configuration_folder() {
    let stage = Stage::new();
    let mut auth = stage.browser(&["auth"]);
    assert_eq!(run(auth.env_remove("CONFIG_LOCAL_DIR"), "{}").code, Some(0));
    let below = "sema-connectors/connectors/browser/BROWSER_STORAGE_STATE";
    assert!(stage.path("home/.config").join(below).exists());
    let mut auth = stage.browser(&["auth"]);
    let xdg = stage.path("xdg");
    assert_eq!(
        run(
            auth.env_remove("CONFIG_LOCAL_DIR")
                .env("XDG_CONFIG_HOME", &xdg),
            "{}"
        )
        .code,
        Some(0)
    );
    assert!(
        ConfigDir::open(&xdg.join("sema-connectors"))
            .unwrap()
            .is_some()
    );
    assert!(xdg.join(below).exists());
}

#[test]
fn an_unprivileged_user_stores_and_replaces() {
    let stage = Stage::new();
    // The programs may lie where another user cannot go.
    let program = stage.path("sema-connector-browser");
    fs::copy(crate::suite::stage::BROWSER, &program).unwrap();
    chmod(&stage.path(""), 0o755);
    let as_user = |input: &str| -> Done {
        let mut auth = stage.command(&program, &["auth"]);
        if am_root() {
            std::os::unix::fs::chown(stage.path("home"), Some(54321), Some(54321)).unwrap();
            auth.uid(54321).gid(54321);
        }
        run(
            auth.env("CONFIG_LOCAL_DIR", stage.path("home/new/config")),
            input,
        )
    };
    for input in ["{}", r#"{"export":"on"}"#, "{}"] {
        let done = as_user(input);
        assert_eq!(done.code, Some(0), "{}", done.stderr);
    }
    if am_root() {
        // Without root's rights a directory of root's is refused by the kernel, in our words.
        fs::create_dir(stage.path("home/new/config/connectors/other")).unwrap();
        let mut auth = stage.command(crate::suite::stage::LAUNCHER, &["auth", "other", "TOKEN"]);
        fs::copy(crate::suite::stage::LAUNCHER, stage.path("sema-connector")).unwrap();
        drop(auth);
        auth = stage.command(stage.path("sema-connector"), &["auth", "other", "TOKEN"]);
        auth.uid(54321)
            .gid(54321)
            .env("CONFIG_LOCAL_DIR", stage.path("home/new/config"));
        let done = run(&mut auth, "hunter2-hunter2");
        insta::assert_snapshot!(done.said(&stage), @"
        1: error: [STAGE]/home/new/config/connectors/other: is owned by user id 0, not by user id 54321 that runs this
        hint: run this as its owner, or give it to you: chown 54321 '[STAGE]/home/new/config/connectors/other'
        ");
    }
}

#[test]
fn a_full_or_read_only_place_is_said() {
    let stage = Stage::new();
    let mut auth = stage.browser(&["auth"]);
    let done = run(auth.env("CONFIG_LOCAL_DIR", "/proc/config"), "{}");
    insta::assert_snapshot!(done.said(&stage), @"2: error: /proc/config: cannot create it: No such file or directory (os error 2)");
    let file = stage.write("file", "");
    let mut auth = stage.browser(&["auth"]);
    let done = run(auth.env("CONFIG_LOCAL_DIR", file.join("config")), "{}");
    insta::assert_snapshot!(done.said(&stage), @"
    1: error: [STAGE]/file: is not a directory
    hint: move it away: '[STAGE]/file'
    ");
}

#[test]
fn any_connector_takes_a_secret() {
    let stage = Stage::new();
    let stored = |handle: &str| fs::read(stage.config().join("connectors/github").join(handle));
    let auth = |args: &[&str], input: &str| {
        run(
            &mut stage.launcher(&[&["auth", "github"], args].concat()),
            input,
        )
    };
    assert_eq!(auth(&["TOKEN"], "a secret token\r\n").code, Some(0));
    assert_eq!(stored("TOKEN").unwrap(), b"a secret token");
    assert_eq!(auth(&["TOKEN", "--raw"], "a secret token\n").code, Some(0));
    assert_eq!(stored("TOKEN").unwrap(), b"a secret token\n");
    let file = stage.write("key", b"\0\xff line 1\nline 2\n\n");
    symlink(&file, stage.path("link")).unwrap();
    assert_eq!(
        auth(&["KEY", stage.path("link").to_str().unwrap()], "").code,
        Some(0)
    );
    assert_eq!(stored("KEY").unwrap(), b"\0\xff line 1\nline 2\n");
    assert_eq!(mode(&stage.config().join("connectors/github/KEY")), 0o600);
    // A shell's <(command).
    let script = "\"$0\" auth github PIPED <(printf 'from a pipe\\n')";
    let mut bash = stage.command("/bin/bash", &["-c", script, crate::suite::stage::LAUNCHER]);
    assert_eq!(run(&mut bash, "").code, Some(0));
    assert_eq!(stored("PIPED").unwrap(), b"from a pipe");
    insta::assert_snapshot!(auth(&["SHORT"], "hunter2\n").said(&stage), @"
    0: stored SHORT in [STAGE]/config/connectors/github
    warning: it is under 8 bytes, too short to be searched for: an answer that holds it is not withheld
    ");
}

#[test]
fn a_handle_that_the_connector_does_not_take_is_warned_of() {
    let stage = Stage::new();
    let mount = ["mount", "notes", "--require", "TOKEN", "--", "/bin/cat"];
    assert_eq!(run(&mut stage.launcher(&mount), "").code, Some(0));
    let auth = |handle| {
        run(
            &mut stage.launcher(&["auth", "notes", handle]),
            "long enough",
        )
    };
    insta::assert_snapshot!(auth("TOKEN").said(&stage), @"0: stored TOKEN in [STAGE]/config/connectors/notes");
    insta::assert_snapshot!(auth("TOKENS").said(&stage), @"
    0: stored TOKENS in [STAGE]/config/connectors/notes
    warning: notes does not take TOKENS: mount it again with --require TOKENS or --env TOKENS
    ");
}

#[test]
fn a_refused_secret_is_not_repeated() {
    let stage = Stage::new();
    let auth = |args: &[&str], input: &str| {
        run(&mut stage.launcher(&[&["auth"], args].concat()), input).said(&stage)
    };
    let said = [
        auth(&["github", "TOKEN"], ""),
        auth(&["github", "TOKEN"], "\n"),
        auth(&["github", "TOKEN"], &"x".repeat(4 * 1024 * 1024 + 1)),
        auth(&["github", "TOKEN", "hunter2"], ""),
        auth(&["github", "TOKEN", "/dev/null"], ""),
        auth(&["github", "TOKEN", "/"], ""),
        auth(&["github", "TOKEN", "/dev/null", "hunter2"], ""),
        auth(&["github", "hunter2"], ""),
        auth(&["Hunter2", "TOKEN"], ""),
        auth(&["github", "TOKEN", "--hunter2=hunter2"], ""),
        auth(&["github"], ""),
        auth(&["browser", "BROWSER_EXPORT"], "on"),
        auth(&["browser", "BROWSER_STORAGE_STATE"], "hunter2"),
    ];
    assert!(!stage.config().exists());
    insta::assert_snapshot!(said.concat(), @r#"
    1: error: the input is empty: nothing was stored
    hint: check the command that should have written the secret
    1: error: the input is empty: nothing was stored
    hint: check the command that should have written the secret
    1: error: the input is over 4194304 bytes: nothing was stored
    1: error: FILE: cannot open it: No such file or directory (os error 2)
    hint: FILE is a path; a secret itself is given on standard input, never as an argument
    1: error: FILE: is not a regular file
    hint: FILE is a path; a secret itself is given on standard input, never as an argument
    1: error: FILE: is not a regular file
    hint: FILE is a path; a secret itself is given on standard input, never as an argument
    64: error: an argument too many
    hint: sema-connector auth --help
    64: error: <HANDLE>: a handle must match [A-Z][A-Z0-9_]{0,63}
    hint: sema-connector auth --help
    64: error: <NAME>: a connector's name must match [a-z][a-z0-9-]{0,31}
    hint: sema-connector auth --help
    64: error: an argument too many
    hint: sema-connector auth --help
    64: error: missing: <HANDLE>
    hint: sema-connector auth --help
    1: error: BROWSER_EXPORT of browser is a switch, not a secret
    hint: echo '{"export": "on"}' | sema-connector-browser auth
    1: error: the login state is not JSON (byte 0)
    "#);
}

#[test]
fn a_terminal_is_asked_without_echo() {
    let stage = Stage::new();
    let terminal = crate::suite::terminal::Terminal::new();
    let long = "k".repeat(6000);
    let typed = format!("wrong\x15{long}éx\x7f\x7f\n");
    let shown = terminal.talk(
        &mut stage.launcher(&["auth", "github", "TOKEN"]),
        "Enter",
        &typed,
    );
    assert_eq!(shown.code, Some(0), "{}", shown.stderr);
    let stored = fs::read_to_string(stage.config().join("connectors/github/TOKEN")).unwrap();
    assert_eq!(stored, long);
    assert_eq!(shown.stdout, "", "the terminal showed what was typed");
    insta::assert_snapshot!(shown.said(&stage), @"
    0: TOKEN for github (not shown; end with Enter):
    stored TOKEN in [STAGE]/config/connectors/github
    ");
    assert!(terminal.echoes());

    let shown = terminal.talk(
        &mut stage.launcher(&["auth", "github", "OTHER"]),
        "Enter",
        "abc\x03",
    );
    insta::assert_snapshot!(shown.said(&stage), @"
    2: OTHER for github (not shown; end with Enter):
    error: interrupted: nothing was stored
    ");
    assert!(terminal.echoes() && !stage.config().join("connectors/github/OTHER").exists());
}

#[test]
fn the_browsers_auth_on_a_terminal_ends_with_the_line() {
    let stage = Stage::new();
    let terminal = crate::suite::terminal::Terminal::new();
    let shown = terminal.talk(
        &mut stage.browser(&["auth"]),
        "Enter",
        "{\"export\":\"on\"}\n",
    );
    insta::assert_snapshot!(shown.said(&stage), @"
    0: waiting for one line, a JSON object ({} is a clean profile); Enter ends it:
    stored a clean profile in [STAGE]/config/connectors/browser; export on
    ");
    assert_eq!(stored(&stage), (CLEAN.to_owned(), true));
}

#[test]
fn a_release_build_has_no_fault_points() {
    // The variables that kill and shorten are read in functions that a release build has not.
    let source = include_str!("../../../vault/src/fault.rs");
    let mut reads = 0;
    for (at, _) in source.match_indices("std::env::var") {
        let function = source[..at].rfind("\npub").unwrap();
        assert!(source[..function].ends_with("#[cfg(debug_assertions)]"));
        reads += 1;
    }
    assert_eq!(reads, 2);
}
