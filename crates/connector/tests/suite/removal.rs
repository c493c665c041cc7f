//! `auth --remove` of both programs, from the outside.

use super::live::{SERVER, Session, auth};
use super::stage::{Done, Stage, chmod, run};
use std::time::Duration;

fn launcher(stage: &Stage, args: &[&str]) -> Done {
    run(&mut stage.launcher(args), "")
}

fn remove_login(stage: &Stage) -> Done {
    run(&mut stage.browser(&["auth", "--remove"]), "")
}

/// Whether the switch and the login state are stored.
fn stored(stage: &Stage) -> (bool, bool) {
    let is = |name| stage.browser_dir(name).exists();
    (is("BROWSER_EXPORT"), is("BROWSER_STORAGE_STATE"))
}

#[test]
fn a_removed_login_leaves_the_browser_unauthorized() {
    let stage = Stage::new();
    let never = remove_login(&stage).said(&stage);
    assert!(!stage.config().exists());
    stage.auth(r#"{"export": "on"}"#);
    assert_eq!(stored(&stage), (true, true));
    // What a writer that was killed left of it.
    let left = stage.browser_dir(".tmp-left");
    std::fs::write(&left, "").unwrap();
    let done = remove_login(&stage).said(&stage);
    assert_eq!((stored(&stage), left.exists()), ((false, false), false));
    assert!(!stage.browser_dir("BROWSER_EXPORT.meta.json").exists());
    let again = remove_login(&stage).said(&stage);
    insta::assert_snapshot!([never, done, again].concat(), @"
    1: error: the login state of browser is not stored: nothing was removed
    hint: see what is: sema-connector status browser
    0: removed the login state from [STAGE]/config/connectors/browser
    1: error: the login state of browser is not stored: nothing was removed
    hint: see what is: sema-connector status browser
    ");
    let status = run(&mut stage.browser(&["status"]), "");
    assert_eq!(status.stdout, "{\"state\":\"unauthorized\",\"tools\":[]}\n");
}

#[test]
fn a_removed_handle_parks_the_next_session() {
    let stage = Stage::new();
    let mut session = Session::start(&stage, &["--require", "TOKEN"], SERVER);
    auth(&stage, "a secret of some length");
    session.await_tools("abc");
    let other = launcher(&stage, &["auth", "c", "OTHER", "--remove"]).said(&stage);
    let done = launcher(&stage, &["auth", "c", "TOKEN", "--remove"]).said(&stage);
    session.always("abc");
    drop(session);
    let mut next = Session::of(&mut stage.launcher(&["run", "c"]));
    assert_eq!(next.status()["state"], "unauthorized");
    let status = launcher(&stage, &["status", "c"]).stdout;
    assert!(status.starts_with("state     unauthorized\n"), "{status}");
    assert!(status.contains("TOKEN       not stored, required"));
    let wrong = [
        launcher(&stage, &["auth", "c", "TOKEN", "file", "--remove"]).said(&stage),
        launcher(&stage, &["auth", "no", "TOKEN", "--remove"]).said(&stage),
    ];
    insta::assert_snapshot!([other, done, wrong.concat()].concat(), @"
    1: error: OTHER of c is not stored: nothing was removed
    hint: see what is: sema-connector status c
    0: removed TOKEN from [STAGE]/config/connectors/c
    warning: a launch that runs keeps its copy, and what it withholds, until it ends
    64: error: the argument '[FILE]' cannot be used with '--remove'
    hint: sema-connector auth --help
    1: error: TOKEN of no is not stored: nothing was removed
    hint: see what is: sema-connector status no
    ");
}

#[test]
fn what_is_refused_to_a_reader_is_removed() {
    let stage = Stage::new();
    launcher(&stage, &["mount", "c", "--", "/bin/cat"]);
    auth(&stage, "a secret of some length");
    let path = stage.path("config/connectors/c/TOKEN");
    chmod(&path, 0o644);
    let done = launcher(&stage, &["auth", "c", "TOKEN", "--remove"]);
    assert_eq!((done.code, path.exists()), (Some(0), false));
    // Of a link the link is removed.
    let target = stage.write("target", "theirs");
    std::os::unix::fs::symlink(&target, &path).unwrap();
    let done = launcher(&stage, &["auth", "c", "TOKEN", "--remove"]);
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    assert!(target.exists() && std::fs::symlink_metadata(path).is_err());
}

#[test]
fn nothing_is_removed_while_the_lock_is_held() {
    let stage = Stage::new();
    stage.auth("{}");
    let lock = std::fs::File::open(stage.browser_dir(".lock")).unwrap();
    lock.lock().unwrap();
    std::thread::scope(|scope| {
        let removed = scope.spawn(|| remove_login(&stage));
        std::thread::sleep(Duration::from_millis(300));
        assert_eq!(stored(&stage), (false, true));
        drop(lock);
        assert_eq!(removed.join().unwrap().code, Some(0));
    });
    assert_eq!(stored(&stage), (false, false));
}

#[test]
fn killed_at_any_step_no_switch_outlives_its_login() {
    let stage = Stage::new();
    for step in 1.. {
        stage.auth(r#"{"export": "on"}"#);
        let mut remove = stage.browser(&["auth", "--remove"]);
        let done = run(remove.env("SEMA_FAULT", step.to_string()), "");
        let (switch, login) = stored(&stage);
        assert!(login || !switch, "step {step}");
        if done.code == Some(0) {
            assert!(step > 4 && !login);
            break;
        }
    }
}
