//! The only place that reads environment variables, the current directory and the path of this
//! program: what comes from outside comes in here.
#![expect(clippy::disallowed_methods, reason = "the door to the environment")]

use super::failure::Failure;
use sema_vault::ConfigDir;
use std::ffi::OsString;
use std::path::PathBuf;

/// A variable of the environment.
pub fn var(name: &str) -> Option<OsString> {
    std::env::var_os(name)
}

/// A variable with which a test bends this program. In a release build there is none.
pub fn test_var(name: &str) -> Option<String> {
    var(name)
        .filter(|_| cfg!(debug_assertions))?
        .into_string()
        .ok()
}

/// Every variable of the environment.
pub fn vars() -> impl Iterator<Item = (OsString, OsString)> {
    std::env::vars_os()
}

/// Where the configuration directory is or will be.
pub fn config_path() -> Result<PathBuf, Failure> {
    Ok(ConfigDir::locate(
        var("CONFIG_LOCAL_DIR"),
        var("XDG_CONFIG_HOME"),
        var("HOME"),
    )?)
}

/// The configuration directory that programs find that were not told: those of a desktop, whose
/// environment is not the terminal's.
pub fn default_config_path() -> Option<PathBuf> {
    ConfigDir::locate(None, None, var("HOME")).ok()
}

/// The configuration directory, made where it is missing.
pub fn create_config() -> Result<ConfigDir, Failure> {
    Ok(ConfigDir::create(&config_path()?)?)
}

/// The configuration directory, if it is there.
pub fn open_config() -> Result<Option<ConfigDir>, Failure> {
    Ok(ConfigDir::open(&config_path()?)?)
}

/// The person's home folder, where the environment names one.
pub fn home() -> Option<PathBuf> {
    var("HOME")
        .map(PathBuf::from)
        .filter(|home| home.is_absolute())
}

/// The folders of `PATH`, those that are absolute.
pub fn path() -> Vec<PathBuf> {
    let path = var("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .filter(|folder| folder.is_absolute())
        .collect()
}

/// The current directory.
pub fn current_dir() -> Result<PathBuf, Failure> {
    std::env::current_dir()
        .map_err(|e| Failure::failed(format_args!("cannot tell the current directory: {e}")))
}

/// The running program's own path.
pub fn current_exe() -> Result<PathBuf, Failure> {
    std::env::current_exe()
        .map_err(|e| Failure::failed(format_args!("cannot tell this program's own path: {e}")))
}

/// The first word after the program's name.
pub fn first_argument() -> Option<OsString> {
    std::env::args_os().nth(1)
}

/// Whether `--json` is among the words that are ours: those before `--`.
pub fn wants_json() -> bool {
    let mut own = std::env::args_os().skip(1).take_while(|word| word != "--");
    own.any(|word| word == "--json")
}

/// Whether the person wants no colour (<https://no-color.org>).
pub fn no_color() -> bool {
    var("NO_COLOR").is_some_and(|value| !value.is_empty())
}
