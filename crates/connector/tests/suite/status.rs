//! `sema-connector status NAME`, from the outside.

use super::stage::{Stage, chmod, run};
use serde_json::{Value, json};
use std::process::Command;

/// A server with two tools, as a shell script.
const SERVER: &str = r#"while read -r line; do
    id=${line#*'"id":'}; id=${id%%[,\}]*}
    case $line in
    *'"initialize"'*) result='{"protocolVersion":"2025-11-25","capabilities":{"tools":{}}}' ;;
    *'"tools/list"'*) result='{"tools":[{"name":"a"},{"name":"b"}]}' ;;
    *) continue ;;
    esac
    echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":$result}"
done"#;

struct Mounted {
    stage: Stage,
}

impl Mounted {
    /// The connector `c`, with these options of `mount`.
    fn new(options: &[&str], command: &[&str]) -> Self {
        let stage = Stage::new();
        let args = [&["mount", "c"], options, &["--"], command].concat();
        let done = run(&mut stage.launcher(&args), "");
        assert_eq!(done.code, Some(0), "{}", done.stderr);
        Self { stage }
    }

    fn write(&self, file: &str, text: &str) {
        let path = format!("config/connectors/c/{file}");
        self.stage.write(&path, text);
    }

    fn status(&self, flags: &[&str]) -> Command {
        let mut status = self.stage.launcher(&[&["status", "c"], flags].concat());
        // How long a connector that says nothing is waited for.
        status.env("SEMA_STATUS_SECONDS", "3");
        status
    }

    fn json(&self) -> (Option<i32>, Value) {
        let done = run(&mut self.status(&["--json"]), "");
        (done.code, serde_json::from_str(&done.stdout).unwrap())
    }

    /// The lines for a person that begin with one of these words.
    fn lines(&self, headings: &[&str]) -> String {
        let done = run(&mut self.status(&[]), "");
        let text = self.stage.shown(&done.stdout);
        let mut shown = String::new();
        let mut within = false;
        for line in text.lines() {
            let heading = line.split(' ').next().unwrap();
            within = headings.contains(&heading) || (within && heading.is_empty());
            if within {
                shown.push_str(line);
                shown.push('\n');
            }
        }
        shown
    }
}

#[test]
fn the_command_the_handles_and_the_grants_are_shown() {
    let options = [
        "--require",
        "TOKEN",
        "--env",
        "KEY",
        "--env",
        "TOKEN",
        "--read",
        "/usr/share",
        "--write",
        "/var/tmp",
    ];
    let c = Mounted::new(&options, &["/bin/sh", "-c", "exit 3", "it's"]);
    let headings = ["state", "reason", "tools", "command", "handle", "grant"];
    insta::assert_snapshot!(c.lines(&headings), @r#"
    state     unauthorized
    tools     0
    command   /bin/sh -c 'exit 3' 'it'\''s'
    handle    TOKEN       not stored, required, in the program's environment: sema-connector auth c TOKEN
    handle    KEY         not stored, in the program's environment: sema-connector auth c KEY
    grant     read        /usr/share (not enforced yet)
    grant     write       /var/tmp (not enforced yet)
    "#);
    let key = run(
        &mut c.stage.launcher(&["auth", "c", "KEY"]),
        "a secret of some length",
    );
    assert_eq!(key.code, Some(0));
    c.write("TOKEN.meta.json", r#"{"secret": false}"#);
    c.write("TOKEN", "open");
    chmod(&c.stage.path("config/connectors/c/TOKEN"), 0o640);
    insta::assert_snapshot!(c.lines(&["handle"]), @"
    handle    TOKEN       refused: [STAGE]/config/connectors/c/TOKEN: is open to other users (mode 0640), required, in the program's environment
    handle    KEY         stored, a secret, in the program's environment
    ");
    for file in ["TOKEN", "TOKEN.meta.json"] {
        chmod(&c.stage.path(&format!("config/connectors/c/{file}")), 0o600);
    }
    let (code, status) = c.json();
    assert_eq!(code, Some(1));
    assert_eq!(
        status["command"],
        json!(["/bin/sh", "-c", "exit 3", "it's"])
    );
    assert_eq!(
        status["handles"],
        json!([
            {"name": "TOKEN", "stored": true, "refused": null, "required": true, "secret": false, "env": true},
            {"name": "KEY", "stored": true, "refused": null, "required": false, "secret": true, "env": true},
        ])
    );
    assert!(status["walls"]["sandbox"].is_null());
    assert_eq!(
        status["grants"],
        json!({"read": ["/usr/share"], "write": ["/var/tmp"], "env": ["KEY", "TOKEN"]})
    );
}

#[test]
fn tools_that_only_the_policy_knows_are_named() {
    let c = Mounted::new(&[], &["/bin/sh", "-c", SERVER]);
    assert_eq!(c.json().1["unknown_tools"], json!([]));
    c.write("tools.json", r#"{"allow": ["b", "B", "browser_clik"]}"#);
    let (code, status) = c.json();
    assert_eq!((code, &status["tools"]), (Some(0), &json!(["b"])));
    assert_eq!(status["unknown_tools"], json!(["B", "browser_clik"]));
    insta::assert_snapshot!(c.lines(&["state", "tools", "policy"]), @"
    state     authorized
    tools     1
    policy    egress.json absent
    policy    export.json absent
    policy    jail.json   absent
    policy    tools.json  in force
              the connector does not have: B, browser_clik
    ");
}

#[test]
fn a_connector_that_does_not_start_says_why() {
    let reason = |command: &[&str]| {
        let (code, status) = Mounted::new(&[], command).json();
        assert_eq!((code, &status["state"]), (Some(1), &json!("failed")));
        status["reason"].as_str().unwrap().to_owned()
    };
    let ends = |script| reason(&["/bin/sh", "-c", script]);
    insta::assert_snapshot!(ends("exit 7"), @"the connector ended with exit code 7");
    insta::assert_snapshot!(ends("kill -9 $$"), @"the connector ended by signal 9");
    insta::assert_snapshot!(ends("echo 'error: no disk' >&2; echo 'hint: buy one' >&2; exit 1"), @"no disk; hint: buy one");
    insta::assert_snapshot!(ends("while :; do sleep 1; done"), @"the connector did not answer within 3s");
    let c = Mounted::new(&[], &["/bin/cat"]);
    let path = c.stage.path("config/connectors/c/connector.json");
    let text = std::fs::read_to_string(path).unwrap();
    c.write("connector.json", &text.replace("/bin/cat", "/no/program"));
    insta::assert_snapshot!(c.lines(&["reason"]), @"reason    cannot start the connector: failed to execute the program: No such file or directory (os error 2)");
}

#[test]
fn the_browsers_handles_are_shown() {
    let stage = Stage::new();
    assert_eq!(run(&mut stage.browser(&["mount"]), "").code, Some(0));
    let said = || run(&mut stage.launcher(&["status", "browser"]), "").stdout;
    let handles = || {
        let said = said();
        let lines = said.lines().filter(|line| line.starts_with("handle"));
        lines.collect::<Vec<_>>().join("\n")
    };
    insta::assert_snapshot!(handles(), @"
    handle    BROWSER_STORAGE_STATE not stored, required: sema-connector-browser auth
    handle    BROWSER_EXPORT not stored
    ");
    assert_eq!(stage.auth(r#"{"export": "on"}"#).code, Some(0));
    insta::assert_snapshot!(handles(), @"
    handle    BROWSER_STORAGE_STATE stored, a secret, required
    handle    BROWSER_EXPORT stored, a switch
    ");
    assert!(said().contains("wall      sandbox     "));
}
