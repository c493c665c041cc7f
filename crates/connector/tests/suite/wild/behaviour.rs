//! What the engine sees of a connector that misbehaves.

use super::Session;

#[test]
fn one_that_ends_at_once() {
    let mut session = Session::start(&["err:6572726f723a206e6f206c75636b0a", "exit:3"]);
    session.send(r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}"#);
    session.send(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#);
    session.send(r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#);
    insta::assert_snapshot!(session.next(3), @r#"
    {"jsonrpc":"2.0","id":0,"result":{"capabilities":{"resources":{"subscribe":true},"tools":{"listChanged":true}},"protocolVersion":"2025-06-18","serverInfo":{"name":"sema-connector","version":"0.1.0"}}}
    {"jsonrpc":"2.0","id":1,"error":{"code":-32013,"data":{"code":"connector.upstream_exit","connector":"c"},"message":"no luck"}}
    {"jsonrpc":"2.0","id":2,"error":{"code":-32013,"data":{"code":"connector.upstream_exit","connector":"c"},"message":"no luck"}}
    "#);
    assert!(session.end().0.success());
}

#[test]
fn one_that_ends_in_the_middle_of_a_line() {
    let mut session = Session::met(&[]);
    let half = super::hex(br#"{"jsonrpc":"2.0","id":1001,"resu"#);
    session.call("hold");
    session.call(&format!("say:{half} exit:0"));
    insta::assert_snapshot!(session.next(3), @r#"
    {"jsonrpc":"2.0","id":1002,"error":{"code":-32013,"data":{"code":"connector.upstream_exit","connector":"c"},"message":"the connector ended with exit code 0"}}
    {"jsonrpc":"2.0","id":1003,"error":{"code":-32013,"data":{"code":"connector.upstream_exit","connector":"c"},"message":"the connector ended with exit code 0"}}
    {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}
    "#);
    session.send(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#);
    insta::assert_snapshot!(session.next(1), @r#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
    assert!(session.end().0.success());
}
