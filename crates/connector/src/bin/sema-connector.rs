//! The launcher and the general commands.
use std::process::ExitCode;

fn main() -> ExitCode {
    sema_connector::cli::launcher_main()
}
