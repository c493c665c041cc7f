//! Much at once: long lines, deep ones, endless ones, many requests, floods, and a side that stops
//! reading.

use super::{PATIENCE, Session, brief, comes, hex};
use std::io::Write;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

/// The longest line, in bytes.
const LIMIT: usize = 4_194_304;
/// The most memory that a launcher may have had, in KiB.
const PEAK: u64 = 24 * 1024;

/// A request of so many bytes.
fn request(id: u32, length: usize) -> String {
    let begin = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"x","params":{{"a":""#);
    let end = r#""}}"#;
    format!(
        "{begin}{}{end}",
        "y".repeat(length - begin.len() - end.len())
    )
}

/// The words that say a result of so many bytes to this id.
fn result(id: u32, length: usize) -> String {
    let begin = r#"{"jsonrpc":"2.0","result":""#;
    let end = format!("\",\"id\":{id}}}");
    let count = length - begin.len() - end.len();
    format!(
        "say:{} say:{count}:7a say:{}0a",
        hex(begin.as_bytes()),
        hex(end.as_bytes())
    )
}

/// How much an endless line holds, in bytes.
fn endless() -> usize {
    match std::env::var_os("SEMA_SOAK") {
        Some(_) => 1 << 30,
        None => 64 << 20,
    }
}

fn assert_small(session: &Session) {
    let peak = session.peak();
    assert!(peak < PEAK, "{peak} KiB");
}

#[test]
fn a_line_of_the_limit_passes_and_one_byte_more_is_refused() {
    let mut session = Session::met(&[]);
    session.send(request(1, LIMIT));
    let answer = session.line();
    assert!(
        answer.contains(&format!(r#""text":"{}:"#, LIMIT + 1)),
        "{answer}"
    );
    session.seen();
    session.send(request(2, LIMIT + 1));
    let (answers, seen) = session.between();
    insta::assert_snapshot!(answers.join("\n"), @r#"{"jsonrpc":"2.0","id":2,"error":{"code":-32012,"data":{"code":"connector.too_large","connector":"c"},"message":"the message is over 4 MiB (4194304 bytes)"}}"#);
    assert!(seen.is_empty(), "{seen:?}");
    session.lives_on();

    let id = session.asked + 1;
    session.call(&result(id, LIMIT));
    let answer = session.line();
    assert_eq!(answer.len(), LIMIT);
    assert!(answer.ends_with(&format!("zz\",\"id\":{id}}}")));
    session.lives_on();
    let id = session.asked + 1;
    session.call(&result(id, LIMIT + 1));
    insta::assert_snapshot!(session.next(1).replace(&id.to_string(), "ID"), @r#"{"jsonrpc":"2.0","id":ID,"error":{"code":-32012,"data":{"code":"connector.too_large","connector":"c"},"message":"the message is over 4 MiB (4194304 bytes): it has 4194305"}}"#);
    session.lives_on();
    assert_small(&session);
    session.ends_well();
}

#[test]
fn an_endless_line_of_the_engine_takes_no_memory() {
    let mut session = Session::met(&[]);
    session.write(br#"{"jsonrpc":"2.0","method":"x","params":""#);
    let block = vec![b'y'; 1 << 20];
    for _ in 0..endless() / block.len() {
        session.write(&block);
    }
    session.send(r#"","id":7}"#);
    let (answers, seen) = session.between();
    insta::assert_snapshot!(answers.join("\n"), @r#"{"jsonrpc":"2.0","id":7,"error":{"code":-32012,"data":{"code":"connector.too_large","connector":"c"},"message":"the message is over 4 MiB (4194304 bytes)"}}"#);
    assert!(seen.is_empty(), "{seen:?}");
    session.lives_on();
    assert_small(&session);
    session.ends_well();
}

#[test]
fn an_endless_line_of_the_connector_takes_no_memory() {
    let mut session = Session::met(&[]);
    let id = session.asked + 1;
    session.call(&result(id, endless()));
    let shown = session.next(1);
    let shown = shown
        .replace(&id.to_string(), "ID")
        .replace(&endless().to_string(), "LENGTH");
    insta::assert_snapshot!(shown, @r#"{"jsonrpc":"2.0","id":ID,"error":{"code":-32012,"data":{"code":"connector.too_large","connector":"c"},"message":"the message is over 4 MiB (4194304 bytes): it has LENGTH"}}"#);
    session.lives_on();
    // Without any end at all, until the connector goes.
    session.call(&format!("say:{}:7a exit:0", endless()));
    insta::assert_snapshot!(session.next(2), @r#"
    {"jsonrpc":"2.0","id":1004,"error":{"code":-32013,"data":{"code":"connector.upstream_exit","connector":"c"},"message":"the connector ended with exit code 0"}}
    {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}
    "#);
    session.answers_for_itself();
    assert_small(&session);
    session.ends_well();
}

#[test]
fn an_endless_line_of_standard_error_takes_no_memory() {
    let mut session = Session::met(&[]);
    session.call(&format!("err:{}:ff answer", endless()));
    session.line();
    // The longest that is kept, of bytes that are no text.
    session.call(&format!("err:0a err:{LIMIT}:ff err:0a answer"));
    session.line();
    session.lives_on();
    assert_small(&session);
    session.ends_well();
}

#[test]
fn a_hundred_thousand_levels_pass_both_ways() {
    let deep = format!("{}{}", r#"{"a":["#.repeat(50_000), "]}".repeat(50_000));
    let mut session = Session::met(&[]);
    let line = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"x","params":{deep}}}"#);
    session.send(&line);
    let answer = session.line();
    assert!(
        answer.contains(&format!(r#""text":"{}:"#, line.len() + 1)),
        "{answer}"
    );
    session.seen();
    let id = session.call(&format!(
        "say:{} say:50000:{} say:50000:{} say:{}0a answer",
        hex(br#"{"jsonrpc":"2.0","method":"n","params":"#),
        hex(br#"{"a":["#),
        hex(b"]}"),
        hex(b"}")
    ));
    assert_eq!(
        session.line(),
        format!(r#"{{"jsonrpc":"2.0","method":"n","params":{deep}}}"#)
    );
    assert!(session.line().contains(&format!(r#""id":{id},"result""#)));
    // A call, an answer to it and a list of tools, as deep: each is looked into.
    session.send(format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"arguments":{deep},"name":"safe"}}}}"#
    ));
    assert!(session.line().contains("\"result\""));
    session.seen();
    assert_small(&session);
    session.ends_well();
}

#[test]
fn many_tools_of_no_use_take_little_memory() {
    let mut session = Session::restricted(r#"{"allow":["safe"]}"#);
    let words = format!(
        "say:{} say:2000000:302c say:{}",
        hex(br#"{"jsonrpc":"2.0","id":1,"result":{"tools":["#),
        hex(b"0]}}\n"),
    );
    session.send(format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/list","do":"{words}"}}"#
    ));
    insta::assert_snapshot!(session.next(1), @r#"{"jsonrpc":"2.0","id":1,"result":{"tools":[]}}"#);
    session.lives_on();
    assert_small(&session);
    session.ends_well();
}

#[test]
fn the_end_of_input_in_the_middle_of_a_line() {
    let mut session = Session::met(&[]);
    session.write(br#"{"jsonrpc":"2.0","id":1,"meth"#);
    let (status, rest) = session.end();
    assert!(status.success(), "{status}");
    insta::assert_snapshot!(rest.join("\n"), @r#"
    {"jsonrpc":"2.0","id":1,"error":{"code":-32700,"message":"parse error: not JSON at byte 29"}}
    {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}
    "#);

    let mut session = Session::met(&[]);
    session.write(br#"{"jsonrpc":"2.0","id":1,"method":"x"}"#);
    let (status, rest) = session.end();
    assert!(status.success(), "{status}");
    insta::assert_snapshot!(rest.join("\n"), @r#"
    {"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"7b226a736f6e727063223a22322e30222c226964223a312c226d6574686f64223a2278227d0a"}]}}
    {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}
    "#);

    // Of a line over the limit, too.
    let mut session = Session::met(&[]);
    session.write(&request(1, LIMIT + 1).as_bytes()[..LIMIT + 1]);
    let (status, rest) = session.end();
    assert!(status.success(), "{status}");
    insta::assert_snapshot!(rest.join("\n"), @r#"
    {"jsonrpc":"2.0","id":1,"error":{"code":-32012,"data":{"code":"connector.too_large","connector":"c"},"message":"the message is over 4 MiB (4194304 bytes)"}}
    {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}
    "#);
}

#[test]
fn ten_thousand_requests_in_flight_are_all_answered() {
    let mut session = Session::met(&[]);
    let begun = session.asked + 1;
    for _ in 0..10_000 {
        session.call("hold");
    }
    let release = session.call("release");
    for id in (begun..release).rev().chain([release]) {
        let line = session.line();
        assert!(
            line.contains(&format!(r#""id":{id},"result""#)),
            "{}",
            brief(&line)
        );
    }
    session.seen();
    assert_small(&session);

    // And where the connector goes.
    for _ in 0..10_000 {
        session.call("hold");
    }
    let gone = session.call("exit:0");
    for id in release + 2..=gone {
        let line = session.line();
        assert!(
            line.contains(&format!(r#""id":{id},"error""#)),
            "{}",
            brief(&line)
        );
    }
    session.line();
    session.answers_for_itself();
    assert_small(&session);
    session.ends_well();
}

/// Lines that the launcher answers by itself, a status that it asks the connector for, and calls of
/// the connector's come through.
#[test]
fn a_flood_of_the_connector_does_not_stop_the_other_direction() {
    let mut session = Session::met(&[]);
    session.call("flood answer");
    let begun = Instant::now();
    for round in 0..20 {
        let read = r#"{"jsonrpc":"2.0","id":"s","method":"resources/read","params":{"uri":"sema-connector://c/status"}}"#;
        session.send(read);
        session.send("nonsense");
        let id = session.call("answer");
        let mut wanted = vec![
            r#""id":"s","result""#.to_owned(),
            r#""id":null,"error""#.to_owned(),
            format!(r#""id":{id},"result""#),
        ];
        let mut told = 0;
        while !wanted.is_empty() {
            let line = session.line();
            told += usize::from(line.contains("notifications/progress"));
            wanted.retain(|wanted| !line.contains(wanted));
            assert!(told < 200_000, "{wanted:?} starve in round {round}");
        }
    }
    assert!(begun.elapsed() < PATIENCE, "{:?}", begun.elapsed());
    assert_small(&session);
    let (status, _) = session.end();
    assert!(
        status.success() && session.processes().is_empty(),
        "{status}"
    );
}

#[test]
fn a_flood_of_the_engine_does_not_stop_the_other_direction() {
    let mut session = Session::met(&[]);
    let mut input = std::fs::File::from(dup(session.input.as_ref().unwrap()));
    let told = format!("{}\n", r#"{"jsonrpc":"2.0","method":"notifications/x"}"#);
    let flood = std::thread::spawn(move || {
        for _ in 0..200_000 {
            input.write_all(told.as_bytes()).unwrap();
        }
    });
    session.call("flood answer");
    let mut told = 0;
    while !flood.is_finished() {
        told += usize::from(session.line().contains("notifications/progress"));
    }
    assert!(told > 1000, "{told}");
    flood.join().unwrap();
    assert_small(&session);
    let (status, _) = session.end();
    assert!(status.success(), "{status}");
}

/// What the engine sends waits in the pipes; what the connector sends arrives.
#[test]
fn a_connector_that_stops_reading_is_still_heard() {
    let mut session = Session::met(&[]);
    session.call("flood wait:1000000");
    let input = session.input.as_ref().unwrap();
    rustix::io::ioctl_fionbio(input, true).unwrap();
    // Short enough for a pipe to take it whole or not at all.
    let line = request(1, 4000) + "\n";
    fill(session.input.as_mut().unwrap(), line.as_bytes());
    for _ in 0..10_000 {
        assert!(session.line().contains("notifications/progress"));
    }
    assert_small(&session);
    drop(session.input.take());
    assert!(session.ended().success());
    assert!(session.processes().is_empty());
}

/// What the connector sends waits in the pipes; what the engine sends arrives.
#[test]
fn an_engine_that_stops_reading_is_still_heard() {
    let mut session = Session::met(&[]);
    session.call("flood answer");
    session.line();
    let reading = std::sync::Arc::clone(&session.reading);
    let stopped = reading.lock().unwrap();
    std::thread::sleep(Duration::from_millis(300));
    session.call(&format!("err:{}", hex(b"it arrives\n")));
    comes("a line behind an engine that does not read", || {
        let said = std::fs::read_to_string(session.stage.path("stderr")).unwrap();
        said.contains("it arrives")
    });
    assert_small(&session);
    drop(stopped);
    let id = session.call("answer");
    while !session.line().contains(&format!(r#""id":{id},"result""#)) {}
    let (status, _) = session.end();
    assert!(status.success(), "{status}");
}

/// What it sends is still handed on, and its end is still noticed.
#[test]
fn an_engine_that_closes_its_reading_end_is_still_heard() {
    let mut session = Session::met(&[]);
    session.lines = std::sync::mpsc::channel().1;
    session.call("answer");
    session.call("answer answer");
    session.call(&format!("err:{}", hex(b"it arrives\n")));
    comes(
        "a line of an engine that has closed its reading end",
        || {
            let said = std::fs::read_to_string(session.stage.path("stderr")).unwrap();
            said.contains("it arrives")
        },
    );
    session.ends_well();
}

/// Writes until nothing fits any more, on a descriptor that does not wait.
fn fill(input: &mut impl Write, bytes: &[u8]) {
    let mut full = None;
    while full.is_none_or(|since: Instant| since.elapsed() < Duration::from_millis(500)) {
        match input.write(bytes) {
            Ok(count) if count > 0 => full = None,
            _ => _ = full.get_or_insert_with(Instant::now),
        }
    }
}

fn dup(fd: &impl AsFd) -> OwnedFd {
    fd.as_fd().try_clone_to_owned().unwrap()
}
