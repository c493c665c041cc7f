//! One session of an engine with the real browser: what is offered, what is refused, what changes
//! while it runs.

use crate::lab::{BROWSER, Engine, LAUNCHER, Lab, parts, processes, set_mode};
use crate::site::{Site, page};
use serde_json::json;

const STATUS: &str = "sema-connector://browser/status";
/// The policy that the README recommends.
const README: &str = include_str!("../../../../README.md");

#[test]
fn a_page_is_opened_read_clicked_and_seen() {
    let lab = Lab::new();
    let site =
        Site::html("<h1>Hello</h1><button onclick=\"this.textContent='pressed'\">press</button>");
    let mut engine = lab.engine();
    assert_eq!(engine.tools().len(), 25);
    let status = engine.status();
    assert_eq!(status["state"], "authorized");
    assert_eq!(status["tools"].as_array().unwrap().len(), 25);
    engine.text("browser_navigate", &json!({"url": site.url("/")}));
    let snapshot = engine.text("browser_snapshot", &json!({}));
    assert!(snapshot.contains("heading \"Hello\""), "{snapshot}");
    let target = snapshot
        .split("[ref=")
        .nth(3)
        .unwrap()
        .split(']')
        .next()
        .unwrap();
    engine.text(
        "browser_click",
        &json!({"element": "button", "target": target}),
    );
    assert!(
        engine
            .text("browser_snapshot", &json!({}))
            .contains("button \"pressed\"")
    );
    let text = engine.text("browser_take_screenshot", &json!({}));
    // The link is relative to the launch's output folder, which status names.
    let name = text
        .split("](./")
        .nth(1)
        .unwrap()
        .split(')')
        .next()
        .unwrap()
        .to_owned();
    let status = lab.run(LAUNCHER, ["status", "browser", "--json"]);
    let status: serde_json::Value = serde_json::from_slice(&status.stdout).unwrap();
    let out = status["launches"][0]["out"].as_str().unwrap();
    assert!(
        std::fs::read(format!("{out}/{name}"))
            .unwrap()
            .starts_with(b"\x89PNG")
    );
    assert_eq!(engine.close(), Some(0));
    assert_eq!(lab.launches(), 0);
}

#[test]
fn status_is_one_line_and_works_before_mount() {
    let lab = Lab::empty("config");
    lab.install();
    let status = |lab: &Lab| String::from_utf8(lab.run(BROWSER, ["status"]).stdout).unwrap();
    assert_eq!(status(&lab), "{\"state\":\"unauthorized\",\"tools\":[]}\n");
    lab.auth("{}");
    let authorized: serde_json::Value = serde_json::from_str(&status(&lab)).unwrap();
    assert_eq!(authorized["state"], "authorized");
    assert_eq!(authorized.as_object().unwrap().len(), 2);
    std::fs::write(lab.connector().join("bin/extra"), "").unwrap();
    let failed: serde_json::Value = serde_json::from_str(&status(&lab)).unwrap();
    assert_eq!(failed["state"], "failed");
    assert!(
        failed["reason"]
            .as_str()
            .unwrap()
            .contains("bin/extra: is not of the build")
    );
}

#[test]
fn a_parked_session_comes_to_life_when_the_login_is_stored() {
    let lab = Lab::empty("config");
    lab.install();
    assert!(lab.run(BROWSER, ["mount"]).status.success());
    let mut engine = lab.engine();
    assert_eq!(
        engine.status(),
        json!({"state": "unauthorized", "tools": []})
    );
    assert!(engine.tools().is_empty());
    let refused = engine.call("browser_navigate", &json!({"url": "about:blank"}));
    assert_eq!(refused["error"]["code"], -32010);
    assert_eq!(refused["error"]["data"]["code"], "connector.unauthorized");
    engine.request("resources/subscribe", &json!({"uri": STATUS}));
    assert!(lab.auth("{}").status.success());
    engine.hear("notifications/tools/list_changed");
    engine.hear("notifications/resources/updated");
    assert_eq!(engine.tools().len(), 25);
    engine.text("browser_navigate", &json!({"url": "about:blank"}));
    assert_eq!(engine.close(), Some(0));
}

/// The policy of the README, as it stands there.
fn readme_policy() -> serde_json::Value {
    let text = README
        .split("```json")
        .find(|part| part.contains("\"allow\""))
        .unwrap();
    serde_json::from_str(text.split("```").next().unwrap()).unwrap()
}

#[test]
fn the_policy_of_the_readme_leaves_twenty_tools() {
    let lab = Lab::new();
    let mut policy = readme_policy();
    lab.auth(r#"{"export": "on"}"#);
    lab.write_policy("tools.json", &policy.to_string());
    let mut engine = lab.engine();
    let tools = engine.tools();
    assert_eq!(tools.len(), 20);
    for left_out in [
        "browser_run_code_unsafe",
        "browser_evaluate",
        "browser_storage_state",
        "browser_file_upload",
    ] {
        assert!(!tools.iter().any(|tool| tool == left_out), "{left_out}");
        let refused = engine.call(left_out, &json!({}));
        assert_eq!(
            refused["error"]["data"]["code"], "connector.forbidden_scope",
            "{refused}"
        );
    }
    assert_eq!(engine.status()["tools"].as_array().unwrap().len(), 20);
    // It is followed while the session runs.
    policy["allow"]
        .as_array_mut()
        .unwrap()
        .push("browser_file_upload".into());
    lab.write_policy("tools.json", &policy.to_string());
    engine.hear("notifications/tools/list_changed");
    assert_eq!(engine.tools().len(), 21);
    engine.heard.clear();
    lab.write_policy("tools.json", "{\"allow\": [");
    engine.hear("notifications/tools/list_changed");
    assert!(engine.tools().is_empty());
    assert_eq!(engine.status()["state"], "failed");
    engine.heard.clear();
    std::fs::remove_file(lab.connector().join("tools.json")).unwrap();
    engine.hear("notifications/tools/list_changed");
    assert_eq!(engine.tools().len(), 26);
}

#[test]
fn a_policy_that_others_can_write_closes_everything() {
    let lab = Lab::new();
    lab.write_policy("tools.json", r#"{"allow": ["browser_navigate"]}"#);
    let mut engine = lab.engine();
    assert_eq!(engine.tools(), ["browser_navigate"]);
    set_mode(&lab.connector().join("tools.json"), 0o666);
    engine.hear("notifications/tools/list_changed");
    assert!(engine.tools().is_empty());
    assert!(
        engine.status()["reason"]
            .as_str()
            .unwrap()
            .contains("can be written by other users")
    );
}

#[test]
fn the_login_state_does_not_reach_the_engine() {
    let lab = Lab::new();
    let state = r#"{"cookies":[],"origins":[]}"#;
    let mut engine = lab.engine();
    let shown = engine.call(
        "browser_evaluate",
        &json!({"function": format!("() => '{state}'")}),
    );
    assert_eq!(
        shown["error"]["data"]["code"], "connector.internal",
        "{shown}"
    );
    assert_eq!(shown["error"]["code"], -32014);
    let encoded = engine.call(
        "browser_evaluate",
        &json!({"function": format!("() => btoa('x{state}')")}),
    );
    assert_eq!(
        encoded["error"]["data"]["code"], "connector.internal",
        "{encoded}"
    );
    assert!(engine.evaluate("1 + 1").starts_with('2'));
    // What a session saves is withheld from then on, too.
    drop(engine);
    lab.auth(r#"{"export": "on"}"#);
    let site = Site::serve(|_| {
        Some((
            "text/html",
            "Set-Cookie: sid=a-very-secret-value; Path=/; HttpOnly\r\n".into(),
            b"<h1>in</h1>".to_vec(),
        ))
    });
    let mut engine = lab.engine();
    engine.text("browser_navigate", &json!({"url": site.url("/")}));
    engine.text("browser_storage_state", &json!({}));
    let saved = std::fs::read_to_string(lab.connector().join("BROWSER_STORAGE_STATE")).unwrap();
    assert!(saved.contains("a-very-secret-value"));
    let quoted = serde_json::to_string(&saved).unwrap();
    std::thread::sleep(std::time::Duration::from_millis(300));
    let shown = engine.call(
        "browser_evaluate",
        &json!({"function": format!("() => {quoted}")}),
    );
    assert_eq!(shown["error"]["data"]["code"], "connector.internal");
    // The next launch starts from it.
    drop(engine);
    let mut engine = lab.engine();
    engine.text("browser_navigate", &json!({"url": site.url("/")}));
    let cookies = engine.text(
        "browser_run_code_unsafe",
        &json!({"code": "async (page) => (await page.context().cookies()).length"}),
    );
    assert!(cookies.contains('1'), "{cookies}");
}

#[test]
fn an_answer_over_four_mebibytes_is_refused_and_the_session_lives() {
    let lab = Lab::new();
    let mut engine = lab.engine();
    engine.text("browser_navigate", &json!({"url": "about:blank"}));
    let long = engine.call(
        "browser_evaluate",
        &json!({"function": "() => 'x'.repeat(5 * 1024 * 1024)"}),
    );
    assert_eq!(
        long["error"]["data"]["code"], "connector.too_large",
        "{long}"
    );
    // Two at once: each gets its own.
    for (id, length) in [(71, 5_000_000), (72, 10)] {
        let arguments = json!({"function": format!("() => 'x'.repeat({length})")});
        let params = json!({"name": "browser_evaluate", "arguments": arguments});
        engine.send(
            &json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})
                .to_string(),
        );
    }
    assert_eq!(engine.answer(&json!(71))["error"]["code"], -32012);
    assert!(engine.answer(&json!(72))["result"].is_object());
    let long = format!(
        r#"{{"jsonrpc":"2.0","method":"ping","params":{{"a":"{}"}},"id":"last"}}"#,
        "y".repeat(5_000_000)
    );
    engine.send(&long);
    assert_eq!(engine.answer(&json!("last"))["error"]["code"], -32012);
    assert!(engine.evaluate("2 + 2").starts_with('4'));
}

#[test]
fn the_started_processes_have_the_arguments_and_no_environment_of_the_engine() {
    let lab = Lab::new();
    let mut engine = lab.engine();
    engine.text("browser_navigate", &json!({"url": "about:blank"}));
    let all = processes(lab.config());
    let (pid, line) = all
        .iter()
        .find(|(_, line)| line.contains("cli.js"))
        .unwrap();
    for argument in [
        "--headless",
        "--isolated",
        "--browser chromium",
        "--sandbox",
        "--block-service-workers",
        "--no-webmcp",
        "--timeout-navigation 60000",
        "--output-max-size 67108864",
        "--executable-path",
        "--output-dir",
        "--storage-state",
    ] {
        assert!(line.contains(argument), "{argument} is missing in {line}");
    }
    for never in [
        "--no-sandbox",
        "--caps",
        "--user-data-dir",
        "--port",
        "--config",
        "--allowed-origins",
    ] {
        assert!(!line.contains(never), "{never} in {line}");
    }
    let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap();
    let environment = String::from_utf8_lossy(&environment).into_owned();
    for variable in environment.split('\0') {
        for dropped in [
            "NODE_",
            "PLAYWRIGHT_",
            "PWDEBUG",
            "DEBUG",
            "CONFIG_LOCAL_DIR",
            "CONNECTOR_",
            "BROWSER_",
        ] {
            assert!(!variable.starts_with(dropped), "{variable}");
        }
    }
    assert!(environment.contains("LANG=en_US.UTF-8"), "{environment}");
    // The sandbox is on, deep inside the launch's own process namespace.
    let (renderer, _) = all
        .iter()
        .find(|(_, line)| line.contains("--type=renderer"))
        .unwrap();
    let status = std::fs::read_to_string(format!("/proc/{renderer}/status")).unwrap();
    assert!(status.contains("Seccomp:\t2"), "{status}");
    let depth = status
        .lines()
        .find(|line| line.starts_with("NSpid:"))
        .unwrap();
    assert!(depth.split_whitespace().count() > 3, "{depth}");
}

#[test]
fn two_launches_at_once_do_not_touch_each_other() {
    let lab = Lab::new();
    let site = Site::serve(|path| Some(page(&format!("<h1>{path}</h1>"))));
    let (mut one, mut two) = (lab.engine(), lab.engine());
    one.text("browser_navigate", &json!({"url": site.url("/one")}));
    two.text("browser_navigate", &json!({"url": site.url("/two")}));
    assert_eq!(lab.launches(), 2);
    assert!(one.text("browser_snapshot", &json!({})).contains("/one"));
    assert!(two.text("browser_snapshot", &json!({})).contains("/two"));
    assert_eq!(one.close(), Some(0));
    assert!(two.text("browser_snapshot", &json!({})).contains("/two"));
    assert_eq!(two.close(), Some(0));
    assert_eq!(lab.launches(), 0);
}

#[test]
fn files_are_kept_where_the_person_asks() {
    let lab = Lab::new();
    let kept = lab.folder().join("kept");
    let mut command = lab.command(LAUNCHER, ["run", "browser", "--keep"]);
    command.arg(&kept);
    let mut engine = Engine::start(command);
    engine.text("browser_navigate", &json!({"url": "about:blank"}));
    engine.text("browser_take_screenshot", &json!({"filename": "one.png"}));
    let running = lab.folder().join("running");
    assert!(
        lab.run(BROWSER, [std::ffi::OsStr::new("keep"), running.as_os_str()])
            .status
            .success()
    );
    assert!(running.join("one.png").exists());
    engine.text("browser_take_screenshot", &json!({"filename": "two.png"}));
    assert_eq!(engine.close(), Some(0));
    assert!(kept.join("one.png").exists() && kept.join("two.png").exists());
}

#[test]
fn a_machine_that_forbids_the_walls_is_named_with_the_fix() {
    let lab = Lab::new();
    // One covered path below /proc, as container engines do it.
    let script = "mount -t tmpfs masked /proc/acpi 2>/dev/null || mount -t tmpfs masked /proc/fs; exec \"$@\"";
    let mut command = lab.command(
        "unshare",
        [
            "--user",
            "--map-root-user",
            "--mount",
            "sh",
            "-c",
            script,
            "sh",
        ],
    );
    command.args([LAUNCHER, "run", "browser"]);
    let mut engine = Engine::start(command);
    let refused = engine.call("browser_navigate", &json!({"url": "about:blank"}));
    let words = refused["error"]["message"].as_str().unwrap().to_owned();
    assert!(
        words.contains("is masked") && words.contains("systempaths=unconfined"),
        "{words}"
    );
    assert_eq!(engine.status()["state"], "failed");
    let _ = parts();
}
