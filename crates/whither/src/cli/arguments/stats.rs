//! `whither stats`.

use clap::Args;

use super::SelectionArguments;

/// Say which procedures vary between runs: every epoch is one set of samples
///
/// Sorted by normalised range, (maximum − minimum) ÷ sum, the most variable first.
#[derive(Debug, Args)]
#[command(after_help = "Example: whither stats --epoch 3-10 --image wave5")]
pub(crate) struct StatsArguments {
    /// Leave out procedures with less than this share of all samples
    #[arg(long, value_name = "SHARE", default_value = "0.5%")]
    pub(crate) least: String,
    /// Show this many procedures
    #[arg(short = 'n', long, value_name = "N", default_value_t = 30)]
    pub(crate) rows: usize,
    #[command(flatten)]
    pub(crate) selection: SelectionArguments,
}
