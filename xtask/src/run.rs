//! Starts programs and says which.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

/// What a task ends with.
pub(crate) type Outcome = Result<ExitCode, String>;

/// The workspace's root.
pub(crate) fn root() -> PathBuf {
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    here.parent().map(PathBuf::from).unwrap_or(here)
}

/// The folder of what the tests need, made by them.
pub(crate) fn parts() -> PathBuf {
    target().join("test-parts")
}

/// Cargo's build folder.
pub(crate) fn target() -> PathBuf {
    match std::env::var_os("CARGO_TARGET_DIR") {
        Some(target) => root().join(target),
        None => root().join("target"),
    }
}

/// Where downloads are kept between runs and clones.
pub(crate) fn cache() -> Result<PathBuf, String> {
    let folder = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let base = folder("XDG_CACHE_HOME").map(PathBuf::from);
    let base = base.or_else(|| folder("HOME").map(|home| PathBuf::from(home).join(".cache")));
    let cache = base
        .ok_or("neither XDG_CACHE_HOME nor HOME is set")?
        .join("sema-connectors-dev");
    std::fs::create_dir_all(&cache).map_err(|e| format!("cannot make {}: {e}", cache.display()))?;
    Ok(cache)
}

/// A command that starts in the workspace's root.
pub(crate) fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    command.current_dir(root());
    command
}

/// Cargo itself.
pub(crate) fn cargo() -> Command {
    command(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// Runs a command and fails where it fails.
pub(crate) fn run(command: &mut Command) -> Result<(), String> {
    let line = line(command);
    eprintln!("+ {line}");
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{line}: {status}")),
        Err(error) => Err(format!("{line}: {error}")),
    }
}

/// Whether a command runs and succeeds; what it prints is not shown.
pub(crate) fn succeeds(command: &mut Command) -> bool {
    command.output().is_ok_and(|output| output.status.success())
}

fn line(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words
        .map(OsStr::to_string_lossy)
        .collect::<Vec<_>>()
        .join(" ")
}
