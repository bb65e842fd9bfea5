//! `whither stat`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{ArgAction, Args, ValueEnum, ValueHint};

use super::EngineArgument;

/// How turns are shared out.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum SharesArgument {
    /// As many for every group.
    Even,
    /// More for groups whose events vary more.
    Spread,
}

/// Count events while a program runs, any number of them, each with its uncertainty
///
/// Where there are more events than counters they take turns; every count then carries ± at 95 %,
/// the share of time in which it was counted, and the estimator. The program keeps its streams;
/// counts go to stderr, or to a file with -o. Exit statuses are as for `run`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  whither stat -- gzip -9 -c big.txt > big.gz
  whither stat -e '{cycles,instructions}:u,page-faults' -I 1000 -p 1234
  whither stat --machine zen4 --set ssb -- gzip -9 -c big.txt > big.gz")]
#[command(mut_arg("engine", |engine| engine.requires("machine")))]
pub(crate) struct StatArguments {
    /// Events as perf spells them (`whither list events`), braces around those that belong
    /// together [default: the set `default`, or `software` where there is no PMU]
    #[arg(short, long, value_name = "EVENT,…")]
    pub(crate) event: Vec<String>,
    /// A set of events (`whither list sets`)
    #[arg(long, value_name = "SET")]
    pub(crate) set: Vec<String>,
    /// Add details: loads and misses by level; -d -d and -d -d -d add more
    #[arg(short, long, action = ArgAction::Count)]
    pub(crate) detailed: u8,
    /// Print what was counted every so many milliseconds
    #[arg(short = 'I', long, value_name = "MS", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) interval_print: Option<u64>,
    /// Run the program so often and give the mean with its ± over runs
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..),
          conflicts_with_all = ["interval_print", "pid", "tid", "all_cpus", "cpu"])]
    pub(crate) repeat: Option<u32>,
    /// Count these processes, until they end or the program does or Ctrl-C
    #[arg(short, long, value_name = "PID,…", value_delimiter = ',')]
    pub(crate) pid: Vec<u32>,
    /// Count these threads
    #[arg(short, long, value_name = "TID,…", value_delimiter = ',', conflicts_with = "pid")]
    pub(crate) tid: Vec<u32>,
    /// Count everything that runs on any CPU
    #[arg(short, long, conflicts_with_all = ["pid", "tid"])]
    pub(crate) all_cpus: bool,
    /// Count everything that runs on these CPUs: 0,2-3
    #[arg(short = 'C', long, value_name = "LIST", conflicts_with_all = ["pid", "tid"])]
    pub(crate) cpu: Option<String>,
    /// Print every CPU's counts apart; needs -a or -C
    #[arg(short = 'A', long, conflicts_with_all = ["pid", "tid", "machine"])]
    pub(crate) no_aggr: bool,
    /// Count only for this control group; with several, one for each event, empty for all. Needs
    /// -e, and -a or -C
    #[arg(short = 'G', long, value_name = "NAME,…", value_delimiter = ',', requires = "event",
          conflicts_with_all = ["pid", "tid", "machine"])]
    pub(crate) cgroup: Vec<String>,
    /// Count every event for each of these control groups; needs -a or -C
    #[arg(long, value_name = "NAME,…", value_delimiter = ',',
          conflicts_with_all = ["pid", "tid", "machine", "cgroup"])]
    pub(crate) for_each_cgroup: Vec<String>,
    /// Print perf's columns with this separator, then ± and the estimator
    #[arg(short = 'x', long, value_name = "SEP", conflicts_with = "perf_json")]
    pub(crate) field_separator: Option<String>,
    /// Print perf's JSON, an object a line, with ±, coverage and estimator
    #[arg(short = 'j', conflicts_with = "json")]
    pub(crate) perf_json: bool,
    /// Do not count what the target starts
    #[arg(short = 'i', long)]
    pub(crate) no_inherit: bool,
    /// End after so many milliseconds
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) timeout: Option<u64>,
    /// Begin to count after so many milliseconds
    #[arg(short = 'D', long, value_name = "MS")]
    pub(crate) delay: Option<u64>,
    /// Count only so many events at a time, so that taking turns can be tried anywhere
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    pub(crate) counters: Option<u32>,
    /// How long a turn is: cycles, or with a unit (10ms, 50us, 100000instructions), or so many of
    /// any event (500page-faults) [default: 10ms; 5000 cycles on a modelled core]
    #[arg(long, value_name = "N")]
    pub(crate) slice: Option<String>,
    /// Where the order of turns comes from
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// How many turns groups get [default: even; on a modelled core more for waits, which come in
    /// lumps]
    #[arg(long, value_name = "HOW", value_enum)]
    pub(crate) shares: Option<SharesArgument>,
    /// Leave turns to the kernel's own rotation
    #[arg(long, conflicts_with_all = ["slice", "machine", "shares"])]
    pub(crate) rotate: bool,
    /// Count on a modelled core instead, by name or by file; every number is modelled then
    #[arg(long, value_name = "MACHINE",
          conflicts_with_all = ["pid", "tid", "all_cpus", "cpu", "delay", "timeout", "no_inherit"])]
    pub(crate) machine: Option<String>,
    #[command(flatten)]
    pub(crate) engine: EngineArgument,
    /// Write to a file instead of stderr
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,
    /// Add to that file
    #[arg(long, requires = "output")]
    pub(crate) append: bool,
    /// The program and its arguments
    #[arg(required_unless_present_any = ["pid", "tid", "all_cpus", "cpu"], trailing_var_arg = true,
          value_name = "PROGRAM", value_hint = ValueHint::CommandWithArguments)]
    pub(crate) program: Vec<OsString>,
}
