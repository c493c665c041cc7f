//! `subscriptions/listen`.

use super::*;

const STATUS: &str = "sema-connector://browser/status";
const CHANGED: &str = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;

#[test]
fn a_stream_is_acknowledged_told_and_ended() {
    let mut talk = Talk::greeted("{}", SERVER);
    let wanted = format!(
        r#""notifications":{{"toolsListChanged":true,"promptsListChanged":true,"resourceSubscriptions":["{STATUS}","a:b"]}}"#
    );
    talk.ask("\"s\"", "subscriptions/listen", &wanted);
    talk.tell(CHANGED);
    talk.change(|eras| eras.policy_changed(Err("broken".to_owned())));
    talk.change(|eras| eras.ended(parked()));
    insta::assert_snapshot!(talk.heard_by_engine(), @r#"
    {"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"s"},"notifications":{"resourceSubscriptions":["sema-connector://browser/status"],"toolsListChanged":true}}}
    {"params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"s"}},"jsonrpc":"2.0","method":"notifications/tools/list_changed"}
    {"params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"s"}},"jsonrpc":"2.0","method":"notifications/tools/list_changed"}
    {"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"s"},"uri":"sema-connector://browser/status"}}
    {"params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"s"}},"jsonrpc":"2.0","method":"notifications/tools/list_changed"}
    {"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"s"},"uri":"sema-connector://browser/status"}}
    {"jsonrpc":"2.0","id":"s","result":{"resultType":"complete","_meta":{"io.modelcontextprotocol/subscriptionId":"s"}}}
    "#);
    insta::assert_snapshot!(talk.heard_by_connector(), @r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
}

#[test]
fn only_what_was_asked_for_is_told() {
    let mut talk = Talk::greeted("{}", SERVER);
    talk.tell(CHANGED);
    talk.ask("1", "subscriptions/listen", r#""notifications":{}"#);
    talk.ask(
        "2",
        "subscriptions/listen",
        r#""notifications":{"toolsListChanged":true}"#,
    );
    talk.heard_by_engine();
    talk.tell(r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":{"x":1}}}"#);
    insta::assert_snapshot!(talk.heard_by_engine(), @r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":2,"x":1}}}"#);
    talk.say(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}"#);
    talk.tell(CHANGED);
    assert_eq!(talk.heard_by_engine(), "");
}

#[test]
fn the_connector_is_subscribed_to_what_is_listened_to() {
    let server = SERVER.replace(
        r#""logging""#,
        r#""resources":{"subscribe":true,"listChanged":true},"logging""#,
    );
    let mut talk = Talk::greeted("{}", &server);
    let wanted = r#""notifications":{"resourcesListChanged":true,"resourceSubscriptions":["a:b"]}"#;
    talk.ask("1", "subscriptions/listen", wanted);
    talk.ask("2", "subscriptions/listen", wanted);
    insta::assert_snapshot!(talk.heard_by_connector(), @r#"
    {"jsonrpc":"2.0","method":"notifications/initialized"}
    {"jsonrpc":"2.0","id":"sema-connector:2","method":"resources/subscribe","params":{"uri":"a:b"}}
    "#);
    talk.answer("sema-connector:2", "{}");
    talk.heard_by_engine();
    talk.tell(r#"{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"a\u003ab"}}"#);
    insta::assert_snapshot!(talk.heard_by_engine(), @r#"
    {"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":1},"uri":"a\u003ab"}}
    {"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":2},"uri":"a\u003ab"}}
    "#);
    for id in [1, 2] {
        talk.say(&format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#
        ));
    }
    insta::assert_snapshot!(talk.heard_by_connector(), @r#"{"jsonrpc":"2.0","id":"sema-connector:3","method":"resources/unsubscribe","params":{"uri":"a:b"}}"#);
    talk.ask("3", "subscriptions/listen", wanted);
    talk.heard_by_engine();
    talk.change(|eras| eras.connector_ended(parked()));
    assert!(
        talk.heard_by_engine()
            .contains(r#""id":3,"result":{"resultType":"complete""#)
    );
}

#[test]
fn a_filter_that_cannot_be_read_is_refused() {
    let mut talk = Talk::greeted("{}", SERVER);
    for wanted in [
        r#""notifications":[]"#,
        r#""x":1"#,
        r#""notifications":{"toolsListChanged":1}"#,
        r#""notifications":{"resourceSubscriptions":"a"}"#,
        r#""notifications":{"resourceSubscriptions":[1]}"#,
    ] {
        talk.ask("1", "subscriptions/listen", wanted);
        assert!(talk.heard_by_engine().contains("-32602"), "{wanted}");
    }
    for id in 0..65 {
        talk.ask(
            &id.to_string(),
            "subscriptions/listen",
            r#""notifications":{}"#,
        );
    }
    assert!(talk.heard_by_engine().contains("64 subscriptions are open"));
}
