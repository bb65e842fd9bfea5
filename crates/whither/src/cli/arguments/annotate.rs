//! `whither annotate`.

use clap::Args;

use super::{SelectionArguments, SyntaxArgument};

/// Show a procedure's source and assembly with the samples of each line
///
/// Without a name it is the procedure with the most samples. Names are those that `whither prof`
/// prints; a nameless procedure is named by its place, such as gzip+0x4f50.
#[derive(Debug, Args)]
#[command(after_help = "Example: whither annotate deflate_slow --image gzip")]
pub(crate) struct AnnotateArguments {
    /// The procedure [default: the hottest]
    #[arg(value_name = "PROCEDURE")]
    pub(crate) procedure: Option<String>,
    /// Every procedure that has samples
    #[arg(long, conflicts_with = "procedure")]
    pub(crate) all: bool,
    /// Every instruction, not just those around samples
    #[arg(long)]
    pub(crate) whole: bool,
    /// How instructions are written
    #[arg(short = 'M', long, value_enum, default_value_t, value_name = "SYNTAX")]
    pub(crate) syntax: SyntaxArgument,
    #[command(flatten)]
    pub(crate) selection: SelectionArguments,
}
