//! `whither export`.

use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};

use super::SelectionArguments;

/// Write samples in a form that other tools read
///
/// The database itself is plain Parquet (docs/STORE.md).
#[derive(Debug, Args)]
#[command(after_help = "Example: whither export -o profile.pb.gz && pprof -top profile.pb.gz")]
pub(crate) struct ExportArguments {
    /// The form [default: by the file's name, else folded]
    #[arg(short, long, value_enum, value_name = "FORMAT")]
    pub(crate) format: Option<ExportFormat>,
    /// Write to a file instead of stdout
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,
    /// The core that it ran on, for forms that need frequencies [default: the modelled one of the
    /// samples, else the one that describes this host]
    #[arg(long, value_name = "MACHINE")]
    pub(crate) machine: Option<String>,
    #[command(flatten)]
    pub(crate) selection: SelectionArguments,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportFormat {
    /// pprof's gzipped protocol buffer (.pb.gz)
    Pprof,
    /// A stack a line: outer;inner count (.folded, .txt)
    Folded,
    /// The processed profile of profiler.firefox.com (.json)
    Firefox,
    /// A picture of stacks (.svg)
    Flamegraph,
    /// How often every block ran, estimated, a line each (.pixie)
    Pixie,
    /// LLVM's sample profile in text, for llvm-profdata and clang -fprofile-sample-use
    /// (.prof, .afdo)
    Llvm,
}

impl ExportFormat {
    pub(crate) fn word(self) -> &'static str {
        match self {
            ExportFormat::Pprof => "pprof",
            ExportFormat::Folded => "folded",
            ExportFormat::Firefox => "firefox",
            ExportFormat::Flamegraph => "flamegraph",
            ExportFormat::Pixie => "pixie",
            ExportFormat::Llvm => "llvm",
        }
    }
}
