//! The report of a measurement.

use metrology::Coverage;
use show::{Body, Cell, Column, Fact, Row, Schema, Section, Table, Tone, Unit, View};
use vocab::{Count, Source};

use super::batch::{Batch, CountRow, Part, Total};
use super::measures::Measure;

/// What the report says beside the counts.
#[derive(Clone, Debug, Default)]
pub(crate) struct About {
    pub(crate) title: String,
    pub(crate) facts: Vec<Fact>,
    pub(crate) notes: Vec<String>,
    /// Where the numbers come from, beside the heading.
    pub(crate) caption: String,
}

pub(crate) fn view(batch: &Batch, about: &About) -> View {
    let section = |key, title: &str, caption: &str, body| Section {
        key,
        title: title.into(),
        caption: caption.into(),
        body,
    };
    View {
        schema: Schema { name: "stat", version: 1 },
        title: about.title.clone(),
        sections: vec![
            section("run", "", "", Body::Facts(about.facts.clone())),
            section("counted", "COUNTED", &about.caption, Body::Table(counted(batch))),
            section("measures", "WHAT FOLLOWS FROM IT", "", Body::Table(measure_table(batch))),
            section("notes", "NOTES", "", Body::Prose(about.notes.clone())),
        ],
    }
}

/// The word for where numbers come from.
pub(crate) fn source_fact(source: Source) -> Fact {
    Fact::new("source", "source", Cell::text(source.word()))
}

fn counted(batch: &Batch) -> Table {
    let shown = Shown::of(batch);
    let mut columns = shown.columns();
    columns.extend([
        Column::number("count", "count"),
        Column::number("counted_share", "counted"),
        Column::text("estimator", "estimator"),
        Column::text("event", "event"),
    ]);
    let rows = batch.rows.iter().map(|row| {
        let tone = if row.total.is_ok() { Tone::Plain } else { Tone::Faint };
        let total = row.total.as_ref().ok();
        let share = total.map_or(Cell::Empty, |total| Cell::Number(total.share, Unit::Share));
        let estimator = total.map_or(Cell::Empty, |total| Cell::text(total.estimator));
        let mut cells = shown.cells(&row.part);
        cells.extend([count_cell(row), share, estimator, Cell::text(&*row.typed)]);
        Row::Cells(tone, cells)
    });
    Table { columns, rows: rows.collect(), text_rows: None }
}

/// What tells rows apart beside their event.
struct Shown {
    has_cpus: bool,
    has_cgroups: bool,
}

impl Shown {
    fn of(batch: &Batch) -> Shown {
        let any = |of: fn(&Part) -> bool| batch.rows.iter().any(|row| of(&row.part));
        Shown {
            has_cpus: any(|part| part.cpu.is_some()),
            has_cgroups: any(|part| part.cgroup.is_some()),
        }
    }

    fn columns(&self) -> Vec<Column> {
        let cpu = self.has_cpus.then(|| Column::text("cpu", "CPU"));
        let cgroup = self.has_cgroups.then(|| Column::text("cgroup", "control group"));
        cpu.into_iter().chain(cgroup).collect()
    }

    fn cells(&self, part: &Part) -> Vec<Cell> {
        let cpu = part.cpu.map_or(Cell::Empty, |cpu| Cell::text(format!("CPU{cpu}")));
        let cgroup = part.cgroup.as_ref().map_or(Cell::Empty, |name| Cell::text(name.as_str()));
        let cpu = self.has_cpus.then_some(cpu);
        cpu.into_iter().chain(self.has_cgroups.then_some(cgroup)).collect()
    }
}

/// A count is exact where nothing was inferred.
pub(crate) fn count_cell(row: &CountRow) -> Cell {
    match &row.total {
        Err(missing) => Cell::NotCounted(missing.why.clone()),
        Ok(total) if row.is_clock => seconds_cell(total),
        Ok(total) if total.is_exact() => {
            Cell::Count(Count(total.estimate.value.max(0.0).round() as u64))
        }
        Ok(total) => Cell::Estimate(total.estimate.value, total.interval, Unit::Count),
    }
}

fn seconds_cell(total: &Total) -> Cell {
    let seconds = total.estimate.value * 1e-9;
    match total.is_exact() {
        true => Cell::Number(seconds, Unit::Seconds),
        false => Cell::Estimate(seconds, total.interval.scaled(1e-9), Unit::Seconds),
    }
}

fn measure_table(batch: &Batch) -> Table {
    let shown = Shown::of(batch);
    let mut columns = shown.columns();
    columns.extend([
        Column::number("value", "value"),
        Column::text("unit", "unit"),
        Column::text("measure", "measure"),
        Column::text("formula", "formula"),
    ]);
    let rows = batch.measures.iter().map(|measure| {
        let tone = if measure.value.is_ok() { Tone::Plain } else { Tone::Faint };
        let name = match measure.modifiers.as_str() {
            "" => measure.metric.name.clone(),
            modifiers => format!("{}:{modifiers}", measure.metric.name),
        };
        let unit = measure.metric.label.as_deref().unwrap_or(&measure.metric.unit);
        let formula = Cell::text(measure.metric.formula.text());
        let mut cells = shown.cells(&measure.part);
        cells.extend([measure_cell(measure), Cell::text(unit), Cell::text(name), formula]);
        Row::Cells(tone, cells)
    });
    Table { columns, rows: rows.collect(), text_rows: None }
}

/// A share, or a plain number.
pub(crate) fn measure_cell(measure: &Measure) -> Cell {
    let unit = if measure.metric.is_share() { Unit::Share } else { Unit::Number };
    match &measure.value {
        Err(why) => Cell::NotCounted(why.clone()),
        Ok(value) if value.standard_uncertainty == 0.0 => Cell::Number(value.value, unit),
        Ok(value) => Cell::Estimate(value.value, value.interval(Coverage::P95), unit),
    }
}

/// Places that count, share and estimator of an interval take.
const SENTENCE_PLACES: usize = 54;

/// One interval for a person: a line an event.
pub(crate) fn interval_lines(batch: &Batch) -> String {
    let at = batch.at_s.unwrap_or(batch.seconds);
    let mut text = String::new();
    for row in &batch.rows {
        let total = row.total.as_ref().ok();
        let share = total.map_or(String::new(), |total| format!("{:.1} %", 100.0 * total.share));
        let estimator = total.map_or("", |total| total.estimator);
        let count = count_cell(row).to_text();
        let cpu = row.part.cpu.map_or(String::new(), |cpu| format!("CPU{cpu}  "));
        let cgroup = row.part.cgroup.as_ref().map_or(String::new(), |name| format!("  {name}"));
        // A sentence stands where the numbers would, as far as they reach; a longer one comes last.
        let (found, why) = match total {
            Some(_) => (format!("{count:>28}  {share:>7}  {estimator:<15}"), ""),
            None if count.chars().count() <= SENTENCE_PLACES => {
                (format!("{count:<SENTENCE_PLACES$}"), "")
            }
            None => {
                let (what, why) = count.split_once(": ").unwrap_or((&count, ""));
                (format!("{what:<SENTENCE_PLACES$}"), why)
            }
        };
        let line = format!("{at:>10.3}  {cpu}{found}  {}{cgroup}  {why}", row.typed);
        text.push_str(&show::clean(line.trim_end()));
        text.push('\n');
    }
    text
}

/// What stands above the intervals.
pub(crate) fn interval_heading(batch: &Batch) -> String {
    let [time, count, share] = ["time, s", "count", "counted"];
    let cpu = if batch.rows.iter().any(|row| row.part.cpu.is_some()) { "CPU   " } else { "" };
    format!("{time:>10}  {cpu}{count:>28}  {share:>7}  {:<15}  event\n", "estimator")
}

/// How a program ended and what it took, as facts.
pub(crate) fn run_facts(command: &str, ended: Option<&perf::Ended>, elapsed_s: f64) -> Vec<Fact> {
    let mut facts = vec![Fact::new("command", "command", Cell::text(command))];
    let seconds = |value: f64| Cell::Number(value, Unit::Seconds);
    if let Some(ended) = ended {
        let how = match (ended.code(), ended.signal()) {
            (Some(code), _) => format!("exit status {code}"),
            (None, Some(signal)) => format!("killed by signal {signal}"),
            (None, None) => "unknown".into(),
        };
        facts.push(Fact::new("ended", "ended", Cell::text(how)));
    }
    facts.push(Fact::new("elapsed_s", "elapsed", seconds(elapsed_s)));
    if let Some(ended) = ended {
        facts.push(Fact::new("user_s", "user", seconds(ended.usage.user.as_secs_f64())));
        facts.push(Fact::new("system_s", "system", seconds(ended.usage.system.as_secs_f64())));
    }
    facts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stat::batch::Missing;
    use crate::stat::testing::{batch, refused};

    #[test]
    fn the_event_of_an_interval_stands_below_its_heading_however_long_the_reason() {
        for why in ["the target did not run".to_owned(), "long ".repeat(20)] {
            let total = Err(Missing { is_supported: true, why: why.clone() });
            let batch = batch(vec![CountRow { total, ..refused("task-clock") }]);
            let (heading, line) = (interval_heading(&batch), interval_lines(&batch));
            assert_eq!(line.find("task-clock"), heading.find("event"), "{line}");
            assert!(line.contains(why.trim_end()), "{line}");
        }
    }
}
