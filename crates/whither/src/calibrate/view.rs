//! The comparison, for a person and for a program.

use std::path::Path;

use metrology::Coverage;
use show::{Body, Cell, Column, Fact, Row, Schema, Section, Table, Tone, Unit, View};

use super::compare::{Compared, Takes};
use crate::cli::CalibrateJob;
use crate::doctor::this_processor;

pub(super) fn view(
    job: &CalibrateJob,
    cpu: usize,
    compared: &[Compared],
    written: Option<(&Path, Vec<&'static str>)>,
) -> View {
    let differ = compared.iter().filter(|one| one.agrees() == Some(false)).count();
    let name = &job.machine.name;
    View {
        schema: Schema { name: "calibrate", version: 1 },
        title: match differ {
            0 => format!("whither calibrate: {name} agrees with this machine"),
            n => {
                format!("whither calibrate: {n} of {} facts of {name} differ here", compared.len())
            }
        },
        sections: vec![
            Section {
                key: "calibration",
                title: "THIS MACHINE".into(),
                caption: String::new(),
                body: Body::Facts(facts(job, cpu, written.as_ref())),
            },
            Section {
                key: "facts",
                title: "MEASURED BESIDE THE FILE".into(),
                caption: "± at 95 %; in cycles of this core's clock".into(),
                body: Body::Table(table(compared)),
            },
            Section {
                key: "notes",
                title: "TO KNOW".into(),
                caption: String::new(),
                body: Body::Prose(notes(compared, written.as_ref())),
            },
        ],
    }
}

fn facts(job: &CalibrateJob, cpu: usize, written: Option<&(&Path, Vec<&str>)>) -> Vec<Fact> {
    let file = written.map_or(Cell::Empty, |(path, _)| Cell::text(path.display().to_string()));
    vec![
        Fact::new("processor", "processor", Cell::text(this_processor().name)),
        Fact::new("machine", "machine", Cell::text(&*job.machine.name)),
        Fact::new("cpu", "on CPU", Cell::Number(cpu as f64, Unit::Number)),
        Fact::new("written", "written to", file),
    ]
}

fn table(compared: &[Compared]) -> Table {
    Table {
        columns: vec![
            Column::text("what", "what"),
            Column::number("file", "file"),
            Column::number("measured", "measured"),
            Column::text("unit", "unit"),
            Column::text("verdict", "verdict"),
            Column::text("takes", "could take"),
            Column::number("kept", "kept"),
            Column::number("dropped", "dropped"),
            Column::text("key", "").only_in_json(),
        ],
        rows: compared.iter().map(row).collect(),
        text_rows: None,
    }
}

fn row(one: &Compared) -> Row {
    let (tone, verdict) = match one.agrees() {
        Some(true) => (Tone::Plain, Cell::Word { key: "ok", text: "ok".into() }),
        Some(false) => (Tone::Bad, Cell::Word { key: "differs", text: "differs".into() }),
        None => (Tone::Faint, Cell::Empty),
    };
    let measured = match one.measured {
        Some(estimate) => {
            Cell::Estimate(estimate.value, estimate.interval(Coverage::P95), Unit::Number)
        }
        None => Cell::NotCounted("too few runs were kept".into()),
    };
    let number = |value: usize| Cell::Number(value as f64, Unit::Number);
    let takes = match one.takes {
        Takes::Latency | Takes::Memory if one.measured.is_some() => Cell::Flag(true),
        _ => Cell::Flag(false),
    };
    Row::Cells(
        tone,
        vec![
            Cell::text(one.what),
            Cell::Number(one.file, Unit::Number),
            measured,
            Cell::text(one.unit),
            verdict,
            takes,
            number(one.kept),
            number(one.dropped),
            one.key.map_or(Cell::Empty, Cell::text),
        ],
    )
}

fn notes(compared: &[Compared], written: Option<&(&Path, Vec<&str>)>) -> Vec<String> {
    let dropped: usize = compared.iter().map(|one| one.dropped).sum();
    let mut notes = vec![
        format!("{dropped} runs were dropped for an unsteady clock or stolen time"),
        "a fact is ok within its ±, within 5 %, or within half a unit".into(),
        "chases go through lines in random order, in small pages, and what translation adds is taken \
         off; in a virtual machine a walk goes through the host's tables too"
            .into(),
        "penalties and widths are only checked: a description's ports and latencies come from \
         documents"
            .into(),
    ];
    if let Some((_, keys)) = written {
        notes.push(format!("replaced in the copy: {}", keys.join(", ")));
    }
    notes
}
