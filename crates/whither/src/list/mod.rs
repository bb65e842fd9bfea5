//! `whither list`: what can be named on the command line.

mod events;
mod reference;

use model::machine::{Machine, machines};
use pmu::{Breakdown, event_sets, metrics, modelled_events};
use show::{Body, Cell, Column, Row, Schema, Section, Table, Tone, Unit, View};

use crate::cli::{ListJob, ListWhat};
use crate::doctor::this_processor;
use crate::failure::{ERROR, Failure};
use crate::host_events;
use crate::output::Output;

/// Lists what was asked for.
pub(crate) fn list(job: &ListJob, output: &Output) -> Result<(), Failure> {
    let view = match job.what {
        ListWhat::Events => match &job.machine {
            Some(machine) => events::modelled(machine)?,
            None => events::here(&host_events::dictionary(ERROR)?),
        },
        ListWhat::Sets => sets(job.machine.is_some())?,
        ListWhat::Metrics => metric_list(job.machine.is_some())?,
        ListWhat::Machines => machine_list()?,
        ListWhat::Reference => return output.write_text(&reference::page().map_err(failed)?),
    };
    output.write(&view)
}

fn failed(error: pmu::TableError) -> Failure {
    Failure::new(ERROR, error.to_string())
}

fn view(name: &'static str, title: &str, key: &'static str, table: Table) -> View {
    let section =
        Section { key, title: String::new(), caption: String::new(), body: Body::Table(table) };
    View { schema: Schema { name, version: 1 }, title: title.into(), sections: vec![section] }
}

/// The kernel's sets and those of this machine's core, or the modelled core's.
fn sets(is_modelled: bool) -> Result<View, Failure> {
    let row = |name: &str, what: String, events: Vec<String>| {
        let cells = [name.to_owned(), what, events.join(", ")].map(Cell::text);
        Row::Cells(Tone::Plain, cells.into())
    };
    let of_core = |breakdown: &Breakdown, whose: &str| {
        row(&breakdown.name, format!("{} ({whose})", breakdown.what), breakdown.events())
    };
    let mut rows = Vec::new();
    if is_modelled {
        let modelled = modelled_events().map_err(failed)?;
        rows.extend(
            modelled.set.iter().map(|set| row(&set.name, set.what.clone(), set.events.clone())),
        );
        rows.extend(modelled.breakdown.iter().map(|set| of_core(set, "modelled core")));
    } else {
        let plain = event_sets().map_err(failed)?;
        rows.extend(plain.into_iter().map(|set| row(&set.name, set.what, set.events)));
        let core = host_events::dictionary(ERROR)?.core;
        if let Some(core) = core {
            rows.extend(core.breakdown.iter().map(|set| of_core(set, &core.title)));
        }
    }
    let columns = vec![
        Column::text("name", "set"),
        Column::text("what", "what it answers"),
        Column::text("events", "events"),
    ];
    Ok(view("list_sets", "Sets of events", "sets", Table { columns, rows, text_rows: None }))
}

fn metric_list(is_modelled: bool) -> Result<View, Failure> {
    let all = match is_modelled {
        true => modelled_events().map_err(failed)?.metric,
        false => metrics().map_err(failed)?,
    };
    let row = |metric: pmu::Metric| {
        let meaning = format!("{}. {}", metric.what, metric.lies);
        let cells = [
            metric.name,
            metric.unit,
            metric.formula.text().to_owned(),
            meaning.trim_end().to_owned(),
        ];
        Row::Cells(Tone::Plain, cells.map(Cell::text).into())
    };
    let columns = vec![
        Column::text("name", "measure"),
        Column::text("unit", "unit"),
        Column::text("formula", "formula"),
        Column::text("what", "what it says"),
    ];
    let rows = all.into_iter().map(row).collect();
    let title = "Measures that are printed where their events are counted";
    Ok(view("list_metrics", title, "metrics", Table { columns, rows, text_rows: None }))
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
