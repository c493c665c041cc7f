//! Programs of others as connectors: mounted, started behind the walls, given their secrets.

use crate::lab::{Engine, LAUNCHER, Lab, parts, processes};
use serde_json::json;
use std::ffi::OsStr;
use std::io::Write as _;
use std::path::Path;
use std::process::{Output, Stdio};

fn mount(lab: &Lab, words: &[&OsStr]) -> Output {
    let output = lab.run(LAUNCHER, [OsStr::new("mount")].iter().chain(words));
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    output
}

fn run(lab: &Lab, name: &str) -> Engine {
    Engine::start(lab.command(LAUNCHER, ["run", name]))
}

/// The pinned Node.js of the tests' own installation.
fn node() -> std::path::PathBuf {
    parts().join("config/connectors/browser/bin/node/bin/node")
}

#[test]
fn the_protocols_everything_server_is_a_connector() {
    let lab = Lab::empty("config");
    let script =
        parts().join("npm/node_modules/@modelcontextprotocol/server-everything/dist/index.js");
    mount(
        &lab,
        &[
            "everything".as_ref(),
            "--".as_ref(),
            node().as_os_str(),
            script.as_os_str(),
        ],
    );
    let mut engine = run(&lab, "everything");
    let tools = engine.tools();
    assert!(tools.iter().any(|tool| tool == "echo"), "{tools:?}");
    assert!(
        engine
            .text("echo", &json!({"message": "through the wall"}))
            .contains("through the wall")
    );
    // Its own resources are there, and the status resource beside them.
    let list = engine.request("resources/list", &json!({}));
    let resources = list["result"]["resources"].as_array().unwrap();
    assert!(resources.len() > 1, "{list}");
    assert_eq!(resources[0]["uri"], "sema-connector://everything/status");
    let own = resources[1]["uri"].clone();
    assert!(engine.request("resources/read", &json!({"uri": own}))["result"].is_object());
    let list = String::from_utf8(lab.run(LAUNCHER, ["list"]).stdout).unwrap();
    assert_eq!(list, "everything\n");
    assert!(
        lab.run(LAUNCHER, ["unmount", "everything"])
            .status
            .success()
    );
    assert!(lab.run(LAUNCHER, ["list"]).stdout.is_empty());
}

const TOKEN_SERVER: &str = "import os
from mcp.server import MCPServer
server = MCPServer('token')
@server.tool()
def about() -> str:
    return f\"{len(os.environ.get('API_TOKEN', ''))} {os.path.exists(os.environ['API_TOKEN_FILE'])} {os.getuid()}\"
@server.tool()
def leak() -> str:
    return os.environ['API_TOKEN']
server.run('stdio')
";

#[test]
fn a_python_server_reads_its_token_from_a_variable() {
    let lab = Lab::empty("config");
    let script = lab.folder().join("server.py");
    std::fs::write(&script, TOKEN_SERVER).unwrap();
    let python = parts().join("venv/bin/python");
    let flags = [
        "token",
        "--require",
        "API_TOKEN",
        "--env",
        "API_TOKEN",
        "--",
    ]
    .map(OsStr::new);
    mount(
        &lab,
        &[&flags[..], &[python.as_os_str(), script.as_os_str()]].concat(),
    );
    let mut engine = run(&lab, "token");
    assert!(engine.tools().is_empty());
    store(&lab, "token", "API_TOKEN", "s3cret-t0ken-of-mine\n");
    engine.hear("notifications/tools/list_changed");
    let about = engine.text("about", &json!({}));
    assert!(about.starts_with("20 True "), "{about}");
    let uid: u32 = about.rsplit(' ').next().unwrap().trim().parse().unwrap();
    assert_ne!(uid, 0);
    let leak = engine.call("leak", &json!({}));
    assert_eq!(
        leak["error"]["data"]["code"], "connector.internal",
        "{leak}"
    );
    engine.close();
    assert!(processes(lab.config()).is_empty());
}

fn store(lab: &Lab, name: &str, handle: &str, secret: &str) {
    let mut command = lab.command(LAUNCHER, ["auth", name, handle]);
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(secret.as_bytes())
        .unwrap();
    assert!(child.wait().unwrap().success());
}

#[test]
fn what_could_give_everything_away_is_not_mounted() {
    let lab = Lab::empty("config");
    std::fs::create_dir_all(lab.config()).unwrap();
    crate::lab::set_mode(lab.config(), 0o700);
    for arg in [Path::new("/"), lab.config(), lab.folder()] {
        let words = ["mount", "x", "--", "/bin/cat"].map(OsStr::new);
        let output = lab.run(LAUNCHER, words.iter().copied().chain([arg.as_os_str()]));
        assert_eq!(output.status.code(), Some(1), "{arg:?} {output:?}");
    }
}
