//! `whither icost`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};

use super::EngineArgument;

/// Run a program once on a modelled core and say what fixing this, that or both would save
///
/// The program runs unmodified under an engine that tells every instruction. Windows at random
/// places are timed, and the time that each would take with something made perfect is found on the
/// graph of what waited for what. Every number is modelled, none measured. Streams and exit statuses
/// are as for `run`.
#[derive(Debug, Args)]
#[command(after_help = "Example: whither icost --by procedure -- gzip -9 -c big.txt > big.gz")]
#[command(mut_arg("engine", |engine| engine.conflicts_with("replay")))]
pub(crate) struct IcostArguments {
    /// The machine, by name (`whither list machines`) or by file [default: the one that describes
    /// this host]
    #[arg(short, long, value_name = "MACHINE")]
    pub(crate) machine: Option<String>,
    /// Evaluate every one and every two of them together (the default)
    #[arg(long)]
    pub(crate) pairs: bool,
    /// Evaluate every set of them, and share out the time fairly (Shapley)
    #[arg(long, conflicts_with = "pairs")]
    pub(crate) powerset: bool,
    /// What is fixed
    #[arg(long, value_enum, default_value_t, value_name = "WHAT")]
    pub(crate) by: IcostBy,
    /// These categories instead of the eight: dl1, win, bw, bmisp, dmiss, shalu, lgalu, imiss, and
    /// the finer l2, l3, mem, dtlb, itlb, ports, fwd, dep
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    pub(crate) categories: Vec<String>,
    /// Instructions in a window
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    pub(crate) window: u64,
    /// Where the windows fall
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Time the windows on the one-pass core: faster, and less close
    #[arg(long)]
    pub(crate) fast: bool,
    /// Take the instructions from a recorded file instead of running a program
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "program")]
    pub(crate) replay: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) engine: EngineArgument,
    /// Hold fast whatever differs from run to run, the environment included
    #[arg(long)]
    pub(crate) pin: bool,
    /// Write the report to a file instead of stderr; as a picture if its name ends in .svg
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,
    /// The program and its arguments
    #[arg(required_unless_present = "replay", trailing_var_arg = true,
          value_name = "PROGRAM", value_hint = ValueHint::CommandWithArguments)]
    pub(crate) program: Vec<OsString>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum IcostBy {
    /// Classes of events and resources of the machine
    #[default]
    Category,
    /// Whole procedures, as if they took no time
    Procedure,
    /// Source lines, as if they took no time
    Line,
    /// The misses, mispredicts or work of one instruction
    Instruction,
}
