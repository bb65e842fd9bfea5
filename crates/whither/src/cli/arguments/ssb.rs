//! `whither ssb`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};

use super::EngineArgument;

/// Show what the cycles wait for while a program runs: CPI = stalls by cause + the rest
///
/// Every interval, for every process: each cause's part of the cycles an instruction takes, with
/// its uncertainty, the rest, and the ideal beside it. On a terminal the screen is painted in
/// place; elsewhere there is a line an interval. A stall charged to a cause is not what removing
/// the cause would gain. Exit statuses are as for `run`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  whither ssb -I 1000 -p 1234
  whither ssb --machine ppc970 --log gcc.log -- gcc -O2 -c big.c
  whither ssb --follow gcc.log")]
#[command(mut_arg("engine", |engine| engine.requires("machine")))]
pub(crate) struct SsbArguments {
    /// How long an interval is, in milliseconds or parts of one; on a modelled core of its own time
    /// [default: 1000, or 10 on a modelled core]
    #[arg(short = 'I', long, value_name = "MS")]
    pub(crate) interval: Option<f64>,
    /// Watch this process, until it ends or Ctrl-C
    #[arg(short, long, value_name = "PID", conflicts_with_all = ["program", "follow", "machine"])]
    pub(crate) pid: Option<u32>,
    /// Where to count
    #[arg(long, value_enum, value_name = "MODE")]
    pub(crate) mode: Option<SsbModeArgument>,
    /// How to divide the cycles (`whither list sets`)
    #[arg(long, value_name = "SET", default_value = "ssb")]
    pub(crate) set: String,
    /// Watch on a modelled core, by name or by file; every number is modelled then
    #[arg(long, value_name = "MACHINE")]
    pub(crate) machine: Option<String>,
    #[command(flatten)]
    pub(crate) engine: EngineArgument,
    /// Count only so many events at a time
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    pub(crate) counters: Option<u32>,
    /// How long a turn is: cycles, or with a unit (1ms, 50us, 100000instructions); on a modelled
    /// core of any event (500l2-misses) [default: 200000 cycles; 5000 on a modelled core]
    #[arg(long, value_name = "N")]
    pub(crate) slice: Option<String>,
    /// Where the order of turns comes from
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Write every slice to this counter log, which others can follow (docs/COUNTER-LOG.md)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) log: Option<PathBuf>,
    /// Show what a counter log holds, and follow it while it grows
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath,
          conflicts_with_all = ["program", "log", "machine", "counters", "slice", "mode"])]
    pub(crate) follow: Option<PathBuf>,
    /// A line an interval, on a terminal too
    #[arg(long)]
    pub(crate) plain: bool,
    /// Write to a file instead of stderr
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,
    /// The program and its arguments
    #[arg(required_unless_present_any = ["pid", "follow"], trailing_var_arg = true,
          value_name = "PROGRAM", value_hint = ValueHint::CommandWithArguments)]
    pub(crate) program: Vec<OsString>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SsbModeArgument {
    /// The program's own code
    User,
    /// The kernel's on its behalf
    Kernel,
    /// Both
    Full,
}
