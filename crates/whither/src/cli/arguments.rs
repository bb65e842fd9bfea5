//! The arguments, each defined once: help, manual page and completions follow from here.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum, ValueHint};
use clap_complete::Shell;

use crate::output::ColourChoice;

/// Where have all the cycles gone?
///
/// whither runs a program (or looks at a machine) and says where the time went, down to the
/// instruction, how sure it is of that, and what it could not see.
#[derive(Debug, Parser)]
#[command(
    name = "whither",
    version,
    max_term_width = 100,
    after_help = "Start with `whither doctor`, then `whither run -- PROGRAM`."
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
    #[command(flatten)]
    pub(crate) speech: Speech,
}

/// How to speak; the same for every command.
#[derive(Debug, Args)]
pub(crate) struct Speech {
    /// Print one JSON object instead of text (docs/JSON.md describes it)
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// When to colour
    #[arg(long, global = true, value_enum, default_value_t, value_name = "WHEN")]
    pub(crate) color: ColourChoice,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Run(RunArguments),
    Model(ModelArguments),
    /// Say what this machine can measure, why not, and what to do
    Doctor,
    /// List what can be named on the command line
    List {
        /// What to list
        #[arg(value_enum)]
        what: ListArgument,
    },
    /// Print the completion script of a shell
    Completions {
        /// The shell
        #[arg(value_enum)]
        shell: Shell,
    },
    /// Print the manual page, or write all of them into a folder
    Man {
        /// Write whither.1 and one page a command here
        #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
        dir: Option<PathBuf>,
    },
}

/// Run a program once and say where its time went
///
/// The program keeps its streams; the report goes to stderr, or to a file with -o. The program's
/// exit status is passed through (128 + n if signal n killed it). whither's own failures are 125;
/// 126 is a program that cannot be executed, 127 one that is not there.
#[derive(Debug, Args)]
#[command(after_help = "Example: whither run -- gzip -9 -c big.txt > big.gz")]
pub(crate) struct RunArguments {
    /// Sample this event [default: cycles where there is a PMU, else cpu-clock]
    #[arg(short, long, value_name = "EVENT")]
    pub(crate) event: Option<String>,
    /// Samples per second of run time [default: 997 in a virtual machine or without a PMU, else
    /// 3989]
    #[arg(short = 'F', long, value_name = "HZ", conflicts_with = "count",
          value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) freq: Option<u64>,
    /// Sample every N occurrences instead (nanoseconds for a clock)
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) count: Option<u64>,
    /// Count this set of events beside the samples
    #[arg(long, value_name = "SET", default_value = "run")]
    pub(crate) set: String,
    /// Show this many procedures
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub(crate) procedures: usize,
    /// Show the code of this many procedures
    #[arg(long, value_name = "N", default_value_t = 3)]
    pub(crate) hottest: usize,
    /// How instructions are written
    #[arg(short = 'M', long, value_enum, default_value_t, value_name = "SYNTAX")]
    pub(crate) syntax: SyntaxArgument,
    /// Run the program a second time on a modelled core and add what its cycles waited for; its
    /// input is replayed, its second output dropped
    #[arg(long)]
    pub(crate) model: bool,
    /// The machine to model, by name or by file [default: the one that describes this host]
    #[arg(long, value_name = "MACHINE", requires = "model")]
    pub(crate) machine: Option<String>,
    /// Write the report to a file instead of stderr; as a picture if its name ends in .svg
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,
    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true,
          value_name = "PROGRAM", value_hint = ValueHint::CommandWithArguments)]
    pub(crate) program: Vec<OsString>,
}

/// Run a program once on a modelled core and say what its cycles waited for
///
/// The program runs under qemu-user, unmodified; each of its threads has a core as the machine
/// file describes it. Every number is modelled, none measured. Streams and exit statuses are as
/// for `run`.
#[derive(Debug, Args)]
#[command(after_help = "Example: whither model --machine zen4 -- gzip -9 -c big.txt > big.gz")]
pub(crate) struct ModelArguments {
    /// The machine, by name (`whither list machines`) or by file [default: the one that describes
    /// this host]
    #[arg(short, long, value_name = "MACHINE")]
    pub(crate) machine: Option<String>,
    /// Time every instruction instead of sampling
    #[arg(long, conflicts_with = "error")]
    pub(crate) full: bool,
    /// Sample until the cycles are known this well, at 95 % [default: 3%]
    #[arg(long, value_name = "PERCENT")]
    pub(crate) error: Option<String>,
    /// Where the samples fall
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Time every instruction on this core
    #[arg(long, value_enum, value_name = "CORE", conflicts_with_all = ["full", "error"])]
    pub(crate) core: Option<CoreArgument>,
    /// Make parts of the machine perfect: dl1, dmiss, imiss, bmisp, win, bw, shalu, lgalu, dep
    #[arg(long, value_name = "PART,…", value_delimiter = ',')]
    pub(crate) ideal: Vec<String>,
    /// How instructions travel through the core
    #[arg(long, value_enum, default_value_t, value_name = "MODE")]
    pub(crate) mode: ModeArgument,
    /// Record the program's instructions in a file instead of timing them
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "replay")]
    pub(crate) record: Option<PathBuf>,
    /// Take the instructions from a recorded file instead of running a program; needs no QEMU
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "program")]
    pub(crate) replay: Option<PathBuf>,
    /// Hold fast whatever differs from run to run, the environment included
    #[arg(long)]
    pub(crate) pin: bool,
    /// Show this many procedures
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub(crate) procedures: usize,
    /// Write the report to a file instead of stderr; as a picture if its name ends in .svg
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,
    /// The program and its arguments
    #[arg(required_unless_present = "replay", trailing_var_arg = true,
          value_name = "PROGRAM", value_hint = ValueHint::CommandWithArguments)]
    pub(crate) program: Vec<OsString>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum CoreArgument {
    /// In one pass, as --full
    Fast,
    /// Cycle by cycle, slower and closer
    Reference,
    /// None: caches, translation and predictors only
    Warm,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ModeArgument {
    /// As the machine file says
    #[default]
    Native,
    /// One instruction a group
    Single,
    /// Nothing issues before the group before it has retired
    InOrder,
    /// In program order, several a cycle
    InOrderSuperscalar,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ListArgument {
    /// Events by name, what they count, how they mislead, and whether this machine has them
    Events,
    /// Sets of events
    Sets,
    /// Descriptions of processors
    Machines,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum SyntaxArgument {
    /// Destination first
    #[default]
    Intel,
    /// Source first
    Att,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_definitions_are_sound() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn the_program_keeps_its_own_flags() {
        let parsed = Arguments::try_parse_from(["whither", "run", "gzip", "-9", "--json"]).unwrap();
        let Command::Run(run) = parsed.command else { panic!("not run") };
        assert_eq!(run.program, ["gzip", "-9", "--json"]);
        assert!(!parsed.speech.json);
    }
}
