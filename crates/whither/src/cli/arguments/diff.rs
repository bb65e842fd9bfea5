//! `whither diff`.

use clap::Args;

use super::SelectionArguments;

/// Say what changed between two sets of samples, procedure by procedure, and how sure that is
///
/// A and B are epochs (7, 7-9, last), databases, or epochs of a database (DIR@7-9). Several epochs
/// are several runs: then what runs differ in among themselves decides what is a change. The status
/// is 0, or 3 if B takes more than --fail-above allows.
#[derive(Debug, Args)]
#[command(after_help = "Example: whither diff 3-5 6-8 --fail-above 2%")]
pub(crate) struct DiffArguments {
    /// Before
    #[arg(value_name = "A")]
    pub(crate) a: String,
    /// After
    #[arg(value_name = "B")]
    pub(crate) b: String,
    /// End with status 3 if the whole, or what any procedure adds to it, grew by more than this
    #[arg(long, value_name = "SHARE")]
    pub(crate) fail_above: Option<String>,
    /// Show this many procedures
    #[arg(short = 'n', long, value_name = "N", default_value_t = 30)]
    pub(crate) rows: usize,
    #[command(flatten)]
    pub(crate) selection: SelectionArguments,
}
