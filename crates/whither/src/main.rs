//! The `whither` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    whither::run_command(std::env::args_os().collect())
}
