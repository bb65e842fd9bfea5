//! The paper's figure 4, and what every view says of a frequency.

use analyse::{BlockReport, Confidence, InstructionReport, ProcedureReport, Summary};
use metrology::{Coverage, Estimate, Interval};
use show::{Body, Cell, Column, Row, Section, Table, Tone, Unit};

/// `low`, `medium` or `high`.
pub(crate) fn word(confidence: Confidence) -> &'static str {
    match confidence {
        Confidence::Low => "low",
        Confidence::Medium => "medium",
        Confidence::High => "high",
    }
}

/// How often something ran, with its ±; where that is as much as the value, at most how often.
pub(crate) fn frequency_cell(frequency: Estimate) -> Cell {
    let interval = frequency.interval(Coverage::P95);
    match is_vague(frequency) {
        true => Cell::AtMost(frequency.value, interval, Unit::Count),
        false => Cell::Estimate(frequency.value, interval, Unit::Count),
    }
}

/// Whether it may never have run: then a frequency bounds, and what is divided by it does too.
pub(crate) fn is_vague(frequency: Estimate) -> bool {
    frequency.standard_uncertainty > 0.0 && frequency.interval(Coverage::P95).low <= 0.0
}

/// The least that cycles divided by a frequency may be.
pub(crate) fn least_of(cycles_each: f64, frequency: Estimate) -> f64 {
    let most = frequency.interval(Coverage::P95).high;
    cycles_each * frequency.value / most.max(f64::MIN_POSITIVE)
}

/// The least that a block's cycles an instruction may be: no core is faster than its best case.
pub(crate) fn least_cpi(cpi: Estimate, block: &BlockReport) -> f64 {
    least_of(cpi.value, block.frequency).max(block.best_cpi)
}

/// Cycles divided by a frequency; they are at least `best` however often it was.
fn each_cell(cycles_each: Estimate, frequency: Estimate, best: f64) -> Cell {
    let interval = cycles_each.interval(Coverage::P95);
    if !is_vague(frequency) {
        return Cell::Estimate(cycles_each.value, interval, Unit::Number);
    }
    let low = least_of(cycles_each.value, frequency).max(best);
    let interval = Interval { low, high: f64::INFINITY, ..interval };
    Cell::AtLeast(cycles_each.value, interval, Unit::Number)
}

/// A block's cycles an instruction.
pub(crate) fn block_cpi(block: &BlockReport) -> Cell {
    let unknown = || Cell::NotCounted("it may not have run".into());
    block.actual_cpi.map_or_else(unknown, |cpi| each_cell(cpi, block.frequency, block.best_cpi))
}

/// An instruction's cycles each time it ran.
pub(crate) fn instruction_cycles(it: &InstructionReport) -> Cell {
    let unknown = || Cell::NotCounted("it may not have run".into());
    it.cpi.map_or_else(unknown, |cpi| each_cell(cpi, it.frequency, 0.0))
}

/// Instructions that ran in a procedure. One wrong schedule misleads all its blocks alike, so that
/// their uncertainties add.
pub(crate) fn executed(report: &ProcedureReport) -> Estimate {
    let of = |part: fn(&Estimate) -> f64| -> f64 {
        report.instructions.iter().map(|it| part(&it.frequency)).sum()
    };
    Estimate::known(of(|it| it.value), of(|it| it.standard_uncertainty))
}

/// The cycles of an instruction on average, of a procedure or of many.
pub(crate) fn mean_cpi(summary: &Summary, executed: Estimate) -> Cell {
    if executed.value <= 0.0 {
        return Cell::NotCounted("nothing is known to have run".into());
    }
    let cycles = summary.actual * summary.cycles_per_sample;
    let value = cycles / executed.value;
    let of_samples = value / summary.actual.max(1.0).sqrt();
    let of_runs = value * executed.standard_uncertainty / executed.value;
    let best = summary.best_cpi().unwrap_or(0.0);
    each_cell(Estimate::known(value, of_samples.hypot(of_runs)), executed, best)
}

/// `D-cache miss 10–40 %`: the cause that may have cost the most.
pub(crate) fn largest_cause(summary: &Summary) -> Cell {
    let largest = summary.dynamic.iter().max_by(|a, b| a.share_max.total_cmp(&b.share_max));
    largest.filter(|range| range.share_max >= 0.01).map_or(Cell::Empty, |range| {
        let (min, max) = (100.0 * range.share_min, 100.0 * range.share_max);
        Cell::text(format!("{} {min:.0}–{max:.0} %", range.cause.title()))
    })
}

/// How cycles were spent, line by line.
pub(crate) fn summary_section(summary: &Summary, caption: String) -> Section {
    let mut rows = Vec::new();
    for (place, range) in summary.dynamic.iter().enumerate() {
        // The paper sets misses apart from the rest.
        if range.cause == analyse::DynamicCause::Mispredict && place > 0 {
            rows.push(blank());
        }
        let title = range.cause.title();
        rows.push(line(range.cause.key(), title, range.share_min, range.share_max));
    }
    rows.push(blank());
    let one = |key, title: &str, share| line(key, title, share, share);
    rows.push(one("unexplained_stall", "Unexplained stall", summary.unexplained_stall));
    rows.push(one("unexplained_gain", "Unexplained gain", summary.unexplained_gain));
    rows.push(total("subtotal_dynamic", "Subtotal dynamic", summary.subtotal_dynamic));
    rows.push(blank());
    for (cause, share) in &summary.statics {
        rows.push(single(Tone::Plain, cause.key(), cause.title(), *share));
    }
    rows.push(total("subtotal_static", "Subtotal static", summary.subtotal_static));
    rows.push(total("total_stall", "Total stall", summary.total_stall));
    rows.push(single(Tone::Plain, "execution", "Execution", summary.execution));
    rows.push(single(Tone::Plain, "sampling_error", "Net sampling error", summary.sampling_error));
    rows.push(total("total_tallied", "Total tallied", summary.total_tallied));
    Section {
        key: "summary",
        title: "WHERE THE CYCLES WENT".into(),
        caption,
        body: Body::Table(Table {
            columns: vec![
                Column::text("key", "").only_in_json(),
                Column::text("cause", ""),
                Column::number("share_min", "at least"),
                Column::number("share_max", "at most"),
            ],
            rows,
            text_rows: None,
        }),
    }
}

fn blank() -> Row {
    Row::Aside(Tone::Plain, "cause", String::new())
}

fn line(key: &'static str, title: &str, min: f64, max: f64) -> Row {
    let tone = match max {
        max if max >= 0.10 && min >= 0.05 => Tone::Hot,
        max if max >= 0.05 => Tone::Warm,
        max if max.abs() >= 0.0005 => Tone::Plain,
        _ => Tone::Faint,
    };
    let share = |value| Cell::Number(value, Unit::Share);
    Row::Cells(tone, vec![Cell::text(key), Cell::text(title), share(min), share(max)])
}

fn single(tone: Tone, key: &'static str, title: &str, share: f64) -> Row {
    let cells =
        vec![Cell::text(key), Cell::text(title), Cell::Empty, Cell::Number(share, Unit::Share)];
    Row::Cells(tone, cells)
}

fn total(key: &'static str, title: &str, share: f64) -> Row {
    single(Tone::Heading, key, title, share)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_never_have_run_is_bounded_and_so_is_what_is_divided_by_it() {
        // 1.96 × 100 is more than 150: between nothing and 346.
        let vague = Estimate::known(150.0, 100.0);
        assert_eq!(frequency_cell(vague).to_text(), "at most 346");
        let cycles = Estimate::known(6.0, 5.0);
        assert_eq!(each_cell(cycles, vague, 0.0).to_text(), "at least 2.601");
        assert_eq!(each_cell(cycles, vague, 3.5).to_text(), "at least 3.500");
        let sure = Estimate::known(150.0, 1.5);
        assert_eq!(frequency_cell(sure).to_text(), "150 ± 2.0 %");
        assert_eq!(each_cell(Estimate::known(6.0, 0.1), sure, 7.0).to_text(), "6.000 ± 0.196");
        assert!(!is_vague(Estimate::exact(0.0)), "never is known exactly");
    }

    #[test]
    fn the_mean_divides_all_cycles_by_all_runs() {
        let summary = Summary { actual: 400.0, cycles_per_sample: 1000.0, ..Summary::default() };
        let Cell::Estimate(value, interval, _) = mean_cpi(&summary, Estimate::known(1e5, 1e3))
        else {
            panic!("it is well known")
        };
        // 1/√400 = 5 % of the samples, 1 % of the runs.
        assert!((value - 4.0).abs() < 1e-12);
        let relative = 0.05_f64.hypot(0.01) * 1.96;
        assert!((interval.half_width() / (4.0 * relative) - 1.0).abs() < 1e-3);
    }
}
