//! `whither count`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, ValueHint};

use super::{EngineArgument, SyntaxArgument};

/// Count exactly how often every instruction of a program ran
///
/// The program runs under an engine that tells every instruction, many times slower than otherwise.
/// It keeps its streams and its exit status is passed through; the report goes to stderr, or to a
/// file with -o.
#[derive(Debug, Args)]
#[command(after_help = "Example: whither count -- gzip -9 -c big.txt > big.gz")]
pub(crate) struct CountArguments {
    /// Count loads and stores too, which takes about twice as long
    #[arg(long)]
    pub(crate) accesses: bool,
    /// Show this many procedures
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub(crate) procedures: usize,
    /// Show the code of this many procedures
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) hottest: usize,
    /// How instructions are written
    #[arg(short = 'M', long, value_enum, default_value_t, value_name = "SYNTAX")]
    pub(crate) syntax: SyntaxArgument,
    #[command(flatten)]
    pub(crate) engine: EngineArgument,
    /// Write the report to a file instead of stderr
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,
    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true,
          value_name = "PROGRAM", value_hint = ValueHint::CommandWithArguments)]
    pub(crate) program: Vec<OsString>,
}
