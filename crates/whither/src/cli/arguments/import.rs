//! `whither import`.

use std::path::PathBuf;

use clap::{Args, ValueHint};

/// Take a perf.data file, or another database, into the database
///
/// Files and pipes of any perf since Linux 3.2, compressed or not. Call chains, branch records and
/// load latencies are kept. A damaged recording ends in a sentence, and what came before the damage
/// is imported.
#[derive(Debug, Args)]
#[command(after_help = "Example: perf record -g -- make; whither import perf.data")]
pub(crate) struct ImportArguments {
    /// The recording; - for standard input; or the folder of a database, whose epochs become one
    #[arg(value_name = "FILE", value_hint = ValueHint::AnyPath)]
    pub(crate) file: PathBuf,
    /// The host that it comes from [default: what the recording says]
    #[arg(long, value_name = "NAME")]
    pub(crate) host: Option<String>,
    /// The database [default: $WHITHER_DB, else /var/lib/whither for root, else
    /// ~/.local/share/whither]
    #[arg(short, long, visible_alias = "db", value_name = "DB", value_hint = ValueHint::DirPath)]
    pub(crate) output: Option<PathBuf>,
}
