//! `whither shotgun`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, ValueHint};

use super::EngineArgument;

/// Say what fixing this, that or both would save, from sparse samples as hardware could take them
///
/// The modelled core is watched by a monitor that writes two bits for each of a thousand
/// instructions now and then, and all it sees of a single one now and then. Pieces of the program
/// are put together again from these samples and the code alone. `whither icost` sees everything
/// instead; this is what of it a machine could tell about itself. Streams and exit statuses are as
/// for `run`.
#[derive(Debug, Args)]
#[command(after_help = "Example: whither shotgun --keep gzip.shot -- gzip -9 -c big.txt > big.gz")]
#[command(mut_arg("engine", |engine| engine.conflicts_with_all(["replay", "input"])))]
pub(crate) struct ShotgunArguments {
    /// The machine, by name (`whither list machines`) or by file [default: the one that describes
    /// this host; with --input, the one that the samples were taken on]
    #[arg(short, long, value_name = "MACHINE")]
    pub(crate) machine: Option<String>,
    /// Evaluate every one and every two of the categories together (the default)
    #[arg(long)]
    pub(crate) pairs: bool,
    /// Evaluate every set of them, and share out the time fairly (Shapley)
    #[arg(long, conflicts_with = "pairs")]
    pub(crate) powerset: bool,
    /// Instructions in a window that is monitored
    #[arg(long, value_name = "N", default_value_t = 50_000)]
    pub(crate) window: u64,
    /// Instructions from a signature to the next, on average
    #[arg(long, value_name = "N", default_value_t = 2000)]
    pub(crate) signature_every: u64,
    /// Instructions from a detailed sample to the next, on average
    #[arg(long, value_name = "N", default_value_t = 30)]
    pub(crate) detail_every: u64,
    /// Where windows and samples fall
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Analyse samples that were kept, or a perf.data file with branch stacks
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath,
          conflicts_with_all = ["program", "replay"])]
    pub(crate) input: Option<PathBuf>,
    /// Keep the samples in a file
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) keep: Option<PathBuf>,
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
    #[arg(required_unless_present_any = ["replay", "input"], trailing_var_arg = true,
          value_name = "PROGRAM", value_hint = ValueHint::CommandWithArguments)]
    pub(crate) program: Vec<OsString>,
}
