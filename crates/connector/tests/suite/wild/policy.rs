//! A tool that the policy leaves out is not reached, however it is asked for.

use super::{Session, brief};

const POLICY: &str = r#"{"allow":["safe"]}"#;

#[test]
fn no_spelling_reaches_a_tool_outside_the_policy() {
    let mut session = Session::restricted(POLICY);
    for line in [
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"secret_tool"}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"tools\/call","params":{"name":"secret_tool"}}"#,
        r#"{"jsonrpc":"2.0","id":1,"\u006dethod":"\u0074ools/call","params":{"name":"secret\u005ftool"}}"#,
        r#"{"params":{"\u006eame":"secret_tool"},"method":"tools/call","id":1,"jsonrpc":"2.0"}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"safe","name":"secret_tool"}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"secret_tool","name":"safe"}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"safe","n\u0061me":"secret_tool"}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"safe","NAME":"secret_tool"}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"safe"},"params":{"name":"secret_tool"}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"safe"},"PARAMS":{"name":"secret_tool"}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/call","params":{"name":"secret_tool"}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"ping","Method":"tools/call","params":{"name":"secret_tool"}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":["secret_tool"]}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":["secret_tool"]}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":"secret_tool"}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"arguments":{"name":"safe"}}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call"}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"SAFE"}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"safe "}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"safe\u0000"}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"secret_tool","task":{"ttl":60000}}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"task":{"name":"safe"},"name":"secret_tool"}}"#,
        r#"{"jsonrpc":"2.0","method":"tools/call","params":{"name":"secret_tool"}}"#,
        r#"{"jsonrpc":"2.0","method":"tools/call","params":{"name":"secret_tool","task":{}}}"#,
        r#"{"jsonrpc":"2.0","id":null,"method":"tools/call","params":{"name":"secret_tool"}}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":{},"method":"tools/call","params":{"name":"secret_tool"}}"#,
        r#"[{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"secret_tool"}}]"#,
        "\u{feff}{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"secret_tool\"}}",
        "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"ping\",\"x\":\r{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"secret_tool\"}}\r}",
        "{\"jsonrpc\":\"2.0\",\"method\":\"n\",\"x\":\r{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"secret_tool\"}}\r}",
        "\r{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\r{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"secret_tool\"}}\r}",
    ] {
        session.send(line);
        let (answers, seen) = session.between();
        assert_eq!(seen, Vec::<String>::new(), "{line}");
        let silent = line.starts_with(r#"{"jsonrpc":"2.0","method""#) || line.starts_with('\r');
        assert_eq!(answers.len(), usize::from(!silent), "{line}");
        assert!(
            answers.iter().all(|answer| answer.contains(r#""error""#)),
            "{answers:?}"
        );
    }
    session.ends_well();
}

/// What a server that does not know the name of a method does with it, is its own: these are no
/// calls in any revision of the protocol.
#[test]
fn what_is_no_call_passes_as_it_came() {
    let mut session = Session::restricted(POLICY);
    for line in [
        r#"{"jsonrpc":"2.0","id":1,"method":"completion/complete","params":{"ref":{"type":"ref/prompt","name":"secret_tool"},"argument":{"name":"a","value":""}}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{"name":"secret_tool"}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"s\u0061fe","arguments":{"name":"secret_tool"}}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"safe","task":{"ttl":1}}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/x","params":{"name":"secret_tool"}}"#,
    ] {
        session.send(line);
        let (answers, seen) = session.between();
        assert_eq!(seen, [format!("{line}\n")]);
        assert_eq!(answers.len(), line.matches("\"id\"").count(), "{line}");
    }
    session.ends_well();
}

#[test]
fn the_list_and_the_status_tell_of_no_tool_outside_the_policy() {
    let mut session = Session::restricted(POLICY);
    session.send(r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#);
    session.send(r#"{"jsonrpc":"2.0","id":2,"method":"resources/read","params":{"uri":"sema-connector://c/status"}}"#);
    session
        .send(r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"secret_tool"}}"#);
    let mut answers: Vec<String> = (0..3).map(|_| brief(&session.line())).collect();
    answers.sort();
    insta::assert_snapshot!(answers.join("\n"), @r#"
    {"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"safe","inputSchema":{"type":"object"}}]}}
    {"jsonrpc":"2.0","id":2,"result":{"contents":[{"mimeType":"application/json","text":"{\"state\":\"authorized\",\"tools\":[\"safe\"]}","uri":"sema-connector://c/status"}]}}
    {"jsonrpc":"2.0","id":3,"error":{"code":-32011,"data":{"code":"connector.forbidden_scope","connector":"c"},"message":"connectors/c/tools.json does not allow secret_tool; hint: to allow it, add it to \"allow\" there"}}
    "#);
    session.ends_well();
}
