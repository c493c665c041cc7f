//! Files that the browser plays, makes and links: a video, a screenshot that is too long for a line,
//! and links that open on the host.

use crate::lab::{Engine, Lab};
use crate::site::{Site, page};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// One second of red, H.264 in MP4.
const RED: &[u8] = include_bytes!("red.mp4");

#[test]
fn a_video_is_decoded() {
    let lab = Lab::new();
    let site = Site::serve(|path| match path {
        "/red.mp4" => Some(("video/mp4", String::new(), RED.to_vec())),
        _ => Some(page("<video src=/red.mp4 muted></video>")),
    });
    let mut engine = lab.engine();
    engine.text("browser_navigate", &json!({"url": site.url("/")}));
    let seen = engine.evaluate(
        "new Promise((done, fail) => {
            const video = document.querySelector('video');
            video.onerror = () => done(video.error.message);
            video.requestVideoFrameCallback(() => {
                const canvas = document.createElement('canvas');
                [canvas.width, canvas.height] = [video.videoWidth, video.videoHeight];
                const context = canvas.getContext('2d');
                context.drawImage(video, 0, 0);
                const [red, green, blue] = context.getImageData(32, 32, 1, 1).data;
                done([canvas.width, canvas.height, red > 200, green < 60, blue < 60].join());
            });
            video.play();
        })",
    );
    assert_eq!(seen, "\"64,64,true,true,true\"");
}

/// The folder of the one launch's files.
fn out(lab: &Lab) -> PathBuf {
    let launches = std::fs::read_dir(lab.connector().join("launches")).unwrap();
    launches.flatten().next().unwrap().path().join("out")
}

#[test]
fn a_screenshot_that_is_too_long_for_a_line_is_refused_and_is_in_the_folder() {
    let lab = Lab::new();
    // Noise does not compress: a page of it is more than 4 MiB of base64.
    let noise = "<canvas width=1200 height=3000></canvas><script>
        const context = document.querySelector('canvas').getContext('2d');
        const image = context.createImageData(1200, 3000);
        for (let at = 0; at < image.data.length; at += 65536)
            crypto.getRandomValues(new Uint8Array(image.data.buffer, at, Math.min(65536, image.data.length - at)));
        for (let at = 3; at < image.data.length; at += 4) image.data[at] = 255;
        context.putImageData(image, 0, 0);
        </script>";
    let site = Site::html(noise);
    let mut engine = lab.engine();
    engine.text("browser_navigate", &json!({"url": site.url("/")}));
    let refused = engine.call("browser_take_screenshot", &json!({"fullPage": true}));
    assert_eq!(refused["error"]["code"], -32012, "{}", refused["error"]);
    assert_eq!(refused["error"]["data"]["code"], "connector.too_large");
    let files = std::fs::read_dir(out(&lab)).unwrap().flatten();
    let lengths: Vec<u64> = files
        .filter(|file| file.file_name().to_str().unwrap().ends_with(".png"))
        .map(|file| file.metadata().unwrap().len())
        .collect();
    assert!(
        lengths.iter().any(|length| *length > 3_000_000),
        "{lengths:?}"
    );
    assert_eq!(engine.evaluate("1 + 1"), "2");
    assert_eq!(engine.close(), Some(0));
}

/// The answer to a call of a client that names one root, which the server asks for.
fn call_with_root(
    engine: &mut Engine,
    root: &Path,
    id: &str,
    tool: &str,
    arguments: &Value,
) -> Value {
    let params = json!({"name": tool, "arguments": arguments});
    let request = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params});
    engine.send(&request.to_string());
    loop {
        let message = engine.next();
        if message["method"] == "roots/list" {
            let url: String = root
                .to_str()
                .unwrap()
                .replace(' ', "%20")
                .replace('é', "%C3%A9");
            let roots = json!([{"uri": format!("file://{url}"), "name": "project"}]);
            let answer = json!({"jsonrpc": "2.0", "id": message["id"], "result": {"roots": roots}});
            engine.send(&answer.to_string());
        } else if message["id"] == id {
            return message;
        }
    }
}

/// Where the links of an answer point to.
fn links(answer: &Value) -> Vec<String> {
    let parts = answer["result"]["content"].as_array().unwrap();
    let text: String = parts
        .iter()
        .filter_map(|part| part["text"].as_str())
        .collect();
    let ends = text.split("](").skip(1);
    ends.map(|end| end.split(')').next().unwrap().to_owned())
        .collect()
}

#[test]
fn links_of_a_client_with_roots_open_on_the_host() {
    let lab = Lab::new();
    let root = lab.folder().join("project");
    std::fs::create_dir(&root).unwrap();
    std::fs::write(root.join("kept.txt"), "theirs").unwrap();
    let site = Site::html("<h1>Hello</h1>");
    let mut engine = Engine::silent(lab.command(crate::lab::LAUNCHER, ["run", "browser"]));
    engine.shake_hands(&json!({"roots": {}}));
    let opened = call_with_root(
        &mut engine,
        &root,
        "open",
        "browser_navigate",
        &json!({"url": site.url("/")}),
    );
    let shot = call_with_root(
        &mut engine,
        &root,
        "shot",
        "browser_take_screenshot",
        &json!({}),
    );
    let mut seen = Vec::new();
    for link in links(&opened).iter().chain(&links(&shot)) {
        let file = root.join(link);
        let bytes =
            std::fs::read(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        seen.push(if bytes.starts_with(b"\x89PNG") {
            "image"
        } else {
            "text"
        });
        if link.ends_with(".yml") {
            assert!(String::from_utf8_lossy(&bytes).contains("heading \"Hello\""));
        }
        // It is of the launch's own folder.
        let real = file.canonicalize().unwrap();
        assert!(
            real.starts_with(out(&lab).canonicalize().unwrap()),
            "{}",
            real.display()
        );
    }
    assert!(
        seen.contains(&"image") && seen.contains(&"text"),
        "{opened} {seen:?}"
    );
    assert_eq!(
        std::fs::read_to_string(root.join("kept.txt")).unwrap(),
        "theirs"
    );
    assert_eq!(engine.close(), Some(0));
}
