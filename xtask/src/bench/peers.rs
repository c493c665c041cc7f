//! Other proxies over stdio, installed into the build folder: FastMCP's, and the two from npm that
//! were found to carry a session as they are.

use crate::parts;
use crate::run::{cache, command, root, run, target};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// FastMCP, with all that its server needs.
const FASTMCP: &str = "fastmcp==4.2.3";

/// A proxy before a program.
pub(super) struct Peer {
    pub(super) name: &'static str,
    words: Vec<PathBuf>,
}

impl Peer {
    /// The proxy before the echo server.
    pub(super) fn before(&self, server: &Path) -> Command {
        let mut command = Command::new(&self.words[0]);
        command
            .args(&self.words[1..])
            .arg(server)
            .arg("echo-server");
        command
    }
}

/// Installs what is not there yet.
pub(super) fn installed() -> Result<[Peer; 3], String> {
    let (folder, sources) = (target().join("bench-peers"), root().join("xtask/peers"));
    fs::create_dir_all(&folder).map_err(|e| format!("cannot make {}: {e}", folder.display()))?;
    let python = parts::python()?;
    let venv = folder.join("venv");
    if !venv.join("bin/fastmcp").exists() {
        eprintln!("installing {FASTMCP} into {}", venv.display());
        run(command(python).args(["-m", "venv", "--clear"]).arg(&venv))?;
        let pip = [
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
        ];
        run(command(venv.join("bin/python"))
            .args(pip)
            .arg("--cache-dir")
            .arg(cache()?.join("pip"))
            .arg(FASTMCP))?;
    }
    let node = node();
    for file in ["package.json", "passthrough.mjs"] {
        let copied = fs::copy(sources.join(file), folder.join(file));
        copied.map_err(|e| format!("cannot copy {file}: {e}"))?;
    }
    let modules = folder.join("node_modules");
    if !modules.join("@civic").exists() {
        eprintln!("installing npm's proxies into {}", folder.display());
        let install = [
            "install",
            "--ignore-scripts",
            "--no-audit",
            "--no-fund",
            "--cache",
        ];
        run(command(&node)
            .arg(parts::npm())
            .args(install)
            .arg(cache()?.join("npm"))
            .current_dir(&folder))?;
    }
    Ok([
        Peer {
            name: "fastmcp 4.2.3",
            words: vec![venv.join("bin/python"), sources.join("fastmcp_proxy.py")],
        },
        Peer {
            name: "@civic/passthrough-mcp-server",
            words: vec![node, folder.join("passthrough.mjs")],
        },
        Peer {
            name: "@chaindead/tooner",
            words: vec![modules.join("@chaindead/tooner_linux_amd64/tooner")],
        },
    ])
}

fn node() -> PathBuf {
    crate::run::parts().join("config/connectors/browser/bin/node/bin/node")
}
