//! `whither measure`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};

use super::EngineArgument;

/// Repeat a program until a measure is known as well as asked for
///
/// Every run counts the measurand; other events take turns on the counters. Runs are combined only
/// if groups of them agree. The report goes to stdout; the program's own output is dropped. The
/// status is 0, or 3 if groups of runs disagree or B is slower than allowed.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  whither measure -- gzip -9 -c big.txt\n  \
    whither measure --uncertainty 0.5% --vary env,aslr -- ./solver input\n  \
    whither measure --compare 'sort big.txt' 'sort -S 1G big.txt' --fail-above 2%")]
#[command(mut_arg("engine", |engine| engine.requires("machine")))]
pub(crate) struct MeasureArguments {
    /// Count these events [default: a set that suits this machine]
    #[arg(short, long, value_name = "EVENT,…", value_delimiter = ',', conflicts_with = "set")]
    pub(crate) event: Vec<String>,
    /// Count this set of events (`whither list sets`)
    #[arg(long, value_name = "SET")]
    pub(crate) set: Option<String>,
    /// The relative standard uncertainty that the measurand's mean shall have
    #[arg(short, long, value_name = "PERCENT", default_value = "1%")]
    pub(crate) uncertainty: String,
    /// How often the intervals that are printed shall hold the truth, in percent
    #[arg(long, value_name = "PERCENT", default_value = "95")]
    pub(crate) coverage: String,
    /// What decides how many runs are needed: an event, wall-clock, user-time or system-time
    /// [default: instructions where they can be counted, else task-clock]
    #[arg(long, value_name = "EVENT")]
    pub(crate) measurand: Option<String>,
    /// Make exactly so many runs instead of as many as are needed
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u64).range(2..))]
    pub(crate) runs: Option<u64>,
    /// Never start more runs than this
    #[arg(long, value_name = "N", default_value_t = 1000,
          value_parser = clap::value_parser!(u64).range(2..))]
    pub(crate) max_runs: u64,
    /// Start no run after this long (30s, 5m, 1h), and report what was reached
    #[arg(long, value_name = "TIME", default_value = "2m")]
    pub(crate) max_time: String,
    /// Draw anew, and hold for two runs each: the size of the environment, where things lie in
    /// memory; and the order in which events take turns
    #[arg(long, value_enum, value_name = "WHAT,…", value_delimiter = ',')]
    pub(crate) vary: Vec<VaryArgument>,
    /// Leave out the first N runs; auto finds out how many differ from the rest
    #[arg(long, value_name = "auto|N", default_value = "auto")]
    pub(crate) warmup: String,
    /// Count on a modelled core: a machine by name (`whither list machines`) or by file
    #[arg(short, long, value_name = "MACHINE")]
    pub(crate) machine: Option<String>,
    /// On the modelled core, time every instruction instead of sampling
    #[arg(long, requires = "machine")]
    pub(crate) full: bool,
    #[command(flatten)]
    pub(crate) engine: EngineArgument,
    /// Count at most so many events at a time [default: 4 with a PMU; a modelled core counts all]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(2..))]
    pub(crate) counters: Option<u64>,
    /// Give the program this file on standard input, from its start in every run [default: nothing]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) input: Option<PathBuf>,
    /// Let the program write to our streams
    #[arg(long)]
    pub(crate) show_output: bool,
    /// Count runs that end with another status than 0 as good ones
    #[arg(short, long)]
    pub(crate) ignore_failure: bool,
    /// Compare two commands, each in quotes, run in turns; no shell is involved
    #[arg(long, num_args = 2, value_names = ["A", "B"], conflicts_with = "program")]
    pub(crate) compare: Vec<String>,
    /// End with status 3 if B surely takes this much more than A
    #[arg(long, value_name = "PERCENT", requires = "compare")]
    pub(crate) fail_above: Option<String>,
    /// Decides what is drawn
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Write the report to a file instead of stdout; as a picture if its name ends in .svg
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,
    /// The program and its arguments
    #[arg(required_unless_present = "compare", trailing_var_arg = true,
          value_name = "PROGRAM", value_hint = ValueHint::CommandWithArguments)]
    pub(crate) program: Vec<OsString>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum VaryArgument {
    /// The size of the environment, which moves the stack
    Env,
    /// Where libraries and mappings lie
    Aslr,
    /// The order in which groups of events take turns
    Order,
}
