//! `whither prof`.

use clap::{Args, ValueEnum, ValueHint};

use super::SelectionArguments;

/// Say what the database holds, by image, procedure, process, event, epoch or host
///
/// Samples that could not be placed and samples that were lost are always shown.
#[derive(Debug, Args)]
#[command(
    override_usage = "whither prof [OPTIONS] [DB] [by WHAT]",
    after_help = "Example: whither prof by procedure --since 2h"
)]
pub(crate) struct ProfArguments {
    /// The database, then `by` and what: image, procedure, process, event, epoch or host [default:
    /// by procedure]
    #[arg(value_name = "DB by WHAT", num_args = 0..=3, value_hint = ValueHint::DirPath)]
    pub(crate) words: Vec<String>,
    #[command(flatten)]
    pub(crate) selection: SelectionArguments,
    /// Show this many rows
    #[arg(short = 'n', long, value_name = "N", default_value_t = 30)]
    pub(crate) rows: usize,
}

/// What rows stand for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum By {
    Image,
    Procedure,
    Process,
    Event,
    Epoch,
    Host,
}
