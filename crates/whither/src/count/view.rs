//! The report.

use std::os::unix::process::ExitStatusExt;

use analyse::ProcedureTime;
use show::{Body, Cell, Column, Fact, Row, Schema, Section, Table, Unit, View};
use tracer::launch::Finished;
use vocab::Count;

use super::blocks::BlockRuns;
use super::tally::Counted;
use crate::cli::CountJob;
use crate::listing::{self, CodeTable, Listing, Sources};
use crate::run::{Images, tone};

/// Blocks that text shows.
const BLOCKS_SHOWN: usize = 12;

/// Everything that the report is made from.
pub(super) struct Report<'a> {
    pub(super) job: &'a CountJob,
    pub(super) finished: &'a Finished,
    pub(super) counted: &'a Counted,
    pub(super) images: &'a Images,
    pub(super) times: &'a [ProcedureTime],
    pub(super) hottest: &'a [(usize, Result<Listing, String>)],
    pub(super) blocks: &'a [BlockRuns],
}

pub(super) fn view(report: &Report<'_>) -> View {
    let words: Vec<_> = report.job.program.iter().map(|word| word.to_string_lossy()).collect();
    let command = words.join(" ");
    View {
        schema: Schema { name: "count", version: 1 },
        title: format!("whither count: {command}"),
        sections: vec![
            run(report, &command),
            procedures(report),
            blocks(report),
            hottest(report),
            notes(report),
        ],
    }
}

fn run(report: &Report<'_>, command: &str) -> Section {
    let status = report.finished.status;
    let ended = match (status.code(), status.signal()) {
        (_, Some(signal)) => format!("killed by signal {signal}"),
        (code, None) => format!("exit status {}", code.unwrap_or(0)),
    };
    let totals = &report.counted.totals;
    let count = |value: u64| Cell::Count(Count(value));
    let access = |value: Option<u64>| match value {
        Some(value) => count(value),
        None => Cell::NotCounted("--accesses counts them".into()),
    };
    let facts = vec![
        Fact::new("command", "command", Cell::text(command)),
        Fact::new(
            "source",
            "source",
            Cell::text(format!("counted under {}, exact", report.job.engine.name())),
        ),
        Fact::new("ended", "ended", Cell::text(ended)),
        Fact::new("processes", "processes", count(report.counted.processes as u64)),
        Fact::new("instructions", "instructions", count(totals.instructions)),
        Fact::new("taken", "conditional branches taken", count(totals.taken)),
        Fact::new("not_taken", "conditional branches not taken", count(totals.not_taken)),
        Fact::new("loads", "loads", access(totals.loads)),
        Fact::new("stores", "stores", access(totals.stores)),
    ];
    Section { key: "run", title: String::new(), caption: String::new(), body: Body::Facts(facts) }
}

impl Report<'_> {
    fn whole(&self) -> Count {
        self.counted.profile.tally.stored
    }

    fn image_name(&self, time: &ProcedureTime) -> &str {
        self.counted.profile.image(time.image).map_or("?", |image| image.short_name())
    }

    fn name(&self, time: &ProcedureTime) -> String {
        listing::procedure_name(time.procedure.as_ref(), self.image_name(time))
    }
}

fn procedures(report: &Report<'_>) -> Section {
    let whole = report.whole();
    let row = |time: &ProcedureTime| {
        let share = time.count.as_f64() / whole.as_f64().max(1.0);
        let start = time.procedure.as_ref().map(|procedure| procedure.start);
        // The first instruction runs once a call, unless a loop leads back to it.
        let entered = start.and_then(|start| time.offsets.get(&start)).copied();
        Row::Cells(
            tone(time.count, whole),
            vec![
                Cell::Number(share, Unit::Share),
                Cell::Count(time.count),
                entered.map_or(Cell::Empty, Cell::Count),
                Cell::text(report.name(time)),
                Cell::text(report.image_name(time)),
                Cell::text(
                    report.counted.profile.image(time.image).map_or("?", |i| i.path.as_str()),
                ),
                start.map_or(Cell::Empty, |start| Cell::Hex(start.0)),
            ],
        )
    };
    Section {
        key: "procedures",
        title: "INSTRUCTIONS BY PROCEDURE".into(),
        caption: "exact".into(),
        body: Body::Table(Table {
            columns: vec![
                Column::number("share", "share"),
                Column::number("instructions", "instructions"),
                Column::number("entered", "entered").on_pages_of(70),
                Column::text("procedure", "procedure"),
                Column::text("image", "image").on_pages_of(80),
                Column::text("path", "").only_in_json(),
                Column::text("offset", "").only_in_json(),
            ],
            rows: report.times.iter().map(row).collect(),
            text_rows: Some(report.job.procedures),
        }),
    }
}

fn blocks(report: &Report<'_>) -> Section {
    let whole = report.whole();
    let row = |block: &BlockRuns| {
        let all = Count(block.runs.0.saturating_mul(block.instructions));
        let time = report.times.get(block.row);
        Row::Cells(
            tone(all, whole),
            vec![
                Cell::Count(block.runs),
                Cell::Count(Count(block.instructions)),
                Cell::Hex(block.offset.0),
                time.map_or(Cell::Empty, |time| Cell::text(report.name(time))),
                time.map_or(Cell::Empty, |time| Cell::text(report.image_name(time))),
            ],
        )
    };
    Section {
        key: "blocks",
        title: "BLOCKS".into(),
        caption: "most instructions first".into(),
        body: Body::Table(Table {
            columns: vec![
                Column::number("runs", "ran"),
                Column::number("instructions", "instructions").on_pages_of(70),
                Column::number("offset", "offset"),
                Column::text("procedure", "procedure"),
                Column::text("image", "image").on_pages_of(80),
            ],
            rows: report.blocks.iter().map(row).collect(),
            text_rows: Some(BLOCKS_SHOWN),
        }),
    }
}

fn hottest(report: &Report<'_>) -> Section {
    let mut sources = Sources::default();
    let mut tables = Vec::new();
    for (row, code) in report.hottest {
        let Some(time) = report.times.get(*row) else { continue };
        let title = format!("{} in {}", report.name(time), report.image_name(time));
        let rows = match code {
            Ok(listing) => {
                let table = CodeTable { listing, whole: report.whole(), report: None };
                listing::exact_rows(&table, &mut sources)
            }
            Err(why) => vec![Row::Gap(format!("no code: {why}"))],
        };
        tables.push((title, Table { columns: listing::exact_columns(), rows, text_rows: None }));
    }
    Section {
        key: "hottest",
        title: "HOTTEST CODE".into(),
        caption: "how often each instruction ran".into(),
        body: Body::Tables(tables),
    }
}

fn notes(report: &Report<'_>) -> Section {
    let mut notes = report.counted.notes.clone();
    notes.push("only user mode runs under an engine: the kernel's part is not in it".into());
    notes.extend(report.images.unread.iter().take(3).map(|(id, why)| {
        let path = report.counted.profile.image(*id).map_or("?", |image| image.path.as_str());
        format!("{path} is counted without names: {why}")
    }));
    Section {
        key: "notes",
        title: "WHAT THIS REPORT DOES NOT SEE".into(),
        caption: String::new(),
        body: Body::Prose(notes),
    }
}
