//! A stage for one test: a configuration directory and a home of its own, and the programs run
//! with an environment of the test's making.

use std::ffi::OsStr;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

pub(crate) const LAUNCHER: &str = env!("CARGO_BIN_EXE_sema-connector");
pub(crate) const BROWSER: &str = env!("CARGO_BIN_EXE_sema-connector-browser");

pub(crate) struct Stage {
    disk: tempfile::TempDir,
}

/// What a program did.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Done {
    /// The exit code; none after a signal.
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Stage {
    pub(crate) fn new() -> Self {
        let disk = tempfile::Builder::new()
            .prefix("sema é ")
            .tempdir()
            .unwrap();
        std::fs::create_dir(disk.path().join("home")).unwrap();
        Self { disk }
    }

    pub(crate) fn path(&self, below: &str) -> PathBuf {
        self.disk.path().join(below)
    }

    pub(crate) fn config(&self) -> PathBuf {
        self.path("config")
    }

    /// A path below the browser's directory.
    pub(crate) fn browser_dir(&self, below: &str) -> PathBuf {
        self.config().join("connectors/browser").join(below)
    }

    pub(crate) fn command(&self, program: impl AsRef<OsStr>, args: &[&str]) -> Command {
        let mut command = Command::new(program);
        command
            .args(args)
            .current_dir(self.path("home"))
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("HOME", self.path("home"))
            .env("CONFIG_LOCAL_DIR", self.config());
        command
    }

    pub(crate) fn launcher(&self, args: &[&str]) -> Command {
        self.command(LAUNCHER, args)
    }

    pub(crate) fn browser(&self, args: &[&str]) -> Command {
        self.command(BROWSER, args)
    }

    /// Runs `sema-connector-browser auth` with this input.
    pub(crate) fn auth(&self, input: impl AsRef<[u8]>) -> Done {
        run(&mut self.browser(&["auth"]), input)
    }

    pub(crate) fn write(&self, below: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(below);
        std::fs::write(&path, bytes).unwrap();
        path
    }

    /// A text without what differs from run to run.
    pub(crate) fn shown(&self, text: &str) -> String {
        let here = self.disk.path().to_str().unwrap();
        let bins = Path::new(LAUNCHER).parent().unwrap().to_str().unwrap();
        let text = text.replace(here, "[STAGE]").replace(bins, "[BIN]");
        // A clone at a path with a space is quoted for the shell.
        text.replace("'[BIN]/sema-connector'", "[BIN]/sema-connector")
    }
}

impl Done {
    /// The exit code and what was said, for a snapshot.
    pub(crate) fn said(&self, stage: &Stage) -> String {
        let code = self
            .code
            .map_or("signal".to_owned(), |code| code.to_string());
        format!("{code}: {}", stage.shown(&self.stderr))
    }
}

pub(crate) fn run(command: &mut Command, input: impl AsRef<[u8]>) -> Done {
    let mut child = spawn(command);
    // A program that refuses early closes its input.
    let _ = child.stdin.take().unwrap().write_all(input.as_ref());
    let output = child.wait_with_output().unwrap();
    Done {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// Starts the program. One that was copied a moment ago is busy for as long as a process forked
/// meanwhile by another test still holds the descriptor that wrote it.
fn spawn(command: &mut Command) -> std::process::Child {
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    loop {
        match command.spawn() {
            Err(e) if e.kind() == std::io::ErrorKind::ExecutableFileBusy => {
                std::thread::sleep(std::time::Duration::from_millis(5));
            }
            child => return child.unwrap(),
        }
    }
}

/// The permission bits of a file, links not followed.
pub(crate) fn mode(path: &Path) -> u32 {
    use std::os::unix::fs::MetadataExt;
    std::fs::symlink_metadata(path).unwrap().mode() & 0o7777
}

pub(crate) fn chmod(path: &Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

pub(crate) fn am_root() -> bool {
    rustix::process::geteuid().is_root()
}
