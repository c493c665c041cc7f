//! Bad input from the engine: what the engine gets for it, and what of it reaches the connector.

use super::{Session, brief};

/// What becomes of a line: `<` what the engine gets, `>` what reaches the connector.
fn row(session: &mut Session, name: &str, line: &[u8]) -> String {
    session.send(line);
    let (answers, seen) = session.between();
    let mut row = format!("{name}\n");
    for line in &answers {
        row += &format!("  < {}\n", brief(line));
    }
    for line in &seen {
        row += &format!("  > {:?}\n", brief(line));
    }
    row
}

fn table(rows: &[(&str, &[u8])]) -> String {
    let mut session = Session::met(&[]);
    let rows = rows
        .iter()
        .map(|(name, line)| row(&mut session, name, line));
    let table: String = rows.collect();
    session.ends_well();
    table
}

#[test]
fn what_is_no_message_is_answered_and_goes_no_further() {
    let table = table(&[
        ("not JSON", b"nonsense"),
        ("truncated", br#"{"jsonrpc":"2.0","id":1,"method":"x""#),
        (
            "two on a line",
            br#"{"jsonrpc":"2.0","id":1,"method":"x"}{"jsonrpc":"2.0","id":2,"method":"x"}"#,
        ),
        ("a number", b"3"),
        ("a string", br#""x""#),
        ("null", b"null"),
        ("a batch", br#"[{"jsonrpc":"2.0","id":1,"method":"x"}]"#),
        ("an empty batch", b"[]"),
        ("empty", b""),
        ("only an end of another kind", b"\r"),
        ("only spaces", b"  \t "),
        (
            "a byte order mark",
            b"\xef\xbb\xbf{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"x\"}",
        ),
        ("NUL", b"\0"),
        (
            "NUL in a string",
            b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"x\0\"}",
        ),
        (
            "NUL after",
            b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"x\"}\0",
        ),
        (
            "no UTF-8",
            b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}",
        ),
        ("UTF-16", b"{\0\"\0j\0\"\0:\x001\0}\0"),
        (
            "half a surrogate as UTF-8",
            b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xed\xa0\x80\"}",
        ),
        ("no version", br#"{"id":1,"method":"x"}"#),
        (
            "another version",
            br#"{"jsonrpc":"1.0","id":1,"method":"x"}"#,
        ),
        (
            "a version that is a number",
            br#"{"jsonrpc":2.0,"id":1,"method":"x"}"#,
        ),
        ("neither id nor method", br#"{"jsonrpc":"2.0"}"#),
        ("an id alone", br#"{"jsonrpc":"2.0","id":1}"#),
        (
            "an id that is null",
            br#"{"jsonrpc":"2.0","id":null,"method":"x"}"#,
        ),
        (
            "an id that is a fraction",
            br#"{"jsonrpc":"2.0","id":1.5,"method":"x"}"#,
        ),
        (
            "an id that is an object",
            br#"{"jsonrpc":"2.0","id":{"a":1},"method":"x"}"#,
        ),
        (
            "an id that is too great",
            br#"{"jsonrpc":"2.0","id":1e999,"method":"x"}"#,
        ),
        (
            "a method that is a number",
            br#"{"jsonrpc":"2.0","id":1,"method":7}"#,
        ),
        (
            "a method twice",
            br#"{"jsonrpc":"2.0","id":1,"method":"x","m\u0065thod":"y"}"#,
        ),
        (
            "an id twice",
            br#"{"jsonrpc":"2.0","id":1,"id":2,"method":"x"}"#,
        ),
    ]);
    insta::assert_snapshot!(table, @r#"
    not JSON
      < {"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"parse error: not JSON at byte 0"}}
    truncated
      < {"jsonrpc":"2.0","id":1,"error":{"code":-32700,"message":"parse error: not JSON at byte 36"}}
    two on a line
      < {"jsonrpc":"2.0","id":1,"error":{"code":-32700,"message":"parse error: not JSON at byte 37"}}
    a number
      < {"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"invalid request: a message is a JSON object"}}
    a string
      < {"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"invalid request: a message is a JSON object"}}
    null
      < {"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"invalid request: a message is a JSON object"}}
    a batch
      < {"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"invalid request: batches are not part of the protocol"}}
    an empty batch
      < {"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"invalid request: batches are not part of the protocol"}}
    empty
      < {"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"parse error: not JSON at byte 1"}}
    only an end of another kind
      < {"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"parse error: not JSON at byte 2"}}
    only spaces
      < {"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"parse error: not JSON at byte 5"}}
    a byte order mark
      < {"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"parse error: not JSON at byte 0"}}
    NUL
      < {"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"parse error: not JSON at byte 0"}}
    NUL in a string
      < {"jsonrpc":"2.0","id":1,"error":{"code":-32700,"message":"parse error: not JSON at byte 35"}}
    NUL after
      < {"jsonrpc":"2.0","id":1,"error":{"code":-32700,"message":"parse error: not JSON at byte 37"}}
    no UTF-8
      < {"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"parse error: not JSON at byte 34"}}
    UTF-16
      < {"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"parse error: not JSON at byte 1"}}
    half a surrogate as UTF-8
      < {"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"parse error: not JSON at byte 34"}}
    no version
      < {"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"invalid request: \"jsonrpc\" must be \"2.0\""}}
    another version
      < {"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"invalid request: \"jsonrpc\" must be \"2.0\""}}
    a version that is a number
      < {"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"invalid request: \"jsonrpc\" must be \"2.0\""}}
    neither id nor method
      < {"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"invalid request: a message has a \"method\", or an \"id\" with a \"result\" or an \"error\""}}
    an id alone
      < {"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"invalid request: a message has a \"method\", or an \"id\" with a \"result\" or an \"error\""}}
    an id that is null
      < {"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"invalid request: \"id\" must be a string or an integer"}}
    an id that is a fraction
      < {"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"invalid request: \"id\" must be a string or an integer"}}
    an id that is an object
      < {"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"invalid request: \"id\" must be a string or an integer"}}
    an id that is too great
      < {"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"invalid request: \"id\" must be a string or an integer"}}
    a method that is a number
      < {"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"invalid request: \"method\" must be a string"}}
    a method twice
      < {"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"invalid request: \"method\" occurs twice"}}
    an id twice
      < {"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"invalid request: \"id\" occurs twice"}}
    "#);
}

#[test]
fn odd_messages_pass_as_they_came() {
    let table = table(&[
        (
            "an unknown method",
            br#"{"jsonrpc":"2.0","id":1,"method":"no/such"}"#,
        ),
        (
            "an answer to nothing",
            br#"{"jsonrpc":"2.0","id":77,"result":{}}"#,
        ),
        (
            "the same again",
            br#"{"jsonrpc":"2.0","id":77,"result":{}}"#,
        ),
        (
            "result and error",
            br#"{"jsonrpc":"2.0","id":77,"result":{},"error":{"code":1,"message":"m"}}"#,
        ),
        (
            "spaces and another line end",
            b"  { \"id\" :\t1, \"method\":\"a\\/b\" ,\"jsonrpc\":\"2.0\"}  \r",
        ),
        (
            "a carriage return between",
            b"{\"jsonrpc\":\"2.0\",\r\"id\":1,\"method\":\"x\"}",
        ),
        (
            "a whole number in another spelling",
            br#"{"jsonrpc":"2.0","id":1.0,"method":"x","params":[-0,1E3,12345678901234567890]}"#,
        ),
        ("an empty id", br#"{"jsonrpc":"2.0","id":"","method":""}"#),
    ]);
    insta::assert_snapshot!(table, @r#"
    an unknown method
      < {"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"7b226a736f6e727063223a22322e30222c226964223a312c226d6574686f64223a226e6f2f73756368227d0a"}]}}
      > "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"no/such\"}\n"
    an answer to nothing
      > "{\"jsonrpc\":\"2.0\",\"id\":77,\"result\":{}}\n"
    the same again
      > "{\"jsonrpc\":\"2.0\",\"id\":77,\"result\":{}}\n"
    result and error
      > "{\"jsonrpc\":\"2.0\",\"id\":77,\"result\":{},\"error\":{\"code\":1,\"message\":\"m\"}}\n"
    spaces and another line end
      < {"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"20207b2022696422203a09312c20226d6574686f64223a22615c2f6222202c226a736f6e727063223a22322e30227d20200d0a"}]}}
      > "  { \"id\" :\t1, \"method\":\"a\\/b\" ,\"jsonrpc\":\"2.0\"}  \r\n"
    a carriage return between
      < {"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"7b226a736f6e727063223a22322e30222c0d226964223a312c226d6574686f64223a2278227d0a"}]}}
      > "{\"jsonrpc\":\"2.0\",\r\"id\":1,\"method\":\"x\"}\n"
    a whole number in another spelling
      < {"jsonrpc":"2.0","id":1.0,"result":{"content":[{"type":"text","text":"7b226a736f6e727063223a22322e30222c226964223a312e302c226d6574686f64223a2278222c22706172616d73223a5b2d302c3145332c31323334353637383930313233343536373839305d7d0a"}]}}
      > "{\"jsonrpc\":\"2.0\",\"id\":1.0,\"method\":\"x\",\"params\":[-0,1E3,12345678901234567890]}\n"
    an empty id
      < {"jsonrpc":"2.0","id":"","result":{"content":[{"type":"text","text":"7b226a736f6e727063223a22322e30222c226964223a22222c226d6574686f64223a22227d0a"}]}}
      > "{\"jsonrpc\":\"2.0\",\"id\":\"\",\"method\":\"\"}\n"
    "#);
}

#[test]
fn one_id_twice_at_once_gets_two_answers() {
    let mut session = Session::met(&[]);
    session.send(super::call(7, "hold"));
    session.send(super::call(7, "hold"));
    let release = session.call("release");
    for id in [7, 7, release] {
        let line = session.line();
        assert!(line.contains(&format!(r#""id":{id},"result""#)), "{line}");
    }
    session.lives_on();
}
