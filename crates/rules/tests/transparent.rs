//! Bytes are sacred: with a policy that allows all, whatever valid lines the two sides send, in
//! whatever chunks, each side gets what the other sent, byte for byte. The answer to `initialize` is
//! the one message that may differ, and only by the capability that is put into it.
//!
//! Not generated, since the launcher answers or adds to them itself: the status resource, the first
//! page of the resources, `resources/` where the connector has none, and messages of the later
//! revision, which are translated.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use sema_rules::envelope;
use sema_rules::eras::Eras;
use sema_rules::frame::{Piece, Splitter};
use sema_rules::hop::{Absence, Forward, Hop, Step};
use sema_rules::name::ConnectorName;
use sema_rules::policy::ToolPolicy;
use sema_rules::wire::Code;

/// What stands for the capabilities until it is known whether they have `resources`.
const CAPABILITIES: &str = "CAPABILITIES";
const ADDED: &str = r#""resources":{"subscribe":true}"#;

/// One message of a session.
#[derive(Debug, Clone)]
enum Said {
    /// The engine asks, under this id.
    Engine(String, Line),
    /// The engine tells, or answers what the connector asked.
    EngineElse(Line),
    /// The connector answers one of the requests that are open; nothing where there is none.
    Answer(Index, Line),
    /// The connector asks or tells.
    ConnectorElse(Line),
}

/// A line whose id is yet to be put in, in the place of `ID`.
type Line = String;

fn space() -> impl Strategy<Value = &'static str> {
    select(vec!["", "", "", " ", "\t", "  \r ", "\r"])
}

fn string() -> impl Strategy<Value = String> {
    let pieces = [
        "a",
        "Z",
        "é",
        "😀",
        "\u{2028}",
        "\u{7f}",
        " ",
        "//",
        r"\/",
        r"\u0000",
        r"\ud800",
        r"\ude00\ud83d",
        r"\uD83D\uDE00",
        r#"\""#,
        r"\\",
        r"\n",
        r"\u006e",
    ];
    vec(select(pieces.to_vec()), 0..5).prop_map(|pieces| format!("\"{}\"", pieces.concat()))
}

fn scalar() -> impl Strategy<Value = String> {
    let plain = [
        "null",
        "true",
        "false",
        "0",
        "-0",
        "-0.0",
        "1.0",
        "1e3",
        "1E+3",
        "0.1e-9",
        "1e999",
        "12345678901234567890",
        "3.141592653589793238462643",
    ];
    prop_oneof![select(plain.to_vec()).prop_map(str::to_owned), string()]
}

/// An object of these members, with spaces between its tokens.
fn object(members: Vec<(String, String)>, spaces: &[&str; 4]) -> String {
    let [a, b, c, d] = spaces;
    let members: Vec<String> = members
        .iter()
        .map(|(key, value)| format!("{a}{key}{b}:{c}{value}{d}"))
        .collect();
    format!("{{{}{a}}}", members.join(","))
}

fn value() -> impl Strategy<Value = String> {
    scalar().prop_recursive(4, 24, 4, |inner| {
        let spaces = [space(), space(), space(), space()];
        let members = vec((string(), inner.clone()), 0..4);
        // Keys may be there twice.
        let twice = (members, any::<bool>(), spaces).prop_map(|(mut members, twice, spaces)| {
            if twice {
                members.extend_from_within(..);
            }
            object(members, &spaces)
        });
        let array = (vec(inner, 0..4), space()).prop_map(|(elements, space)| {
            format!(
                "[{space}{}{space}]",
                elements.join(&format!("{space},{space}"))
            )
        });
        prop_oneof![twice, array]
    })
}

fn id() -> impl Strategy<Value = String> {
    let plain = [
        "0",
        "-0",
        "1",
        "1.0",
        "10e-1",
        "1e3",
        "-7",
        "12345678901234567890",
        r#""""#,
        r#""1""#,
        r#""a\/b""#,
        r#""\ud800""#,
        r#""\u0000""#,
        r#""ID é""#,
    ];
    prop_oneof![
        select(plain.to_vec()).prop_map(str::to_owned),
        (0_u64..).prop_map(|id| id.to_string()),
    ]
}

/// Members that nobody reads.
fn unknown() -> impl Strategy<Value = Vec<(String, String)>> {
    let key = string().prop_map(|key| format!("\"x{}", &key[1..]));
    vec((key, value()), 0..3)
}

/// A line with these members and others, in any order, at either line end.
fn line(members: Vec<(&'static str, BoxedStrategy<String>)>) -> impl Strategy<Value = Line> {
    let version = ("\"jsonrpc\"", Just("\"2.0\"".to_owned()).boxed());
    let known: Vec<_> = std::iter::once(version)
        .chain(members)
        .map(|(key, value)| (Just(key.to_owned()), value))
        .collect();
    let all = (known, unknown()).prop_map(|(known, unknown)| [known, unknown].concat());
    let spaces = [space(), space(), space(), space()];
    let end = select(vec!["\n", "\r\n", " \n", "\t\r\n"]);
    (all.prop_shuffle(), spaces, space(), end).prop_map(|(members, spaces, before, end)| {
        format!("{before}{}{end}", object(members, &spaces))
    })
}

fn one_of(texts: &[&'static str]) -> BoxedStrategy<String> {
    select(texts.to_vec()).prop_map(str::to_owned).boxed()
}

fn params() -> BoxedStrategy<String> {
    let call = (string(), unknown()).prop_map(|(name, mut members)| {
        members.push(("\"name\"".to_owned(), name));
        object(members, &["", " ", "", "\r"])
    });
    let meta = r#"{"_meta":{"progressToken":1.0,"progressToken":-0,"traceparent":"x"},"task":{}}"#;
    prop_oneof![value(), call, Just(meta.to_owned())].boxed()
}

const KEYS_OF_METHOD: [&str; 2] = [r#""method""#, r#""m\u0065thod""#];

fn engine_asks() -> BoxedStrategy<Said> {
    let method = || {
        one_of(&[
            r#""tools/call""#,
            r#""tools\/call""#,
            r#""tools/list""#,
            r#""ping""#,
            r#""completion/complete""#,
            r#""tasks/get""#,
            r#""""#,
            r#""\ud800""#,
        ])
    };
    let asks = KEYS_OF_METHOD.map(|key| {
        line(vec![
            ("\"id\"", Just("ID".to_owned()).boxed()),
            (key, method()),
            ("\"params\"", params()),
        ])
    });
    let [plain, escaped] = asks;
    (id(), prop_oneof![plain, escaped])
        .prop_filter("a call is named once, and by a text", |(_, line)| {
            is_forwarded(line)
        })
        .prop_map(|(id, line)| Said::Engine(id, line))
        .boxed()
}

/// A call whose parameters are no object or name the tool twice is refused with any policy.
fn is_forwarded(line: &str) -> bool {
    let line = line.replacen("ID", "1", 1);
    let message = envelope::read(line.as_bytes()).unwrap();
    envelope::member(message.params.unwrap(), "name").is_ok()
}

fn others(keys: [(&'static str, BoxedStrategy<String>); 2]) -> BoxedStrategy<Line> {
    let [first, second] = keys;
    line(vec![first, second]).boxed()
}

fn tells() -> BoxedStrategy<Line> {
    let method = one_of(&[
        r#""notifications/progress""#,
        r#""notifications\/message""#,
        r#""notifications/initialized""#,
        r#""notifications/tools/list_changed""#,
        r#""x""#,
    ]);
    others([("\"method\"", method), ("\"params\"", params())])
}

fn answers(id: BoxedStrategy<String>) -> BoxedStrategy<Line> {
    prop_oneof![
        others([("\"id\"", id.clone()), ("\"result\"", value().boxed())]),
        others([
            ("\"\\u0069d\"", id.clone()),
            ("\"result\"", value().boxed())
        ]),
        others([("\"id\"", id), ("\"error\"", value().boxed())]),
    ]
    .boxed()
}

fn said() -> impl Strategy<Value = Said> {
    let asks = || {
        let method = one_of(&[
            r#""roots/list""#,
            r#""sampling/createMessage""#,
            r#""ping""#,
        ]);
        others([("\"id\"", id().boxed()), ("\"method\"", method)])
    };
    prop_oneof![
        3 => engine_asks(),
        1 => tells().prop_map(Said::EngineElse),
        1 => answers(id().boxed()).prop_map(Said::EngineElse),
        3 => (any::<Index>(), answers(Just("ID".to_owned()).boxed())).prop_map(|(at, line)| Said::Answer(at, line)),
        1 => tells().prop_map(Said::ConnectorElse),
        1 => asks().prop_map(Said::ConnectorElse),
    ]
}

/// A session with its two streams.
struct Session {
    eras: Eras,
    chunks: std::iter::Cycle<std::vec::IntoIter<usize>>,
    engine: Splitter,
    connector: Splitter,
}

impl Session {
    fn new(chunks: Vec<usize>) -> Self {
        let absence = Absence {
            code: Code::Unauthorized,
            reason: "parked".to_owned(),
        };
        let name = ConnectorName::parse("c").unwrap();
        let hop = Hop::new(name, "0", Ok(ToolPolicy::all()), absence);
        let mut eras = Eras::new(hop, || None);
        assert_eq!(eras.connector_started(), Step::default());
        Self {
            eras,
            chunks: chunks.into_iter().cycle(),
            engine: Splitter::default(),
            connector: Splitter::default(),
        }
    }

    /// What the connector gets of these bytes of the engine's; the engine gets nothing for them.
    fn engine(&mut self, bytes: &[u8]) -> String {
        carry(&mut self.engine, &mut self.chunks, bytes, |line| {
            let step = self.eras.from_engine(line, &envelope::read(line), 7);
            (step.to_engine, step.to_connector, step.forward)
        })
    }

    /// What the engine gets of these bytes of the connector's; the connector gets nothing for them.
    fn connector(&mut self, bytes: &[u8]) -> String {
        carry(&mut self.connector, &mut self.chunks, bytes, |line| {
            let step = self.eras.from_connector(line, &envelope::read(line), None);
            (step.to_connector, step.to_engine, step.forward)
        })
    }
}

/// Back, on, and what becomes of the line.
type Judged = (Vec<Vec<u8>>, Vec<Vec<u8>>, Forward);

fn carry(
    splitter: &mut Splitter,
    chunks: &mut impl Iterator<Item = usize>,
    mut bytes: &[u8],
    mut judge: impl FnMut(&[u8]) -> Judged,
) -> String {
    let mut out = Vec::new();
    while !bytes.is_empty() {
        let space = splitter.space();
        let count = chunks.next().unwrap().min(bytes.len()).min(space.len());
        space[..count].copy_from_slice(&bytes[..count]);
        splitter.filled(count);
        bytes = &bytes[count..];
        while let Some(piece) = splitter.take() {
            let Piece::Line(line) = piece else {
                unreachable!("a short line told as a long one")
            };
            let (back, on, forward) = judge(line);
            let shown = String::from_utf8_lossy(line);
            assert!(back.is_empty() && on.is_empty(), "{shown}: {back:?} {on:?}");
            match forward {
                Forward::AsIs => out.extend_from_slice(line),
                Forward::Replaced(line) => out.extend_from_slice(&line),
                Forward::Nothing => unreachable!("dropped: {shown}"),
            }
        }
    }
    String::from_utf8(out).unwrap()
}

/// The two lines of a handshake, the second with `CAPABILITIES` in it.
fn handshake() -> impl Strategy<Value = (Line, Line)> {
    let ask = line(vec![
        ("\"id\"", Just("7".to_owned()).boxed()),
        ("\"method\"", Just("\"initialize\"".to_owned()).boxed()),
        (
            "\"params\"",
            Just(r#"{"protocolVersion":"2025-06-18","capabilities":{},"x":1e3}"#.to_owned())
                .boxed(),
        ),
    ]);
    let result = unknown().prop_map(|mut members| {
        members.push(("\"capabilities\"".to_owned(), CAPABILITIES.to_owned()));
        object(members, &["", "\t", " ", ""])
    });
    let answer = line(vec![
        ("\"id\"", Just("7.0".to_owned()).boxed()),
        ("\"result\"", result.boxed()),
    ]);
    (ask, answer)
}

proptest! {
    #[test]
    fn what_goes_out_is_what_came_in(
        (ask, answer) in handshake(),
        own in any::<bool>(),
        said in vec(said(), 0..24),
        chunks in vec(1_usize..200, 1..6),
    ) {
        let mut session = Session::new(chunks);
        prop_assert_eq!(session.engine(ask.as_bytes()), ask);
        let (sent, expected) = match own {
            true => (r#"{ "resources":{},"tools":{}}"#.to_owned(), r#"{ "resources":{},"tools":{}}"#.to_owned()),
            false => (r#"{ "tools":{}}"#.to_owned(), format!(r#"{{{ADDED}, "tools":{{}}}}"#)),
        };
        let put = |capabilities: &str| answer.replacen(CAPABILITIES, capabilities, 1);
        prop_assert_eq!(session.connector(put(&sent).as_bytes()), put(&expected));
        let mut open: Vec<String> = Vec::new();
        // Lines of one side that follow each other come as one stream.
        let (mut from_engine, mut from_connector) = (String::new(), String::new());
        for said in said {
            let by_engine = matches!(said, Said::Engine(..) | Said::EngineElse(_));
            let other = if by_engine { &mut from_connector } else { &mut from_engine };
            let waiting = std::mem::take(other);
            let got = if by_engine { session.connector(waiting.as_bytes()) } else { session.engine(waiting.as_bytes()) };
            prop_assert_eq!(got, waiting);
            match said {
                Said::Engine(id, line) => {
                    from_engine += &line.replacen("ID", &id, 1);
                    open.push(id);
                }
                Said::EngineElse(line) => from_engine += &line,
                Said::Answer(at, line) if !open.is_empty() => {
                    let id = open.remove(at.index(open.len()));
                    from_connector += &line.replacen("ID", &id, 1);
                }
                Said::Answer(..) => {}
                Said::ConnectorElse(line) => from_connector += &line,
            }
        }
        prop_assert_eq!(session.engine(from_engine.as_bytes()), from_engine);
        prop_assert_eq!(session.connector(from_connector.as_bytes()), from_connector);
    }
}
