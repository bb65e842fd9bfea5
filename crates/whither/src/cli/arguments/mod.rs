//! The arguments, each defined once: help, manual page and completions follow from here. A command
//! with arguments of its own has a file of its own.

mod annotate;
mod calc;
mod calibrate;
mod count;
mod daemon;
mod diff;
mod engine;
mod export;
mod icost;
mod import;
mod measure;
mod model;
mod prof;
mod record;
mod run;
mod selection;
mod shotgun;
mod ssb;
mod stat;
mod stats;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum, ValueHint};
use clap_complete::Shell;

pub(crate) use self::annotate::AnnotateArguments;
pub(crate) use self::calc::{CalcArguments, CfgArguments, CfgFormat, SummaryArguments};
pub(crate) use self::calibrate::CalibrateArguments;
pub(crate) use self::count::CountArguments;
pub(crate) use self::daemon::{
    ConfigArgument, DaemonArguments, DaemonCommand, DaemonStart, DatabaseArgument,
};
pub(crate) use self::diff::DiffArguments;
pub(crate) use self::engine::{EngineArgument, EngineName};
pub(crate) use self::export::{ExportArguments, ExportFormat};
pub(crate) use self::icost::{IcostArguments, IcostBy};
pub(crate) use self::import::ImportArguments;
pub(crate) use self::measure::{MeasureArguments, VaryArgument};
pub(crate) use self::model::{CoreArgument, ModeArgument, ModelArguments};
pub(crate) use self::prof::{By, ProfArguments};
pub(crate) use self::record::RecordArguments;
pub(crate) use self::run::{RunArguments, SyntaxArgument};
pub(crate) use self::selection::SelectionArguments;
pub(crate) use self::shotgun::ShotgunArguments;
pub(crate) use self::ssb::{SsbArguments, SsbModeArgument};
pub(crate) use self::stat::{SharesArgument, StatArguments};
pub(crate) use self::stats::StatsArguments;
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
    #[arg(long, global = true, display_order = 900)]
    pub(crate) json: bool,
    /// When to colour
    #[arg(
        long,
        global = true,
        value_enum,
        default_value_t,
        value_name = "WHEN",
        display_order = 901
    )]
    pub(crate) color: ColourChoice,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Run(RunArguments),
    Model(ModelArguments),
    Icost(IcostArguments),
    Shotgun(Box<ShotgunArguments>),
    Calibrate(CalibrateArguments),
    Stat(StatArguments),
    Ssb(SsbArguments),
    Measure(Box<MeasureArguments>),
    Daemon(DaemonArguments),
    Record(RecordArguments),
    Import(ImportArguments),
    Prof(ProfArguments),
    Annotate(AnnotateArguments),
    Calc(CalcArguments),
    Summary(SummaryArguments),
    Cfg(CfgArguments),
    Stats(StatsArguments),
    Diff(DiffArguments),
    Count(CountArguments),
    Export(ExportArguments),
    /// Say what this machine can measure, why not, and what to do
    Doctor,
    /// List what can be named on the command line
    List {
        /// What to list
        #[arg(value_enum)]
        what: ListArgument,
        /// Events, sets and metrics of this modelled machine instead of this host's
        #[arg(long, value_name = "MACHINE")]
        machine: Option<String>,
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

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ListArgument {
    /// Events by name, what they count, how they mislead, and whether this machine has them
    Events,
    /// Sets of events
    Sets,
    /// Measures computed from counts, with their formulas
    Metrics,
    /// Descriptions of processors
    Machines,
    /// Every event, set and formula as the page docs/EVENTS.md
    Reference,
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
