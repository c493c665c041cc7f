//! The connector process with the real upstream and the real browser: what it is started with,
//! what people see, and how it ends.

use super::bare::{CLEAN, Lab, Session, below, proc_texts};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::os::unix::process::ExitStatusExt as _;
use std::process::Command;
use std::time::{Duration, Instant};

const STATE: [(&str, &str); 1] = [("BROWSER_STORAGE_STATE", CLEAN)];

fn page(html: &str) -> Value {
    let encoded: String = html.bytes().map(|byte| format!("%{byte:02X}")).collect();
    json!({"url": format!("data:text/html;charset=utf-8,{encoded}")})
}

/// The process of the upstream below a connector.
fn upstream(session: &Session) -> u32 {
    let all = below(session.id());
    let is = |pid: &u32| {
        proc_texts(*pid, "cmdline")
            .iter()
            .any(|text| text.ends_with("cli.js"))
    };
    *all.iter().find(|pid| is(pid)).unwrap()
}

/// Waits until none of these processes is left.
fn gone(pids: &[u32]) {
    let end = Instant::now() + Duration::from_secs(5);
    while let Some(pid) = pids
        .iter()
        .find(|pid| !proc_texts(**pid, "cmdline").is_empty())
    {
        assert!(Instant::now() < end, "{pid} outlived its launch");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn the_upstream_gets_the_table_and_an_environment_of_its_own() {
    let mut lab = Lab::with_build(&STATE);
    for (name, value) in [
        ("PLAYWRIGHT_MCP_CAPS", "vision"),
        ("NODE_OPTIONS", "--no-warnings"),
        ("NODE_EXTRA_CA_CERTS", "/ca.pem"),
        ("PWDEBUG", "1"),
        ("DEBUG", "*"),
        ("HOME", "/root"),
        ("LC_ALL", "C.UTF-8"),
        ("NO_PROXY", "localhost"),
        ("TZ", "Asia/Tokyo"),
    ] {
        lab.set(name, value);
    }
    let session = lab.start();
    let pid = upstream(&session);
    let shown = |texts: Vec<String>| {
        let text = texts
            .join("\n")
            .replace(lab.connector.path().to_str().unwrap(), "DIR");
        let text = text.replace(lab.launch.id().as_str(), "ID");
        text.replace(&std::env::var("PATH").unwrap(), "...")
    };
    insta::assert_snapshot!(shown(proc_texts(pid, "cmdline")), @r"
    DIR/bin/node/bin/node
    DIR/bin/node_modules/@playwright/mcp/cli.js
    --headless
    --isolated
    --browser
    chromium
    --sandbox
    --block-service-workers
    --no-webmcp
    --timeout-navigation
    60000
    --output-max-size
    67108864
    --executable-path
    DIR/bin/chrome/headless_shell
    --output-dir
    DIR/launches/ID/out
    --storage-state
    DIR/launches/ID/BROWSER_STORAGE_STATE
    ");
    insta::assert_snapshot!(shown(proc_texts(pid, "environ")), @r"
    PATH=...
    TZ=Asia/Tokyo
    NO_PROXY=localhost
    LANG=en_US.UTF-8
    LOCPATH=DIR/launches/ID/home/locale
    HOME=DIR/launches/ID/home
    TMPDIR=/.sema-tmp
    PWTEST_SOCKETS_DIR=/.sema-tmp
    LD_LIBRARY_PATH=DIR/bin/chrome/lib
    FONTCONFIG_PATH=DIR/launches/ID/home
    FONTCONFIG_FILE=DIR/launches/ID/home/fonts.conf
    ");
    assert_eq!(
        std::fs::read_link(format!("/proc/{pid}/cwd")).unwrap(),
        lab.out()
    );
    assert_eq!(session.end().code(), Some(0));
}

/// The pixels of a screenshot: how many are not white, and how many are coloured.
fn ink(lab: &Lab, name: &str) -> (usize, usize) {
    let file = std::io::BufReader::new(std::fs::File::open(lab.out().join(name)).unwrap());
    let mut reader = png::Decoder::new(file).read_info().unwrap();
    let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
    let info = reader.next_frame(&mut pixels).unwrap();
    let samples = info.color_type.samples();
    let (mut dark, mut coloured) = (0, 0);
    for pixel in pixels[..info.buffer_size()].chunks(samples) {
        let (least, most) = (
            pixel[..3].iter().min().unwrap(),
            pixel[..3].iter().max().unwrap(),
        );
        dark += usize::from(*least < 128);
        coloured += usize::from(most - least > 80);
    }
    (dark, coloured)
}

/// What a script of `name` leaves on a page, against a letter that no font has.
fn writes(session: &mut Session, lab: &Lab, name: &str, text: &str) {
    session.tool(
        "browser_navigate",
        page(&format!(
            "<body style='font:100px sans-serif;margin:9px'>{text}"
        )),
    );
    let file = format!("{name}.png");
    session.tool("browser_take_screenshot", json!({"filename": file}));
    let (dark, coloured) = ink(lab, &file);
    assert!(dark > 500, "{name}: {dark} dark pixels");
    assert!(coloured < 500, "{name}: {coloured} coloured pixels");
}

/// Two letters of a script: shown from a font they differ, as boxes they are the same.
fn differs(session: &mut Session, pair: [char; 2]) {
    let draw = "(letters) => { const shots = [...letters].map(letter => { const canvas = document.createElement('canvas'); \
        const c = canvas.getContext('2d'); c.font = '80px sans-serif'; c.fillText(letter, 5, 90); return canvas.toDataURL(); }); \
        return shots[0] !== shots[1]; }";
    let text: String = pair.iter().collect();
    let function = format!("() => ({draw})({})", Value::from(text));
    assert_eq!(session.evaluate(&function), json!(true), "{pair:?}");
}

#[test]
fn a_page_shows_what_people_see() {
    let mut lab = Lab::with_build(&STATE);
    lab.set("LANG", "de_DE.UTF-8").set("TZ", "Asia/Tokyo");
    let mut session = lab.start();
    assert_eq!(session.tools().len(), 25);
    for (name, text) in [
        ("latin", "Hello"),
        ("chinese", "你好世界"),
        ("japanese", "こんにちは"),
        ("korean", "안녕하세요"),
        ("arabic", "مرحبا"),
        ("hebrew", "שלום"),
    ] {
        writes(&mut session, &lab, name, text);
    }
    for pair in [
        ['你', '好'],
        ['こ', 'ん'],
        ['안', '녕'],
        ['م', 'ر'],
        ['ש', 'ל'],
    ] {
        differs(&mut session, pair);
    }
    session.tool(
        "browser_navigate",
        page("<body style='font-size:100px'>😀🎉"),
    );
    session.tool("browser_take_screenshot", json!({"filename": "emoji.png"}));
    let (_, coloured) = ink(&lab, "emoji.png");
    assert!(coloured > 3000, "{coloured} coloured pixels");
    let seen = session.evaluate(
        "() => { const gl = name => !!document.createElement('canvas').getContext(name); return { \
         webgl: gl('webgl'), webgl2: gl('webgl2'), language: navigator.language, \
         zone: Intl.DateTimeFormat().resolvedOptions().timeZone, number: new Intl.NumberFormat(navigator.language).format(1.5), \
         h264: MediaSource.isTypeSupported('video/mp4; codecs=\"avc1.42E01E\"') }; }",
    );
    let expected = json!({
        "webgl": true, "webgl2": true, "language": "de-DE", "zone": "Asia/Tokyo", "number": "1,5", "h264": true,
    });
    assert_eq!(seen, expected);
    assert_eq!(session.end().code(), Some(0));
}

/// Opens a page; every process of the launch.
fn opened(session: &mut Session) -> Vec<u32> {
    let text = session.tool("browser_navigate", page("<h1>hi"));
    assert!(text.contains("Page URL"), "{text}");
    let all = below(session.id());
    assert!(all.len() > 4, "{all:?}");
    all
}

#[test]
fn nothing_outlives_the_connector() {
    for handles in [&STATE[..], &[STATE[0], ("BROWSER_EXPORT", "on")]] {
        let lab = Lab::with_build(handles);
        let mut session = lab.start();
        let all = opened(&mut session);
        assert_eq!(session.end().code(), Some(0));
        gone(&all);
        for signal in [Signal::TERM, Signal::INT] {
            let mut session = lab.start();
            let all = opened(&mut session);
            session.signal(signal);
            assert_eq!(session.wait().code(), Some(0), "{signal:?}");
            gone(&all);
        }
        let mut session = lab.start();
        let all = opened(&mut session);
        session.signal(Signal::KILL);
        session.wait();
        gone(&all);
    }
}

#[test]
fn it_ends_by_the_signal_that_ended_the_upstream() {
    for handles in [&STATE[..], &[STATE[0], ("BROWSER_EXPORT", "on")]] {
        let lab = Lab::with_build(handles);
        let mut session = lab.start();
        let all = opened(&mut session);
        let pid = rustix::process::Pid::from_raw(upstream(&session).try_into().unwrap()).unwrap();
        rustix::process::kill_process(pid, Signal::KILL).unwrap();
        assert_eq!(session.wait().signal(), Some(9));
        gone(&all);
    }
}

#[test]
fn the_sandbox_is_on_for_root_and_for_a_user() {
    let mut lab = Lab::with_build(&STATE);
    if rustix::process::geteuid().is_root() {
        check_sandbox(&lab);
        lab.user(65534);
    }
    check_sandbox(&lab);
}

fn check_sandbox(lab: &Lab) {
    let mut session = lab.start();
    let all = opened(&mut session);
    // A renderer's title is one text with spaces, set by Chromium itself.
    let renders = |pid: &&u32| {
        proc_texts(**pid, "cmdline")
            .join(" ")
            .contains("--type=renderer")
    };
    let renderer = all.iter().find(renders).unwrap();
    let status = std::fs::read_to_string(format!("/proc/{renderer}/status")).unwrap();
    assert!(status.contains("\nSeccomp:\t2\n"), "{status}");
    assert!(!all.iter().any(|pid| {
        proc_texts(*pid, "cmdline")
            .iter()
            .any(|text| text.contains("--no-sandbox"))
    }));
    assert_eq!(session.end().code(), Some(0));
    gone(&all);
}

#[test]
fn a_long_path_shortens_no_socket() {
    let lab = Lab::in_folder(&["é ü".repeat(18), "x".repeat(100)].join("/"), &STATE);
    assert!(lab.config.as_os_str().len() > 200);
    lab.install();
    let mut session = lab.start();
    let all = opened(&mut session);
    assert_eq!(session.end().code(), Some(0));
    gone(&all);
}

#[test]
fn what_forbids_the_jail_is_named() {
    let lab = Lab::with_build(&STATE);
    let inner = lab.command();
    let mut command = Command::new("unshare");
    command.env_clear().envs(
        inner
            .get_envs()
            .filter_map(|(name, value)| Some((name, value?))),
    );
    command
        .args([
            "--user",
            "--map-root-user",
            "--mount",
            "sh",
            "-c",
            "mount -t tmpfs none /proc/fs && exec \"$0\"",
        ])
        .arg(inner.get_program());
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    insta::assert_snapshot!(String::from_utf8(output.stderr).unwrap(), @r"
    error: cannot start the browser's jail: a fresh /proc is forbidden: /proc/fs is masked
    hint: start the container with --security-opt systempaths=unconfined (Docker), or with procMount: Unmasked (Kubernetes)
    ");
}
