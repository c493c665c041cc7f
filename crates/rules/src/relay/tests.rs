//! Every spelling of a call, and every answer of a save.

use super::*;
use proptest::prelude::*;

const TOOLS: Tools<'static> = Tools {
    withheld: &["browser_cookie_list", "browser_cookie_set"],
    save: "browser_storage_state",
};

fn relay() -> Relay<'static> {
    Relay::new(TOOLS, "/l/out")
}

fn down(line: &str) -> String {
    match relay().from_engine(line.as_bytes(), || Ok("f1".into())) {
        Down::Pass => "pass".into(),
        Down::Drop => "drop".into(),
        Down::Send(line) => format!("send {}", String::from_utf8(line).unwrap()),
        Down::Answer(line) => format!("answer {}", String::from_utf8(line).unwrap()),
    }
}

#[test]
fn a_withheld_call_is_answered_in_the_upstreams_words() {
    let answer = "answer {\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"### Error\\nTool \\\"browser_cookie_list\\\" not found\"}],\"isError\":true},\"jsonrpc\":\"2.0\",\"id\":1.0}\n";
    for name in [
        "browser_cookie_list",
        r"browser\u005fcookie_list",
        r"\u0062rowser_cookie_list",
    ] {
        for method in ["tools/call", r"tools\/call", r"t\u006fols/call"] {
            let line = format!(
                r#"{{"jsonrpc":"2.0","id":1.0,"method":"{method}","params":{{"n\u0061me":"{name}"}}}}"#
            );
            assert_eq!(down(&line), answer, "{line}");
            assert_eq!(down(&line.replace(r#""id":1.0,"#, "")), "drop");
        }
    }
}

#[test]
fn a_call_with_two_names_never_passes() {
    for params in [
        r#"{"name":"browser_click","name":"browser_cookie_list"}"#,
        r#"{"name":"browser_cookie_list","name":"browser_click"}"#,
        r#"{"name":"browser_click","Name":"browser_cookie_list"}"#,
    ] {
        let line = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}"#);
        insta::allow_duplicates! {
            insta::assert_snapshot!(down(&line), @r#"answer {"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"invalid request: \"name\" occurs twice"}}"#);
        }
    }
    for line in [
        r#"{"jsonrpc":"2.0","id":1,"method":"x","method":"tools/call","params":{"name":"browser_cookie_list"}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{},"params":{"name":"browser_cookie_list"}}"#,
        r#"{"jsonrpc":"\u0032.0","id":1,"method":"tools/call","params":{"name":"browser_cookie_list"}}"#,
        r#"[{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"browser_cookie_list"}}]"#,
        r#"{"jsonrpc":"2.0","id":1.5,"method":"tools/call","params":{"name":"browser_cookie_list"}}"#,
    ] {
        assert!(down(line).starts_with("answer {"), "{line}");
        assert!(down(line).contains("-32600"), "{line}");
    }
}

#[test]
fn broken_utf8_hides_no_call() {
    let line = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"browser_cookie_list\",\"x\":\"\xff\"}}\n";
    assert!(matches!(
        relay().from_engine(line, || Ok("f".into())),
        Down::Answer(_)
    ));
    let save = String::from_utf8_lossy(line)
        .replace("cookie_list", "storage_state")
        .replace('\u{fffd}', "y");
    let save = [&save.as_bytes()[..save.len() - 4], b"\xff\"}}\n"].concat();
    assert!(matches!(
        relay().from_engine(&save, || Ok("f".into())),
        Down::Answer(_)
    ));
    assert_eq!(
        relay().from_engine(b"\xff\xfe\n", || Ok("f".into())),
        Down::Pass
    );
}

#[test]
fn a_save_names_our_file_and_keeps_every_other_byte() {
    insta::assert_snapshot!(
        down(r#" {"id":"a\/b","params":{"_meta":{"p":1e2},"arguments": {"filename":"/etc/x"} ,"name":"browser_storage_state"},"method":"tools/call","jsonrpc":"2.0"}"#),
        @r#"send  {"id":"a\/b","params":{"_meta":{"p":1e2},"arguments": {"filename":"/l/out/f1"} ,"name":"browser_storage_state"},"method":"tools/call","jsonrpc":"2.0"}"#
    );
    insta::assert_snapshot!(
        down(r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"browser_storage_state"}}"#),
        @r#"send {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"arguments":{"filename":"/l/out/f1"},"name":"browser_storage_state"}}"#
    );
    let twice = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"browser_storage_state","arguments":{},"arguments":{}}}"#;
    assert!(down(twice).starts_with("answer"), "{}", down(twice));
    assert_eq!(
        down(
            r#"{"jsonrpc":"2.0","method":"tools/call","params":{"name":"browser_storage_state"}}"#
        ),
        "drop"
    );
}

const SAVE: &[u8] =
    br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"browser_storage_state"}}"#;

#[test]
fn the_answer_of_a_save_is_known_by_its_id() {
    for (answer, expected) in [
        (
            r#"{"result":{"content":[]},"jsonrpc":"2.0","id":1}"#,
            Up::Saved("f1".into()),
        ),
        (
            r#"{"result":{"isError":false},"jsonrpc":"2.0","id":1}"#,
            Up::Saved("f1".into()),
        ),
        (
            r#"{"result":{"isError":true},"jsonrpc":"2.0","id":1}"#,
            Up::NotSaved("f1".into()),
        ),
        (
            r#"{"result":{"isError":false,"isError":true},"jsonrpc":"2.0","id":1}"#,
            Up::NotSaved("f1".into()),
        ),
        (
            r#"{"result":{},"error":{},"jsonrpc":"2.0","id":1}"#,
            Up::NotSaved("f1".into()),
        ),
        (
            r#"{"error":{"code":1,"message":""},"jsonrpc":"2.0","id":1}"#,
            Up::NotSaved("f1".into()),
        ),
        (
            r#"{"result":{"content":[]},"jsonrpc":"2.0","id":"1"}"#,
            Up::Pass,
        ),
        (r#"{"method":"ping","jsonrpc":"2.0","id":1}"#, Up::Pass),
    ] {
        let mut relay = relay();
        relay.from_engine(SAVE, || Ok("f1".into()));
        assert_eq!(relay.from_upstream(answer.as_bytes()), expected, "{answer}");
    }
}

#[test]
fn two_saves_have_two_files_and_one_id_is_open_once() {
    let mut relay = relay();
    let second = SAVE
        .iter()
        .map(|&byte| if byte == b'1' { b'2' } else { byte })
        .collect::<Vec<_>>();
    relay.from_engine(SAVE, || Ok("f1".into()));
    assert!(matches!(
        relay.from_engine(&second, || Ok("f2".into())),
        Down::Send(_)
    ));
    assert!(matches!(
        relay.from_engine(SAVE, || Ok("f3".into())),
        Down::Answer(_)
    ));
    assert_eq!(relay.open_files().count(), 2);
    assert_eq!(
        relay.from_upstream(br#"{"result":{},"jsonrpc":"2.0","id":2}"#),
        Up::Saved("f2".into())
    );
    assert_eq!(
        relay.from_upstream(br#"{"result":{},"jsonrpc":"2.0","id":1.0}"#),
        Up::Saved("f1".into())
    );
    assert_eq!(
        relay.from_upstream(br#"{"result":{},"jsonrpc":"2.0","id":1}"#),
        Up::Pass
    );
}

#[test]
fn the_list_loses_what_is_withheld() {
    let list = br#"{"result":{"tools":[{"name":"browser_click"},{"name":"browser\u005fcookie_set"},{"name":"browser_storage_state"}]},"jsonrpc":"2.0","id":2}"#;
    let Up::Send(cut) = relay().from_upstream(list) else {
        panic!("not cut")
    };
    insta::assert_snapshot!(String::from_utf8(cut).unwrap(), @r#"{"result":{"tools":[{"name":"browser_click"},{"name":"browser_storage_state"}]},"jsonrpc":"2.0","id":2}"#);
    let twice = br#"{"result":{"tools":[],"tools":[{"name":"browser_cookie_set"}]},"jsonrpc":"2.0","id":2}"#;
    let Up::Send(refused) = relay().from_upstream(twice) else {
        panic!("passed")
    };
    assert!(!String::from_utf8(refused).unwrap().contains("cookie"));
}

#[test]
fn a_save_that_was_not_stored_says_why() {
    let line = not_stored(
        br#"{"result":{"content":[]},"jsonrpc":"2.0","id":"a"}"#,
        "the file is over 4 MiB",
    );
    insta::assert_snapshot!(String::from_utf8(line).unwrap(), @r####"{"result":{"content":[{"type":"text","text":"### Error\nThe login state was not stored: the file is over 4 MiB"}],"isError":true},"jsonrpc":"2.0","id":"a"}"####);
}

#[test]
fn a_line_that_was_forwarded_unread_is_told_at_its_end() {
    let scan = |line: &str| {
        let mut scan = CallScan::default();
        scan.feed(line.as_bytes());
        relay().from_engine_unread(&scan)
    };
    let line = String::from_utf8(SAVE.to_vec()).unwrap();
    assert!(matches!(scan(&line), Down::Answer(_)));
    assert!(matches!(
        scan(&line.replace("storage_state", "cookie_set")),
        Down::Answer(_)
    ));
    assert_eq!(
        scan(
            &line
                .replace("storage_state", "cookie_set")
                .replace(r#""id":1,"#, "")
        ),
        Down::Drop
    );
    assert_eq!(scan(&line.replace("storage_state", "click")), Down::Pass);
}

proptest! {
    #[test]
    fn what_is_not_about_storage_passes(
        id in prop_oneof!["[0-9]{1,9}", "\"[a-z]{0,9}\""],
        method in "[a-z/]{0,20}",
        name in "[a-z_]{0,24}",
        text in "\\PC{0,40}",
    ) {
        prop_assume!(!TOOLS.withheld.contains(&name.as_str()) && name != TOOLS.save);
        let text = Value::from(text);
        for line in [
            format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{"name":"{name}","arguments":{{"t":{text}}}}}}}"#),
            format!(r#"{{"method":"tools/call","params":{{"name":"{name}"}},"jsonrpc":"2.0","id":{id}}}"#),
            format!(r#"{{"result":{text},"jsonrpc":"2.0","id":{id}}}"#),
        ] {
            prop_assert_eq!(relay().from_engine(line.as_bytes(), || Ok("f".into())), Down::Pass);
            prop_assert_eq!(relay().from_upstream(line.as_bytes()), Up::Pass);
        }
    }

    #[test]
    fn no_spelling_of_a_withheld_call_passes(escapes in proptest::collection::vec(any::<bool>(), 64), utf8 in any::<bool>()) {
        let mut flips = escapes.iter().cycle();
        let mut spell = |text: &str| -> String {
            text.chars().map(|c| if *flips.next().unwrap_or(&false) { format!("\\u{:04x}", u32::from(c)) } else { c.to_string() }).collect()
        };
        let (method, name) = (spell("tools/call"), spell("browser_cookie_set"));
        let (kmethod, kparams, kname) = (spell("method"), spell("params"), spell("name"));
        let line = format!(r#"{{"jsonrpc":"2.0","id":1,"{kmethod}":"{method}","{kparams}":{{"{kname}":"{name}","x":"~"}}}}"#);
        let line: Vec<u8> = line.bytes().map(|byte| if byte == b'~' && !utf8 { 0xff } else { byte }).collect();
        prop_assert!(matches!(relay().from_engine(&line, || Ok("f".into())), Down::Answer(_)));
    }
}
