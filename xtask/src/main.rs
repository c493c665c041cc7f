//! Development tasks of this workspace. `cargo xtask` without a task lists them.
#![expect(clippy::disallowed_methods, reason = "a tool for developers")]
#![forbid(unsafe_code)]
#![expect(clippy::print_stderr, reason = "a tool for the terminal")]

mod bench;
mod parts;
mod run;
mod test;

use std::process::ExitCode;

const USAGE: &str = "\
cargo xtask try [ARGS]     build the programs and run `sema-connector try ARGS`
cargo xtask test [ARGS]    install what the tests need, check the code and run every test;
                           ARGS go to cargo nextest run
cargo xtask bench          time the programs against the bare upstream, in one run
cargo xtask soak [COUNT]   run the tests that kill programs COUNT times (default 200), and of longer lines";

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let task = args.next().unwrap_or_default();
    let args: Vec<String> = args.collect();
    let result = match task.as_str() {
        "try" => test::attempt(&args),
        "test" => test::all(&args),
        "bench" => bench::all(&args),
        "echo-server" => Ok(bench::echo_server()),
        "soak" => test::soak(&args),
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(64);
        }
    };
    match result {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}
