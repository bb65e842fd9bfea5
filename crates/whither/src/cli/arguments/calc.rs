//! `whither calc`, `whither summary` and `whither cfg`.

use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};

use super::{SelectionArguments, SyntaxArgument};

/// Say how often a procedure's instructions ran, how long each took, and what held it up
///
/// Bubbles stand before an instruction that stalled: one letter for each possible cause, with the
/// instruction that is responsible in the last column. The summary at the end says where the
/// procedure's cycles went, at least and at most.
#[derive(Debug, Args)]
#[command(after_help = "Example: whither calc deflate_slow --image gzip")]
pub(crate) struct CalcArguments {
    /// The procedure [default: the hottest]
    #[arg(value_name = "PROCEDURE")]
    pub(crate) procedure: Option<String>,
    /// Every block, not just those with samples
    #[arg(long)]
    pub(crate) whole: bool,
    /// The core that it ran on, by name or by file [default: the modelled one of the samples, else
    /// the one that describes this host]
    #[arg(long, value_name = "MACHINE")]
    pub(crate) machine: Option<String>,
    /// How instructions are written
    #[arg(short = 'M', long, value_enum, default_value_t, value_name = "SYNTAX")]
    pub(crate) syntax: SyntaxArgument,
    #[command(flatten)]
    pub(crate) selection: SelectionArguments,
}

/// Say where the cycles of a whole program went: every cause with its least and its most
#[derive(Debug, Args)]
#[command(after_help = "Example: whither summary --image gzip")]
pub(crate) struct SummaryArguments {
    /// Examine procedures, the hottest first, until they hold this share of the samples
    #[arg(long, value_name = "SHARE", default_value = "95%")]
    pub(crate) cover: String,
    /// The core that it ran on, by name or by file [default: the modelled one of the samples, else
    /// the one that describes this host]
    #[arg(long, value_name = "MACHINE")]
    pub(crate) machine: Option<String>,
    /// Show this many procedures
    #[arg(short = 'n', long, value_name = "N", default_value_t = 20)]
    pub(crate) rows: usize,
    #[command(flatten)]
    pub(crate) selection: SelectionArguments,
}

/// Draw a procedure's flow graph with frequencies and stalls
///
/// As text on a terminal, or as a picture into a file.
#[derive(Debug, Args)]
#[command(after_help = "Example: whither cfg deflate_slow -o deflate.svg")]
pub(crate) struct CfgArguments {
    /// The procedure [default: the hottest]
    #[arg(value_name = "PROCEDURE")]
    pub(crate) procedure: Option<String>,
    /// Write to a file: a picture if its name ends in .svg, the language of dot if in .dot
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,
    /// What to write [default: by the file's name, else text]
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub(crate) format: Option<CfgFormat>,
    /// The core that it ran on, by name or by file [default: the modelled one of the samples, else
    /// the one that describes this host]
    #[arg(long, value_name = "MACHINE")]
    pub(crate) machine: Option<String>,
    /// How instructions are written
    #[arg(short = 'M', long, value_enum, default_value_t, value_name = "SYNTAX")]
    pub(crate) syntax: SyntaxArgument,
    #[command(flatten)]
    pub(crate) selection: SelectionArguments,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum CfgFormat {
    /// Blocks and the ways between them, line by line
    Text,
    /// A picture
    Svg,
    /// For Graphviz
    Dot,
}
