//! What a connector asks while a modern call waits.

use super::*;

const ASKING: &str = r#"{"roots":{},"elicitation":{}}"#;
const ROOTS: &str = r#"{"jsonrpc":"2.0","id":7,"method":"roots/list"}"#;
const FORM: &str = r#"{"jsonrpc":"2.0","id":"f","method":"elicitation/create","params":{"message":"Who?","requestedSchema":{"type":"object","properties":{}},"task":{}}}"#;

/// A session in which call 1 waits.
fn calling(capabilities: &str) -> Talk {
    let mut talk = Talk::greeted(capabilities, SERVER);
    talk.ask_with("1", "tools/call", r#""name":"a""#, capabilities);
    talk.heard_by_connector();
    talk
}

/// The state of the last answer that requires input.
fn state(heard: &str) -> String {
    let last: Value = serde_json::from_str(heard.lines().last().unwrap()).unwrap();
    assert_eq!(last["result"]["resultType"], "input_required", "{heard}");
    last["result"]["requestState"].as_str().unwrap().to_owned()
}

fn retry(talk: &mut Talk, id: &str, state: &str, responses: &str) {
    let params = format!(r#""name":"a","requestState":"{state}","inputResponses":{{{responses}}}"#);
    talk.ask_with(id, "tools/call", &params, ASKING);
}

#[test]
fn a_question_ends_the_call_and_the_retry_brings_the_answer() {
    let mut talk = calling(ASKING);
    talk.tell(FORM);
    let heard = talk.heard_by_engine();
    let state = state(&heard);
    insta::assert_snapshot!(heard.replace(&state, "STATE"), @r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"input_required","requestState":"STATE","inputRequests":{"q1":{"method":"elicitation/create","params":{"message":"Who?","requestedSchema":{"type":"object","properties":{}}}}}}}"#);
    retry(
        &mut talk,
        "2",
        &state,
        r#""q1":{"action":"accept","content":{"a":1.0}}"#,
    );
    insta::assert_snapshot!(talk.heard_by_connector(), @r#"{"jsonrpc":"2.0","id":"f","result":{"action":"accept","content":{"a":1.0}}}"#);
    talk.answer("sema-connector:2", r#"{"content":[]}"#);
    assert!(talk.heard_by_engine().contains(r#""id":2}"#));
    retry(&mut talk, "3", &state, "");
    insta::assert_snapshot!(talk.heard_by_engine(), @r#"{"jsonrpc":"2.0","id":3,"error":{"code":-32602,"message":"invalid params: requestState is not known: it was used before, or is of another session"}}"#);
}

#[test]
fn a_state_is_for_its_own_request_and_session() {
    let mut talk = calling(ASKING);
    talk.tell(ROOTS);
    let state = state(&talk.heard_by_engine());
    for params in [
        format!(r#""name":"b","requestState":"{state}""#),
        format!(r#""name":"a","x":1,"requestState":"{state}""#),
        r#""name":"a","requestState":"guess""#.to_owned(),
        r#""name":"a","requestState":7"#.to_owned(),
        format!(r#""name":"a","requestState":"{state}","inputResponses":[]"#),
        format!(r#""name":"a","requestState":"{state}","inputResponses":{{"q1":7}}"#),
        format!(r#""name":"a","requestState":"{state}","inputResponses":{{"q1":{{}},"q1":{{}}}}"#),
    ] {
        talk.ask_with("2", "tools/call", &params, ASKING);
        assert_eq!(
            talk.heard_by_engine().matches("-32602").count(),
            1,
            "{params}"
        );
    }
    assert_eq!(talk.heard_by_connector(), "");
    let mut other = calling(ASKING);
    retry(&mut other, "2", &state, "");
    assert!(other.heard_by_engine().contains("-32602"));
    retry(&mut talk, "2", &state, r#""q1":{"roots":[]}"#);
    assert_eq!(
        talk.heard_by_connector(),
        r#"{"jsonrpc":"2.0","id":7,"result":{"roots":[]}}"#
    );
}

#[test]
fn what_a_retry_leaves_out_is_asked_again() {
    let mut talk = calling(ASKING);
    talk.tell(ROOTS);
    let first = state(&talk.heard_by_engine());
    talk.tell(FORM);
    assert_eq!(talk.heard_by_engine(), "");
    retry(&mut talk, "2", &first, "");
    let heard = talk.heard_by_engine();
    assert!(heard.contains("roots/list") && heard.contains("elicitation/create"));
    let second = state(&heard);
    retry(&mut talk, "3", &second, r#""q1":{"roots":[]},"other":3"#);
    assert!(talk.heard_by_connector().contains(r#""id":7,"result""#));
    let third = state(&talk.heard_by_engine());
    retry(&mut talk, "4", &third, r#""q1":{"action":"decline"}"#);
    assert!(talk.heard_by_connector().contains(r#""id":"f","result""#));
    assert_eq!(talk.heard_by_engine(), "");
}

#[test]
fn what_the_client_does_not_declare_is_not_asked() {
    let url = FORM.replace(r#""message""#, r#""mode":"url","message""#);
    let sampling = r#"{"jsonrpc":"2.0","id":9,"method":"sampling/createMessage","params":{"messages":[],"maxTokens":1,"tools":[]}}"#;
    for (capabilities, question) in [
        ("{}", ROOTS),
        (r#"{"elicitation":{}}"#, url.as_str()),
        (r#"{"elicitation":{"url":{}}}"#, FORM),
        (r#"{"sampling":{}}"#, sampling),
    ] {
        let mut talk = calling(capabilities);
        talk.tell(question);
        insta::allow_duplicates! {
            assert!(talk.heard_by_engine().contains("-32021"), "{capabilities}");
        }
        let heard = talk.heard_by_connector();
        assert!(
            heard.contains("-32601") && heard.contains("notifications/cancelled"),
            "{heard}"
        );
        talk.answer("sema-connector:2", r#"{"content":[]}"#);
        assert_eq!(talk.heard_by_engine(), "");
    }
    let mut talk = calling("{}");
    talk.tell(sampling);
    insta::assert_snapshot!(talk.heard_by_engine(), @r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32021,"data":{"requiredCapabilities":{"sampling":{"tools":{}}}},"message":"missing required client capability"}}"#);
}

#[test]
fn an_answer_that_does_not_wait_is_kept_for_the_retry() {
    let mut talk = calling(ASKING);
    talk.tell(ROOTS);
    let state = state(&talk.heard_by_engine());
    talk.answer("sema-connector:2", r#"{"content":[]}"#);
    assert_eq!(talk.heard_by_engine(), "");
    retry(&mut talk, "2", &state, r#""q1":{"roots":[]}"#);
    assert!(
        talk.heard_by_engine()
            .contains(r#""resultType":"complete""#)
    );
}

#[test]
fn a_question_without_a_call_waits_for_one() {
    let mut talk = Talk::greeted(ASKING, SERVER);
    talk.tell(ROOTS);
    talk.tell(r#"{"jsonrpc":"2.0","id":8,"method":"ping"}"#);
    assert_eq!(talk.heard_by_engine(), "");
    insta::assert_snapshot!(talk.heard_by_connector(), @r#"{"jsonrpc":"2.0","id":8,"result":{}}"#);
    talk.ask_with("1", "tools/list", "", ASKING);
    assert_eq!(talk.heard_by_engine(), "");
    talk.ask_with("2", "tools/call", r#""name":"a""#, ASKING);
    state(&talk.heard_by_engine());
}

#[test]
fn neither_questions_nor_parked_calls_grow_without_bound() {
    let mut talk = Talk::greeted(ASKING, SERVER);
    for id in 0..20 {
        talk.tell(&ROOTS.replace('7', &id.to_string()));
    }
    assert_eq!(talk.heard_by_connector().matches("too many").count(), 4);
    for id in 0..70 {
        talk.ask_with(&id.to_string(), "tools/call", r#""name":"a""#, ASKING);
        talk.tell(&ROOTS.replace('7', &(100 + id).to_string()));
    }
    assert_eq!(talk.eras.calls.parked().count(), 64);
    assert_eq!(
        talk.heard_by_connector()
            .matches("notifications/cancelled")
            .count(),
        6
    );
}

#[test]
fn a_withdrawn_question_is_not_answered() {
    let mut talk = calling(ASKING);
    talk.tell(ROOTS);
    let state = state(&talk.heard_by_engine());
    talk.tell(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}"#);
    retry(&mut talk, "2", &state, r#""q1":{"roots":[]}"#);
    assert_eq!(talk.heard_by_connector(), "");
}

#[test]
fn a_method_that_no_client_has_is_refused_here() {
    let mut talk = calling(ASKING);
    talk.tell(r#"{"jsonrpc":"2.0","id":3,"method":"tasks/get"}"#);
    insta::assert_snapshot!(talk.heard_by_connector(), @r#"{"jsonrpc":"2.0","id":3,"error":{"code":-32601,"message":"the client does not have this method"}}"#);
    assert_eq!(talk.heard_by_engine(), "");
}
