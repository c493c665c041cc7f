//! The browser connector and its commands.
use std::process::ExitCode;

fn main() -> ExitCode {
    sema_connector::cli::browser_main()
}
