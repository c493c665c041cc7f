//! What people see: the pixels of real screenshots, and the things of everyday pages.

use crate::lab::{Engine, Lab};
use crate::site::{Site, page};
use base64::Engine as _;
use serde_json::json;

/// A screenshot's pixels as RGB.
struct Image {
    pixels: Vec<[u8; 3]>,
}

impl Image {
    fn of(engine: &mut Engine) -> Self {
        let answer = engine.call("browser_take_screenshot", &json!({}));
        let parts = answer["result"]["content"].as_array().unwrap();
        let data = parts.iter().find_map(|part| part["data"].as_str()).unwrap();
        let data = base64::engine::general_purpose::STANDARD
            .decode(data)
            .unwrap();
        let mut reader = png::Decoder::new(std::io::Cursor::new(data))
            .read_info()
            .unwrap();
        let mut buffer = vec![0; reader.output_buffer_size().unwrap()];
        let info = reader.next_frame(&mut buffer).unwrap();
        let step = info.color_type.samples();
        let pixels = buffer[..info.buffer_size()]
            .chunks(step)
            .map(|p| [p[0], p[1], p[2]])
            .collect();
        Self { pixels }
    }

    /// How many pixels are dark: letters.
    fn dark(&self) -> usize {
        self.pixels
            .iter()
            .filter(|p| p.iter().all(|c| *c < 100))
            .count()
    }

    /// How many pixels have a colour of their own.
    fn colourful(&self) -> usize {
        let spread = |p: &&[u8; 3]| p.iter().max().unwrap() - p.iter().min().unwrap() > 60;
        self.pixels.iter().filter(spread).count()
    }
}

fn shown(engine: &mut Engine, body: &str) -> Image {
    let html = format!("<body style='font-size:60px;margin:40px'>{body}");
    let encoded: String = format!("<meta charset=utf-8>{html}")
        .bytes()
        .map(|b| format!("%{b:02x}"))
        .collect();
    engine.text(
        "browser_navigate",
        &json!({"url": format!("data:text/html,{encoded}")}),
    );
    // Two frames later everything has been painted.
    engine.evaluate(
        "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))",
    );
    Image::of(engine)
}

#[test]
fn text_is_drawn_in_every_script() {
    let lab = Lab::new();
    let mut engine = lab.engine();
    assert_eq!(shown(&mut engine, "").dark(), 0);
    assert!(shown(&mut engine, "Hamburgefonstiv").dark() > 2000);
    let emoji = shown(&mut engine, "\u{1f98a}\u{1f34e}").colourful();
    assert!(emoji > 2000, "{emoji} pixels have a colour");
    // A letter that no font has is a box, the same box for every letter: these are not.
    for (script, one, other) in [
        ("Chinese", "漢", "語"),
        ("Japanese", "ひ", "な"),
        ("Korean", "한", "글"),
        ("Arabic", "ع", "ر"),
        ("Hebrew", "ש", "ם"),
    ] {
        let (first, second) = (shown(&mut engine, one), shown(&mut engine, other));
        assert!(first.dark() > 100, "{script}");
        assert!(first.pixels != second.pixels, "{script} is drawn as boxes");
    }
}

#[test]
fn the_browser_has_what_pages_ask_for() {
    let lab = Lab::new();
    let mut engine = lab.engine();
    engine.text(
        "browser_navigate",
        &json!({"url": Site::html("<h1>x</h1>").url("/")}),
    );
    for (what, expression, expected) in [
        (
            "WebGL",
            "!!document.createElement('canvas').getContext('webgl')",
            "true",
        ),
        (
            "WebGL 2",
            "!!document.createElement('canvas').getContext('webgl2')",
            "true",
        ),
        ("language", "navigator.language", "\"en-US\""),
        (
            "language tag",
            "new Intl.Locale(navigator.language).language",
            "\"en\"",
        ),
        (
            "time zone",
            "Intl.DateTimeFormat().resolvedOptions().timeZone",
            "\"Asia/Tokyo\"",
        ),
        (
            "H.264",
            "document.createElement('video').canPlayType('video/mp4; codecs=\"avc1.42E01E\"')",
            "\"probably\"",
        ),
        (
            "H.264 decoder",
            "VideoDecoder.isConfigSupported({codec:'avc1.42E01E'}).then(r => r.supported)",
            "true",
        ),
    ] {
        assert_eq!(engine.evaluate(expression), expected, "{what}");
    }
}

#[test]
fn uploads_downloads_dialogs_and_tabs_work() {
    let lab = Lab::new();
    let site = Site::serve(|path| match path {
        "/file" => Some((
            "application/octet-stream",
            "Content-Disposition: attachment; filename=\"r\u{e9}sum\u{e9} 1.bin\"\r\n".into(),
            b"payload".to_vec(),
        )),
        "/frame" => Some(page("<p>inside the frame</p>")),
        _ => Some(page(
            "<a id=d href=/file>get</a><form method=post enctype=multipart/form-data><input id=f type=file name=f><button id=s>send</button></form>\
            <button id=a onclick=\"this.textContent = confirm('sure?')\">ask</button><a id=t href=/frame target=_blank>tab</a>",
        )),
    });
    let mut engine = lab.engine();
    engine.text("browser_navigate", &json!({"url": site.url("/")}));
    // A download lands in the launch's folder under its own name.
    engine.text("browser_click", &json!({"element": "get", "target": "#d"}));
    let launches = lab.connector().join("launches");
    let out = std::fs::read_dir(launches)
        .unwrap()
        .flatten()
        .next()
        .unwrap()
        .path()
        .join("out");
    crate::lab::wait_for("the download", || {
        std::fs::read_dir(&out)
            .unwrap()
            .flatten()
            .any(|file| std::fs::read(file.path()).is_ok_and(|bytes| bytes == b"payload"))
    });
    // An upload from that folder.
    std::fs::write(out.join("up.txt"), "uploaded").unwrap();
    engine.call("browser_click", &json!({"element": "file", "target": "#f"}));
    engine.text(
        "browser_file_upload",
        &json!({"paths": [out.join("up.txt")]}),
    );
    engine.text("browser_click", &json!({"element": "send", "target": "#s"}));
    crate::lab::wait_for("the upload", || {
        site.posted
            .lock()
            .unwrap()
            .iter()
            .any(|body| String::from_utf8_lossy(body).contains("uploaded"))
    });
    engine.call("browser_click", &json!({"element": "ask", "target": "#a"}));
    engine.text("browser_handle_dialog", &json!({"accept": true}));
    assert_eq!(
        engine.evaluate("document.querySelector('#a').textContent"),
        "\"true\""
    );
    engine.text("browser_click", &json!({"element": "tab", "target": "#t"}));
    let tabs = engine.text("browser_tabs", &json!({"action": "list"}));
    assert!(tabs.contains("/frame"), "{tabs}");
}

#[test]
fn frames_large_pages_and_crashes_are_survived() {
    let lab = Lab::new();
    let inner = Site::html("<p>another site</p>");
    let frame = format!("<iframe src=\"http://localhost:{}/\"></iframe>", inner.port);
    let site = Site::serve(move |path| match path {
        "/large" => Some(page(
            &format!("<p>{}</p>", "0123456789".repeat(10_000)).repeat(100),
        )),
        _ => Some(page(&frame)),
    });
    let mut engine = lab.engine();
    engine.text("browser_navigate", &json!({"url": site.url("/")}));
    let snapshot = engine.text("browser_snapshot", &json!({}));
    assert!(snapshot.contains("another site"), "{snapshot}");
    engine.text("browser_navigate", &json!({"url": site.url("/large")}));
    assert_eq!(
        engine.evaluate("document.querySelectorAll('p').length"),
        "100"
    );
    engine.call("browser_navigate", &json!({"url": "chrome://crash"}));
    // The crash itself must be over: until then it aborts any navigation, bare as through us.
    std::thread::sleep(std::time::Duration::from_millis(500));
    engine.text("browser_navigate", &json!({"url": inner.url("/")}));
    assert!(
        engine
            .text("browser_snapshot", &json!({}))
            .contains("another site")
    );
    assert_eq!(engine.evaluate("1"), "1");
}
