//! Discovery, calls, refusals, and both eras at once.

use super::*;

#[test]
fn discovery_opens_the_handshake_and_no_more() {
    let mut talk = Talk::live();
    talk.ask_with(r#""d""#, "server/discover", "", r#"{"roots":{}}"#);
    insta::assert_snapshot!(talk.heard_by_connector(), @r#"{"jsonrpc":"2.0","id":"sema-connector:1","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"roots":{}},"clientInfo":{"name":"C","version":"2"}}}"#);
    talk.answer("sema-connector:1", SERVER);
    insta::assert_snapshot!(talk.heard_by_connector(), @"");
    insta::assert_snapshot!(talk.heard_by_engine(), @r#"{"jsonrpc":"2.0","id":"d","result":{"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"S","version":"1"}},"ttlMs":0,"cacheScope":"private","resultType":"complete","supportedVersions":["2026-07-28","2025-11-25","2025-06-18","2025-03-26","2024-11-05"],"capabilities":{"resources":{"subscribe":true},"tools":{"listChanged":true},"logging":{}},"instructions":"Be kind."}}"#);
}

#[test]
fn a_call_is_written_as_each_side_expects_it() {
    let mut talk = Talk::greeted("{}", SERVER);
    let params = r#""name":"a","arguments":{"n":1.0,"x":"\u00e9\/"},"_other":-0"#;
    talk.ask("5.0", "tools/call", params);
    insta::assert_snapshot!(talk.heard_by_connector(), @r#"
    {"jsonrpc":"2.0","method":"notifications/initialized"}
    {"jsonrpc":"2.0","id":"sema-connector:2","method":"tools/call","params":{"name":"a","arguments":{"n":1.0,"x":"\u00e9\/"},"_other":-0,"_meta":{}}}
    "#);
    talk.answer(
        "sema-connector:2",
        r#"{"content":[ {"type":"text","text":"\/"} ]}"#,
    );
    insta::assert_snapshot!(talk.heard_by_engine(), @r#"{"result":{"resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"S","version":"1"}},"content":[ {"type":"text","text":"\/"} ]},"jsonrpc":"2.0","id":5.0}"#);
    assert_eq!(
        (talk.ended[0].id.as_slice(), talk.ended[0].tool.as_deref()),
        (&b"5.0"[..], Some("a"))
    );
    talk.ask("6", "tools/list", r#""cursor":"c""#);
    insta::assert_snapshot!(talk.heard_by_connector(), @r#"{"jsonrpc":"2.0","id":"sema-connector:3","method":"tools/list","params":{"cursor":"c","_meta":{}}}"#);
    talk.answer("sema-connector:3", r#"{"tools":[],"_meta":{"a":1}}"#);
    insta::assert_snapshot!(talk.heard_by_engine(), @r#"{"result":{"ttlMs":0,"cacheScope":"private","resultType":"complete","tools":[],"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"S","version":"1"},"a":1}},"jsonrpc":"2.0","id":6}"#);
}

#[test]
fn what_comes_before_the_handshake_is_over_waits_in_order() {
    let mut talk = Talk::live();
    talk.ask("1", "tools/list", "");
    talk.ask("2", "tools/call", r#""name":"a""#);
    talk.ask("3", "tools/call", r#""name":"b""#);
    assert_eq!(talk.heard_by_connector().lines().count(), 1);
    talk.say(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}"#);
    talk.answer("sema-connector:1", SERVER);
    insta::assert_snapshot!(talk.heard_by_connector(), @r#"
    {"jsonrpc":"2.0","method":"notifications/initialized"}
    {"jsonrpc":"2.0","id":"sema-connector:2","method":"tools/list","params":{"_meta":{}}}
    {"jsonrpc":"2.0","id":"sema-connector:3","method":"tools/call","params":{"name":"b","_meta":{}}}
    "#);
    assert_eq!(talk.heard_by_engine(), "");
}

#[test]
fn a_refused_handshake_is_told_and_tried_again() {
    let mut talk = Talk::live();
    talk.ask("1", "tools/list", "");
    talk.heard_by_connector();
    talk.tell(r#"{"jsonrpc":"2.0","id":"sema-connector:1","error":{"code":-1,"message":"no"}}"#);
    insta::assert_snapshot!(talk.heard_by_engine(), @r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32014,"data":{"code":"connector.internal","connector":"browser"},"message":"the connector refused the handshake"}}"#);
    talk.ask("2", "tools/list", "");
    assert!(
        talk.heard_by_connector()
            .contains(r#""method":"initialize""#)
    );
}

#[test]
fn a_handshake_that_cannot_be_read_leaves_nobody_waiting() {
    for line in [
        r#"{"id":"sema-connector:1","result":{}}"#,
        r#"{"jsonrpc":"2.0","id":"sema-connector:1","result":{},"result":{}}"#,
    ] {
        let mut talk = Talk::live();
        talk.ask("1", "tools/list", "");
        talk.tell(line);
        assert!(
            talk.heard_by_engine().contains("refused the handshake"),
            "{line}"
        );
    }
}

#[test]
fn too_many_requests_before_the_handshake_are_refused() {
    let mut talk = Talk::live();
    for id in 0..100 {
        talk.ask(&id.to_string(), "tools/list", "");
    }
    assert_eq!(talk.heard_by_engine().matches("-32014").count(), 36);
}

#[test]
fn what_cannot_be_served_is_refused() {
    let mut talk = Talk::greeted("{}", SERVER);
    let version = r#""io.modelcontextprotocol/protocolVersion":"2026-07-28""#;
    let capabilities = r#""io.modelcontextprotocol/clientCapabilities":{}"#;
    for meta in [
        version.to_owned(),
        capabilities.to_owned(),
        format!(r#"{version},"io.modelcontextprotocol/clientCapabilities":[]"#),
        format!(r#"{capabilities},"io.modelcontextprotocol/protocolVersion":"1900-01-01""#),
        format!(r#"{capabilities},{version},"io.modelcontextprotocol/clientInfo":{{"name":"x"}}"#),
        format!(r#"{capabilities},{version},"io.modelcontextprotocol/logLevel":"loud""#),
        format!(r#"{capabilities},{version},{version}"#),
        format!(r#"{capabilities},"io.modelcontextprotoco\u006c\/protocolVersion":"x""#),
    ] {
        talk.say(&format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{{"_meta":{{{meta}}}}}}}"#
        ));
    }
    talk.say(r#"{"jsonrpc":"2.0","id":1,"method":"server/discover"}"#);
    talk.say(r#"{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"_meta":3}}"#);
    for method in [
        "ping",
        "logging/setLevel",
        "resources/subscribe",
        "tasks/list",
    ] {
        talk.ask("2", method, "");
    }
    insta::assert_snapshot!(talk.heard_by_engine(), @r#"
    {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"invalid params: _meta has no io.modelcontextprotocol/clientCapabilities"}}
    {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"invalid params: _meta has no io.modelcontextprotocol/protocolVersion"}}
    {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"invalid params: a field of _meta is no object"}}
    {"jsonrpc":"2.0","id":1,"error":{"code":-32022,"data":{"requested":"1900-01-01","supported":["2026-07-28","2025-11-25","2025-06-18","2025-03-26","2024-11-05"]},"message":"unsupported protocol version"}}
    {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"invalid params: io.modelcontextprotocol/clientInfo has no name or no version"}}
    {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"invalid params: io.modelcontextprotocol/logLevel is not a log level"}}
    {"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"invalid request: \"io.modelcontextprotocol/protocolVersion\" occurs twice"}}
    {"jsonrpc":"2.0","id":1,"error":{"code":-32022,"data":{"requested":"x","supported":["2026-07-28","2025-11-25","2025-06-18","2025-03-26","2024-11-05"]},"message":"unsupported protocol version"}}
    {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"invalid params: _meta is missing or no object"}}
    {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"invalid params: _meta is missing or no object"}}
    {"jsonrpc":"2.0","id":2,"error":{"code":-32601,"message":"method not found: revision 2026-07-28 does not have it"}}
    {"jsonrpc":"2.0","id":2,"error":{"code":-32601,"message":"method not found: revision 2026-07-28 does not have it"}}
    {"jsonrpc":"2.0","id":2,"error":{"code":-32601,"message":"method not found: revision 2026-07-28 does not have it"}}
    {"jsonrpc":"2.0","id":2,"error":{"code":-32601,"message":"method not found: revision 2026-07-28 does not have it"}}
    "#);
    assert_eq!(talk.heard_by_connector(), "");
}

#[test]
fn the_policy_holds_in_the_modern_era() {
    let policy = ToolPolicy::parse(br#"{"allow":["a"]}"#).unwrap();
    let mut talk = Talk::with(Ok(policy));
    talk.start();
    talk.ask("1", "server/discover", "");
    talk.answer("sema-connector:1", SERVER);
    talk.heard_by_engine();
    for params in [
        r#""name":"b""#,
        r#""n\u0061me":"b""#,
        r#""name":"\u0062""#,
        r#""name":"a","name":"b""#,
        r#""name":"a","Name":"b""#,
        r#""name":"b","task":{}"#,
        r#""name":"b","requestState":"x""#,
    ] {
        talk.ask("2", "tools/call", params);
        talk.ask("2", "tools\\/call", params);
    }
    assert!(!talk.heard_by_connector().contains("tools"));
    assert_eq!(
        talk.heard_by_engine().matches(r#""id":2,"error""#).count(),
        14
    );
    talk.ask("3", "tools/list", "");
    talk.heard_by_connector();
    let listed = r#"{"tools":[{"name":"b","inputSchema":{"type":"object"}}]}"#;
    let id = talk.eras.calls.number() - 1;
    talk.answer(&format!("sema-connector:{id}"), listed);
    assert!(talk.heard_by_engine().contains(r#""tools":[]"#));
}

#[test]
fn a_parked_session_serves_both_eras() {
    let mut talk = Talk::parked();
    talk.ask("1", "server/discover", "");
    talk.ask("2", "tools/list", "");
    talk.ask("3", "tools/call", r#""name":"a""#);
    talk.ask(
        "4",
        "resources/read",
        r#""uri":"sema-connector://browser/status""#,
    );
    insta::assert_snapshot!(talk.heard_by_engine(), @r#"
    {"jsonrpc":"2.0","id":1,"result":{"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"sema-connector","version":"0.1.0"}},"ttlMs":0,"cacheScope":"private","resultType":"complete","supportedVersions":["2026-07-28","2025-11-25","2025-06-18","2025-03-26","2024-11-05"],"capabilities":{"tools":{"listChanged":true},"resources":{"subscribe":true}}}}
    {"jsonrpc":"2.0","id":2,"result":{"ttlMs":0,"cacheScope":"private","resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"sema-connector","version":"0.1.0"}},"tools":[]}}
    {"jsonrpc":"2.0","id":3,"error":{"code":-32010,"data":{"code":"connector.unauthorized","connector":"browser"},"message":"no login is stored"}}
    {"jsonrpc":"2.0","id":4,"result":{"ttlMs":0,"cacheScope":"private","resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"sema-connector","version":"0.1.0"}},"contents":[{"mimeType":"application/json","text":"{\"state\":\"unauthorized\",\"tools\":[]}","uri":"sema-connector://browser/status"}]}}
    "#);
    talk.start();
    let hello = talk.heard_by_connector();
    assert!(hello.contains(r#""method":"initialize""#));
    talk.answer("sema-connector:1", SERVER);
    talk.heard_by_connector();
    talk.ask("5", "server/discover", "");
    assert!(talk.heard_by_engine().contains("Be kind."));
}

#[test]
fn an_engine_may_speak_both_eras() {
    let mut talk = Talk::live();
    let hello = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"C","version":"1"}}}"#;
    talk.say(hello);
    talk.ask("1", "tools/call", r#""name":"a""#);
    assert_eq!(talk.heard_by_connector(), hello);
    talk.tell(&format!(r#"{{"jsonrpc":"2.0","id":0,"result":{SERVER}}}"#));
    assert!(
        talk.heard_by_connector()
            .contains("notifications/initialized")
    );
    talk.engine.clear();
    let raw = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"b"}}"#;
    talk.say(raw);
    assert_eq!(talk.heard_by_connector(), raw);
    let answer = r#"{"jsonrpc":"2.0","id":1,"result":{"content":[]}}"#;
    talk.tell(answer);
    assert_eq!(std::mem::take(&mut talk.engine), [answer]);
    talk.answer("sema-connector:1", r#"{"content":[]}"#);
    assert!(
        talk.heard_by_engine()
            .contains(r#""resultType":"complete""#)
    );
    let question = r#"{"jsonrpc":"2.0","id":9,"method":"roots/list"}"#;
    talk.tell(question);
    assert_eq!(std::mem::take(&mut talk.engine), [question]);
}

#[test]
fn errors_are_those_of_the_modern_era() {
    let mut talk = Talk::greeted("{}", SERVER);
    for (number, code) in (2..).zip(["-32002", "-32042", "-32601", "-32603.0"]) {
        talk.ask(&number.to_string(), "prompts/get", r#""name":"p""#);
        talk.tell(&format!(
            r#"{{"error":{{"message":"m","code":{code}}},"jsonrpc":"2.0","id":"sema-connector:{number}"}}"#
        ));
    }
    let heard = std::mem::take(&mut talk.engine).join("\n");
    insta::assert_snapshot!(heard, @r#"
    {"error":{"message":"m","code":-32602},"jsonrpc":"2.0","id":2}
    {"error":{"message":"m","code":-32603},"jsonrpc":"2.0","id":3}
    {"error":{"message":"m","code":-32601},"jsonrpc":"2.0","id":4}
    {"error":{"message":"m","code":-32603.0},"jsonrpc":"2.0","id":5}
    "#);
}

#[test]
fn every_open_request_is_answered_when_the_connector_ends() {
    let mut talk = Talk::greeted("{}", SERVER);
    talk.ask("1", "tools/call", r#""name":"a""#);
    let gone = Absence {
        code: Code::UpstreamExit,
        reason: "it ended".to_owned(),
    };
    talk.change(|eras| eras.connector_ended(gone));
    insta::assert_snapshot!(talk.heard_by_engine(), @r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32013,"data":{"code":"connector.upstream_exit","connector":"browser"},"message":"it ended"}}"#);
    assert_eq!(talk.ended[0].id, b"1");
}

#[test]
fn a_cancelled_call_is_cancelled_under_our_id() {
    let mut talk = Talk::greeted("{}", SERVER);
    talk.ask("\"x\"", "tools/call", r#""name":"a""#);
    talk.heard_by_connector();
    talk.say(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"reason":"r","requestId":"x"}}"#);
    insta::assert_snapshot!(talk.heard_by_connector(), @r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"reason":"r","requestId":"sema-connector:2"}}"#);
    talk.answer("sema-connector:2", r#"{"content":[]}"#);
    assert_eq!(talk.heard_by_engine(), "");
}

#[test]
fn progress_and_log_messages_belong_to_a_call() {
    let mut talk = Talk::greeted("{}", SERVER);
    let progress = r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"t","progress":1}}"#;
    let message =
        r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1}}"#;
    talk.tell(progress);
    talk.tell(message);
    assert_eq!(talk.heard_by_engine(), "");
    talk.say(r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","_meta":{"progressToken":"t","io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/logLevel":"info"}}}"#);
    insta::assert_snapshot!(talk.heard_by_connector(), @r#"
    {"jsonrpc":"2.0","method":"notifications/initialized"}
    {"jsonrpc":"2.0","id":"sema-connector:2","method":"logging/setLevel","params":{"level":"info"}}
    {"jsonrpc":"2.0","id":"sema-connector:3","method":"tools/call","params":{"name":"a","_meta":{"progressToken":"t"}}}
    "#);
    talk.tell(progress);
    talk.tell(message);
    talk.tell(&message.replace("info", "debug"));
    assert_eq!(talk.heard_by_engine(), [progress, message].join("\n"));
}

#[test]
fn a_result_that_is_no_object_is_not_handed_on() {
    let mut talk = Talk::greeted("{}", SERVER);
    talk.ask("1", "tools/call", r#""name":"a""#);
    talk.answer("sema-connector:2", "7");
    assert!(
        talk.heard_by_engine()
            .contains("cannot be read: its result is no object")
    );
}

#[test]
fn an_id_of_ours_is_not_the_engines() {
    let mut talk = Talk::live();
    for id in [r#""sema-connector:1""#, r#""sema\u002dconnector:tools:1""#] {
        talk.say(&format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/list"}}"#
        ));
        assert!(talk.heard_by_engine().contains("-32600"), "{id}");
    }
    assert_eq!(talk.heard_by_connector(), "");
}
