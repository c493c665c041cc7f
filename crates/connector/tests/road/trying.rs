//! `sema-connector try`: the README's first command, from nothing.

use crate::lab::{BROWSER, LAUNCHER, Lab, parts, processes};
use serde_json::Value;
use std::path::Path;

/// The folder in which `cargo xtask test` keeps every archive.
pub(crate) fn mirror() -> String {
    let archives = parts().join("config/connectors/browser/bin/archives");
    archives.to_str().unwrap().to_owned()
}

/// The pixels of a PNG that are darker than any background.
fn dark(path: &Path) -> usize {
    let file = std::io::BufReader::new(std::fs::File::open(path).unwrap());
    let mut reader = png::Decoder::new(file).read_info().unwrap();
    let mut buffer = vec![0; reader.output_buffer_size().unwrap()];
    let info = reader.next_frame(&mut buffer).unwrap();
    let pixels = buffer[..info.buffer_size()].chunks(info.color_type.samples());
    pixels
        .filter(|pixel| pixel[..3].iter().all(|part| *part < 100))
        .count()
}

fn steps(report: &Value) -> Vec<(&str, &str)> {
    let steps = report["steps"].as_array().unwrap();
    steps
        .iter()
        .map(|step| {
            assert!(step["ms"].as_f64().unwrap() >= 0.0);
            (
                step["step"].as_str().unwrap(),
                step["saw"].as_str().unwrap(),
            )
        })
        .collect()
}

#[test]
fn one_command_goes_the_whole_road_from_nothing() {
    let lab = Lab::empty("config");
    let output = lab.run(LAUNCHER, ["try", "--json", "--mirror", &mirror()]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let done = steps(&report);
    let names: Vec<_> = done.iter().map(|(name, _)| *name).collect();
    assert_eq!(
        names,
        [
            "install",
            "login state",
            "mount",
            "start",
            "tools/list",
            "open",
            "read",
            "click",
            "screenshot",
            "stop"
        ]
    );
    let saw = |step: &str| done.iter().find(|(name, _)| *name == step).unwrap().1;
    assert!(saw("install").contains("0.0.83"), "{done:?}");
    assert!(saw("install").contains("installed now"), "{done:?}");
    assert!(saw("tools/list").contains("25"), "{done:?}");
    assert!(saw("open").starts_with("http://127.0.0.1:"), "{done:?}");
    let screenshot = report["screenshot"].as_str().unwrap();
    assert!(screenshot.starts_with(lab.config().to_str().unwrap()));
    assert!(dark(Path::new(screenshot)) > 300);
    // What the engine is told to start is there, and is what was just tried.
    let engine = &report["engine"]["mcpServers"]["browser"];
    let command = Path::new(engine["command"].as_str().unwrap());
    assert!(command.is_absolute() && command.exists(), "{engine}");
    assert!(report["walls"]["sandbox"].is_object(), "{report}");
    assert_eq!(lab.launches(), 0);
    assert!(processes(lab.config()).is_empty());

    // Once more, with words for a person, and an address of theirs.
    let site = crate::site::Site::html("<h1>Theirs</h1><button>Go</button>");
    let output = lab.run(LAUNCHER, ["try", &site.url("/theirs"), "--click", "Go"]);
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    for part in [
        "was there",
        "chromium-153.0.0.tgz",
        "sha256 20e5656fcdcf4118",
        "/theirs",
        "heading \"Theirs\"",
        "the button \"Go\"",
        "try.png",
        "\"mcpServers\"",
    ] {
        assert!(text.contains(part), "{part} is missing in {text}");
    }
}

#[test]
fn a_page_of_others_is_clicked_only_where_it_was_said() {
    let lab = Lab::new();
    let site = crate::site::Site::html(
        "<form method=post><button name=x>Buy</button></form><button>Delete</button><button>Delete</button>",
    );
    let clicks = || site.posted.lock().unwrap().len();
    let attempt = |more: &[&str]| {
        let url = site.url("/");
        let args = [&["try", "--json", &url], more].concat();
        let output = lab.run(LAUNCHER, args);
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        (output.status.code(), report)
    };
    let (code, report) = attempt(&[]);
    assert_eq!((code, clicks()), (Some(0), 0), "{report}");
    assert!(steps(&report).iter().all(|(step, _)| *step != "click"));
    for (name, why) in [
        ("buy", "nothing on the page has that name"),
        ("Delete", "2 elements of the page have that name"),
    ] {
        let (code, report) = attempt(&["--click", name]);
        let said = report["error"]["message"].as_str().unwrap();
        assert!(said.contains("the step \"click\" failed: "), "{said}");
        assert!(said.contains(why), "{said}");
        assert_eq!((code, clicks()), (Some(1), 0));
    }
    let (code, report) = attempt(&["--click", "Buy"]);
    assert_eq!((code, clicks()), (Some(0), 1), "{report}");
    assert!(steps(&report).contains(&("click", "the button \"Buy\"")));
}

#[test]
fn a_step_that_fails_is_named() {
    let lab = Lab::new();
    // A port of ours on which nobody listens any more.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    drop(listener);
    let output = lab.run(LAUNCHER, ["try", &url]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(output.stdout.is_empty());
    assert!(said.contains("the step \"open\" failed: "), "{said}");
    assert!(said.contains("ERR_CONNECTION_REFUSED"), "{said}");
    assert!(processes(lab.config()).is_empty());
    assert_eq!(lab.launches(), 0);
    // A build that is not there and cannot be brought.
    let lab = Lab::empty("config");
    let output = lab.run(LAUNCHER, ["try", "--mirror", "/no/such/folder"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_ne!(output.status.code(), Some(0), "{said}");
    assert!(said.contains("the step \"install\" failed: "), "{said}");
    let status = lab.run(BROWSER, ["status"]).stdout;
    assert_eq!(
        String::from_utf8(status).unwrap(),
        "{\"state\":\"unauthorized\",\"tools\":[]}\n"
    );
}
