//! What a program that asks for `--json` gets when a command fails.

use super::stage::{BROWSER, Done, LAUNCHER, Stage, run};
use super::usage::commands;
use serde_json::{Value, json};

/// A command line of each command that takes `--json`.
const LAUNCHERS: [&[&str]; 8] = [
    &["try", "--json"],
    &["status", "browser", "--json"],
    &["trace", "--json"],
    &["install", "browser", "--json"],
    &["uninstall", "browser", "--json"],
    &["clean", "--json"],
    &["mount", "c", "--json", "--", "/bin/cat"],
    &["list", "--json"],
];
const BROWSERS: [&[&str]; 5] = [
    &["install", "--json"],
    &["pin", "--browser", "chrome-for-testing", "--json"],
    &["keep", "kept", "--json"],
    &["mount", "--json"],
    &["list", "--json"],
];

/// The exit code and the one object on standard output; nothing is said beside it.
fn failure(done: &Done) -> (Option<i32>, Value) {
    assert_eq!((done.stderr.as_str(), done.stdout.lines().count()), ("", 1));
    (done.code, serde_json::from_str(&done.stdout).unwrap())
}

#[test]
fn every_command_with_json_fails_with_one_object() {
    let stage = Stage::new();
    for (program, lines) in [(LAUNCHER, &LAUNCHERS[..]), (BROWSER, &BROWSERS[..])] {
        let has_json = |command: &String| {
            let help = run(&mut stage.command(program, &[command, "--help"]), "");
            help.stdout.contains("--json")
        };
        let mut named: Vec<String> = commands(&stage, program);
        named.retain(has_json);
        named.sort();
        let mut covered: Vec<&str> = lines.iter().map(|line| line[0]).collect();
        covered.sort_unstable();
        assert_eq!(covered, named);
        for line in lines {
            let mut command = stage.command(program, line);
            let done = run(command.env("CONFIG_LOCAL_DIR", "relative"), "");
            let (code, object) = failure(&done);
            let error = &object["error"];
            assert_eq!(
                (code, &error["code"]),
                (Some(1), &json!("refused")),
                "{line:?}"
            );
            assert!(error["message"].is_string() && error["hint"].is_string());
            let mut words = line.to_vec();
            words.insert(1, "--no-such-flag");
            let (code, object) = failure(&run(&mut stage.command(program, &words), ""));
            let error = &object["error"];
            assert_eq!((code, &error["code"]), (Some(64), &json!("usage")));
            assert_eq!(error["message"], "unexpected argument --no-such-flag");
        }
    }
}

#[test]
fn the_object_of_a_failure_has_its_words() {
    let stage = Stage::new();
    let launcher = |args: &[&str]| failure(&run(&mut stage.launcher(args), ""));
    let hint = "run: sema-connector mount c -- COMMAND";
    let message = "no connector c is mounted";
    assert_eq!(
        launcher(&["status", "c", "--json"]),
        (
            Some(1),
            json!({"error": {"message": message, "hint": hint, "code": "refused"}})
        )
    );
    let done = run(
        stage
            .browser(&["mount", "--json"])
            .env("CONFIG_LOCAL_DIR", "/proc/none"),
        "",
    );
    let (code, object) = failure(&done);
    assert_eq!(
        (code, &object["error"]["code"]),
        (Some(2), &json!("failed"))
    );
    assert_eq!(launcher(&["hunter2", "--json"]).0, Some(64));
    assert_eq!(
        launcher(&["list", "--json", "hunter2"]).1["error"]["message"],
        "an argument too many"
    );
}

#[test]
fn without_json_a_failure_is_words() {
    let stage = Stage::new();
    // The word of another program's command line is not ours.
    for args in [
        &["status", "c"][..],
        &["mount", "c", "--", "no-such-program", "--json"],
    ] {
        let done = run(&mut stage.launcher(args), "");
        assert_eq!((done.code, done.stdout.as_str()), (Some(1), ""));
        assert!(done.stderr.starts_with("error: "), "{}", done.stderr);
    }
}
