//! `whither model`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};

use super::EngineArgument;

/// Run a program once on a modelled core and say what its cycles waited for
///
/// The program runs unmodified under an engine that tells every instruction; each of its threads
/// has a core as the machine file describes it. Every number is modelled, none measured. Streams
/// and exit statuses are as for `run`.
#[derive(Debug, Args)]
#[command(after_help = "Example: whither model --machine zen4 -- gzip -9 -c big.txt > big.gz")]
#[command(mut_arg("engine", |engine| engine.conflicts_with("replay")))]
pub(crate) struct ModelArguments {
    /// The machine, by name (`whither list machines`) or by file [default: the one that describes
    /// this host]
    #[arg(short, long, value_name = "MACHINE")]
    pub(crate) machine: Option<String>,
    /// Time every instruction instead of sampling
    #[arg(long, conflicts_with = "error")]
    pub(crate) full: bool,
    /// Sample until the cycles are known this well, at 95 % [default: 3%]
    #[arg(long, value_name = "PERCENT")]
    pub(crate) error: Option<String>,
    /// Where the samples fall
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Time every instruction on this core
    #[arg(long, value_enum, value_name = "CORE", conflicts_with_all = ["full", "error"])]
    pub(crate) core: Option<CoreArgument>,
    /// Make parts of the machine perfect: dl1, dmiss, imiss, bmisp, win, bw, shalu, lgalu, dep
    #[arg(long, value_name = "PART,…", value_delimiter = ',')]
    pub(crate) ideal: Vec<String>,
    /// How instructions travel through the core
    #[arg(long, value_enum, default_value_t, value_name = "MODE")]
    pub(crate) mode: ModeArgument,
    /// Record the program's instructions in a file instead of timing them
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "replay")]
    pub(crate) record: Option<PathBuf>,
    /// Take the instructions from a recorded file instead of running a program
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "program")]
    pub(crate) replay: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) engine: EngineArgument,
    /// Hold fast whatever differs from run to run, the environment included
    #[arg(long)]
    pub(crate) pin: bool,
    /// Show this many procedures
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub(crate) procedures: usize,
    /// Write the report to a file instead of stderr; as a picture if its name ends in .svg
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,
    /// The program and its arguments
    #[arg(required_unless_present = "replay", trailing_var_arg = true,
          value_name = "PROGRAM", value_hint = ValueHint::CommandWithArguments)]
    pub(crate) program: Vec<OsString>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum CoreArgument {
    /// In one pass, as --full
    Fast,
    /// Cycle by cycle, slower and closer
    Reference,
    /// None: caches, translation and predictors only
    Warm,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ModeArgument {
    /// As the machine file says
    #[default]
    Native,
    /// One instruction a group
    Single,
    /// Nothing issues before the group before it has retired
    InOrder,
    /// In program order, several a cycle
    InOrderSuperscalar,
}
