//! The `repro` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(repro::main(std::env::args_os().collect()))
}
