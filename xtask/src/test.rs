//! The tasks that build and run.

use crate::parts;
use crate::run::{Outcome, cache, cargo, command, run, succeeds, target};
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

/// Builds the programs and runs `sema-connector try`.
pub(crate) fn attempt(args: &[String]) -> Outcome {
    run(cargo().args(["build", "--release", "--bins"]))?;
    let program = target().join("release/sema-connector");
    let status = command(&program).arg("try").args(args).status();
    let status = status.map_err(|e| format!("{}: {e}", program.display()))?;
    Ok(ExitCode::from(
        u8::try_from(status.code().unwrap_or(2)).unwrap_or(2),
    ))
}

/// Installs what the tests need, checks the code, and runs every test.
pub(crate) fn all(args: &[String]) -> Outcome {
    let path = tools()?;
    run(cargo().args(["fmt", "--all", "--check"]))?;
    run(cargo().args([
        "clippy",
        "--workspace",
        "--all-targets",
        "--quiet",
        "--",
        "-D",
        "warnings",
    ]))?;
    run(cargo().args(["build", "--workspace", "--bins", "--quiet"]))?;
    parts::install()?;
    run(command(parts::cargo_deny()).args(["check", "bans", "licenses", "sources"]))?;
    run(cargo().args(["test", "--workspace", "--doc", "--quiet"]))?;
    let mut nextest = cargo();
    nextest.args(["nextest", "run", "--workspace"]).args(args);
    nextest
        .env("PATH", path)
        .env("SEMA_TEST_PARTS", crate::run::parts());
    run(&mut nextest)?;
    Ok(ExitCode::SUCCESS)
}

/// Runs the tests that kill programs, many times, and those of endless lines with longer ones.
pub(crate) fn soak(args: &[String]) -> Outcome {
    let count = args.first().map_or("200", String::as_str);
    let path = tools()?;
    run(cargo().args(["build", "--workspace", "--bins", "--quiet"]))?;
    parts::install()?;
    let mut nextest = cargo();
    nextest.args([
        "nextest",
        "run",
        "--workspace",
        "-E",
        "test(kill) + test(end_of) + test(outlives) + test(endless)",
    ]);
    nextest
        .env("PATH", path)
        .env("SEMA_TEST_PARTS", crate::run::parts())
        .env("SEMA_SOAK", count);
    run(&mut nextest)?;
    Ok(ExitCode::SUCCESS)
}

/// Installs the test runner where it is missing; the search path that finds it.
fn tools() -> Result<OsString, String> {
    let tools = cache()?.join("cargo");
    let path = std::env::var_os("PATH").unwrap_or_default();
    let own = std::iter::once(tools.join("bin")).chain(std::env::split_paths(&path));
    let path = std::env::join_paths(own.collect::<Vec<PathBuf>>()).map_err(|e| e.to_string())?;
    if !succeeds(cargo().args(["nextest", "--version"]).env("PATH", &path)) {
        eprintln!("installing cargo-nextest into {}", tools.display());
        let mut install = cargo();
        install
            .args(["install", "--locked", "cargo-nextest", "--root"])
            .arg(&tools);
        run(install.current_dir("/"))?;
    }
    Ok(path)
}
