//! Which part of a database; the same for every command that reads one.

use std::path::PathBuf;

use clap::{Args, ValueHint};

/// Which part of a database.
#[derive(Debug, Args)]
pub(crate) struct SelectionArguments {
    /// The database [default: $WHITHER_DB, else /var/lib/whither for root, else
    /// ~/.local/share/whither]
    #[arg(short = 'i', long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) db: Option<PathBuf>,
    /// These epochs alone, by number (7, or 7-9); `last` for the newest of each host
    #[arg(long, value_name = "N")]
    pub(crate) epoch: Option<String>,
    /// This host alone
    #[arg(long, value_name = "NAME")]
    pub(crate) host: Option<String>,
    /// This image alone, by path or by the path's last part
    #[arg(long, value_name = "IMAGE")]
    pub(crate) image: Option<String>,
    /// Samples of this event [default: time, else the one with the most samples]
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
    /// Print at once, even on a terminal
    #[arg(long, display_order = 902)]
    pub(crate) no_pager: bool,
}
