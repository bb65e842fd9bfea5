//! `whither daemon`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum, ValueHint};

/// Profile this machine all the time, every process and the kernel, into a database
///
/// One daemon runs for each database and host. It needs CAP_PERFMON and CAP_BPF to see every
/// process (root has them, and it gives up everything that it does not need); without them it
/// follows your own processes.
#[derive(Debug, Args)]
#[command(after_help = "Example: whither daemon start; whither daemon status; whither daemon stop")]
pub(crate) struct DaemonArguments {
    #[command(subcommand)]
    pub(crate) what: DaemonCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum DaemonCommand {
    /// Begin collecting
    Start(Box<DaemonStart>),
    /// Write everything to the database and end
    Stop(DatabaseArgument),
    /// Say what is collected, what became of the samples, and what it costs
    Status(DatabaseArgument),
    /// Write everything collected so far to the database now
    Flush(DatabaseArgument),
    /// Begin a new epoch: counts before and after are kept apart
    Epoch(DatabaseArgument),
}

#[derive(Debug, Args)]
pub(crate) struct DatabaseArgument {
    /// The database [default: $WHITHER_DB, else /var/lib/whither for root, else
    /// ~/.local/share/whither]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) db: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct DaemonStart {
    #[command(flatten)]
    pub(crate) database: DatabaseArgument,
    /// What to sample
    #[arg(long, value_enum, default_value_t, value_name = "WHAT", conflicts_with = "events")]
    pub(crate) config: ConfigArgument,
    /// Sample these events instead, separated by commas
    #[arg(short, long = "event", value_name = "EVENTS")]
    pub(crate) events: Option<String>,
    /// Samples per second and CPU [default: 997 in a virtual machine or without a PMU, else 3989]
    #[arg(short = 'F', long, value_name = "HZ", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) freq: Option<u64>,
    /// Take counts from the kernel this often, and whenever they fill up
    #[arg(long, value_name = "TIME", default_value = "5m")]
    pub(crate) drain: String,
    /// Merge into the database this often
    #[arg(long, value_name = "TIME", default_value = "10m")]
    pub(crate) merge: String,
    /// Keep counts of processes apart
    #[arg(long)]
    pub(crate) per_process: bool,
    /// Keep counts of time slices of this length apart
    #[arg(long, value_name = "TIME")]
    pub(crate) slice: Option<String>,
    /// Let epochs go whose last counts are older than this many days
    #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(u64).range(1..36_500))]
    pub(crate) keep_days: Option<u64>,
    /// Let the oldest epochs go while this host's take more than this many megabytes
    #[arg(long, value_name = "MB", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) keep_mb: Option<u64>,
    /// Keep chains of callers (by frame pointers); samples then come through rings
    #[arg(short = 'g', long)]
    pub(crate) call_graph: bool,
    /// Take samples through rings even where a program could count them in the kernel
    #[arg(long)]
    pub(crate) ring: bool,
    /// Stay in the foreground, as a service manager wants it
    #[arg(long)]
    pub(crate) foreground: bool,
    /// Leave the session and the directory of whoever started it
    #[arg(long, hide = true, requires = "foreground")]
    pub(crate) apart: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ConfigArgument {
    /// Cycles alone (the timer where there is no PMU)
    Cycles,
    /// Cycles, and instruction-cache misses where there is a PMU
    #[default]
    Default,
    /// Cycles always; misses and mispredictions in turn (without a PMU: faults and switches)
    Mux,
}
