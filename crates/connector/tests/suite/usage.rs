//! What both programs say about themselves.

use crate::suite::stage::{BROWSER, LAUNCHER, Stage, mode, run};
use std::fs;
use std::process::{Command, Stdio};

/// The names of the commands, as `--help` lists them.
pub(super) fn commands(stage: &Stage, program: &str) -> Vec<String> {
    let help = run(&mut stage.command(program, &["--help"]), "").stdout;
    let list = help
        .split("Commands:\n")
        .nth(1)
        .unwrap()
        .split("\n\n")
        .next()
        .unwrap();
    let name = |line: &str| {
        let indented = line.strip_prefix("  ")?;
        (!indented.starts_with(' ')).then(|| indented.split(' ').next().unwrap().to_owned())
    };
    list.lines()
        .filter_map(name)
        .filter(|name| name != "help")
        .collect()
}

#[test]
fn every_command_shows_an_example() {
    let stage = Stage::new();
    for program in [LAUNCHER, BROWSER] {
        for command in commands(&stage, program) {
            let help = run(&mut stage.command(program, &[&command, "--help"]), "");
            assert_eq!(
                (help.code, help.stderr.as_str()),
                (Some(0), ""),
                "{command}"
            );
            assert!(
                help.stdout.contains("Example"),
                "{program} {command} has no example"
            );
        }
    }
}

#[test]
fn every_command_has_a_manual_page() {
    let stage = Stage::new();
    let folder = stage.path("man");
    fs::create_dir(&folder).unwrap();
    for (program, name) in [
        (LAUNCHER, "sema-connector"),
        (BROWSER, "sema-connector-browser"),
    ] {
        let dir = ["man", "--dir", folder.to_str().unwrap()];
        assert_eq!(run(&mut stage.command(program, &dir), "").code, Some(0));
        assert!(folder.join(format!("{name}.1")).exists());
        for command in commands(&stage, program) {
            let page = folder.join(format!("{name}-{command}.1"));
            assert_eq!(mode(&page), 0o644);
            assert!(
                fs::read_to_string(page).unwrap().contains(".SH EXTRA"),
                "{command}"
            );
        }
        let pages = fs::read_dir(&folder).unwrap().flatten();
        let names = pages.map(|page| page.file_name().into_string().unwrap());
        let about_help: Vec<String> = names.filter(|name| name.contains("help")).collect();
        assert!(about_help.is_empty(), "{about_help:?}");
        let main = run(&mut stage.command(program, &["man"]), "");
        assert!(main.stdout.contains(".TH"));
    }
}

#[test]
fn completions_are_the_shells_own() {
    let stage = Stage::new();
    for program in [LAUNCHER, BROWSER] {
        let script = run(&mut stage.command(program, &["completions", "bash"]), "");
        let path = stage.write("completion.bash", script.stdout);
        let check = run(
            &mut stage.command("/bin/bash", &["-n", path.to_str().unwrap()]),
            "",
        );
        assert_eq!((check.code, check.stderr.as_str()), (Some(0), ""));
        for shell in ["zsh", "fish"] {
            let script = run(&mut stage.command(program, &["completions", shell]), "");
            assert!(script.code == Some(0) && script.stdout.contains("completions"));
        }
    }
}

#[test]
fn a_wrong_command_line_ends_with_64() {
    let stage = Stage::new();
    let said = |args: &[&str]| run(&mut stage.launcher(args), "").said(&stage);
    let all = [
        said(&["hunter2"]),
        said(&["list", "hunter2"]),
        said(&["list", "--nonsense"]),
        said(&["completions"]),
        said(&["completions", "hunter2"]),
        said(&["man", "--dir"]),
    ];
    assert!(!all.concat().contains("hunter2"));
    insta::assert_snapshot!(all.concat(), @"
    64: error: there is no such command
    hint: sema-connector --help
    64: error: an argument too many
    hint: sema-connector list --help
    64: error: unexpected argument --nonsense
    hint: sema-connector list --help
    64: error: missing: <SHELL>
    hint: sema-connector completions --help
    64: error: <SHELL>: must be one of bash, elvish, fish, powershell, zsh
    hint: sema-connector completions --help
    64: error: --dir <DIR>: a value is missing
    hint: sema-connector man --help
    ");
    assert_eq!(run(&mut stage.launcher(&[]), "").code, Some(64));
}

#[test]
fn a_word_that_is_nearly_one_of_ours_is_told() {
    let stage = Stage::new();
    let said = |args: &[&str]| run(&mut stage.launcher(args), "").said(&stage);
    let all = [
        said(&["statsu"]),
        said(&["list", "--jsom"]),
        said(&["status", "browser", "--verfy=1"]),
        said(&["install", "browser", "--browser", "chromum"]),
        run(&mut stage.browser(&["instal"]), "").said(&stage),
    ];
    insta::assert_snapshot!(all.concat(), @"
    64: error: there is no such command
    hint: did you mean status? see sema-connector --help
    64: error: unexpected argument --jsom
    hint: did you mean --json? see sema-connector list --help
    64: error: unexpected argument --verfy
    hint: did you mean --verify? see sema-connector status --help
    64: error: --browser <BUILD>: must be one of chromium, chrome-for-testing
    hint: did you mean chromium? see sema-connector install --help
    64: error: there is no such command
    hint: did you mean list, install? see sema-connector-browser --help
    ");
}

#[test]
fn colour_is_for_terminals_only() {
    let stage = Stage::new();
    let plain = run(&mut stage.launcher(&["unmount", "x"]), "");
    assert!(!plain.stderr.contains('\x1b'));
    for (no_color, coloured) in [("", true), ("1", false)] {
        let terminal = crate::suite::terminal::Terminal::new();
        let mut unmount = stage.launcher(&["unmount", "x"]);
        unmount.env("NO_COLOR", no_color).env("TERM", "xterm");
        let shown = terminal.show(&mut unmount);
        assert_eq!(shown.contains("\x1b["), coloured, "{shown:?}");
    }
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let mut child = Command::new(LAUNCHER)
        .args(["completions", "bash"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stderr.len()), (Some(0), 0));
}
