//! A session whose engine and upstream are the test: how a save fails, which the real upstream
//! cannot be made to do, and what passes at any chunking.

use super::*;
use proptest::prelude::*;
use sema_vault::{ConnectorDir, Dir};
use std::fs;
use std::io::{BufRead as _, BufReader, PipeReader, PipeWriter, Read as _, Write as _};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

const STATE: &str = r#"{"cookies":[{"name":"a"}],"origins":[]}"#;

/// A session whose engine and upstream are the test.
struct Rig {
    root: tempfile::TempDir,
    engine_in: Option<PipeWriter>,
    engine_out: BufReader<PipeReader>,
    upstream_in: BufReader<PipeReader>,
    upstream_out: Option<PipeWriter>,
    threads: Vec<std::thread::JoinHandle<()>>,
}

impl Rig {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        fs::set_permissions(root.path(), fs::Permissions::from_mode(0o700)).unwrap();
        let connector = ConnectorDir::open(root.path()).unwrap().unwrap();
        let out = Dir::create_private(&root.path().join("launches/l/out")).unwrap();
        let (from_engine, engine_in) = std::io::pipe().unwrap();
        let (engine_out, to_engine) = std::io::pipe().unwrap();
        let (upstream_in, to_upstream) = std::io::pipe().unwrap();
        let (from_upstream, upstream_out) = std::io::pipe().unwrap();
        let engine: &'static PipeWriter = Box::leak(Box::new(to_engine));
        let session = Arc::new(Session::new(Store::new(connector, out), engine.as_fd()));
        let down = Arc::clone(&session);
        let threads = vec![
            std::thread::spawn(move || {
                _ = pump(
                    from_engine.as_fd(),
                    &mut ToUpstream::new(&down, to_upstream.as_fd()),
                );
            }),
            std::thread::spawn(move || {
                _ = pump(from_upstream.as_fd(), &mut ToEngine::new(&session));
                session.remove_open();
            }),
        ];
        Self {
            root,
            engine_in: Some(engine_in),
            engine_out: BufReader::new(engine_out),
            upstream_in: BufReader::new(upstream_in),
            upstream_out: Some(upstream_out),
            threads,
        }
    }

    fn ask(&mut self, line: &str) {
        self.engine_in
            .as_mut()
            .unwrap()
            .write_all(line.as_bytes())
            .unwrap();
    }

    fn answer(&mut self, line: &str) {
        self.upstream_out
            .as_mut()
            .unwrap()
            .write_all(line.as_bytes())
            .unwrap();
    }

    fn engine_gets(&mut self) -> String {
        let mut line = String::new();
        self.engine_out.read_line(&mut line).unwrap();
        line
    }

    fn upstream_gets(&mut self) -> String {
        let mut line = String::new();
        self.upstream_in.read_line(&mut line).unwrap();
        line
    }

    /// Asks for a save; the file that the upstream is told.
    fn save(&mut self, id: u32) -> PathBuf {
        let call = r#""method":"tools/call","params":{"name":"browser_storage_state","arguments":{"filename":"/etc/x"}}"#;
        self.ask(&format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},{call}}}\n"));
        let line: serde_json::Value = serde_json::from_str(&self.upstream_gets()).unwrap();
        PathBuf::from(line["params"]["arguments"]["filename"].as_str().unwrap())
    }

    fn saved(&mut self, id: u32) -> String {
        self.answer(&format!("{}\n", done(id)));
        self.engine_gets()
    }

    fn stored(&self) -> Option<String> {
        fs::read_to_string(self.root.path().join(crate::browser::STATE)).ok()
    }

    fn out(&self) -> PathBuf {
        self.root.path().join("launches/l/out")
    }

    fn end(mut self) {
        (self.engine_in, self.upstream_out) = (None, None);
        self.threads
            .drain(..)
            .for_each(|thread| thread.join().unwrap());
    }
}

fn done(id: u32) -> String {
    format!(r#"{{"result":{{"content":[]}},"jsonrpc":"2.0","id":{id}}}"#)
}

#[test]
fn a_save_is_stored_and_its_file_is_gone() {
    let mut rig = Rig::new();
    let file = rig.save(1);
    assert_eq!(file.parent(), Some(rig.out().as_path()));
    fs::write(&file, STATE).unwrap();
    assert_eq!(rig.saved(1), format!("{}\n", done(1)));
    assert_eq!(rig.stored().as_deref(), Some(STATE));
    let mode = fs::metadata(rig.root.path().join(crate::browser::STATE))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o7777, 0o600);
    assert!(!file.exists());
    rig.end();
}

#[test]
fn what_breaks_the_rule_is_not_stored() {
    type Make = fn(&Path);
    let cases: [(Make, &str); 7] = [
        (|_| {}, "the upstream wrote no file"),
        (
            |file| symlink("/etc/passwd", file).unwrap(),
            "the file is a symbolic link",
        ),
        (
            |file| fs::create_dir(file).unwrap(),
            "the file is not a regular file",
        ),
        (
            |file| {
                rustix::fs::mknodat(
                    rustix::fs::CWD,
                    file,
                    rustix::fs::FileType::Fifo,
                    rustix::fs::Mode::RWXU,
                    0,
                )
                .unwrap()
            },
            "the file is not a regular file",
        ),
        (
            |file| fs::write(file, vec![b' '; 4 * 1024 * 1024 + 1]).unwrap(),
            "the file is over 4 MiB",
        ),
        (
            |file| fs::write(file, r#"{"cookies":["hunter2"]}"#).unwrap(),
            "the login state does not hold exactly the keys cookies and origins",
        ),
        (
            |file| fs::write(file, "hunter2").unwrap(),
            "the login state is not JSON (byte 0)",
        ),
    ];
    for (make, reason) in cases {
        let mut rig = Rig::new();
        let file = rig.save(7);
        make(&file);
        let line = rig.saved(7);
        assert!(
            line.contains(&format!("The login state was not stored: {reason}\"")),
            "{line}"
        );
        assert!(
            line.contains("\"isError\":true") && line.ends_with("\"id\":7}\n"),
            "{line}"
        );
        assert!(!line.contains("hunter2"));
        assert_eq!(rig.stored(), None, "{reason}");
        assert!(file.symlink_metadata().is_err(), "{reason}");
        rig.end();
    }
}

#[test]
fn a_backend_that_fails_says_so() {
    let mut rig = Rig::new();
    let file = rig.save(1);
    fs::write(&file, STATE).unwrap();
    // A lock that is a link: the vault refuses it.
    symlink("/etc/passwd", rig.root.path().join(".lock")).unwrap();
    let line = rig.saved(1);
    assert!(
        line.contains("The login state was not stored: ") && line.contains(".lock"),
        "{line}"
    );
    assert_eq!((rig.stored(), file.exists()), (None, false));
    rig.end();
}

#[test]
fn a_failed_save_is_passed_on_and_its_file_removed() {
    let mut rig = Rig::new();
    let file = rig.save(1);
    fs::write(&file, STATE).unwrap();
    let line = "{\"result\":{\"isError\":true},\"jsonrpc\":\"2.0\",\"id\":1}\n";
    rig.answer(line);
    assert_eq!(rig.engine_gets(), line);
    assert_eq!((rig.stored(), file.exists()), (None, false));
    rig.end();
}

#[test]
fn two_saves_at_once_are_two_files() {
    let mut rig = Rig::new();
    let (first, second) = (rig.save(1), rig.save(2));
    assert_ne!(first, second);
    fs::write(&second, STATE).unwrap();
    assert_eq!(rig.saved(2), format!("{}\n", done(2)));
    assert_eq!(rig.stored().as_deref(), Some(STATE));
    fs::write(&first, r#"{"cookies":[],"origins":[]}"#).unwrap();
    assert_eq!(rig.saved(1), format!("{}\n", done(1)));
    assert_eq!(
        rig.stored().as_deref(),
        Some(r#"{"cookies":[],"origins":[]}"#)
    );
    rig.end();
}

#[test]
fn a_file_that_is_named_like_the_upstreams_own_is_never_taken() {
    let mut rig = Rig::new();
    _ = rig.save(1);
    fs::write(rig.out().join("storage-state.json"), STATE).unwrap();
    assert!(rig.saved(1).contains("the upstream wrote no file"));
    assert_eq!(rig.stored(), None);
    rig.end();
}

#[test]
fn a_save_waits_for_an_auth_that_runs() {
    let mut rig = Rig::new();
    let file = rig.save(1);
    fs::write(&file, STATE).unwrap();
    let connector = ConnectorDir::open(rig.root.path()).unwrap().unwrap();
    let held = connector.lock_exclusive(&mut |_| {}).unwrap();
    rig.answer(&format!("{}\n", done(1)));
    // The other direction goes on meanwhile.
    rig.ask("{\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"ping\"}\n");
    assert!(rig.upstream_gets().contains("ping"));
    assert_eq!(rig.stored(), None);
    drop(held);
    assert_eq!(rig.engine_gets(), format!("{}\n", done(1)));
    assert_eq!(rig.stored().as_deref(), Some(STATE));
    rig.end();
}

#[test]
fn an_over_long_call_of_a_withheld_tool_cannot_be_read() {
    let mut rig = Rig::new();
    let mut upstream = std::mem::replace(
        &mut rig.upstream_in,
        BufReader::new(std::io::pipe().unwrap().0),
    );
    let reader = std::thread::spawn(move || {
        let mut line = Vec::new();
        upstream.read_until(b'\n', &mut line).unwrap();
        line
    });
    let long = "x".repeat(5_000_000);
    rig.ask(&format!("{{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"tools/call\",\"params\":{{\"x\":\"{long}\",\"name\":\"browser_cookie_list\"}}}}\n"));
    assert!(rig.engine_gets().contains("not found"));
    let line = reader.join().unwrap();
    assert!(line.len() > 4_000_000 && line.ends_with(b"\0\n"));
    assert!(serde_json::from_slice::<serde_json::Value>(&line).is_err());
    rig.end();
}

#[test]
fn nothing_is_written_into_an_over_long_line() {
    let mut rig = Rig::new();
    let long = "y".repeat(5_000_000);
    let line = format!("{{\"result\":\"{long}\",\"jsonrpc\":\"2.0\",\"id\":1}}\n");
    let mut upstream = rig.upstream_out.take().unwrap();
    let (first, second) = (line[..4_500_000].to_owned(), line[4_500_000..].to_owned());
    let writer = std::thread::spawn(move || {
        upstream.write_all(first.as_bytes()).unwrap();
        std::thread::sleep(std::time::Duration::from_millis(50));
        upstream.write_all(second.as_bytes()).unwrap();
        upstream
    });
    rig.ask("{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/call\",\"params\":{\"name\":\"browser_cookie_get\"}}\n");
    let mut got = [rig.engine_gets(), rig.engine_gets()];
    got.sort_by_key(String::len);
    assert!(got[0].contains("not found"));
    assert!(got[1] == line);
    rig.upstream_out = Some(writer.join().unwrap());
    rig.end();
}

#[test]
fn a_side_that_does_not_read_does_not_stop_the_other() {
    let mut rig = Rig::new();
    // The engine does not read: its side fills with notifications.
    let mut upstream = rig.upstream_out.take().unwrap();
    let writer = std::thread::spawn(move || {
        let line = "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\"}\n";
        (0..20_000).for_each(|_| upstream.write_all(line.as_bytes()).unwrap());
    });
    for id in 0..20_000 {
        rig.ask(&format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"ping\"}}\n"
        ));
        assert!(rig.upstream_gets().contains("ping"));
    }
    for _ in 0..20_000 {
        assert!(rig.engine_gets().contains("notifications/message"));
    }
    writer.join().unwrap();
    rig.end();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]
    #[test]
    fn with_no_storage_message_output_equals_input(
        lines in proptest::collection::vec(prop_oneof![
            Just("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\r\n".to_owned()),
            Just("{ \"id\" : \"\\u0061\",\"method\":\"tools/call\",\"params\":{\"name\":\"browser_click\"},\"jsonrpc\":\"2.0\"}\n".to_owned()),
            "[a-z ]{0,30}\n",
            (1usize..100_000).prop_map(|length| format!("{{\"jsonrpc\":\"2.0\",\"method\":\"{}\"}}\n", "m".repeat(length))),
        ], 0..12),
        chunk in 1usize..10_000,
        last in "[a-z]{0,5}",
    ) {
        let stream = lines.concat() + &last;
        let mut rig = Rig::new();
        let text = stream.as_bytes();
        let (engine, upstream) = (rig.engine_in.take().unwrap(), rig.upstream_out.take().unwrap());
        let (mut down, mut up) = (vec![0; text.len()], vec![0; text.len()]);
        std::thread::scope(|scope| {
            for mut writer in [engine, upstream] {
                // Closed at its end, which hands the last line on.
                scope.spawn(move || text.chunks(chunk).for_each(|part| writer.write_all(part).unwrap()));
            }
            scope.spawn(|| rig.upstream_in.read_exact(&mut down).unwrap());
            rig.engine_out.read_exact(&mut up).unwrap();
        });
        prop_assert!(down == text);
        prop_assert!(up == text);
    }
}
