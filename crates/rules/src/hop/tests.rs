use super::*;
use crate::envelope;
use crate::long::LongLine;
use crate::name::Handle;

const INITIALIZE: &str =
    r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}"#;
const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
const SERVER: &str = r#"{"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true}}},"jsonrpc":"2.0","id":0}"#;

fn parked() -> Absence {
    Absence {
        code: Code::Unauthorized,
        reason: "no login is stored".to_owned(),
    }
}

fn policy(text: &str) -> Result<ToolPolicy, String> {
    ToolPolicy::parse(text.as_bytes()).map_err(|error| error.to_string())
}

fn hop(policy: Result<ToolPolicy, String>) -> Hop {
    Hop::new(
        ConnectorName::parse("browser").unwrap(),
        "0.1.0",
        policy,
        parked(),
    )
}

fn engine(hop: &mut Hop, line: &str) -> Step {
    hop.from_engine(line.as_bytes(), &envelope::read(line.as_bytes()), 7)
}

fn connector(hop: &mut Hop, line: &str) -> Step {
    hop.from_connector(line.as_bytes(), &envelope::read(line.as_bytes()), None)
}

fn live(policy: Result<ToolPolicy, String>) -> Hop {
    let mut hop = hop(policy);
    assert_eq!(hop.connector_started(), Step::default());
    assert_eq!(engine(&mut hop, INITIALIZE).forward, Forward::AsIs);
    connector(&mut hop, SERVER);
    assert_eq!(engine(&mut hop, INITIALIZED).forward, Forward::AsIs);
    hop
}

fn texts(lines: &[Vec<u8>]) -> String {
    lines
        .iter()
        .map(|line| String::from_utf8_lossy(line).into_owned())
        .collect()
}

#[test]
fn a_call_outside_the_policy_is_not_forwarded_in_any_spelling() {
    let mut hop = live(policy(r#"{"allow":["safe"]}"#));
    for line in [
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"secret_tool"}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"tools\/call","params":{"name":"secret\u005ftool"}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"safe","name":"secret_tool"}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"safe","Name":"secret_tool"}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"safe"},"Params":{"name":"secret_tool"}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call"}"#,
        r#"{"jsonrpc":"2.0","method":"tools/call","params":{"name":"secret_tool"}}"#,
    ] {
        let step = engine(&mut hop, line);
        assert_eq!(step.forward, Forward::Nothing, "{line}");
        assert_eq!(
            step.to_engine.len(),
            usize::from(line.contains("\"id\"")),
            "{line}"
        );
    }
    let safe = r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"s\u0061fe"}}"#;
    assert_eq!(engine(&mut hop, safe).forward, Forward::AsIs);
}

#[test]
fn a_broken_policy_closes_everything() {
    let mut hop = live(Err("tools.json: unknown key".to_owned()));
    let call = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a"}}"#;
    insta::assert_snapshot!(texts(&engine(&mut hop, call).to_engine), @r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32011,"data":{"code":"connector.forbidden_scope","connector":"browser"},"message":"no tool is allowed: tools.json: unknown key"}}"#);
    engine(
        &mut hop,
        r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#,
    );
    let step = connector(
        &mut hop,
        r#"{"result":{"tools":[{"name":"a"}]},"jsonrpc":"2.0","id":2}"#,
    );
    assert_eq!(
        step.forward,
        Forward::Replaced(br#"{"result":{"tools":[]},"jsonrpc":"2.0","id":2}"#.to_vec())
    );
}

#[test]
fn a_new_policy_is_told_where_other_tools_are_allowed() {
    let mut hop = live(policy(r#"{"allow":["a"]}"#));
    engine(
        &mut hop,
        r#"{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"sema-connector://browser/status"}}"#,
    );
    let mut told = |policy| texts(&hop.policy_changed(policy).to_engine);
    let tools = "notifications/tools/list_changed";
    let status = "notifications/resources/updated";
    assert_eq!(told(policy(r#"{"allow": ["a", "a"]}"#)), "");
    assert!(told(Err("broken".to_owned())).contains(tools));
    for none in [Err("removed".to_owned()), policy(r#"{"allow":[]}"#)] {
        let told = told(none);
        assert!(told.contains(status) && !told.contains(tools), "{told}");
    }
    let all = told(Ok(ToolPolicy::all()));
    assert!(all.contains(status) && all.contains(tools), "{all}");
}

#[test]
fn the_resources_capability_is_added_once() {
    let mut hop = hop(Ok(ToolPolicy::all()));
    hop.connector_started();
    engine(&mut hop, INITIALIZE);
    let Forward::Replaced(line) = connector(&mut hop, SERVER).forward else {
        panic!("not replaced")
    };
    insta::assert_snapshot!(String::from_utf8(line).unwrap(), @r#"{"result":{"protocolVersion":"2025-06-18","capabilities":{"resources":{"subscribe":true},"tools":{"listChanged":true}}},"jsonrpc":"2.0","id":0}"#);

    let mut hop = self::hop(Ok(ToolPolicy::all()));
    hop.connector_started();
    engine(&mut hop, INITIALIZE);
    let own = SERVER.replace(r#""tools":{"#, r#""resources":{},"tools":{"#);
    assert_eq!(connector(&mut hop, &own).forward, Forward::AsIs);
    engine(
        &mut hop,
        r#"{"jsonrpc":"2.0","id":3,"method":"resources/list"}"#,
    );
    let page = r#"{"result":{"resources":[{"uri":"a:b"}]},"jsonrpc":"2.0","id":3}"#;
    let Forward::Replaced(line) = connector(&mut hop, page).forward else {
        panic!("not replaced")
    };
    assert!(
        String::from_utf8(line)
            .unwrap()
            .ends_with(r#"},{"uri":"a:b"}]},"jsonrpc":"2.0","id":3}"#)
    );
}

#[test]
fn the_status_lists_the_tools_that_the_policy_leaves() {
    let mut hop = live(policy(r#"{"allow":["a","c"]}"#));
    let read = r#"{"jsonrpc":"2.0","id":"s","method":"resources/read","params":{"uri":"sema-connector://browser/status"}}"#;
    let step = engine(&mut hop, read);
    assert_eq!(
        texts(&step.to_connector),
        "{\"jsonrpc\":\"2.0\",\"id\":\"sema-connector:tools:1\",\"method\":\"tools/list\"}\n"
    );
    let page = r#"{"result":{"tools":[{"name":"a"},{"name":"b"}],"nextCursor":"x"},"jsonrpc":"2.0","id":"sema-connector:tools:1"}"#;
    let step = connector(&mut hop, page);
    assert!(texts(&step.to_connector).contains(r#""params":{"cursor":"x"}"#));
    let step = connector(
        &mut hop,
        r#"{"result":{"tools":[{"name":"c"}]},"jsonrpc":"2.0","id":"sema-connector:tools:2"}"#,
    );
    insta::assert_snapshot!(texts(&step.to_engine), @r#"{"jsonrpc":"2.0","id":"s","result":{"contents":[{"mimeType":"application/json","text":"{\"state\":\"authorized\",\"tools\":[\"a\",\"c\"]}","uri":"sema-connector://browser/status"}]}}"#);
}

#[test]
fn a_parked_session_comes_to_life() {
    let mut hop = hop(Ok(ToolPolicy::all()));
    insta::assert_snapshot!(texts(&engine(&mut hop, INITIALIZE).to_engine), @r#"{"jsonrpc":"2.0","id":0,"result":{"capabilities":{"resources":{"subscribe":true},"tools":{"listChanged":true}},"protocolVersion":"2025-06-18","serverInfo":{"name":"sema-connector","version":"0.1.0"}}}"#);
    assert_eq!(engine(&mut hop, INITIALIZED), Step::default());
    let call = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a"}}"#;
    assert!(texts(&engine(&mut hop, call).to_engine).contains("connector.unauthorized"));
    assert_eq!(texts(&hop.connector_started().to_connector), INITIALIZE);
    assert!(texts(&engine(&mut hop, call).to_engine).contains("connector.unauthorized"));
    let step = connector(&mut hop, SERVER);
    assert_eq!(step.forward, Forward::Nothing);
    assert_eq!(texts(&step.to_connector), INITIALIZED);
    assert_eq!(
        texts(&step.to_engine),
        "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n"
    );
    assert_eq!(engine(&mut hop, call).forward, Forward::AsIs);
}

#[test]
fn every_open_request_is_answered_when_the_connector_ends() {
    let mut hop = live(Ok(ToolPolicy::all()));
    for id in 1..=2 {
        engine(
            &mut hop,
            &format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"x"}}"#),
        );
    }
    engine(
        &mut hop,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#,
    );
    let gone = Absence {
        code: Code::UpstreamExit,
        reason: "it ended".to_owned(),
    };
    insta::assert_snapshot!(texts(&hop.connector_ended(gone).to_engine), @r#"
    {"jsonrpc":"2.0","id":2,"error":{"code":-32013,"data":{"code":"connector.upstream_exit","connector":"browser"},"message":"it ended"}}
    {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}
    "#);
    let call = r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"a"}}"#;
    assert!(texts(&engine(&mut hop, call).to_engine).contains("connector.upstream_exit"));
}

#[test]
fn a_connector_that_ends_at_once_leaves_a_session_that_says_why() {
    let mut hop = hop(Ok(ToolPolicy::all()));
    hop.connector_started();
    engine(&mut hop, INITIALIZE);
    let gone = Absence {
        code: Code::NotInstalled,
        reason: "bin/ is missing".to_owned(),
    };
    assert!(texts(&hop.connector_ended(gone).to_engine).contains("protocolVersion"));
    let read = r#"{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"sema-connector://browser/status"}}"#;
    assert!(texts(&engine(&mut hop, read).to_engine).contains(r#"\"state\":\"failed\""#));
}

#[test]
fn an_over_long_line_gets_its_error_under_its_own_id() {
    let mut hop = live(Ok(ToolPolicy::all()));
    engine(&mut hop, r#"{"jsonrpc":"2.0","id":1,"method":"x"}"#);
    engine(&mut hop, r#"{"jsonrpc":"2.0","id":2,"method":"x"}"#);
    let mut long = LongLine::default();
    long.feed(br#"{"result":"...","jsonrpc":"2.0","id":2}"#);
    let step = hop.long_from_connector(&long, 5_000_000);
    assert!(texts(&step.to_engine).contains(r#""id":2,"error":{"code":-32012"#));
    assert_eq!(hop.open_requests(), 1);
    let answer = r#"{"result":{},"jsonrpc":"2.0","id":1}"#;
    assert_eq!(connector(&mut hop, answer).forward, Forward::AsIs);
}

#[test]
fn what_carries_a_secret_stays_here() {
    let mut hop = live(Ok(ToolPolicy::all()));
    engine(&mut hop, r#"{"jsonrpc":"2.0","id":1,"method":"x"}"#);
    let handle = Handle::parse("TOKEN").unwrap();
    let mut carry = |line: &str| {
        hop.from_connector(
            line.as_bytes(),
            &envelope::read(line.as_bytes()),
            Some(&handle),
        )
    };
    let answer = carry(r#"{"result":"secret","jsonrpc":"2.0","id":1}"#);
    assert_eq!(answer.forward, Forward::Nothing);
    assert!(texts(&answer.to_engine).contains("connector.internal"));
    assert_eq!(carry(r#"{"method":"m","jsonrpc":"2.0"}"#), Step::default());
    let asked = carry(r#"{"method":"roots/list","jsonrpc":"2.0","id":9}"#);
    assert!(asked.to_engine.is_empty() && texts(&asked.to_connector).contains(r#""id":9,"error""#));
}

#[test]
fn a_list_that_cannot_be_told_leaves_no_read_of_the_status_waiting() {
    let read = r#"{"jsonrpc":"2.0","id":"s","method":"resources/read","params":{"uri":"sema-connector://browser/status"}}"#;
    let list = r#"{"result":{"tools":[{"name":"secret"}],"nextCursor":"x"},"jsonrpc":"2.0","id":"sema-connector:tools:1"}"#;
    let none = r#"{"jsonrpc":"2.0","id":"s","result":{"contents":[{"mimeType":"application/json","text":"{\"state\":\"authorized\",\"tools\":[]}","uri":"sema-connector://browser/status"}]}}"#;

    let mut hop = live(Ok(ToolPolicy::all()));
    engine(&mut hop, read);
    let mut long = LongLine::default();
    long.feed(list.as_bytes());
    let step = hop.long_from_connector(&long, 5_000_000);
    assert_eq!(texts(&step.to_engine).trim_end(), none);

    let mut hop = live(Ok(ToolPolicy::all()));
    engine(&mut hop, read);
    let handle = Handle::parse("TOKEN").unwrap();
    let answer = envelope::read(list.as_bytes());
    let step = hop.from_connector(list.as_bytes(), &answer, Some(&handle));
    assert_eq!(texts(&step.to_engine).trim_end(), none);
    assert!(step.to_connector.is_empty());
}

#[test]
fn names_without_an_end_are_not_kept() {
    let mut hop = live(Ok(ToolPolicy::all()));
    engine(
        &mut hop,
        r#"{"jsonrpc":"2.0","id":"s","method":"resources/read","params":{"uri":"sema-connector://browser/status"}}"#,
    );
    let name = "x".repeat(300_000);
    let pages = (1..64).take_while(|page| {
        let page = format!(
            r#"{{"result":{{"tools":[{{"name":"{name}"}}],"nextCursor":"x"}},"jsonrpc":"2.0","id":"sema-connector:tools:{page}"}}"#
        );
        connector(&mut hop, &page).to_engine.is_empty()
    });
    assert_eq!(pages.count(), 3);
}

#[test]
fn an_answer_that_nobody_waits_for_is_dropped() {
    let mut hop = live(Ok(ToolPolicy::all()));
    for line in [
        r#"{"result":1,"jsonrpc":"2.0","id":77}"#,
        "Error: boom",
        r#"{"result":1,"id":0}"#,
    ] {
        assert_eq!(connector(&mut hop, line), Step::noise(), "{line}");
    }
}

#[test]
fn the_same_id_twice_gets_two_answers() {
    let mut hop = live(Ok(ToolPolicy::all()));
    let ask = r#"{"jsonrpc":"2.0","id":5,"method":"x"}"#;
    assert_eq!(engine(&mut hop, ask).forward, Forward::AsIs);
    assert_eq!(engine(&mut hop, ask).forward, Forward::AsIs);
    let answer = r#"{"result":{},"jsonrpc":"2.0","id":5}"#;
    assert_eq!(connector(&mut hop, answer).forward, Forward::AsIs);
    assert_eq!(connector(&mut hop, answer).forward, Forward::AsIs);
    assert_eq!(connector(&mut hop, answer), Step::noise());
}

#[test]
fn an_answer_that_cannot_be_read_is_an_error_for_who_waits() {
    for line in [
        r#"{"result":1,"id":1}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":1,"result":2}"#,
        r#"{"jsonrpc":"1.0","id":1,"error":{}}"#,
    ] {
        let mut hop = live(Ok(ToolPolicy::all()));
        engine(&mut hop, r#"{"jsonrpc":"2.0","id":1,"method":"x"}"#);
        let step = connector(&mut hop, line);
        assert!(
            texts(&step.to_engine).contains(r#""id":1,"error":{"code":-32014"#),
            "{line}"
        );
        assert_eq!(connector(&mut hop, line), Step::noise());
    }
    let mut hop = live(Ok(ToolPolicy::all()));
    engine(&mut hop, r#"{"jsonrpc":"2.0","id":1,"method":"x"}"#);
    for noise in [
        r#"{"id":1,"method":"roots/list","result":1}"#,
        r#"{"level":"info","id":1}"#,
        r#"{"id":1,"result":"#,
    ] {
        assert_eq!(connector(&mut hop, noise), Step::noise(), "{noise}");
    }
}

#[test]
fn a_repeated_handshake_that_cannot_be_read_does_not_keep_the_session_parked() {
    let mut hop = hop(Ok(ToolPolicy::all()));
    engine(&mut hop, INITIALIZE);
    engine(&mut hop, INITIALIZED);
    hop.connector_started();
    connector(&mut hop, r#"{"result":1,"id":0}"#);
    assert!(hop.is_live());
}
