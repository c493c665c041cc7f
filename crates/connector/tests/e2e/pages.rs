//! What pages do that goes wrong elsewhere: downloads, uploads, dialogs, pop-ups, frames of another
//! site, huge pages, pages that never load, renderers that crash, and two launches at once.

use super::bare::{CLEAN, Lab, Session};
use serde_json::json;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};

const STATE: [(&str, &str); 1] = [("BROWSER_STORAGE_STATE", CLEAN)];

/// Serves the pages of these tests on loopback; its port.
fn site() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || serve(stream, port));
        }
    });
    port
}

fn serve(mut stream: TcpStream, port: u16) {
    let mut request = String::new();
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    reader.read_line(&mut request).unwrap();
    let mut header = String::new();
    while reader.read_line(&mut header).unwrap_or(0) > 2 {
        header.clear();
    }
    let path = request.split(' ').nth(1).unwrap_or("/").to_owned();
    let (extra, body) = match path.as_str() {
        "/file" => (
            "Content-Disposition: attachment; filename=\"año report.txt\"\r\n",
            "downloaded".to_owned(),
        ),
        "/never" => {
            std::thread::sleep(std::time::Duration::from_secs(600));
            return;
        }
        "/big" => ("", format!("<h1>Big</h1><p>{}", "word ".repeat(2_000_000))),
        "/frames" => (
            "",
            format!("<h1>Outer</h1><iframe src='http://localhost:{port}/inner'></iframe>"),
        ),
        "/inner" => ("", "<button>Inner button</button>".to_owned()),
        "/popup" => (
            "",
            "<button onclick=\"window.open('/inner')\">Open</button>".to_owned(),
        ),
        "/dialog" => (
            "",
            "<button onclick=\"document.title = prompt('Name?')\">Ask</button>".to_owned(),
        ),
        "/upload" => (
            "",
            "<input type=file onchange=\"this.files[0].text().then(t => document.title = t)\">"
                .to_owned(),
        ),
        _ => ("", "<title>Home</title><a href='/file'>Get</a>".to_owned()),
    };
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n{extra}Content-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    _ = stream
        .write_all(head.as_bytes())
        .and_then(|()| stream.write_all(body.as_bytes()));
}

fn open(session: &mut Session, port: u16, path: &str) -> String {
    session.tool(
        "browser_navigate",
        json!({"url": format!("http://127.0.0.1:{port}{path}")}),
    )
}

/// The reference by which a snapshot names an element that reads `text`.
fn reference(session: &mut Session, text: &str) -> String {
    let snapshot = session.tool("browser_snapshot", json!({}));
    let line = snapshot
        .lines()
        .find(|line| line.contains(text))
        .unwrap_or_else(|| panic!("{text}: {snapshot}"));
    let rest = line.split("[ref=").nth(1).unwrap();
    rest.split(']').next().unwrap().to_owned()
}

fn click(session: &mut Session, text: &str) -> String {
    let target = reference(session, text);
    session.tool(
        "browser_click",
        json!({"element": text, "target": target, "ref": target}),
    )
}

#[test]
fn a_download_lands_in_out_under_its_own_name() {
    let (lab, port) = (Lab::with_build(&STATE), site());
    let mut session = lab.start();
    open(&mut session, port, "/");
    click(&mut session, "Get");
    let find = || {
        let files = std::fs::read_dir(lab.out())
            .unwrap()
            .map(|file| file.unwrap().path());
        files
            .into_iter()
            .find(|path| path.to_str().unwrap().ends_with("año-report.txt"))
    };
    let end = std::time::Instant::now() + std::time::Duration::from_secs(5);
    while find().is_none() && std::time::Instant::now() < end {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let names: Vec<_> = std::fs::read_dir(lab.out())
        .unwrap()
        .map(|file| file.unwrap().file_name())
        .collect();
    let file = find().unwrap_or_else(|| panic!("{names:?}"));
    assert_eq!(std::fs::read_to_string(file).unwrap(), "downloaded");
    session.end();
}

#[test]
fn uploads_dialogs_popups_and_frames_work() {
    let (lab, port) = (Lab::with_build(&STATE), site());
    let mut session = lab.start();
    std::fs::write(lab.out().join("up.txt"), "uploaded text").unwrap();
    open(&mut session, port, "/upload");
    click(&mut session, "Choose File");
    let answer = session.tool(
        "browser_file_upload",
        json!({"paths": [lab.out().join("up.txt")]}),
    );
    assert!(!answer.contains("### Error"), "{answer}");
    assert_eq!(
        session.evaluate("() => document.title"),
        json!("uploaded text")
    );
    open(&mut session, port, "/dialog");
    click(&mut session, "Ask");
    let answer = session.tool(
        "browser_handle_dialog",
        json!({"accept": true, "promptText": "Ada"}),
    );
    assert!(!answer.contains("### Error"), "{answer}");
    assert_eq!(session.evaluate("() => document.title"), json!("Ada"));
    open(&mut session, port, "/popup");
    click(&mut session, "Open");
    let tabs = session.tool("browser_tabs", json!({"action": "list"}));
    assert!(tabs.contains("/inner"), "{tabs}");
    open(&mut session, port, "/frames");
    let answer = click(&mut session, "Inner button");
    assert!(!answer.contains("### Error"), "{answer}");
    session.end();
}

#[test]
fn a_huge_page_and_one_that_never_loads_leave_the_session_alive() {
    let (lab, port) = (Lab::with_build(&STATE), site());
    let mut session = lab.start();
    open(&mut session, port, "/big");
    assert_eq!(
        session.evaluate("() => document.body.innerText.length > 9000000"),
        json!(true)
    );
    // The tool's own time-out is 60 s: a session that has another time-out need not wait for it.
    session.tool(
        "browser_run_code_unsafe",
        json!({"code": "async (page) => { page.setDefaultNavigationTimeout(1000); await page.goto('about:blank'); }"}),
    );
    let code = format!(
        "async (page) => {{ await page.goto('http://127.0.0.1:{port}/never', {{ timeout: 1000 }}); }}"
    );
    let answer = session.tool("browser_run_code_unsafe", json!({"code": code}));
    assert!(answer.contains("Timeout 1000ms exceeded"), "{answer}");
    open(&mut session, port, "/");
    assert_eq!(session.evaluate("() => document.title"), json!("Home"));
    session.end();
}

#[test]
fn a_renderer_that_crashes_costs_one_call() {
    let (lab, port) = (Lab::with_build(&STATE), site());
    let mut session = lab.start();
    open(&mut session, port, "/");
    let crash = "async (page) => { page.goto('chrome://crash', { timeout: 2000 }).catch(() => {}); await new Promise(done => setTimeout(done, 500)); }";
    session.tool("browser_run_code_unsafe", json!({"code": crash}));
    let answer = open(&mut session, port, "/");
    assert!(!answer.contains("### Error"), "{answer}");
    assert_eq!(session.evaluate("() => document.title"), json!("Home"));
    session.end();
}

#[test]
fn two_launches_at_once_do_not_meet() {
    let (first, second, port) = (Lab::with_build(&STATE), Lab::with_build(&STATE), site());
    let (mut one, mut two) = (first.start(), second.start());
    open(&mut one, port, "/");
    open(&mut two, port, "/inner");
    assert_eq!(one.evaluate("() => location.pathname"), json!("/"));
    assert_eq!(two.evaluate("() => location.pathname"), json!("/inner"));
    one.end();
    assert_eq!(two.evaluate("() => location.pathname"), json!("/inner"));
    two.end();
}
