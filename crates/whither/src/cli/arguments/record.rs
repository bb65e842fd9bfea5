//! `whither record`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};

use super::EngineArgument;

/// Sample a program, processes or the whole machine into the database
///
/// Flags are perf's. A program keeps its streams and its exit status is passed through; a sentence
/// about what was recorded goes to stderr. `whither prof` shows it.
#[derive(Debug, Args)]
#[command(after_help = "Example: whither record -g -- make -j8; whither prof by procedure")]
#[command(mut_arg("engine", |engine| engine.requires("machine")))]
pub(crate) struct RecordArguments {
    /// Sample these events, separated by commas [default: cycles where there is a PMU, else
    /// cpu-clock; on a modelled core cycles and instructions:p]
    #[arg(short, long, value_name = "EVENTS")]
    pub(crate) event: Option<String>,
    /// Samples per second of run time [default: 997 in a virtual machine or without a PMU, else
    /// 3989]
    #[arg(short = 'F', long, value_name = "HZ", conflicts_with = "count",
          value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) freq: Option<u64>,
    /// Sample every N occurrences instead (nanoseconds for a clock)
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) count: Option<u64>,
    /// Sample these processes, until they end or the program does
    #[arg(short, long, value_name = "PID", value_delimiter = ',', conflicts_with = "all_cpus")]
    pub(crate) pid: Vec<u32>,
    /// Sample these threads, and those that they start
    #[arg(short, long, value_name = "TID", value_delimiter = ',',
          conflicts_with_all = ["all_cpus", "pid"])]
    pub(crate) tid: Vec<u32>,
    /// Sample every process on the machine
    #[arg(short, long)]
    pub(crate) all_cpus: bool,
    /// Sample what runs on these CPUs alone, as in 0-3,8; without -p, every process there
    #[arg(short = 'C', long, value_name = "CPUS")]
    pub(crate) cpu: Option<String>,
    /// Keep chains of callers, by frame pointers
    #[arg(short = 'g')]
    pub(crate) chains: bool,
    /// The same, by perf's longer name
    #[arg(long, value_name = "HOW")]
    pub(crate) call_graph: Option<CallGraph>,
    /// Sample the program on a modelled core, by name or by file, instead of this machine
    #[arg(long, value_name = "MACHINE", conflicts_with_all = ["pid", "tid", "all_cpus",
          "cpu", "chains", "call_graph", "freq"])]
    pub(crate) machine: Option<String>,
    /// The seed of the modelled core's periods
    #[arg(long, value_name = "N", default_value_t = 1, requires = "machine")]
    pub(crate) seed: u64,
    #[command(flatten)]
    pub(crate) engine: EngineArgument,
    /// The database [default: $WHITHER_DB, else /var/lib/whither for root, else
    /// ~/.local/share/whither]
    #[arg(short, long, visible_alias = "db", value_name = "DB", value_hint = ValueHint::DirPath)]
    pub(crate) output: Option<PathBuf>,
    /// The program and its arguments
    #[arg(trailing_var_arg = true, required_unless_present_any = ["pid", "tid", "all_cpus", "cpu"],
          value_name = "PROGRAM", value_hint = ValueHint::CommandWithArguments)]
    pub(crate) program: Vec<OsString>,
}

/// How callers are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum CallGraph {
    /// Frame pointers, followed by the kernel
    Fp,
}
