//! The export of the login state with the real upstream.

use super::bare::{CLEAN, Lab, Session};
use serde_json::json;

const LOGIN: &str = r#"{"cookies":[{"name":"sid","value":"topsecret-1","domain":"127.0.0.1","path":"/","expires":-1,"httpOnly":true,"secure":false,"sameSite":"Lax"}],"origins":[]}"#;
const WITHHELD: [&str; 16] = [
    "browser_cookie_clear",
    "browser_cookie_delete",
    "browser_cookie_get",
    "browser_cookie_list",
    "browser_cookie_set",
    "browser_localstorage_clear",
    "browser_localstorage_delete",
    "browser_localstorage_get",
    "browser_localstorage_list",
    "browser_localstorage_set",
    "browser_sessionstorage_clear",
    "browser_sessionstorage_delete",
    "browser_sessionstorage_get",
    "browser_sessionstorage_list",
    "browser_sessionstorage_set",
    "browser_set_storage_state",
];

fn lab(state: &str) -> Lab {
    Lab::with_build(&[("BROWSER_STORAGE_STATE", state), ("BROWSER_EXPORT", "on")])
}

fn stored(lab: &Lab) -> String {
    std::fs::read_to_string(lab.connector.path().join("BROWSER_STORAGE_STATE")).unwrap()
}

fn call(session: &mut Session, id: &str, name: &str) -> String {
    session.send(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{name}","arguments":{{}}}}}}"#));
    session.answer(id)
}

#[test]
fn sixteen_tools_are_as_if_the_upstream_had_none_of_them() {
    let lab = lab(CLEAN);
    let mut session = lab.start();
    let tools = session.tools();
    assert_eq!(tools.len(), 26);
    assert!(tools.iter().any(|tool| tool == "browser_storage_state"));
    for name in WITHHELD {
        assert!(!tools.iter().any(|tool| tool == name), "{name}");
        call(&mut session, "\"a\"", name);
    }
    // No browser was started for them.
    let browsers = super::bare::below(session.id());
    let is_browser = |pid: &u32| {
        super::bare::proc_texts(*pid, "cmdline")
            .iter()
            .any(|text| text.contains("--type="))
    };
    assert!(!browsers.iter().any(is_browser));
    // The upstream's own words, byte for byte.
    let unknown = call(&mut session, "7", "browser_no_such_tool");
    let withheld = call(&mut session, "7", "browser_cookie_list");
    assert_eq!(
        withheld,
        unknown.replace("browser_no_such_tool", "browser_cookie_list")
    );
    session
        .send(r#"{"jsonrpc":"2.0","method":"tools/call","params":{"name":"browser_cookie_list"}}"#);
    session.send(
        r#"{"jsonrpc":"2.0","method":"tools/call","params":{"name":"browser_storage_state"}}"#,
    );
    assert_eq!(session.call("ping", json!({}))["result"], json!({}));
    assert_eq!(session.end().code(), Some(0));
    assert!(!lab.connector.path().join("BROWSER_STORAGE_STATE").exists());
}

#[test]
fn a_save_is_stored_and_leaves_no_file() {
    let lab = lab(LOGIN);
    let mut session = lab.start();
    let text = session.tool("browser_storage_state", json!({"filename": "/etc/hosts"}));
    assert!(
        text.contains("- [Storage state](./login-state-") && !text.contains("topsecret"),
        "{text}"
    );
    assert!(stored(&lab).contains("topsecret-1"));
    for id in ["\"a\"", "\"b\""] {
        session.send(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"browser_storage_state"}}}}"#));
    }
    let lines = [session.line(), session.line()];
    assert!(
        lines
            .iter()
            .all(|line| line.contains("Storage state") && !line.contains("isError")),
        "{lines:?}"
    );
    let left: Vec<_> = std::fs::read_dir(lab.out()).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
    assert_eq!(session.end().code(), Some(0));
}

#[test]
fn lines_over_four_mebibytes_pass_whole() {
    let lab = lab(CLEAN);
    let mut session = lab.start();
    let long = "x".repeat(6_000_000);
    assert_eq!(
        session.evaluate(&format!("() => '{long}'.length")),
        json!(6_000_000)
    );
    let text = session.evaluate("() => 'y'.repeat(9000000)");
    assert_eq!(text.as_str().map(str::len), Some(9_000_000));
    session.send(&format!(
        r#"{{"jsonrpc":"2.0","id":8,"method":"tools/call","params":{{"x":"{long}","name":"browser_cookie_list"}}}}"#
    ));
    assert!(session.answer("8").contains("not found"));
    assert_eq!(session.call("ping", json!({}))["result"], json!({}));
    assert_eq!(session.end().code(), Some(0));
}
