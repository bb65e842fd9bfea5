//! What an import found.

use std::collections::BTreeMap;

use show::{Body, Cell, Column, Fact, Row, Schema, Section, Table, Tone, View};
use vocab::{Count, EventId};

use super::Read;
use crate::database::{Kept, samples};

pub(super) fn view(read: &Read, kept: &Kept) -> View {
    View {
        schema: Schema { name: "import", version: 1 },
        title: format!("whither import: {}", read.name),
        sections: vec![what(read, kept), events(read), samples(&read.profile.tally)],
    }
}

fn what(read: &Read, kept: &Kept) -> Section {
    let profile = &read.profile;
    let count = |number: usize| Cell::Count(Count(number as u64));
    let branches = profile.branches.values().map(|tally| tally.count).sum();
    let loads = profile.loads.values().copied().sum();
    Section {
        key: "imported",
        title: String::new(),
        caption: String::new(),
        body: Body::Facts(vec![
            Fact::new("file", "recording", Cell::text(read.name.as_str())),
            Fact::new("database", "database", Cell::text(kept.database.display().to_string())),
            Fact::new("host", "host", Cell::text(kept.host.as_str())),
            Fact::new("epoch", "epoch", Cell::Count(Count(kept.epoch))),
            Fact::new("bytes", "bytes stored", Cell::Count(Count(kept.bytes))),
            Fact::new("images", "images", count(profile.images.len())),
            Fact::new("processes", "processes", count(profile.processes.len())),
            Fact::new("stacks", "different chains of calls", count(profile.stacks.len())),
            Fact::new("branches", "branches", Cell::Count(branches)),
            Fact::new("loads", "loads with latency", Cell::Count(loads)),
        ]),
    }
}

/// Placed samples by event. Events without any were there for their maps alone.
fn events(read: &Read) -> Section {
    let mut stored: BTreeMap<EventId, Count> = BTreeMap::new();
    for (spot, &count) in &read.profile.counts {
        *stored.entry(spot.event).or_default() += count;
    }
    let row = |(event, count): (&EventId, &Count)| {
        let name = read.profile.events.get(usize::from(event.0)).map_or("?", |e| e.name.as_str());
        Row::Cells(Tone::Plain, vec![Cell::Count(*count), Cell::text(name)])
    };
    Section {
        key: "events",
        title: "PLACED SAMPLES BY EVENT".into(),
        caption: String::new(),
        body: Body::Table(Table {
            columns: vec![Column::number("samples", "samples"), Column::text("event", "event")],
            rows: stored.iter().map(row).collect(),
            text_rows: None,
        }),
    }
}
