//! Events by name.

use model::event::Event as ModelEvent;
use perf::Refusal;
use pmu::Dictionary;
use show::{Cell, Column, Row, Table, Tone, View};
use vocab::{Event, Mode};

use crate::failure::Failure;

/// One line of the list.
struct Entry {
    name: String,
    kind: String,
    aliases: Vec<String>,
    counts: String,
    lies: String,
}

/// What this machine has, each asked of the kernel.
pub(super) fn here(dictionary: &Dictionary) -> View {
    let mut rows = Vec::new();
    for entry in &dictionary.table.entries {
        let listed = Entry {
            name: entry.name.clone(),
            kind: entry.kind.word().to_owned(),
            aliases: entry.aliases.clone(),
            counts: entry.counts.clone(),
            lies: entry.lies.clone(),
        };
        rows.push(probed(dictionary, listed));
    }
    if let Some(core) = &dictionary.core {
        for event in &core.event {
            let listed = Entry {
                name: event.name.clone(),
                kind: core.name.clone(),
                aliases: Vec::new(),
                counts: event.counts.clone(),
                lies: event.lies.clone(),
            };
            rows.push(probed(dictionary, listed));
        }
    }
    for device in &dictionary.devices {
        for (name, terms) in &device.events {
            let listed = Entry {
                name: format!("{}/{name}/", device.name),
                kind: device.name.clone(),
                aliases: Vec::new(),
                counts: terms.clone(),
                lies: String::new(),
            };
            rows.push(probed(dictionary, listed));
        }
    }
    let title = "Events; modifiers :u (user) and :k (kernel); also rNNN, PMU/term=value,…/, \
                 mem:ADDRESS/LENGTH:rwx, GROUP:TRACEPOINT, and {…} for what belongs together";
    listed(title, rows)
}

/// What a modelled core counts.
pub(super) fn modelled(machine: &str) -> Result<View, Failure> {
    let (machine, _) = crate::model::find_machine(Some(machine))?;
    let row = |event: &ModelEvent| {
        let entry = Entry {
            name: event.name().to_owned(),
            kind: "modelled".to_owned(),
            aliases: Vec::new(),
            counts: event.about().trim_end_matches('.').to_owned(),
            lies: String::new(),
        };
        cells(("works", "works", Tone::Plain), entry)
    };
    let rows = ModelEvent::ALL.iter().map(row).collect();
    let counters = &machine.pmu;
    let title = format!(
        "Events of the modelled core {}, on {} general and {} fixed counters; in user mode only",
        machine.name,
        counters.general,
        counters.fixed.len()
    );
    Ok(listed(&title, rows))
}

fn listed(title: &str, rows: Vec<Row>) -> View {
    let columns = vec![
        Column::text("name", "event"),
        Column::text("kind", "kind"),
        Column::text("here", "here"),
        Column::text("aliases", "").only_in_json(),
        Column::text("counts", "").only_in_json(),
        Column::text("lies", "").only_in_json(),
        Column::text("meaning", "what it counts, and how it misleads").only_in_text(),
    ];
    super::view("list_events", title, "events", Table { columns, rows, text_rows: None })
}

fn probed(dictionary: &Dictionary, entry: Entry) -> Row {
    let state = match dictionary.parse_event(&entry.name) {
        Err(_) => ("not_there", "not there", Tone::Faint),
        Ok(event) => match probe(&event) {
            Ok(()) => ("works", "works", Tone::Plain),
            Err(refusal) if refusal.is_permission() => {
                ("not_permitted", "not permitted", Tone::Faint)
            }
            Err(_) => ("not_there", "not there", Tone::Faint),
        },
    };
    cells(state, entry)
}

/// Some PMUs take no modes: those are asked for both.
fn probe(event: &Event) -> Result<(), Refusal> {
    perf::probe(&Event { mode: Mode::User, ..event.clone() }).or_else(|refusal| match refusal {
        Refusal::NotUnderstood => perf::probe(event),
        other => Err(other),
    })
}

fn cells((key, text, tone): (&'static str, &str, Tone), entry: Entry) -> Row {
    let meaning = format!("{}. {}", entry.counts, entry.lies);
    Row::Cells(
        tone,
        vec![
            Cell::text(entry.name),
            Cell::text(entry.kind),
            Cell::Word { key, text: text.into() },
            Cell::text(entry.aliases.join(", ")),
            Cell::text(entry.counts),
            Cell::text(entry.lies),
            Cell::text(meaning.trim_end()),
        ],
    )
}
