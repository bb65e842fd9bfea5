//! The command line: the only room that wires the others together, and that builds the Views.
//!
//! Constraints: arguments become a plan, and the plan runs; nothing looks at arguments after that.
//! Every failure is one sentence that says what happened, what was kept and what to do.
//!
//! Not for: anything that another room could do without knowing about the command line.
//!
//! ```text
//! argv ─► cli::Arguments ─► cli::Plan ─► doctor | list | run | … ─► View ─► output
//! ```
#![forbid(unsafe_code)]

mod annotate;
mod calc;
mod calibrate;
mod cfg;
mod cli;
mod count;
mod daemon;
mod database;
mod diff;
mod doctor;
mod examined;
mod export;
mod failure;
mod generate;
mod host_events;
mod icost;
mod import;
mod list;
mod listing;
mod measure;
mod model;
mod modelled_counters;
mod output;
mod pager;
mod prof;
mod progress;
mod record;
mod run;
mod sampled;
mod shotgun;
mod ssb;
mod stat;
mod stats;
mod summary;

use std::ffi::OsString;
use std::process::ExitCode;

use cli::{Job, Plan};
use failure::Failure;

/// Parses, plans, runs; returns the exit status that the process should end with.
pub fn run_command(arguments: Vec<OsString>) -> ExitCode {
    let plan = match cli::parse(arguments) {
        Ok(plan) => plan,
        Err(refused) => return refused.report(),
    };
    match execute(&plan) {
        Ok(status) => ExitCode::from(status),
        Err(failure) => failure.report(plan.output.json),
    }
}

fn execute(plan: &Plan) -> Result<u8, Failure> {
    match &plan.job {
        Job::Run(job) => run::run(job, &plan.output),
        Job::Model(job) => model::model(job, &plan.output),
        Job::Icost(job) => icost::icost(job, &plan.output),
        Job::Shotgun(job) => shotgun::shotgun(job, &plan.output),
        Job::Calibrate(job) => calibrate::calibrate(job, &plan.output).map(|()| 0),
        Job::Ssb(job) => ssb::ssb(job, &plan.output),
        Job::Stat(job) => stat::stat(job, &plan.output),
        Job::Measure(job) => measure::measure(job, &plan.output),
        Job::Daemon(job) => daemon::daemon(job, &plan.output),
        Job::Record(job) => record::record(job, &plan.output),
        Job::Import(job) => import::import(job, &plan.output),
        Job::Prof(job) => prof::prof(job, &plan.output),
        Job::Annotate(job) => annotate::annotate(job, &plan.output),
        Job::Calc(job) => calc::calc(job, &plan.output),
        Job::Summary(job) => summary::summary(job, &plan.output),
        Job::Cfg(job) => cfg::cfg(job, &plan.output),
        Job::Stats(job) => stats::stats(job, &plan.output),
        Job::Diff(job) => diff::diff(job, &plan.output),
        Job::Count(job) => count::count(job, &plan.output),
        Job::Export(job) => export::export(job, &plan.output),
        Job::Doctor => plan.output.write(&doctor::doctor()).map(|()| 0),
        Job::List(job) => list::list(job, &plan.output).map(|()| 0),
        Job::Completions(shell) => generate::completions(*shell, &plan.output).map(|()| 0),
        Job::Manual(folder) => generate::manual(folder.as_deref(), &plan.output).map(|()| 0),
    }
}
