//! `mount`, `unmount` and `list` of both programs, from the outside.

use crate::suite::stage::{BROWSER, Done, LAUNCHER, Stage, chmod, mode, run};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

fn catalog(stage: &Stage) -> String {
    fs::read_to_string(stage.config().join("catalog.json")).unwrap()
}

fn launcher(stage: &Stage, args: &[&str]) -> Done {
    run(&mut stage.launcher(args), "")
}

fn browser(stage: &Stage, args: &[&str]) -> Done {
    run(&mut stage.browser(args), "")
}

fn json(done: &Done) -> serde_json::Value {
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    serde_json::from_str(&done.stdout).unwrap()
}

#[test]
fn the_browser_is_mounted_listed_and_unmounted() {
    let stage = Stage::new();
    let done = browser(&stage, &["mount"]);
    assert_eq!((done.code, done.stderr.as_str()), (Some(0), ""));
    insta::assert_snapshot!(stage.shown(&done.stdout), @r#"
    mounted browser in [STAGE]/config/catalog.json
      starts     [BIN]/sema-connector-browser
      not stored BROWSER_STORAGE_STATE: echo '{}' | sema-connector-browser auth

    Claude Code (run this):

      claude mcp add --scope user --env 'CONFIG_LOCAL_DIR=[STAGE]/config' --transport stdio browser -- [BIN]/sema-connector run browser

    Claude Desktop (claude_desktop_config.json):

      {
        "mcpServers": {
          "browser": {
            "command": "[BIN]/sema-connector",
            "args": ["run", "browser"],
            "env": { "CONFIG_LOCAL_DIR": "[STAGE]/config" }
          }
        }
      }

    Cursor (~/.cursor/mcp.json):

      {
        "mcpServers": {
          "browser": {
            "command": "[BIN]/sema-connector",
            "args": ["run", "browser"],
            "env": { "CONFIG_LOCAL_DIR": "[STAGE]/config" }
          }
        }
      }

    VS Code (.vscode/mcp.json, or "MCP: Open User Configuration"):

      {
        "servers": {
          "browser": {
            "type": "stdio",
            "command": "[BIN]/sema-connector",
            "args": ["run", "browser"],
            "env": { "CONFIG_LOCAL_DIR": "[STAGE]/config" }
          }
        }
      }

    Codex (~/.codex/config.toml):

      [mcp_servers.browser]
      command = "[BIN]/sema-connector"
      args = ["run", "browser"]
      env = { CONFIG_LOCAL_DIR = "[STAGE]/config" }

    Gemini CLI (~/.gemini/settings.json):

      {
        "mcpServers": {
          "browser": {
            "command": "[BIN]/sema-connector",
            "args": ["run", "browser"],
            "env": { "CONFIG_LOCAL_DIR": "[STAGE]/config" }
          }
        }
      }

    Zed (settings.json):

      {
        "context_servers": {
          "browser": {
            "source": "custom",
            "command": "[BIN]/sema-connector",
            "args": ["run", "browser"],
            "env": { "CONFIG_LOCAL_DIR": "[STAGE]/config" }
          }
        }
      }
    "#);
    let manifest = fs::read_to_string(stage.browser_dir("connector.json")).unwrap();
    insta::assert_snapshot!(stage.shown(&format!("{}{manifest}", catalog(&stage))), @r#"
    {
      "connectors": {
        "browser": {"command":"[BIN]/sema-connector","args":["run","browser"]}
      }
    }
    {
      "command": [
        "[BIN]/sema-connector-browser"
      ],
      "handles": [
        "BROWSER_STORAGE_STATE",
        "BROWSER_EXPORT"
      ],
      "required": [
        "BROWSER_STORAGE_STATE"
      ],
      "confined": "by-itself",
      "read": [],
      "write": [],
      "env": []
    }
    "#);
    assert_eq!(mode(&stage.config().join("catalog.json")), 0o600);
    assert_eq!(mode(&stage.browser_dir("connector.json")), 0o600);
    for program in [LAUNCHER, BROWSER] {
        let list = run(&mut stage.command(program, &["list"]), "");
        assert_eq!(
            (list.stdout.as_str(), list.stderr.as_str()),
            ("browser\n", "")
        );
        let list = run(&mut stage.command(program, &["list", "--json"]), "");
        let expected = serde_json::json!({"connectors": [
            {"name": "browser", "command": LAUNCHER, "args": ["run", "browser"]}
        ]});
        assert_eq!(json(&list), expected);
    }
    stage.auth("{}");
    let again = browser(&stage, &["mount"]);
    assert!(!again.stdout.contains("not stored"));
    let done = browser(&stage, &["unmount"]);
    assert_eq!(done.said(&stage), "0: unmounted browser\n");
    assert_eq!(catalog(&stage), "{\n  \"connectors\": {}\n}\n");
    assert!(!stage.browser_dir("connector.json").exists());
    assert!(stage.browser_dir("BROWSER_STORAGE_STATE").exists());
    assert_eq!(
        browser(&stage, &["unmount"]).said(&stage),
        "1: error: browser is not mounted\n"
    );
    assert_eq!(launcher(&stage, &["list"]).stdout, "");
}

#[test]
fn nothing_is_listed_before_anything_is_mounted() {
    let stage = Stage::new();
    assert_eq!(
        json(&launcher(&stage, &["list", "--json"])),
        serde_json::json!({"connectors": []})
    );
    assert_eq!(
        browser(&stage, &["unmount"]).said(&stage),
        "1: error: browser is not mounted\n"
    );
    assert!(!stage.config().exists());
}

#[test]
fn a_foreign_entry_is_left_alone_and_never_listed() {
    let stage = Stage::new();
    browser(&stage, &["mount"]);
    let ours = catalog(&stage);
    for (find, replace) in [
        ("\"run\",", "\"run\",\"--fast\","),
        ("/sema-connector\"", "/other-program\""),
        ("\"args\"", "\"env\":{},\"args\""),
        ("\"command\":\"/", "\"command\":\"./"),
    ] {
        let foreign = ours.replace(find, replace);
        assert_ne!(foreign, ours);
        let path = stage.config().join("catalog.json");
        fs::write(&path, &foreign).unwrap();
        let said = [browser(&stage, &["mount"]), browser(&stage, &["unmount"])];
        for done in said {
            assert_eq!(
                done.said(&stage),
                "1: error: [STAGE]/config/catalog.json: the entry browser is not what mount writes\n\
                 hint: it was left alone; remove it by hand if nothing needs it\n"
            );
        }
        assert_eq!(launcher(&stage, &["list"]).stdout, "");
        assert_eq!(fs::read_to_string(&path).unwrap(), foreign);
    }
}

#[test]
fn what_else_is_in_the_catalog_keeps_its_bytes() {
    let stage = Stage::new();
    browser(&stage, &["mount"]);
    let theirs =
        r#"{ "version" : 1.50, "connectors": {"their\u0073": { "x":1e2 }}, "é": "\u00e9" }"#;
    fs::write(stage.config().join("catalog.json"), theirs).unwrap();
    browser(&stage, &["mount"]);
    insta::assert_snapshot!(stage.shown(&catalog(&stage)), @r#"
    {
      "version": 1.50,
      "connectors": {
        "their\u0073": { "x":1e2 },
        "browser": {"command":"[BIN]/sema-connector","args":["run","browser"]}
      },
      "é": "\u00e9"
    }
    "#);
    browser(&stage, &["unmount"]);
    insta::assert_snapshot!(catalog(&stage), @r#"
    {
      "version": 1.50,
      "connectors": {
        "their\u0073": { "x":1e2 }
      },
      "é": "\u00e9"
    }
    "#);
}

#[test]
fn a_broken_or_open_catalog_is_refused() {
    let stage = Stage::new();
    browser(&stage, &["mount"]);
    let path = stage.config().join("catalog.json");
    let mut said = String::new();
    for text in [
        "",
        "[]",
        r#"{"connectors": 1}"#,
        r#"{"connectors":{},"connectors":{}}"#,
    ] {
        fs::write(&path, text).unwrap();
        for args in [["mount"], ["unmount"], ["list"]] {
            said.push_str(&browser(&stage, &args).said(&stage));
        }
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
    }
    fs::write(&path, "{}").unwrap();
    chmod(&path, 0o664);
    said.push_str(&browser(&stage, &["mount"]).said(&stage));
    chmod(&path, 0o644);
    assert_eq!(browser(&stage, &["mount"]).code, Some(0));
    fs::write(stage.browser_dir("connector.json"), "{}").unwrap();
    said.push_str(&browser(&stage, &["unmount"]).said(&stage));
    insta::assert_snapshot!(said, @r#"
    1: error: [STAGE]/config/catalog.json: not JSON at byte 0
    hint: mend it by hand, or move it away and mount again
    1: error: [STAGE]/config/catalog.json: not JSON at byte 0
    hint: mend it by hand, or move it away and mount again
    1: error: [STAGE]/config/catalog.json: not JSON at byte 0
    hint: mend it by hand, or move it away and mount again
    1: error: [STAGE]/config/catalog.json: not a JSON object
    hint: mend it by hand, or move it away and mount again
    1: error: [STAGE]/config/catalog.json: not a JSON object
    hint: mend it by hand, or move it away and mount again
    1: error: [STAGE]/config/catalog.json: not a JSON object
    hint: mend it by hand, or move it away and mount again
    1: error: [STAGE]/config/catalog.json: "connectors" is not a JSON object
    hint: mend it by hand, or move it away and mount again
    1: error: [STAGE]/config/catalog.json: "connectors" is not a JSON object
    hint: mend it by hand, or move it away and mount again
    1: error: [STAGE]/config/catalog.json: "connectors" is not a JSON object
    hint: mend it by hand, or move it away and mount again
    1: error: [STAGE]/config/catalog.json: the key connectors is given twice
    hint: mend it by hand, or move it away and mount again
    1: error: [STAGE]/config/catalog.json: the key connectors is given twice
    hint: mend it by hand, or move it away and mount again
    1: error: [STAGE]/config/catalog.json: the key connectors is given twice
    hint: mend it by hand, or move it away and mount again
    1: error: [STAGE]/config/catalog.json: can be written by other users (mode 0664)
    hint: chmod go-w '[STAGE]/config/catalog.json'
    1: error: [STAGE]/config/connectors/browser/connector.json: is not what mount writes: connector.json: missing field `command` (line 1, column 2)
    hint: it was left alone; remove it by hand if nothing needs it
    "#);
}

#[test]
fn any_program_is_mounted_with_what_it_may_see() {
    let stage = Stage::new();
    let server = stage.write("server.py", "");
    let data = stage.path("data é");
    fs::create_dir(&data).unwrap();
    let home = stage.path("home");
    let args = [
        "mount",
        "notes",
        "--require",
        "TOKEN",
        "--env",
        "KEY",
        "--env",
        "TOKEN",
        "--read",
        home.to_str().unwrap(),
        "--write",
        data.to_str().unwrap(),
        "--",
        "sh",
        server.to_str().unwrap(),
        "--verbose",
        "/no/such/path",
        "",
    ];
    let refused = launcher(&stage, &args);
    assert_eq!(refused.code, Some(1));
    fs::create_dir(stage.path("home/site-packages")).unwrap();
    let mut args = args;
    let packages = stage.path("home/site-packages");
    args[9] = packages.to_str().unwrap();
    let done = launcher(&stage, &args);
    assert_eq!((done.code, done.stderr.as_str()), (Some(0), ""));
    let summary = done.stdout.split("Claude Code").next().unwrap();
    insta::assert_snapshot!(stage.shown(summary), @"
    mounted notes in [STAGE]/config/catalog.json
      may read   the system's programs and libraries
      may read   /usr/bin/sh
      may read   [STAGE]/server.py
      may read   [STAGE]/home/site-packages
      may write  [STAGE]/data é
      gets       KEY as a variable of its own environment
      gets       TOKEN as a variable of its own environment
      note       what it may read and write is not enforced yet: it sees every file that you can see
      not stored TOKEN: sema-connector auth notes TOKEN
      not stored KEY: sema-connector auth notes KEY
    ");
    let manifest = stage.config().join("connectors/notes/connector.json");
    insta::assert_snapshot!(stage.shown(&fs::read_to_string(manifest).unwrap()), @r#"
    {
      "command": [
        "/usr/bin/sh",
        "[STAGE]/server.py",
        "--verbose",
        "/no/such/path",
        ""
      ],
      "handles": [
        "TOKEN",
        "KEY"
      ],
      "required": [
        "TOKEN"
      ],
      "confined": "by-launcher",
      "read": [
        "[STAGE]/home/site-packages"
      ],
      "write": [
        "[STAGE]/data é"
      ],
      "env": [
        "KEY",
        "TOKEN"
      ]
    }
    "#);
    assert_eq!(launcher(&stage, &["list"]).stdout, "notes\n");
    let other = json(&launcher(
        &stage,
        &["mount", "cat", "--json", "--", "/bin/cat"],
    ));
    assert_eq!(
        other["connector"]["command"],
        serde_json::json!(["/bin/cat"])
    );
    assert_eq!(other["engine"]["args"], serde_json::json!(["run", "cat"]));
    assert_eq!(launcher(&stage, &["list"]).stdout, "notes\ncat\n");
    assert_eq!(
        launcher(&stage, &["unmount", "notes"]).said(&stage),
        "0: unmounted notes\n"
    );
    assert_eq!(launcher(&stage, &["list"]).stdout, "cat\n");
}

#[test]
fn a_virtual_environments_python_keeps_its_path() {
    let stage = Stage::new();
    fs::create_dir_all(stage.path("venv/bin")).unwrap();
    symlink("/bin/sh", stage.path("venv/bin/python")).unwrap();
    let python = stage.path("venv/bin/python");
    let mounted = json(&launcher(
        &stage,
        &["mount", "py", "--json", "--", python.to_str().unwrap()],
    ));
    assert_eq!(mounted["connector"]["command"][0], python.to_str().unwrap());
}

#[test]
fn what_mount_refuses() {
    let stage = Stage::new();
    let plain = stage.write("plain", "");
    chmod(&plain, 0o644);
    fs::create_dir_all(stage.config().join("connectors/other")).unwrap();
    for below in ["", "connectors", "connectors/other"] {
        chmod(&stage.config().join(below), 0o700);
    }
    symlink(stage.path("home"), stage.path("link")).unwrap();
    let at = |below: &str| stage.path(below).to_str().unwrap().to_owned();
    let mount = |args: &[&str]| launcher(&stage, &[&["mount", "x"], args].concat()).said(&stage);
    let said = [
        mount(&["--", "/bin/cat", "/"]),
        mount(&["--", "/bin/cat", "/proc/self/environ"]),
        mount(&["--", "/bin/cat", &at("home")]),
        mount(&["--", "/bin/cat", &at("link")]),
        mount(&["--", "/bin/cat", &at("home/..")]),
        mount(&["--", "/bin/cat", &at("config")]),
        mount(&["--", "/bin/cat", &at("config/connectors/other")]),
        mount(&["--read", "/", "--", "/bin/cat"]),
        mount(&["--write", "relative", "--", "/bin/cat"]),
        mount(&["--read", &at("missing"), "--", "/bin/cat"]),
        mount(&["--", "./server"]),
        mount(&["--", "no-such-program"]),
        mount(&["--", &at("missing")]),
        mount(&["--", &at("plain")]),
        mount(&["--", &at("home")]),
        mount(&[]),
        mount(&["/bin/cat"]),
        mount(&["--require", "token", "--", "/bin/cat"]),
        launcher(&stage, &["mount", "X", "--", "/bin/cat"]).said(&stage),
        launcher(&stage, &["mount", "browser", "--", "/bin/cat"]).said(&stage),
        launcher(&stage, &["unmount", "x"]).said(&stage),
        launcher(&stage, &["unmount"]).said(&stage),
    ];
    assert!(!stage.config().join("catalog.json").exists());
    assert!(!stage.config().join("connectors/x").exists());
    insta::assert_snapshot!(said.concat(), @"
    1: error: /: is the whole disk
    hint: a program behind walls is not given that; name what it needs with --read or --write
    1: error: /proc/self/environ: is in /proc
    hint: a program behind walls is not given that; name what it needs with --read or --write
    1: error: '[STAGE]/home': is your home folder
    hint: a program behind walls is not given that; name what it needs with --read or --write
    1: error: '[STAGE]/link': is your home folder
    hint: a program behind walls is not given that; name what it needs with --read or --write
    1: error: '[STAGE]/home/..': holds your home folder
    hint: a program behind walls is not given that; name what it needs with --read or --write
    1: error: '[STAGE]/config': is the configuration directory
    hint: a program behind walls is not given that; name what it needs with --read or --write
    1: error: '[STAGE]/config/connectors/other': is inside the configuration directory
    hint: a program behind walls is not given that; name what it needs with --read or --write
    1: error: --read /: is the whole disk
    hint: name one file or folder that the program needs, by its absolute path
    1: error: --write relative: is not an absolute path
    hint: name one file or folder that the program needs, by its absolute path
    1: error: --read '[STAGE]/missing': does not exist
    hint: name one file or folder that the program needs, by its absolute path
    1: error: COMMAND is a relative path
    hint: name it by its absolute path: '[STAGE]/home/server'
    1: error: COMMAND is not found in PATH
    hint: name the program by its absolute path
    1: error: [STAGE]/missing: is not a program that can be run
    hint: check that the file is there and executable
    1: error: [STAGE]/plain: is not a program that can be run
    hint: check that the file is there and executable
    1: error: [STAGE]/home: is not a program that can be run
    hint: check that the file is there and executable
    64: error: missing: <COMMAND>...
    hint: sema-connector mount --help
    64: error: an argument too many
    hint: sema-connector mount --help
    64: error: --require <HANDLE>: a handle must match [A-Z][A-Z0-9_]{0,63}
    hint: sema-connector mount --help
    64: error: <NAME>: a connector's name must match [a-z][a-z0-9-]{0,31}
    hint: sema-connector mount --help
    1: error: browser is the name of the browser connector
    hint: choose another name, or: sema-connector-browser mount
    1: error: x is not mounted
    64: error: missing: <NAME>
    hint: sema-connector unmount --help
    ");
}

/// Copies the programs into a folder of any name and returns its path.
fn programs(stage: &Stage, folder: &str) -> std::path::PathBuf {
    let folder = stage.path(folder);
    fs::create_dir_all(&folder).unwrap();
    for program in [LAUNCHER, BROWSER] {
        fs::copy(
            program,
            folder.join(Path::new(program).file_name().unwrap()),
        )
        .unwrap();
    }
    folder
}

#[test]
fn the_snippets_hold_at_any_path() {
    let stage = Stage::new();
    let folder = programs(&stage, "it's \"my\" tools é $HOME `x`");
    let mut mount = stage.command(folder.join("sema-connector-browser"), &["mount"]);
    let done = run(&mut mount, "");
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    let launcher = folder.join("sema-connector").to_str().unwrap().to_owned();
    let config = stage.config().to_str().unwrap().to_owned();
    let mut clients = 0;
    for (title, snippet) in sections(&done.stdout) {
        clients += 1;
        if title.starts_with("Claude Code") {
            assert_eq!(
                shell_words(&stage, &snippet),
                [
                    "mcp",
                    "add",
                    "--scope",
                    "user",
                    "--env",
                    &format!("CONFIG_LOCAL_DIR={config}"),
                    "--transport",
                    "stdio",
                    "browser",
                    "--",
                    &launcher,
                    "run",
                    "browser",
                ]
            );
            continue;
        }
        if title.starts_with("Codex") {
            assert!(snippet.starts_with("[mcp_servers.browser]\n"));
            let command = snippet
                .lines()
                .nth(1)
                .unwrap()
                .strip_prefix("command = ")
                .unwrap();
            assert_eq!(serde_json::from_str::<String>(command).unwrap(), launcher);
            continue;
        }
        let value: serde_json::Value = serde_json::from_str(&snippet).unwrap();
        let key = match title.split(' ').next().unwrap() {
            "VS" => "servers",
            "Zed" => "context_servers",
            _ => "mcpServers",
        };
        let server = &value[key]["browser"];
        assert_eq!(server["command"], launcher.as_str(), "{title}");
        assert_eq!(server["args"], serde_json::json!(["run", "browser"]));
        assert_eq!(server["env"]["CONFIG_LOCAL_DIR"], config.as_str());
    }
    assert_eq!(clients, 7);
}

/// Each client's name with its snippet, the indentation taken off.
fn sections(output: &str) -> Vec<(String, String)> {
    let mut sections: Vec<(String, String)> = Vec::new();
    for line in output
        .lines()
        .skip_while(|line| !line.starts_with("Claude Code"))
    {
        match line.strip_prefix("  ") {
            Some(line) => {
                let (_, snippet) = sections.last_mut().unwrap();
                snippet.push_str(line);
                snippet.push('\n');
            }
            None if line.is_empty() => {}
            None => sections.push((line.to_owned(), String::new())),
        }
    }
    sections
}

/// What a shell hands to the command `claude`.
fn shell_words(stage: &Stage, line: &str) -> Vec<String> {
    let script = format!("claude() {{ printf '%s\\0' \"$@\"; }}\n{line}");
    let done = run(&mut stage.command("/bin/sh", &["-c", &script]), "");
    done.stdout
        .trim_end_matches('\0')
        .split('\0')
        .map(ToOwned::to_owned)
        .collect()
}

#[test]
fn without_its_other_program_the_browser_is_not_mounted() {
    let stage = Stage::new();
    let folder = programs(&stage, "bin");
    fs::remove_file(folder.join("sema-connector")).unwrap();
    let mut mount = stage.command(folder.join("sema-connector-browser"), &["mount"]);
    insta::assert_snapshot!(run(&mut mount, "").said(&stage), @"
    1: error: [STAGE]/bin/sema-connector: is not a program that can be run
    hint: check that the file is there and executable
    ");
    assert!(!stage.config().exists());
}

#[test]
fn programs_that_moved_mount_over_their_old_entry() {
    let stage = Stage::new();
    browser(&stage, &["mount"]);
    let folder = programs(&stage, "moved");
    let mut mount = stage.command(folder.join("sema-connector-browser"), &["mount"]);
    assert_eq!(run(&mut mount, "").code, Some(0));
    assert!(catalog(&stage).contains("/moved/sema-connector\""));
    assert_eq!(browser(&stage, &["unmount"]).code, Some(0));
}

#[test]
fn mounts_at_once_lose_nothing() {
    let stage = Stage::new();
    std::thread::scope(|scope| {
        for index in 0..12 {
            let stage = &stage;
            scope.spawn(move || {
                let name = format!("c{index}");
                let done = launcher(stage, &["mount", &name, "--", "/bin/cat"]);
                assert_eq!(done.code, Some(0), "{}", done.stderr);
            });
        }
    });
    assert_eq!(launcher(&stage, &["list"]).stdout.lines().count(), 12);
}

#[test]
fn killed_at_any_step_mount_can_be_made_good() {
    let stage = Stage::new();
    for step in 1.. {
        let mut mount = stage.browser(&["mount"]);
        let done = run(mount.env("SEMA_FAULT", step.to_string()), "");
        let listed = launcher(&stage, &["list"]).stdout == "browser\n";
        assert!(
            !listed || stage.browser_dir("connector.json").exists(),
            "step {step}"
        );
        if done.code == Some(0) {
            assert!(step > 8 && listed);
            break;
        }
        let unmounted = browser(&stage, &["unmount"]);
        assert!(
            matches!(unmounted.code, Some(0 | 1)),
            "step {step}: {}",
            unmounted.stderr
        );
    }
}

#[test]
fn a_path_that_json_cannot_hold_is_refused() {
    use std::os::unix::ffi::OsStrExt;
    let stage = Stage::new();
    let config = stage.path("").join(std::ffi::OsStr::from_bytes(b"caf\xe9"));
    let mut auth = stage.browser(&["auth"]);
    assert_eq!(
        run(auth.env("CONFIG_LOCAL_DIR", &config), "{}").code,
        Some(0)
    );
    let mut mount = stage.browser(&["mount"]);
    let done = run(mount.env("CONFIG_LOCAL_DIR", &config), "");
    insta::assert_snapshot!(done.said(&stage), @"1: error: [STAGE]/caf�: the path is not UTF-8, which JSON cannot hold");
    assert!(!config.join("catalog.json").exists());
}
