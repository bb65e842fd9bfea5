//! `whither calibrate`, checked and completed.

use std::path::PathBuf;

use model::machine::{Machine, machines};

use crate::cli::arguments::CalibrateArguments;
use crate::doctor::this_processor;
use crate::failure::{ERROR, Failure};

/// A calibration, with the machine found.
#[derive(Debug)]
pub(crate) struct CalibrateJob {
    pub(crate) machine: Machine,
    pub(crate) machine_text: String,
    pub(crate) write: Option<PathBuf>,
    pub(crate) latencies_only: bool,
    pub(crate) runs: usize,
}

pub(super) fn calibrate_job(asked: CalibrateArguments) -> Result<CalibrateJob, Failure> {
    if asked.machine.is_none() {
        describes_this_host()?;
    }
    let found = crate::model::find_machine(asked.machine.as_deref());
    let (machine, machine_text) = found.map_err(|failure| Failure { status: ERROR, ..failure })?;
    Ok(CalibrateJob {
        machine,
        machine_text,
        write: asked.write,
        latencies_only: asked.latencies_only,
        runs: usize::from(asked.runs),
    })
}

/// Nothing stands in for a host that no file describes: a check against another core says nothing.
fn describes_this_host() -> Result<(), Failure> {
    let here = this_processor();
    let matching = match (here.family, here.model) {
        (Some(family), Some(model)) => Machine::matching(&here.vendor, family, model),
        _ => None,
    };
    match matching {
        Some(_) => Ok(()),
        None => Err(not_described(&here.name, &nearest(&here.vendor, here.family))),
    }
}

fn not_described(name: &str, near: &[String]) -> Failure {
    Failure::new(ERROR, format!("no file under machines/ describes {name}"))
        .remedy(format!("name the one to check with --machine; the nearest: {}", near.join(", ")))
}

/// Machines of the same vendor, those of the nearest family first; all when there is none.
fn nearest(vendor: &str, family: Option<u32>) -> Vec<String> {
    let all = || machines().filter_map(|name| Machine::named(name).ok());
    let mut same: Vec<Machine> = all().filter(|m| m.identity.vendor == vendor).collect();
    let apart = |m: &Machine| family.map_or(0, |family| family.abs_diff(m.identity.family));
    same.sort_by_key(apart);
    let names = |found: Vec<Machine>| found.into_iter().map(|m| m.name).collect::<Vec<_>>();
    if same.is_empty() { names(all().collect()) } else { names(same) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_that_no_file_describes_is_told_the_nearest() {
        let near = nearest("AuthenticAMD", Some(26));
        assert_eq!(near, ["zen5", "zen3", "zen4"]);
        let words = not_described("AMD of tomorrow", &near).sentence();
        assert!(words.contains("AMD of tomorrow") && words.contains("zen5, zen3, zen4"), "{words}");
        assert_eq!(nearest("Nobody", None).len(), machines().count());
    }
}
