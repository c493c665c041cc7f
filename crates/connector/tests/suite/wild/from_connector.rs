//! Bad input from the connector: what of it reaches the engine, and what the connector gets for it.

use super::{Session, brief, call, hex, say};

/// What becomes of a line that is said before a call is answered: `<` what the engine gets, `>`
/// what the connector gets. `ID` is the call's id.
fn row(session: &mut Session, name: &str, line: &[u8], then: &str) -> String {
    let id = session.asked + 1;
    let line = match std::str::from_utf8(line) {
        Ok(text) => text.replace("ID", &id.to_string()).into_bytes(),
        Err(_) => line.to_vec(),
    };
    let words = format!("{} {then}", say(line));
    session.call(&words);
    let (answers, seen) = session.between();
    let mut row = format!("{name}\n");
    for line in answers {
        let own = line.contains(&format!(r#""id":{id},"result":{{"content""#));
        let shown = if own {
            "its answer"
        } else {
            &brief(&line).replace('\r', "\\r")
        };
        row += &format!("  < {}\n", shown.replace(&id.to_string(), "ID"));
    }
    for line in seen.iter().filter(|line| **line != call(id, &words) + "\n") {
        row += &format!("  > {}\n", brief(line.trim_end()));
    }
    row
}

fn table(rows: &[(&str, &[u8], &str)]) -> String {
    let mut session = Session::met(&[]);
    let rows = rows
        .iter()
        .map(|(name, line, then)| row(&mut session, name, line, then));
    let table: String = rows.collect();
    session.ends_well();
    table
}

#[test]
fn what_is_no_message_does_not_reach_the_engine() {
    let noise: [(&str, &[u8]); 31] = [
        ("not JSON", b"Server listening"),
        ("truncated", br#"{"jsonrpc":"2.0","method":"x""#),
        ("a number", b"3"),
        ("a batch", br#"[{"jsonrpc":"2.0","method":"x"}]"#),
        ("empty", b""),
        ("only spaces", b"  \t "),
        ("an end of another kind", b"\r"),
        (
            "a byte order mark",
            b"\xef\xbb\xbf{\"jsonrpc\":\"2.0\",\"method\":\"x\"}",
        ),
        ("NUL", b"\0"),
        (
            "NUL in a string",
            b"{\"jsonrpc\":\"2.0\",\"method\":\"x\0\"}",
        ),
        ("no UTF-8", b"{\"jsonrpc\":\"2.0\",\"method\":\"\xff\"}"),
        ("no version", br#"{"method":"x"}"#),
        ("another version", br#"{"jsonrpc":"1.0","method":"x"}"#),
        ("neither id nor method", br#"{"jsonrpc":"2.0"}"#),
        ("a log line with an id", br#"{"level":"info","id":ID}"#),
        ("an id alone", br#"{"jsonrpc":"2.0","id":ID}"#),
        (
            "an id that is null",
            br#"{"jsonrpc":"2.0","id":null,"result":{}}"#,
        ),
        (
            "an error without an id",
            br#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"m"}}"#,
        ),
        (
            "an id that is a fraction",
            br#"{"jsonrpc":"2.0","id":1.5,"result":{}}"#,
        ),
        (
            "an id that is an object",
            br#"{"jsonrpc":"2.0","id":{},"result":{}}"#,
        ),
        (
            "an id twice",
            br#"{"jsonrpc":"2.0","id":ID,"id":ID,"result":{}}"#,
        ),
        (
            "an answer to nothing",
            br#"{"jsonrpc":"2.0","id":77,"result":{}}"#,
        ),
        (
            "an answer to the text of an id",
            br#"{"jsonrpc":"2.0","id":"ID","result":{}}"#,
        ),
        (
            "a stack trace",
            b"Traceback (most recent call last):\n  File \"a.py\", line 1\nKeyError: 'x'",
        ),
        ("progress", b"  1%\r 50%\r100%"),
        ("colours", b"\x1b[2K\x1b[31merror\x1b[0m"),
        (
            "a message behind a colour",
            b"\x1b[0m{\"jsonrpc\":\"2.0\",\"method\":\"x\"}",
        ),
        (
            "two on a line",
            br#"{"jsonrpc":"2.0","method":"x"}{"jsonrpc":"2.0","method":"y"}"#,
        ),
        ("a header", b"Content-Length: 30\r\n\r"),
        ("XML", b"<html>"),
        (
            "a method that is a number",
            br#"{"jsonrpc":"2.0","method":7}"#,
        ),
    ];
    let rows: Vec<_> = noise
        .iter()
        .map(|(name, line)| (*name, *line, "answer"))
        .collect();
    let expected = noise
        .iter()
        .map(|(name, _)| format!("{name}\n  < its answer\n"));
    assert_eq!(table(&rows), expected.collect::<String>());
}

#[test]
fn an_answer_that_cannot_be_read_is_an_error_for_who_waits() {
    for answer in [
        r#"{"jsonrpc":"2.0","id":1002,"result":{},"result":{}}"#,
        r#"{"id":1002,"result":{}}"#,
    ] {
        let mut session = Session::met(&[]);
        session.call(&format!(
            "say:{} hold",
            hex(format!("{answer}\n").as_bytes())
        ));
        let heard = session.next(1);
        assert!(
            heard.contains(r#""id":1002,"error":{"code":-32014"#),
            "{heard}"
        );
        session.ends_well();
    }
}

#[test]
fn odd_messages_reach_the_engine_as_they_came() {
    let table = table(&[
        (
            "a notification",
            br#" { "params":{"a":1.0,"a":-0} , "method":"n\/x","jsonrpc":"2.0" }"#,
            "answer",
        ),
        (
            "another line end",
            b"{\"jsonrpc\":\"2.0\",\"method\":\"x\"}\r",
            "answer",
        ),
        (
            "a request",
            br#"{"jsonrpc":"2.0","id":ID,"method":"roots/list"}"#,
            "answer",
        ),
        (
            "result and error",
            br#"{"jsonrpc":"2.0","id":ID,"result":{},"error":{"code":1,"message":"m"}}"#,
            "",
        ),
        (
            "an id in another spelling",
            br#"{"result":7,"id":ID.0,"jsonrpc":"2.0"}"#,
            "",
        ),
        (
            "an error that is no error",
            br#"{"jsonrpc":"2.0","id":ID,"error":null}"#,
            "",
        ),
        (
            "an answer twice",
            br#"{"jsonrpc":"2.0","id":ID,"result":{}}"#,
            "answer",
        ),
    ]);
    insta::assert_snapshot!(table, @r#"
    a notification
      <  { "params":{"a":1.0,"a":-0} , "method":"n\/x","jsonrpc":"2.0" }
      < its answer
    another line end
      < {"jsonrpc":"2.0","method":"x"}\r
      < its answer
    a request
      < {"jsonrpc":"2.0","id":ID,"method":"roots/list"}
      < its answer
    result and error
      < {"jsonrpc":"2.0","id":ID,"result":{},"error":{"code":1,"message":"m"}}
    an id in another spelling
      < {"result":7,"id":ID.0,"jsonrpc":"2.0"}
    an error that is no error
      < {"jsonrpc":"2.0","id":ID,"error":null}
    an answer twice
      < {"jsonrpc":"2.0","id":ID,"result":{}}
    "#);
}

#[test]
fn noise_is_counted() {
    let mut session = Session::met(&[]);
    let noise = super::hex(b"nonsense\n");
    session.call(&format!("say:1000:{noise} answer:5 answer"));
    session.line();
    session.ends_well();
    let told = session.stderr();
    assert!(
        told.contains("dropped 1001 lines of the connector that were no messages"),
        "{told}"
    );
}
