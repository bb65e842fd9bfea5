//! The view.

use show::{Body, Cell, Column, Fact, Row, Schema, Section, Table, Unit, View};
use store::{EpochEntry, Gap};
use vocab::{Count, Source};

use super::table::Rows;
use crate::cli::{By, ProfJob};
use crate::database::{Selected, samples, shown};
use crate::run::{tone, unplaced_name};

pub(super) fn view(job: &ProfJob, selected: &Selected, rows: &Rows) -> View {
    let mut sections = vec![what(job, selected), table(job, selected, rows)];
    sections.push(samples(&selected.tally()));
    sections.extend(gaps(selected));
    sections.push(Section {
        key: "notes",
        title: "WHAT THIS VIEW DOES NOT SEE".into(),
        caption: String::new(),
        body: Body::Prose(notes(job, selected, rows)),
    });
    View {
        schema: Schema { name: "prof", version: 1 },
        title: format!("whither prof: {}", job.selection.database.display()),
        sections,
    }
}

fn source(job: &ProfJob) -> Source {
    if job.selection.modelled { Source::Modelled } else { Source::Measured }
}

fn what(job: &ProfJob, selected: &Selected) -> Section {
    let mut hosts: Vec<&str> = selected.epochs.iter().map(EpochEntry::host).collect();
    hosts.sort_unstable();
    hosts.dedup();
    let began = selected.epochs.iter().map(EpochEntry::began_unix_ns).min().unwrap_or(0);
    let last = selected.epochs.iter().map(EpochEntry::last_unix_ns).max().unwrap_or(0);
    let mut cores: Vec<String> = selected
        .epochs
        .iter()
        .filter_map(|epoch| epoch.facts().modelled.as_ref())
        .map(|by| format!("{} (seed {}, period {})", by.machine, by.seed, by.period))
        .collect();
    cores.sort_unstable();
    cores.dedup();
    let mut facts = vec![
        Fact::new("path", "database", Cell::text(job.selection.database.display().to_string())),
        Fact::new("source", "source", Cell::text(source(job).word())),
        Fact::new("epochs", "epochs", Cell::Count(Count(selected.epochs.len() as u64))),
        Fact::new("hosts", "hosts", Cell::text(hosts.join(", "))),
        Fact::new("began", "from (UTC)", Cell::text(shown(began))),
        Fact::new("last", "to (UTC)", Cell::text(shown(last))),
    ];
    if !cores.is_empty() {
        facts.push(Fact::new("machine", "modelled by", Cell::text(cores.join(", "))));
    }
    Section {
        key: "database",
        title: String::new(),
        caption: String::new(),
        body: Body::Facts(facts),
    }
}

fn table(job: &ProfJob, selected: &Selected, rows: &Rows) -> Section {
    let row = |count: Count, cells: &[Cell]| {
        let mut all = vec![Cell::share_of(count, rows.whole), Cell::Count(count)];
        all.extend(cells.iter().cloned());
        Row::Cells(tone(count, rows.whole), all)
    };
    let mut made: Vec<Row> = rows.rows.iter().map(|(count, cells)| row(*count, cells)).collect();
    if rows.unplaced_belong {
        // In the column that says what a row is of.
        let place = rows.columns.iter().position(|column| column.key == name_key(job.by));
        for (&reason, &count) in &selected.tally().unplaced {
            let mut cells = vec![Cell::Empty; rows.columns.len()];
            if let Some(cell) = place.and_then(|place| cells.get_mut(place)) {
                *cell = Cell::text(unplaced_name(reason));
            }
            made.push(row(count, &cells));
        }
    }
    let mut columns = vec![Column::number("share", "share"), Column::number("samples", "samples")];
    columns.extend(rows.columns.iter().cloned());
    let event = rows.event.as_deref().map_or(String::new(), |event| format!("{event}, "));
    Section {
        key: "rows",
        title: format!("SAMPLES BY {}", name_key(job.by).to_uppercase()),
        caption: format!("{}: {event}{} samples; ± at 95 %", source(job).word(), rows.whole),
        body: Body::Table(Table { columns, rows: made, text_rows: Some(job.rows) }),
    }
}

/// The column that names a row.
fn name_key(by: By) -> &'static str {
    match by {
        By::Image => "image",
        By::Procedure => "procedure",
        By::Process => "process",
        By::Event => "event",
        By::Epoch => "epoch",
        By::Host => "host",
    }
}

/// Times without samples; none is the rule, and then nothing is printed.
fn gaps(selected: &Selected) -> Option<Section> {
    let row = |epoch: &EpochEntry, gap: &Gap| {
        let length_s = gap.to_unix_ns.saturating_sub(gap.from_unix_ns) as f64 / 1e9;
        let cells = vec![
            Cell::text(epoch.host()),
            Cell::Count(Count(epoch.number())),
            Cell::text(shown(gap.from_unix_ns)),
            Cell::Number(length_s, Unit::Seconds),
            Cell::text(gap.why.as_str()),
        ];
        Row::Cells(show::Tone::Plain, cells)
    };
    let rows: Vec<Row> = selected
        .epochs
        .iter()
        .flat_map(|epoch| epoch.gaps().iter().map(move |gap| row(epoch, gap)))
        .collect();
    (!rows.is_empty()).then(|| Section {
        key: "gaps",
        title: "TIMES WITHOUT SAMPLES".into(),
        caption: String::new(),
        body: Body::Table(Table {
            columns: vec![
                Column::text("host", "host"),
                Column::number("epoch", "epoch"),
                Column::text("from", "from (UTC)"),
                Column::number("length_s", "length"),
                Column::text("why", "why"),
            ],
            rows,
            text_rows: Some(20),
        }),
    })
}

fn notes(job: &ProfJob, selected: &Selected, rows: &Rows) -> Vec<String> {
    let mut notes = rows.notes.clone();
    let tally = selected.tally();
    if !rows.unplaced_belong && tally.unplaced_total() > Count::ZERO {
        notes.push(format!(
            "{} samples without a place are of any event and image: they are in no share",
            tally.unplaced_total()
        ));
    }
    if tally.lost > Count::ZERO {
        notes.push(format!("{} samples were lost before anyone could place them", tally.lost));
    }
    if !tally.is_whole() {
        notes.push("the handler counted other than what became of its samples".into());
    }
    if job.selection.since_unix_ns > 0 || job.selection.until_unix_ns < u64::MAX {
        notes.push("times select whole appends: those that overlap them".into());
    }
    if selected.other_source > 0 {
        let (other, how) = match source(job) {
            Source::Measured => ("modelled", "--modelled shows them"),
            Source::Modelled => ("measured", "leave out --modelled to see them"),
        };
        notes.push(format!("{} {other} epochs are left out: {how}", selected.other_source));
    }
    notes.extend(selected.troubles.iter().map(ToString::to_string));
    notes
}
