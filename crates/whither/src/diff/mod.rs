//! `whither diff`: what changed between two sets of samples.
//!
//! ```text
//! A: epochs ─► samples of a run, by procedure ─┐
//! B: epochs ─► samples of a run, by procedure ─┴─► B − A with ±, p ─► View, exit 3
//! ```

mod change;
mod view;

use std::collections::BTreeMap;

use vocab::Count;

use crate::cli::DiffJob;
use crate::failure::Failure;
use crate::output::Output;
use crate::sampled::{SetRow, Sets};
use change::{Change, hold};

/// The status of a regression.
const REGRESSION: u8 = 3;

/// Everything that is compared.
struct Compared {
    whole: Change,
    rows: Vec<Change>,
    /// What grew by more than was allowed: the whole, or procedures.
    grown: Vec<String>,
}

/// Reads, compares, shows; returns 3 where B takes more than was allowed.
pub(crate) fn diff(job: &DiffJob, output: &Output) -> Result<u8, Failure> {
    let a = Sets::load(&job.a, !output.json)?;
    let b = Sets::load(&job.b, !output.json)?;
    let compared = compare(job, &a, &b);
    output.write(&view::view(job, [&a, &b], &compared))?;
    a.sampled.finish()?;
    b.sampled.finish()?;
    Ok(if compared.grown.is_empty() { 0 } else { REGRESSION })
}

fn compare(job: &DiffJob, a: &Sets, b: &Sets) -> Compared {
    let key = |row: &SetRow| (row.image.clone(), row.procedure.clone());
    let mut pairs: BTreeMap<(String, String), [Vec<Count>; 2]> = BTreeMap::new();
    for (side, sets) in [a, b].into_iter().enumerate() {
        for row in &sets.rows {
            let none = || [vec![Count::ZERO; a.totals.len()], vec![Count::ZERO; b.totals.len()]];
            let pair = pairs.entry(key(row)).or_insert_with(none);
            if let Some(counts) = pair.get_mut(side) {
                counts.clone_from(&row.counts);
            }
        }
    }
    let whole = Change::of("", "(whole)", &a.totals, &b.totals);
    let mut rows: Vec<Change> = pairs
        .iter()
        .map(|((image, procedure), [a, b])| Change::of(image, procedure, a, b))
        .collect();
    hold(&mut rows);
    rows.sort_by(|x, y| y.difference.value.abs().total_cmp(&x.difference.value.abs()));
    let grown = match job.fail_above {
        None => Vec::new(),
        Some(limit) => {
            let allowed = limit * whole.a.value;
            let grew = rows.iter().filter(|row| row.is_sure && row.surely_above(allowed));
            let names = grew.map(|row| row.procedure.clone());
            let all = whole.surely_above(allowed).then(|| whole.procedure.clone());
            all.into_iter().chain(names).collect()
        }
    };
    Compared { whole, rows, grown }
}
