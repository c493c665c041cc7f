//! Policy files that are only read for their form: a malformed one closes.

use super::live::{SERVER, Session, until};
use super::stage::{Stage, chmod, run};
use serde_json::json;

/// Files that are refused, with their modes.
const REFUSED: [(&str, &str, u32); 6] = [
    ("egress.json", r#"{"allow": ["#, 0o644),
    ("egress.json", r#"{"allowed": ["a.example"]}"#, 0o644),
    ("egress.json", "{}", 0o664),
    ("jail.json", r#"{"read": ["relative"]}"#, 0o600),
    ("jail.json", "", 0o600),
    ("export.json", "[]", 0o644),
];

/// One of each that is accepted.
const ACCEPTED: [(&str, &str); 3] = [
    ("egress.json", r#"{"default": "none"}"#),
    ("jail.json", r#"{"read": ["/usr/share"]}"#),
    ("export.json", "{}"),
];

fn file(name: &str) -> String {
    format!("config/connectors/c/{name}")
}

#[test]
fn a_malformed_policy_starts_nothing_until_it_is_mended() {
    let stage = Stage::new();
    run(&mut stage.launcher(&["mount", "c", "--", "/bin/cat"]), "");
    let mut said = String::new();
    for (name, text, mode) in REFUSED {
        let path = stage.write(&file(name), text);
        chmod(&path, mode);
        let mut session = Session::start(&stage, &[], SERVER);
        assert_eq!(session.tools(), "");
        let error = session.ask("tools/call", &json!({"name": "a"}))["error"].take();
        assert_eq!(error["code"], -32014);
        assert_eq!(error["data"]["code"], "connector.internal");
        let reason = error["message"].as_str().unwrap();
        assert!(reason.starts_with(path.to_str().unwrap()), "{reason}");
        assert_eq!(
            session.status(),
            json!({"state": "failed", "tools": [], "reason": reason})
        );
        said.push_str(&format!("{}\n", stage.shown(reason)));
        let status = run(&mut stage.launcher(&["status", "c"]), "");
        assert_eq!(status.code, Some(1), "{}", status.stderr);
        let (path, _) = reason.split_once("; hint: ").unwrap();
        let refused = format!("refused, nothing is started: {path}");
        assert!(status.stdout.contains(&refused), "{}", status.stdout);
        std::fs::remove_file(stage.path(&file(name))).unwrap();
        session.await_tools("abc");
    }
    insta::assert_snapshot!(said, @"
    [STAGE]/config/connectors/c/egress.json: is not a policy: not JSON: EOF while parsing a list (line 1, column 11); hint: mend the file, or remove it
    [STAGE]/config/connectors/c/egress.json: is not a policy: unknown field `allowed`, expected one of `default`, `allow`, `deny`, `private`, `tcp` (line 1, column 10); hint: mend the file, or remove it
    [STAGE]/config/connectors/c/egress.json: can be written by other users (mode 0664); hint: chmod go-w '[STAGE]/config/connectors/c/egress.json'
    [STAGE]/config/connectors/c/jail.json: is not a policy: expected an absolute path (line 1, column 21); hint: mend the file, or remove it
    [STAGE]/config/connectors/c/jail.json: is not a policy: empty (line 1, column 1); hint: mend the file, or remove it
    [STAGE]/config/connectors/c/export.json: is not a policy: not a JSON object (line 1, column 1); hint: mend the file, or remove it
    ");
}

#[test]
fn a_refused_call_names_the_tool_and_the_file_that_allows_it() {
    let stage = Stage::new();
    run(&mut stage.launcher(&["mount", "c", "--", "/bin/cat"]), "");
    stage.write(&file("tools.json"), r#"{"allow": ["a"]}"#);
    let mut session = Session::start(&stage, &[], SERVER);
    let mut said = String::new();
    for params in [
        json!({"name": "b"}),
        json!({"name": "b".repeat(1000)}),
        json!({}),
    ] {
        let error = session.ask("tools/call", &params)["error"].take();
        assert_eq!(error["code"], -32011);
        said.push_str(error["message"].as_str().unwrap());
        said.push('\n');
    }
    insta::assert_snapshot!(said, @r#"
    connectors/c/tools.json does not allow b; hint: to allow it, add it to "allow" there
    connectors/c/tools.json does not allow a tool of so long a name
    connectors/c/tools.json allows no call without a tool's name
    "#);
}

#[test]
fn a_well_formed_policy_is_accepted_and_said_to_be_unenforced() {
    let stage = Stage::new();
    run(&mut stage.launcher(&["mount", "c", "--", "/bin/cat"]), "");
    for (name, text) in ACCEPTED {
        stage.write(&file(name), text);
    }
    let mut session = Session::start(&stage, &[], SERVER);
    assert_eq!(session.tools(), "abc");
    for (name, _) in ACCEPTED {
        let words = format!("{name} is not enforced by this version");
        until(|| session.said(&words) == 1);
    }
    let status = run(&mut stage.launcher(&["status", "c"]), "");
    let words = "well formed, not enforced by this version";
    assert_eq!(
        (status.code, status.stdout.matches(words).count()),
        (Some(0), 3)
    );
}
