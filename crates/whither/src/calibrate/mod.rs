//! `whither calibrate`: this machine beside its description.
//!
//! ```text
//! host::measure ─► readings ─► compare: what each says of a fact ─► View
//!                                                        └─► model::machine::rewritten ─► FILE
//! ```

mod compare;
mod date;
mod view;

use std::collections::BTreeMap;

use host::{Kept, Pinned, Quantity, Shape, measure};
use model::machine::{Machine, rewritten};

use crate::cli::CalibrateJob;
use crate::doctor::this_processor;
use crate::failure::{ERROR, Failure};
use crate::output::Output;
use crate::progress::Progress;
use compare::{Compared, Takes};

/// Every loop has its turn so often: what disturbs one for a while then spoils some of its runs and
/// not all.
const TURNS: usize = 3;

/// What each loop brought.
type Readings = BTreeMap<Quantity, Kept>;

pub(crate) fn calibrate(job: &CalibrateJob, output: &Output) -> Result<(), Failure> {
    let pinned = Pinned::to_one().map_err(|why| Failure::new(ERROR, why))?;
    let readings = readings(job, &pinned, !output.json)?;
    let compared = compare::compare(&job.machine, &readings);
    let written = match &job.write {
        Some(path) => Some((path.as_path(), write(job, &compared, path)?)),
        None => None,
    };
    output.write(&view::view(job, pinned.cpu(), &compared, written))
}

fn readings(job: &CalibrateJob, pinned: &Pinned, wanted: bool) -> Result<Readings, Failure> {
    let shape = shape(&job.machine);
    let progress = Progress::new("measuring", TURNS * Quantity::ALL.len(), wanted);
    let mut readings = Readings::new();
    for turn in 0..TURNS {
        let runs = job.runs * (turn + 1) / TURNS - job.runs * turn / TURNS;
        for quantity in Quantity::ALL {
            let measured = measure(quantity, &shape, pinned, runs).map_err(|error| {
                Failure::new(ERROR, format!("there is no memory to measure with: {error}"))
                    .remedy("free some, or lift the limit on address space")
            })?;
            if let Some(measured) = measured {
                let all: &mut Kept = readings.entry(quantity).or_default();
                all.values.extend(measured.kept.values);
                all.dropped += measured.kept.dropped;
            }
            progress.step();
        }
    }
    Ok(readings)
}

fn shape(machine: &Machine) -> Shape {
    let (caches, tlbs) = (&machine.caches, &machine.tlbs);
    let bytes = |kib: u32| kib as usize * 1024;
    let first = tlbs.l1d.entries as usize;
    Shape {
        l1_bytes: bytes(caches.l1d.size_kib),
        l2_bytes: bytes(caches.l2.size_kib),
        l3_bytes: caches.l3.as_ref().map(|l3| bytes(l3.size_kib)),
        tlb_entries: first,
        last_tlb_entries: tlbs.l2d.as_ref().map_or(first, |second| second.entries as usize),
    }
}

/// Writes the copy; returns which facts in it are new.
fn write(
    job: &CalibrateJob,
    compared: &[Compared],
    path: &std::path::Path,
) -> Result<Vec<&'static str>, Failure> {
    let facts: Vec<(&'static str, u32)> = compared
        .iter()
        .filter(|one| {
            one.takes == Takes::Latency || one.takes == Takes::Memory && !job.latencies_only
        })
        .filter_map(|one| Some((one.key?, one.whole()?)))
        .collect();
    let source =
        format!("measured by whither calibrate on {}, {}", this_processor().name, date::today());
    let failed = |why: String| Failure::new(ERROR, why);
    let text = rewritten(&job.machine.name, &job.machine_text, &facts, &source)
        .map_err(|error| failed(error.to_string()))?;
    std::fs::write(path, text)
        .map_err(|error| failed(format!("cannot write {}: {error}", path.display())))?;
    Ok(facts.into_iter().map(|(key, _)| key).collect())
}
