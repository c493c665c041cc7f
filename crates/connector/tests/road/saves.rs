//! The export of the login state, through the launcher: what a session saves is stored, and only
//! that.

use crate::lab::{BROWSER, Engine, Lab};
use crate::site::{Site, page};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

const CLEAN: &str = r#"{"cookies":[],"origins":[]}"#;

/// A site that logs every visitor in, and offers a forged login state as a download.
fn site() -> Site {
    Site::serve(|path| match path {
        "/storage-state.json" => Some((
            "application/json",
            "Content-Disposition: attachment\r\n".into(),
            br#"{"cookies":[],"origins":[{"origin":"http://planted.example","localStorage":[]}]}"#
                .to_vec(),
        )),
        _ => {
            let (kind, _, body) = page("<a id=d href=/storage-state.json>get</a>");
            let cookie = "Set-Cookie: sid=logged-in-value; Path=/; HttpOnly\r\n".to_owned();
            Some((kind, cookie, body))
        }
    })
}

fn lab() -> Lab {
    let lab = Lab::new();
    assert!(lab.auth(r#"{"export": "on"}"#).status.success());
    lab
}

fn logged_in(lab: &Lab, site: &Site) -> Engine {
    let mut engine = lab.engine();
    engine.text("browser_navigate", &json!({"url": site.url("/")}));
    engine
}

fn stored(lab: &Lab) -> String {
    std::fs::read_to_string(lab.connector().join("BROWSER_STORAGE_STATE")).unwrap()
}

fn ask_to_save(engine: &mut Engine, id: &str, arguments: &Value) {
    let params = json!({"name": "browser_storage_state", "arguments": arguments});
    let request = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params});
    engine.send(&request.to_string());
}

/// The files of the one launch that runs.
fn out(lab: &Lab) -> Vec<String> {
    let launches = std::fs::read_dir(lab.connector().join("launches")).unwrap();
    let launch = launches.flatten().next().unwrap().path().join("out");
    let names = std::fs::read_dir(launch).unwrap().flatten();
    names
        .map(|file| file.file_name().into_string().unwrap())
        .collect()
}

#[test]
fn two_saves_at_once_and_a_planted_file_store_the_login_and_nothing_else() {
    let (lab, site) = (lab(), site());
    let mut engine = logged_in(&lab, &site);
    let tools = engine.tools();
    assert_eq!(tools.len(), 26);
    assert!(tools.iter().any(|tool| tool == "browser_storage_state"));
    engine.text("browser_click", &json!({"element": "get", "target": "#d"}));
    crate::lab::wait_for("the download", || {
        out(&lab)
            .iter()
            .any(|name| name.contains("storage-state") && name.ends_with(".json"))
    });
    assert_eq!(stored(&lab), CLEAN);
    for id in ["one", "two"] {
        ask_to_save(&mut engine, id, &json!({"filename": "storage-state.json"}));
    }
    for id in ["one", "two"] {
        let answer = engine.answer(&json!(id));
        let text = answer["result"]["content"][0]["text"].as_str().unwrap();
        assert!(text.contains("[Storage state](./"), "{answer}");
        assert!(!text.contains("was not stored"), "{answer}");
        assert!(!answer.to_string().contains("logged-in-value"), "{answer}");
    }
    let saved = stored(&lab);
    assert!(
        saved.contains("logged-in-value") && !saved.contains("planted.example"),
        "{saved}"
    );
    // The download is still the person's, and the saves left nothing beside it.
    let left = out(&lab);
    assert!(
        !left.iter().any(|name| name.starts_with("login-state")),
        "{left:?}"
    );
    assert_eq!(engine.close(), Some(0));
    assert_eq!(stored(&lab), saved);
    // The next launch starts from it: the site sees the visitor's cookie.
    let mut engine = lab.engine();
    let cookies = "async (page) => (await page.context().cookies()).map(one => one.value.length)";
    engine.text("browser_navigate", &json!({"url": "about:blank"}));
    let seen = engine.text("browser_run_code_unsafe", &json!({"code": cookies}));
    let length = "logged-in-value".len().to_string();
    assert!(seen.contains(&length), "{seen}");
}

#[test]
fn a_save_waits_for_an_auth_and_each_state_is_whole() {
    let (lab, site) = (lab(), site());
    let mut engine = logged_in(&lab, &site);
    // While someone else holds the directory's lock, the save waits; then it is stored.
    let dir = sema_vault::ConnectorDir::open(&lab.connector())
        .unwrap()
        .unwrap();
    let held = dir.lock_exclusive(&mut |_| {}).unwrap();
    let began = Instant::now();
    ask_to_save(&mut engine, "held", &json!({}));
    std::thread::sleep(Duration::from_millis(1500));
    assert_eq!(stored(&lab), CLEAN);
    drop(held);
    let answer = engine.answer(&json!("held"));
    assert!(began.elapsed() >= Duration::from_millis(1500));
    assert!(answer["result"]["isError"] != json!(true), "{answer}");
    assert!(stored(&lab).contains("logged-in-value"));
    // Both at once, again and again: one of the two stands, whole.
    let mut seen = [0, 0];
    for round in 0..12 {
        let id = format!("round {round}");
        let other = std::thread::scope(|scope| {
            let auth = scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(round * 7));
                lab.auth(r#"{"export": "on"}"#)
            });
            ask_to_save(&mut engine, &id, &json!({}));
            let answer = engine.answer(&json!(id));
            assert!(answer["result"]["isError"] != json!(true), "{answer}");
            auth.join().unwrap()
        });
        assert!(other.status.success());
        let state = stored(&lab);
        let parsed: Value = serde_json::from_str(&state).unwrap();
        match parsed["cookies"].as_array().unwrap().len() {
            0 => seen[0] += usize::from(state == CLEAN),
            _ => seen[1] += usize::from(state.contains("logged-in-value")),
        }
    }
    assert_eq!(seen[0] + seen[1], 12, "{seen:?}");
    assert_eq!(engine.close(), Some(0));
    let names = std::fs::read_dir(lab.connector()).unwrap().flatten();
    let leftovers: Vec<_> = names
        .map(|entry| entry.file_name().into_string().unwrap())
        .filter(|name| name.contains("tmp") || name.starts_with(".BROWSER"))
        .collect();
    assert!(leftovers.is_empty(), "{leftovers:?}");
    // An auth that turns the export off takes the tool away from the next launch.
    assert!(lab.run(BROWSER, ["status"]).status.success());
    lab.auth("{}");
    assert_eq!(lab.engine().tools().len(), 25);
}
