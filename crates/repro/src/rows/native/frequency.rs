//! Frequencies from samples of the machine's clock, against exact counts of the same command.

use model::machine::Machine;
use show::{Cell, Column, Row, Table, Tone, Unit};

use super::both;
use crate::context::Context;
use crate::native::{self, Counted, Sampled};
use crate::result::{Figure, RowResult};
use crate::rows::frequency::{QUICK, SHARES, share_cells};
use crate::witness::{
    Frequencies, Image, LINES, Line, Seen, Use, Within, judge_frequencies, of_clock,
};

fn columns() -> Vec<Column> {
    let mut columns = vec![
        Column::text("program", "program"),
        Column::number("runs", "runs"),
        Column::number("samples", "samples"),
    ];
    columns.extend(SHARES);
    columns.push(Column::number("unran", "not counted"));
    columns
}

/// `freq-native`.
pub(in crate::rows) fn run(context: &Context) -> Result<RowResult, String> {
    let machine = native::described()?;
    let mut result = RowResult {
        caption: format!(
            "{} size; {}; cpu-clock of native runs, user code in files; shares weighted by samples, \
             every program alike",
            context.size_name(),
            machine.title
        ),
        detail: Table { columns: columns(), ..Table::default() },
        ..RowResult::default()
    };
    let found = both(context, QUICK, &mut result, |task, root, place| {
        native::counted(context, task, root, place)
    })?;
    let mut all = Within::default();
    let mut clocks = Vec::new();
    for (task, sampled, counted) in &found {
        let judged = judge(&machine, sampled, counted, &mut result);
        all.merge(&judged.instructions.normalised());
        clocks.push(sampled.clock_hz / 1e6);
        result.notes.extend(counted.notes.iter().map(|note| format!("{}: {note}", task.name)));
        let cells = cells(&task.name, sampled, &judged);
        result.detail.rows.push(Row::Cells(Tone::Plain, cells));
    }
    if found.is_empty() {
        return Ok(result);
    }
    for (place, key) in ["within_5_pct", "within_10_pct", "within_15_pct"].into_iter().enumerate() {
        result.ours.push(Figure::exact(key, all.share(place)));
    }
    result.ours.push(Figure::exact("low_confidence_pct", 100.0 * all.low / all.all));
    result.ours.extend(all.marked().map(|marked| Figure::exact("off_marked_low_pct", marked)));
    result.ours.push(Figure::exact("floor_5_pct", all.floor_share(0)));
    clocks.sort_by(f64::total_cmp);
    result.notes.push(format!(
        "cycles are the samples' time at the clock that dependent additions told between the runs, \
         {:.0} to {:.0} MHz; the machine's file says {}",
        clocks.first().copied().unwrap_or_default(),
        clocks.last().copied().unwrap_or_default(),
        machine.identity.clock_mhz
    ));
    result.notes.push(
        "time alone bounds how often code ran on a core that works on many instructions at a time: \
         without retired instructions or branches most estimates are marked low, as they should be"
            .to_owned(),
    );
    Ok(result)
}

/// Estimates beside truth.
fn judge(
    machine: &Machine,
    sampled: &Sampled,
    counted: &Counted,
    result: &mut RowResult,
) -> Frequencies {
    let mut machine = machine.clone();
    machine.identity.clock_mhz = (sampled.clock_hz / 1e6).round() as u32;
    let (program, wrong) = of_clock(machine, sampled.period_ns, images(sampled, counted));
    result.notes.extend(wrong.iter().map(|sentence| format!("{sentence}; passed over")));
    judge_frequencies(&program, Use::TIME)
}

/// Counts of all runs and their samples, file by file.
fn images(sampled: &Sampled, counted: &Counted) -> Vec<Image> {
    let none = Vec::new();
    let image = |(path, samples): (&String, &Vec<(u64, u64)>)| {
        let mut seen: std::collections::BTreeMap<u64, (u64, u64)> =
            std::collections::BTreeMap::new();
        for &(offset, runs) in counted.images.get(path).unwrap_or(&none) {
            seen.entry(offset).or_default().0 += runs * sampled.runs;
        }
        for &(offset, count) in samples {
            seen.entry(offset).or_default().1 += count;
        }
        let seen = seen.into_iter().map(|(offset, (runs, count))| {
            let mut lines = vec![0; LINES];
            lines[Line::Cycles as usize] = u32::try_from(count).unwrap_or(u32::MAX);
            Seen(offset, runs, 0, 0, Vec::new(), lines)
        });
        Image { path: path.clone(), seen: seen.collect(), ..Image::default() }
    };
    sampled.images.iter().map(image).collect()
}

fn cells(name: &str, sampled: &Sampled, judged: &Frequencies) -> Vec<Cell> {
    let all = sampled.in_files().max(1) as f64;
    let mut cells = vec![
        Cell::text(name),
        Cell::Number(sampled.runs as f64, Unit::Count),
        Cell::Number(sampled.in_files() as f64, Unit::Count),
    ];
    cells.extend(share_cells(&judged.instructions));
    cells.push(Cell::Number(judged.unran as f64 / all, Unit::Share));
    cells
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn counts_are_of_as_many_runs_as_were_sampled() {
        let file = |list: &[(u64, u64)]| BTreeMap::from([("/f".to_owned(), list.to_vec())]);
        let sampled = Sampled { runs: 3, images: file(&[(8, 2), (9, 1)]), ..Sampled::default() };
        let counted = Counted { images: file(&[(4, 10), (8, 5)]), ..Counted::default() };
        let images = images(&sampled, &counted);
        let seen: Vec<(u64, u64, u64)> =
            images[0].seen.iter().map(|s| (s.0, s.1, s.samples(0, Line::Cycles))).collect();
        assert_eq!(seen, [(4, 30, 0), (8, 15, 2), (9, 0, 1)]);
    }
}
