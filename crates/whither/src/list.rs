//! `whither list`: what can be named on the command line.

use model::machine::{Machine, machines};
use perf::Refusal;
use pmu::{EventEntry, EventTable, event_sets};
use show::{Body, Cell, Column, Row, Schema, Section, Table, Tone, Unit, View};
use vocab::{Event, Mode};

use crate::cli::{ListWhat, event_table};
use crate::doctor::this_processor;
use crate::failure::{ERROR, Failure};

pub(crate) fn list(what: ListWhat) -> Result<View, Failure> {
    match what {
        ListWhat::Events => Ok(events(&event_table(ERROR)?)),
        ListWhat::Sets => sets(),
        ListWhat::Machines => machine_list(),
    }
}

fn view(name: &'static str, title: &str, key: &'static str, table: Table) -> View {
    let section =
        Section { key, title: String::new(), caption: String::new(), body: Body::Table(table) };
    View { schema: Schema { name, version: 1 }, title: title.into(), sections: vec![section] }
}

fn events(table: &EventTable) -> View {
    let columns = vec![
        Column::text("name", "event"),
        Column::text("kind", "kind"),
        Column::text("here", "here"),
        Column::text("aliases", "").only_in_json(),
        Column::text("counts", "").only_in_json(),
        Column::text("lies", "").only_in_json(),
        Column::text("meaning", "what it counts, and how it misleads").only_in_text(),
    ];
    let rows = table.entries.iter().map(event_row).collect();
    let title = "Events; modifiers :u (user) and :k (kernel); raw codes as rNNN";
    view("list_events", title, "events", Table { columns, rows, text_rows: None })
}

fn event_row(entry: &EventEntry) -> Row {
    let event = Event { name: entry.name.clone(), code: entry.code(), mode: Mode::User };
    let (key, text, tone) = match perf::probe(&event) {
        Ok(()) => ("works", "works", Tone::Plain),
        Err(Refusal::Forbidden | Refusal::Privilege) => {
            ("not_permitted", "not permitted", Tone::Faint)
        }
        Err(_) => ("not_there", "not there", Tone::Faint),
    };
    let meaning = format!("{}. {}", entry.counts, entry.lies);
    Row::Cells(
        tone,
        vec![
            Cell::text(&*entry.name),
            Cell::text(entry.kind.word()),
            Cell::Word { key, text: text.into() },
            Cell::text(entry.aliases.join(", ")),
            Cell::text(&*entry.counts),
            Cell::text(&*entry.lies),
            Cell::text(meaning.trim_end()),
        ],
    )
}

fn sets() -> Result<View, Failure> {
    let sets = event_sets().map_err(|error| Failure::new(ERROR, error.to_string()))?;
    let columns = vec![
        Column::text("name", "set"),
        Column::text("what", "what it answers"),
        Column::text("events", "events"),
    ];
    let row = |set: pmu::EventSet| {
        let cells = [set.name, set.what, set.events.join(", ")].map(Cell::text);
        Row::Cells(Tone::Plain, cells.into())
    };
    let rows = sets.into_iter().map(row).collect();
    Ok(view("list_sets", "Sets of events", "sets", Table { columns, rows, text_rows: None }))
}

fn machine_list() -> Result<View, Failure> {
    let here = this_processor();
    let matching = match (here.family, here.model) {
        (Some(family), Some(model)) => Machine::matching(&here.vendor, family, model),
        _ => None,
    };
    let mut rows = Vec::new();
    for name in machines() {
        let machine =
            Machine::named(name).map_err(|error| Failure::new(ERROR, error.to_string()))?;
        let is_here = matching.as_ref().is_some_and(|m| m.name == machine.name);
        rows.push(machine_row(&machine, is_here));
    }
    let columns = vec![
        Column::text("name", "machine"),
        Column::text("this_machine", "here"),
        Column::number("dispatch_width", "wide"),
        Column::number("window", "window"),
        Column::text("what", "what it describes"),
    ];
    let title = "Descriptions of processors";
    Ok(view("list_machines", title, "machines", Table { columns, rows, text_rows: None }))
}

fn machine_row(machine: &Machine, is_here: bool) -> Row {
    let number = |value: u32| Cell::Number(f64::from(value), Unit::Number);
    let tone = if is_here { Tone::Good } else { Tone::Plain };
    Row::Cells(
        tone,
        vec![
            Cell::text(&*machine.name),
            Cell::Flag(is_here),
            number(machine.window.dispatch_width),
            number(machine.window.rob),
            Cell::text(&*machine.title),
        ],
    )
}
