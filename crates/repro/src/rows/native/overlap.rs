//! Time by procedure, sampled natively, against the modelled core's.
//!
//! The overlap is the sum over procedures of the lesser of the two shares: 1 where they agree, 0
//! where they have nothing in common. Modelled time is exact. Chance alone takes some of it away
//! from few samples: what it would leave of a perfect agreement stands beside.

use std::collections::BTreeMap;

use image::Binary;
use metrology::{Coverage, Interval, mean, share};
use model::core::TICKS;
use show::{Cell, Column, Row, Table, Tone, Unit};
use vocab::Offset;

use super::both;
use crate::context::Context;
use crate::native::{self, Sampled};
use crate::result::{Figure, RowResult};
use crate::rows::frequency::{QUICK, SEEDS};
use crate::witness::{self, Witness};

const COLUMNS: [Column; 7] = [
    Column::text("program", "program"),
    Column::number("samples", "samples"),
    Column::number("overlap", "overlap"),
    Column::number("chance", "chance leaves"),
    Column::number("kernel", "kernel, left out"),
    Column::text("longer", "most longer natively"),
    Column::text("shorter", "most shorter natively"),
];

/// One procedure, or what lies in none.
#[derive(Debug, Clone, PartialEq, Default)]
struct Bin {
    name: String,
    /// Samples.
    native: u64,
    /// Cycles.
    modelled: f64,
}

/// Two divisions of time.
#[derive(Debug, Clone, PartialEq)]
struct Overlap {
    value: f64,
    interval: Interval,
    /// What chance leaves of a perfect agreement.
    chance: f64,
}

/// `time-overlap`.
pub(in crate::rows) fn run(context: &Context) -> Result<RowResult, String> {
    let machine = native::described()?;
    let mut result = RowResult {
        caption: format!(
            "{} size; cpu-clock of native runs against the modelled {}, exact; user code; ± at 95 %",
            context.size_name(),
            machine.name
        ),
        detail: Table { columns: COLUMNS.to_vec(), ..Table::default() },
        ..RowResult::default()
    };
    let found = both(context, QUICK, &mut result, |task, root, place| {
        witness::witnessed(context, task, &machine.name, SEEDS, root, place)
    })?;
    let mut overlaps = Vec::new();
    for (task, sampled, witness) in &found {
        let bins = bins(sampled, witness, &mut result.notes);
        let Some(overlap) = overlap(&bins) else {
            result.wrong.push(format!("{}: no sample lies in a file; left out", task.name));
            continue;
        };
        let cells = cells(&task.name, sampled, &bins, &overlap);
        result.detail.rows.push(Row::Cells(Tone::Plain, cells));
        overlaps.push(100.0 * overlap.value);
    }
    match mean(&overlaps) {
        Ok(over) => {
            let interval = over.interval(Coverage::P95);
            result.ours.push(Figure::measured("overlap_pct", over.value, interval));
        }
        Err(_) => {
            result.ours.extend(overlaps.first().map(|one| Figure::exact("overlap_pct", *one)));
        }
    }
    let least = overlaps.iter().copied().reduce(f64::min);
    result.ours.extend(least.map(|least| Figure::exact("least_overlap_pct", least)));
    result.seeds.insert("sampling".to_owned(), serde_json::json!(context.seed));
    Ok(result)
}

/// Both divisions by procedure of every file; what cannot be read is one bin.
fn bins(sampled: &Sampled, witness: &Witness, notes: &mut Vec<String>) -> Vec<Bin> {
    let mut spots: BTreeMap<&str, BTreeMap<u64, (u64, f64)>> = BTreeMap::new();
    for (path, offsets) in &sampled.images {
        let held = spots.entry(path).or_default();
        offsets.iter().for_each(|&(offset, count)| held.entry(offset).or_default().0 += count);
    }
    for image in &witness.images {
        let held = spots.entry(&image.path).or_default();
        for seen in &image.seen {
            held.entry(seen.offset()).or_default().1 += seen.2 as f64 / TICKS as f64;
        }
    }
    let elsewhere = Bin { name: "(no file)".into(), native: sampled.elsewhere, modelled: 0.0 };
    let mut bins = vec![elsewhere];
    for (path, offsets) in spots {
        let read = std::fs::read(path).map_err(|e| e.to_string());
        let binary = read.and_then(|bytes| Binary::parse(&bytes).map_err(|e| e.to_string()));
        if let Err(sentence) = &binary {
            notes.push(format!("{path}: {sentence}; it is one procedure here"));
        }
        bins.extend(of_file(path, &offsets, binary.as_ref().ok()));
    }
    bins
}

fn of_file(path: &str, offsets: &BTreeMap<u64, (u64, f64)>, binary: Option<&Binary>) -> Vec<Bin> {
    let short = path.rsplit('/').next().unwrap_or(path);
    let mut bins: BTreeMap<Option<Offset>, Bin> = BTreeMap::new();
    for (&offset, &(native, modelled)) in offsets {
        let procedure = binary.and_then(|binary| binary.procedures().find(Offset(offset)));
        let bin = bins.entry(procedure.map(|p| p.start)).or_insert_with(|| Bin {
            name: procedure.map_or_else(|| format!("{short} (no procedure)"), |p| p.name(short)),
            ..Bin::default()
        });
        bin.native += native;
        bin.modelled += modelled;
    }
    bins.into_values().collect()
}

/// None where either has nothing.
fn overlap(bins: &[Bin]) -> Option<Overlap> {
    let samples: u64 = bins.iter().map(|bin| bin.native).sum();
    let cycles: f64 = bins.iter().map(|bin| bin.modelled).sum();
    if samples == 0 || cycles <= 0.0 {
        return None;
    }
    let n = samples as f64;
    // Where the sampled share is the lesser one the overlap is that of samples; elsewhere it is the
    // model's, which is exact.
    let (mut lesser, mut exact, mut astray) = (0, 0.0, 0.0);
    for bin in bins {
        let modelled = bin.modelled / cycles;
        match (bin.native as f64) / n < modelled {
            true => lesser += bin.native,
            false => exact += modelled,
        }
        astray += mean_deviation(modelled * n) / n;
    }
    let (value, own) = share(lesser, samples, Coverage::P95)?;
    let interval = Interval { low: own.low + exact, high: own.high + exact, ..own };
    Some(Overlap { value: value + exact, interval, chance: 1.0 - astray / 2.0 })
}

/// The mean distance of a Poisson count from its mean: 2 e^−λ λ^(⌊λ⌋+1) / ⌊λ⌋!
fn mean_deviation(mean: f64) -> f64 {
    if mean <= 0.0 {
        return 0.0;
    }
    // Beyond this the normal distribution's is the same to four digits.
    if mean > 1000.0 {
        return (2.0 * mean / std::f64::consts::PI).sqrt();
    }
    let whole = mean.floor();
    let factorial: f64 = (1..=whole as u32).map(|k| f64::from(k).ln()).sum();
    2.0 * ((whole + 1.0) * mean.ln() - mean - factorial).exp()
}

fn cells(name: &str, sampled: &Sampled, bins: &[Bin], overlap: &Overlap) -> Vec<Cell> {
    let samples = bins.iter().map(|bin| bin.native).sum::<u64>().max(1) as f64;
    let cycles = bins.iter().map(|bin| bin.modelled).sum::<f64>().max(f64::MIN_POSITIVE);
    let gap = |bin: &Bin| bin.native as f64 / samples - bin.modelled / cycles;
    let told = |bin: Option<&Bin>| {
        bin.map_or(Cell::Empty, |bin| {
            let (native, modelled) =
                (100.0 * bin.native as f64 / samples, 100.0 * bin.modelled / cycles);
            Cell::text(format!("{} {native:.1} / {modelled:.1} %", bin.name))
        })
    };
    let by_gap = |a: &&Bin, b: &&Bin| gap(a).total_cmp(&gap(b));
    vec![
        Cell::text(name),
        Cell::Number(samples, Unit::Count),
        Cell::Estimate(overlap.value, overlap.interval, Unit::Share),
        Cell::Number(overlap.chance, Unit::Share),
        Cell::Number(sampled.kernel_share(), Unit::Share),
        told(bins.iter().max_by(by_gap)),
        told(bins.iter().min_by(by_gap)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bin(native: u64, modelled: f64) -> Bin {
        Bin { native, modelled, ..Bin::default() }
    }

    #[test]
    fn the_overlap_is_the_sum_of_the_lesser_shares() {
        // Shares 0.5, 0.3, 0.2 against 0.4, 0.6, 0: 0.4 + 0.3 + 0.
        let found = overlap(&[bin(500, 4.0), bin(300, 6.0), bin(200, 0.0)]).unwrap();
        assert!((found.value - 0.7).abs() < 1e-12);
        // Only the 300 samples are by chance.
        let (_, own) = share(300, 1000, Coverage::P95).unwrap();
        assert!((found.interval.half_width() - own.half_width()).abs() < 1e-12);
        assert_eq!(overlap(&[bin(0, 1.0)]), None);
        let same = overlap(&[bin(25, 1.0), bin(75, 3.0)]).unwrap();
        assert!((same.value - 1.0).abs() < 1e-12);
    }

    #[test]
    fn chance_leaves_less_of_few_samples() {
        // A count of mean λ < 1 lies λ away when it is 0; its mean deviation is 2 λ e^−λ.
        assert!((mean_deviation(0.3) - 0.6 * (-0.3_f64).exp()).abs() < 1e-12);
        // By hand for λ = 2: 2 e^−2 2³ / 2!
        assert!((mean_deviation(2.0) - 8.0 * (-2.0_f64).exp()).abs() < 1e-12);
        let (below, above) = (mean_deviation(999.9), mean_deviation(1000.1));
        assert!((above / below - 1.0).abs() < 5e-4, "{below} {above}");
    }
}
