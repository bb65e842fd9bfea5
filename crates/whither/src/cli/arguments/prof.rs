//! `whither prof`.

use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};

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
    /// The database [default: $WHITHER_DB, else /var/lib/whither for root, else
    /// ~/.local/share/whither]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) db: Option<PathBuf>,
    /// This epoch alone, by number; `last` for the newest of each host
    #[arg(long, value_name = "N")]
    pub(crate) epoch: Option<String>,
    /// This host alone
    #[arg(long, value_name = "NAME")]
    pub(crate) host: Option<String>,
    /// This image alone, by path or by the path's last part
    #[arg(long, value_name = "IMAGE")]
    pub(crate) image: Option<String>,
    /// Samples of this event [default: the one with the most samples]
    #[arg(short, long, value_name = "EVENT")]
    pub(crate) event: Option<String>,
    /// Not before: 30s, 10m, 2h or 7d ago, or 2026-01-31 or 2026-01-31T12:00 (UTC)
    #[arg(long, value_name = "TIME")]
    pub(crate) since: Option<String>,
    /// Not after
    #[arg(long, value_name = "TIME")]
    pub(crate) until: Option<String>,
    /// Modelled samples instead of measured ones
    #[arg(long)]
    pub(crate) modelled: bool,
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
