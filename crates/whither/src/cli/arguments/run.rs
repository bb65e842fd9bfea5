//! `whither run`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};

use super::EngineArgument;

/// Run a program once and say where its time went
///
/// The program keeps its streams; the report goes to stderr, or to a file with -o. The program's
/// exit status is passed through (128 + n if signal n killed it). whither's own failures are 125;
/// 126 is a program that cannot be executed, 127 one that is not there.
#[derive(Debug, Args)]
#[command(after_help = "Example: whither run -- gzip -9 -c big.txt > big.gz")]
#[command(mut_arg("engine", |engine| engine.requires("model")))]
pub(crate) struct RunArguments {
    /// Sample this event [default: cycles where there is a PMU, else cpu-clock]
    #[arg(short, long, value_name = "EVENT")]
    pub(crate) event: Option<String>,
    /// Samples per second of run time [default: 997 in a virtual machine or without a PMU, else
    /// 3989]
    #[arg(short = 'F', long, value_name = "HZ", conflicts_with = "count",
          value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) freq: Option<u64>,
    /// Sample every N occurrences instead (nanoseconds for a clock)
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) count: Option<u64>,
    /// Count this set of events beside the samples
    #[arg(long, value_name = "SET", default_value = "run")]
    pub(crate) set: String,
    /// Show this many procedures
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub(crate) procedures: usize,
    /// Show the code of this many procedures
    #[arg(long, value_name = "N", default_value_t = 3)]
    pub(crate) hottest: usize,
    /// How instructions are written
    #[arg(short = 'M', long, value_enum, default_value_t, value_name = "SYNTAX")]
    pub(crate) syntax: SyntaxArgument,
    /// Run the program a second time on a modelled core and add what its cycles waited for; its
    /// input is replayed, its second output dropped
    #[arg(long)]
    pub(crate) model: bool,
    /// The machine to model, by name or by file [default: the one that describes this host]
    #[arg(long, value_name = "MACHINE", requires = "model")]
    pub(crate) machine: Option<String>,
    #[command(flatten)]
    pub(crate) engine: EngineArgument,
    /// Write the report to a file instead of stderr; as a picture if its name ends in .svg
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,
    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true,
          value_name = "PROGRAM", value_hint = ValueHint::CommandWithArguments)]
    pub(crate) program: Vec<OsString>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum SyntaxArgument {
    /// Destination first
    #[default]
    Intel,
    /// Source first
    Att,
}
