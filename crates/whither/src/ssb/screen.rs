//! What is shown of intervals: a screen, a line, an object; and the report at the end.

use metrology::{Coverage, Estimate};
use show::{Body, Cell, Column, Fact, Row, Schema, Section, Table, Tone, Unit, View, bar};
use vocab::Count;

use super::account::{Account, Process, ProcessInterval};
use super::parts::Parts;

/// A stall charged to a cause is not the gain from removing it.
const CAVEAT: &str = "a stall charged to a cause is not what removing the cause would gain, because \
                      causes overlap; `whither icost` says what removing one, or two together, would";
/// Columns of a bar.
const BAR: usize = 24;
/// Processes on a live screen.
const SHOWN: usize = 3;

/// Where the numbers come from.
#[derive(Clone, Debug, Default)]
pub(crate) struct Origin {
    /// What is watched.
    pub(crate) title: String,
    /// measured or modelled.
    pub(crate) source: String,
    pub(crate) machine: String,
    pub(crate) mode: String,
    /// 1 / width, where it is known.
    pub(crate) ideal_cpi: Option<f64>,
}

impl Origin {
    fn facts(&self) -> Vec<Fact> {
        vec![
            Fact::new("source", "source", Cell::text(&*self.source)),
            Fact::new("machine", "machine", Cell::text(&*self.machine)),
            Fact::new("mode", "mode", Cell::text(&*self.mode)),
            Fact::new("ideal_cpi", "ideal CPI", self.ideal()),
        ]
    }

    fn ideal(&self) -> Cell {
        match self.ideal_cpi {
            Some(cpi) => Cell::Number(cpi, Unit::Number),
            None => Cell::NotCounted("this core's width is not known".into()),
        }
    }
}

fn cpi_cell(part: &Result<Estimate, String>) -> Cell {
    match part {
        Err(why) => Cell::NotCounted(why.clone()),
        Ok(part) if part.standard_uncertainty == 0.0 => Cell::Number(part.value, Unit::Number),
        Ok(part) => Cell::Estimate(part.value, part.interval(Coverage::P95), Unit::Number),
    }
}

/// The causes, the rest, and what of the rest is stalls that nobody claims.
fn table(account: &Account, parts: &Parts) -> Table {
    let columns = vec![
        Column::number("cpi", "CPI"),
        Column::number("share", "share"),
        Column::text("bar", "").only_in_text(),
        Column::text("cause", "waiting for"),
    ];
    let whole = parts.cpi.as_ref().map_or(f64::NAN, |cpi| cpi.value);
    let row = |key: &'static str, title: &str, part: &Result<Estimate, String>, tone: Tone| {
        let share = part.as_ref().map(|part| part.value / whole);
        let tone = match share {
            Ok(share) if tone == Tone::Plain && share >= 0.2 => Tone::Hot,
            Ok(share) if tone == Tone::Plain && share >= 0.05 => Tone::Warm,
            _ => tone,
        };
        let bar = share.as_ref().map_or(String::new(), |share| bar(*share, BAR));
        let share = share.map_or(Cell::Empty, |share: f64| Cell::Number(share, Unit::Share));
        // A key is a word of ours; a cause's own comes from the data.
        let name = match key {
            "" => Cell::text(title),
            key => Cell::Word { key, text: title.to_owned() },
        };
        Row::Cells(tone, vec![cpi_cell(part), share, Cell::Text(bar), name])
    };
    let causes = account.division.breakdown.cause.iter().zip(&parts.causes);
    let mut rows: Vec<Row> =
        causes.map(|(cause, part)| row("", &cause.title, part, Tone::Plain)).collect();
    rows.push(row("rest", "the rest", &parts.rest, Tone::Good));
    if let Some(unclaimed) = &parts.unclaimed {
        rows.push(row("unclaimed", "of it other stalls", unclaimed, Tone::Faint));
    }
    Table { columns, rows, text_rows: None }
}

/// One interval as an object.
pub(crate) fn interval_view(account: &Account, origin: &Origin, of: &ProcessInterval) -> View {
    let number = |value| Cell::Number(value, Unit::Seconds);
    let count = |value: f64| Cell::Count(Count(value.max(0.0).round() as u64));
    let mut facts = vec![
        Fact::new("pid", "process", Cell::Id(u64::from(of.pid))),
        Fact::new("program", "program", Cell::text(&*of.name)),
        Fact::new("at_s", "at", number(of.at_s)),
        Fact::new("seconds", "interval", number(of.seconds)),
        Fact::new("instructions", "instructions", count(of.parts.instructions)),
        Fact::new("cycles", "cycles", count(of.parts.cycles)),
        Fact::new("cpi", "CPI", cpi_cell(&of.parts.cpi)),
    ];
    facts.extend(origin.facts());
    View {
        schema: Schema { name: "ssb_interval", version: 1 },
        title: String::new(),
        sections: vec![
            section("interval", "", Body::Facts(facts)),
            section("causes", "", Body::Table(table(account, &of.parts))),
        ],
    }
}

fn section(key: &'static str, title: &str, body: Body) -> Section {
    Section { key, title: title.into(), caption: String::new(), body }
}

fn heading(pid: u32, process: &Process, parts: &Parts, origin: &Origin) -> String {
    let cpi = cpi_cell(&parts.cpi).to_text();
    let ideal = origin.ideal_cpi.map_or(String::new(), |cpi| format!(", ideal {cpi:.3}"));
    let instructions = Cell::Number(parts.instructions, Unit::Count).to_text();
    format!("{} ({pid}): CPI {cpi}{ideal}; {instructions} instructions", process.name)
}

/// The screen while it runs: the last interval of the processes that ran last.
pub(crate) fn live_view(account: &Account, origin: &Origin, newest: &[u32]) -> View {
    let mut tables = Vec::new();
    for pid in newest.iter().take(SHOWN) {
        let Some(process) = account.processes.get(pid) else { continue };
        let Some(parts) = &process.last else { continue };
        let past = sparkline(&process.past, 60);
        let title = format!("{}  {past}", heading(*pid, process, parts, origin));
        tables.push((title, table(account, parts)));
    }
    let more = account.processes.len().saturating_sub(SHOWN);
    let mut notes = vec![CAVEAT.to_owned()];
    if more > 0 {
        notes.push(format!("{more} further processes are in the report at the end"));
    }
    View {
        schema: Schema { name: "ssb", version: 1 },
        title: format!(
            "whither ssb, {}: {}, {} mode: {}",
            origin.source, origin.machine, origin.mode, origin.title
        ),
        sections: vec![
            section("processes", "", Body::Tables(tables)),
            section("notes", "", Body::Prose(notes)),
        ],
    }
}

/// The report over the whole time.
pub(crate) fn report(account: &Account, origin: &Origin, damage: &[String]) -> View {
    let mut order: Vec<(&u32, &Process, Parts)> = account
        .processes
        .iter()
        .filter_map(|(pid, process)| Some((pid, process, account.whole(process)?)))
        .collect();
    order.sort_by(|a, b| b.2.cycles.total_cmp(&a.2.cycles));
    let tables = order
        .iter()
        .map(|(pid, process, parts)| {
            (heading(**pid, process, parts, origin), table(account, parts))
        })
        .collect();
    let mut notes = vec![CAVEAT.to_owned()];
    let lies = &account.division.breakdown.lies;
    if !lies.is_empty() {
        notes.push(lies.clone());
    }
    if origin.source == "modelled" {
        notes.push("modelled: user mode only, no kernel and no other program".to_owned());
    }
    notes.extend(damage.iter().cloned());
    let groups = account.grouping.groups.len();
    let mut facts = origin.facts();
    let turns = match groups {
        0 | 1 => "all events at the same time".to_owned(),
        _ => format!("{} events in {groups} groups", account.grouping.events.len()),
    };
    facts.push(Fact::new("turns", "turns", Cell::text(turns)));
    View {
        schema: Schema { name: "ssb", version: 1 },
        title: format!("whither ssb: {}", origin.title),
        sections: vec![
            section("run", "", Body::Facts(facts)),
            Section {
                key: "processes",
                title: "WHAT THE CYCLES WAITED FOR".into(),
                caption: format!("{}; ± at 95 %", account.division.breakdown.what),
                body: Body::Tables(tables),
            },
            section("notes", "NOTES", Body::Prose(notes)),
        ],
    }
}

/// What stands above lines of intervals.
pub(crate) fn line_heading(account: &Account) -> String {
    let mut line = format!("{:>9} {:>7} {:<12} {:>13}", "time, s", "process", "program", "CPI");
    for cause in &account.division.breakdown.cause {
        let title: String = cause.title.chars().take(13).collect();
        line.push_str(&format!(" {title:>13}"));
    }
    line.push_str(&format!(" {:>13}\n", "the rest"));
    line
}

/// An interval as a line.
pub(crate) fn line(of: &ProcessInterval) -> String {
    let part = |part: &Result<Estimate, String>| match part {
        Err(_) => "not counted".to_owned(),
        Ok(part) if part.standard_uncertainty == 0.0 => format!("{:.3}", part.value),
        Ok(part) => {
            let half = part.half_width(Coverage::P95);
            if half.is_finite() {
                format!("{:.3} ±{half:.3}", part.value)
            } else {
                format!("{:.3} ± ?", part.value)
            }
        }
    };
    let name: String = of.name.chars().take(12).collect();
    let mut line = format!("{:>9.3} {:>7} {name:<12} {:>13}", of.at_s, of.pid, part(&of.parts.cpi));
    for cause in &of.parts.causes {
        line.push_str(&format!(" {:>13}", part(cause)));
    }
    line.push_str(&format!(" {:>13}", part(&of.parts.rest)));
    format!("{}\n", show::clean(&line))
}

/// The last values as a line of blocks, the largest full.
fn sparkline(values: &[f64], width: usize) -> String {
    const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let shown = &values[values.len().saturating_sub(width)..];
    let most = shown.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
    let block = |value: &f64| {
        let place = (value / most * 7.0).round().clamp(0.0, 7.0) as usize;
        BLOCKS.get(place).copied().unwrap_or('█')
    };
    shown.iter().map(block).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_blocks_is_scaled_to_its_largest_and_ends_with_the_newest() {
        assert_eq!(sparkline(&[0.0, 1.0, 2.0], 10), "▁▅█");
        assert_eq!(sparkline(&[9.0, 1.0, 1.0], 2), "██");
        assert_eq!(sparkline(&[], 5), "");
    }
}
