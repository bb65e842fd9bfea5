//! `whither calibrate`, as typed.

use std::path::PathBuf;

use clap::{Args, ValueHint};

/// Measure this machine and check a description of a processor against it
///
/// Small loops tell the clock, the latency of every cache and of memory, what a missed translation
/// and a misprediction cost, and how much is done in a cycle. Takes half a minute; a quiet machine
/// gives the narrowest intervals.
#[derive(Debug, Args)]
#[command(after_help = "Example: whither calibrate --write mine.toml")]
pub(crate) struct CalibrateArguments {
    /// The description to check: a name (`whither list machines`) or a file; this host's by default
    #[arg(long, value_name = "MACHINE")]
    pub(crate) machine: Option<String>,
    /// Write a copy of the description with what was measured in it
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) write: Option<PathBuf>,
    /// Write clock and latencies alone, not the bandwidth
    #[arg(long, requires = "write")]
    pub(crate) latencies_only: bool,
    /// Keep this many runs of each loop
    #[arg(long, value_name = "N", default_value_t = 7, value_parser = clap::value_parser!(u16).range(2..=1000))]
    pub(crate) runs: u16,
}
