//! Another database's epochs as one of ours: of many hosts, or of many days.

use std::path::Path;

use show::{Body, Cell, Fact, Schema, Section, View};
use store::{Database, EpochEntry, Facts, StoreError, Writer};
use vocab::{Count, Source};

use crate::cli::ImportJob;
use crate::database::{agreed, host_name, now_unix_ns, samples};
use crate::failure::{ERROR, Failure};
use crate::output::Output;

pub(super) fn import(job: &ImportJob, path: &Path, output: &Output) -> Result<u8, Failure> {
    let failed = |error: StoreError| Failure::new(ERROR, error.to_string());
    let found = Database::open(path).epochs().map_err(failed)?;
    // Modelled counts never share an epoch with measured ones.
    let epochs: Vec<&EpochEntry> =
        found.value.iter().filter(|epoch| epoch.facts().source() == Source::Measured).collect();
    if epochs.is_empty() {
        return Err(Failure::new(ERROR, format!("{} holds no epochs", path.display()))
            .remedy("name a perf.data file, or the folder of a database"));
    }
    let host = job.host.clone().unwrap_or_else(host_name);
    let mut writer = Writer::open_beside(&job.database, &host, "import").map_err(failed)?;
    let told = epochs.iter().flat_map(|epoch| &epoch.facts().periods);
    let periods = agreed(told.map(|(name, &period)| (name.as_str(), period)));
    // Of an event that an epoch sampled without keeping how often, the mean is not known.
    let is_kept = |name: &String| {
        let is_silent = |epoch: &&EpochEntry| !epoch.facts().periods.contains_key(name);
        !epochs.iter().any(|epoch| is_silent(epoch) && epoch.samples(name))
    };
    let facts = Facts {
        origin: format!("import {}", path.display()),
        periods: periods.into_iter().filter(|(name, _)| is_kept(name)).collect(),
        ..Facts::default()
    };
    let began = epochs.iter().map(|epoch| epoch.began_unix_ns()).min();
    let number = writer.begin(facts, began.unwrap_or_else(now_unix_ns)).map_err(failed)?;
    let mut troubles: Vec<StoreError> = found.troubles;
    let mut tally = vocab::Tally::default();
    let mut bytes = 0;
    for epoch in &epochs {
        let absorbed = writer.absorb(epoch).map_err(failed)?;
        troubles.extend(absorbed.troubles);
        bytes += absorbed.value.bytes;
        tally.merge(&epoch.tally());
    }
    writer.end(now_unix_ns()).map_err(failed)?;
    while writer.compact(1 << 16).map_err(failed)? != store::Compaction::Idle {}
    let facts = vec![
        Fact::new("file", "taken from", Cell::text(path.display().to_string())),
        Fact::new("epochs", "epochs merged", Cell::Count(Count(epochs.len() as u64))),
        Fact::new("database", "database", Cell::text(job.database.display().to_string())),
        Fact::new("host", "host", Cell::text(host.as_str())),
        Fact::new("epoch", "epoch", Cell::Count(Count(number))),
        Fact::new("bytes", "bytes written", Cell::Count(Count(bytes))),
    ];
    let section = |key, body| Section { key, title: String::new(), caption: String::new(), body };
    let notes = troubles.iter().map(ToString::to_string).collect();
    output.write(&View {
        schema: Schema { name: "import", version: 1 },
        title: format!("whither import: {}", path.display()),
        sections: vec![
            section("imported", Body::Facts(facts)),
            samples(&tally),
            section("notes", Body::Prose(notes)),
        ],
    })?;
    match troubles.first() {
        None => Ok(0),
        Some(first) => Err(Failure::new(ERROR, first.to_string())
            .kept(format!("whatever else could be read is in epoch {number}"))),
    }
}
