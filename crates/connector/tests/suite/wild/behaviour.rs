//! What the engine sees of a connector that misbehaves.

use super::{Session, TOOLS_CHANGED, comes, hex, mount, program};
use crate::suite::stage::{Stage, run};
use std::time::{Duration, Instant};

#[test]
fn one_that_ends_at_once() {
    let words = format!("err:{}", hex(b"error: no luck\n"));
    let mut session = Session::start(&[&words, "exit:3"]);
    session.send(r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}"#);
    session.send(r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#);
    session.send(r#"{"jsonrpc":"2.0","id":2,"method":"x"}"#);
    let mut answers = [session.line(), session.line(), session.line()];
    answers.sort();
    // Asked a moment earlier, the list is an open request of a connector that ends.
    let list = r#"{"jsonrpc":"2.0","id":1,"result":{"tools":[]}}"#;
    let answers = answers.join("\n").replace(list, "");
    let gone = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32013,"data":{"code":"connector.upstream_exit","connector":"c"},"message":"no luck"}}"#;
    insta::assert_snapshot!(answers.replace(gone, "").replace("\n\n", "\n"), @r#"
    {"jsonrpc":"2.0","id":0,"result":{"capabilities":{"resources":{"subscribe":true},"tools":{"listChanged":true}},"protocolVersion":"2025-06-18","serverInfo":{"name":"sema-connector","version":"0.1.0"}}}
    {"jsonrpc":"2.0","id":2,"error":{"code":-32013,"data":{"code":"connector.upstream_exit","connector":"c"},"message":"no luck"}}
    "#);
    session.answers_for_itself();
    session.ends_well();
}

#[test]
fn one_that_ends_in_the_middle_of_a_line() {
    let mut session = Session::met(&[]);
    let half = hex(br#"{"jsonrpc":"2.0","id":1002,"resu"#);
    session.call("hold");
    session.call(&format!("say:{half} exit:0"));
    insta::assert_snapshot!(session.next(3), @r#"
    {"jsonrpc":"2.0","id":1002,"error":{"code":-32013,"data":{"code":"connector.upstream_exit","connector":"c"},"message":"the connector ended with exit code 0"}}
    {"jsonrpc":"2.0","id":1003,"error":{"code":-32013,"data":{"code":"connector.upstream_exit","connector":"c"},"message":"the connector ended with exit code 0"}}
    {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}
    "#);
    session.answers_for_itself();
    session.ends_well();
}

#[test]
fn one_that_ends_without_the_end_of_its_last_line() {
    let mut session = Session::met(&[]);
    let whole = hex(br#"{"jsonrpc":"2.0","id":1002,"result":{}}"#);
    session.call(&format!("say:{whole} exit:0"));
    insta::assert_snapshot!(session.next(2), @r#"
    {"jsonrpc":"2.0","id":1002,"result":{}}
    {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}
    "#);
    session.answers_for_itself();
    session.ends_well();
}

#[test]
fn one_that_closes_its_output_and_lives() {
    let mut session = Session::met(&[]);
    session.call("hold");
    session.call("mute");
    insta::assert_snapshot!(session.next(3), @r#"
    {"jsonrpc":"2.0","id":1002,"error":{"code":-32013,"data":{"code":"connector.upstream_exit","connector":"c"},"message":"the connector ended by signal 15"}}
    {"jsonrpc":"2.0","id":1003,"error":{"code":-32013,"data":{"code":"connector.upstream_exit","connector":"c"},"message":"the connector ended by signal 15"}}
    {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}
    "#);
    session.answers_for_itself();
    session.ends_well();
}

#[test]
fn one_that_closes_its_input_and_lives() {
    let mut session = Session::met(&[]);
    session.call("hold");
    session.call("blind wait:1000000");
    session.call("never read");
    insta::assert_snapshot!(session.next(4), @r#"
    {"jsonrpc":"2.0","id":1002,"error":{"code":-32013,"data":{"code":"connector.upstream_exit","connector":"c"},"message":"the connector ended by signal 15"}}
    {"jsonrpc":"2.0","id":1003,"error":{"code":-32013,"data":{"code":"connector.upstream_exit","connector":"c"},"message":"the connector ended by signal 15"}}
    {"jsonrpc":"2.0","id":1004,"error":{"code":-32013,"data":{"code":"connector.upstream_exit","connector":"c"},"message":"the connector ended by signal 15"}}
    {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}
    "#);
    session.answers_for_itself();
    session.ends_well();
}

#[test]
fn one_that_ignores_the_signal_to_end() {
    let mut session = Session::met(&["stubborn"]);
    session.call("wait:1000000");
    let begun = Instant::now();
    let (status, rest) = session.end();
    assert!(status.success(), "{status}");
    assert!(begun.elapsed() >= Duration::from_secs(4));
    insta::assert_snapshot!(rest.join("\n"), @r#"
    {"jsonrpc":"2.0","id":1002,"error":{"code":-32013,"data":{"code":"connector.upstream_exit","connector":"c"},"message":"the launcher was stopped"}}
    {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}
    "#);
    assert!(session.processes().is_empty());
}

#[test]
fn one_that_spins() {
    let mut session = Session::met(&[]);
    session.call("spin");
    let (status, rest) = session.end();
    assert!(status.success(), "{status}");
    insta::assert_snapshot!(rest.join("\n"), @r#"
    {"jsonrpc":"2.0","id":1002,"error":{"code":-32013,"data":{"code":"connector.upstream_exit","connector":"c"},"message":"the launcher was stopped"}}
    {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}
    "#);
    assert!(session.processes().is_empty());
}

#[test]
fn one_whose_child_holds_its_output() {
    let mut session = Session::met(&[]);
    session.call("child answer");
    session.line();
    assert!(session.processes().len() >= 2);
    session.lives_on();
    session.call("exit:0");
    insta::assert_snapshot!(session.next(2), @r#"
    {"jsonrpc":"2.0","id":1004,"error":{"code":-32013,"data":{"code":"connector.upstream_exit","connector":"c"},"message":"the connector ended with exit code 0"}}
    {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}
    "#);
    session.answers_for_itself();
    comes("the end of the child", || session.processes().is_empty());
    session.ends_well();
}

#[test]
fn one_that_writes_much_to_its_standard_error() {
    let mut session = Session::met(&[]);
    let line = hex(&[b"x".repeat(99), b"\n".to_vec()].concat());
    session.call(&format!("err:50000:{line} answer"));
    session.line();
    // Of a line over the limit nothing is passed on, and nothing waits for its end.
    session.call("err:20000000:79 answer");
    session.line();
    session.lives_on();
    session.ends_well();
    let told = std::fs::read(session.stage.path("stderr")).unwrap();
    let lines = || told.split(|byte| *byte == b'\n');
    assert_eq!(
        lines().filter(|line| *line == b"x".repeat(99)).count(),
        50000
    );
    let left_out = b"sema-connector: left out a line of over 4 MiB";
    assert_eq!(lines().filter(|line| line == left_out).count(), 1);
    assert!(!String::from_utf8_lossy(&told).contains("yyy"));
}

#[test]
fn one_whose_last_words_are_endless() {
    let mut session = Session::met(&[]);
    for _ in 0..50 {
        session.call("hold");
    }
    let begin = hex(b"error: ");
    session.call(&format!("err:{begin} err:4000000:7a err:0a exit:1"));
    for _ in 0..51 {
        let line = session.line();
        assert!(
            line.contains(r#""message":"zzz"#) && line.len() < 10_000,
            "{}",
            line.len()
        );
    }
    assert_eq!(session.line(), TOOLS_CHANGED);
    session.answers_for_itself();
    session.ends_well();
}

#[test]
fn one_whose_last_words_carry_a_secret() {
    let (stage, program, secret) = (Stage::new(), program(), "correct horse battery");
    mount(
        &stage,
        &["--require", "TOKEN", "--", program.to_str().unwrap()],
    );
    let auth = run(&mut stage.launcher(&["auth", "c", "TOKEN"]), secret);
    assert_eq!(auth.code, Some(0), "{}", auth.stderr);
    let mut session = Session::run(stage);
    session.meet();
    let words = hex(format!("error: no such token: {secret}\nhint: {secret}\n").as_bytes());
    session.call(&format!("err:{words} exit:1"));
    insta::assert_snapshot!(session.next(2), @r#"
    {"jsonrpc":"2.0","id":1002,"error":{"code":-32013,"data":{"code":"connector.upstream_exit","connector":"c"},"message":"the connector ended with exit code 1"}}
    {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}
    "#);
    session.send(r#"{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"sema-connector://c/status"}}"#);
    insta::assert_snapshot!(session.next(1), @r#"{"jsonrpc":"2.0","id":1,"result":{"contents":[{"mimeType":"application/json","text":"{\"reason\":\"the connector ended with exit code 1\",\"state\":\"failed\",\"tools\":[]}","uri":"sema-connector://c/status"}]}}"#);
    session.ends_well();
    assert!(!session.stderr().contains(secret));
}

#[test]
fn one_that_is_slow() {
    let mut session = Session::met(&[]);
    let begun = Instant::now();
    session.call("wait:3000 answer");
    session.line();
    assert!(begun.elapsed() >= Duration::from_secs(3));
    session.lives_on();
    session.ends_well();
}

#[test]
fn one_that_answers_out_of_order() {
    let mut session = Session::met(&[]);
    for _ in 0..3 {
        session.call("hold");
    }
    let release = session.call("release");
    let ids = (0..4).map(|_| {
        let answer: serde_json::Value = serde_json::from_str(&session.line()).unwrap();
        answer["id"].as_u64().unwrap()
    });
    let first = u64::from(release) - 3;
    let expected = [first + 2, first + 1, first, first + 3];
    assert_eq!(ids.collect::<Vec<_>>(), expected);
    session.lives_on();
    session.ends_well();
}

/// A late answer is the engine's to ignore, and one that never comes is not made up.
#[test]
fn one_that_answers_after_cancellation() {
    let mut session = Session::met(&[]);
    let cancel = |id: u32| {
        format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#
        )
    };
    let held = session.call("hold");
    session.send(cancel(held));
    let release = session.call("release");
    for id in [held, release] {
        let line = session.line();
        assert!(line.contains(&format!(r#""id":{id},"result""#)), "{line}");
    }
    let held = session.call("hold");
    session.send(cancel(held));
    session.call("exit:0");
    insta::assert_snapshot!(session.next(2), @r#"
    {"jsonrpc":"2.0","id":1005,"error":{"code":-32013,"data":{"code":"connector.upstream_exit","connector":"c"},"message":"the connector ended with exit code 0"}}
    {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}
    "#);
    session.answers_for_itself();
    session.ends_well();
}
