//! What was recorded, in a few lines.

use show::{Body, Cell, Fact, Schema, Section, View};
use vocab::{Count, Profile};

use super::Recorded;
use crate::database::{Kept, samples};

pub(super) fn view(recorded: &Recorded, kept: &Kept, rates: &[String]) -> View {
    recording(&recorded.command, &recorded.profile, kept, rates, None)
}

/// The same for measured and modelled recordings.
pub(super) fn recording(
    command: &str,
    profile: &Profile,
    kept: &Kept,
    rates: &[String],
    trouble: Option<&str>,
) -> View {
    let count = |number: usize| Cell::Count(Count(number as u64));
    let facts = vec![
        Fact::new("command", "recorded", Cell::text(command)),
        Fact::new("source", "source", Cell::text(profile.source.word())),
        Fact::new("sampled", "sampled", Cell::text(rates.join(", "))),
        Fact::new("database", "database", Cell::text(kept.database.display().to_string())),
        Fact::new("host", "host", Cell::text(kept.host.as_str())),
        Fact::new("epoch", "epoch", Cell::Count(Count(kept.epoch))),
        Fact::new("bytes", "bytes stored", Cell::Count(Count(kept.bytes))),
        Fact::new("images", "images", count(profile.images.len())),
        Fact::new("stacks", "different chains of calls", count(profile.stacks.len())),
    ];
    let section = Section {
        key: "recorded",
        title: String::new(),
        caption: String::new(),
        body: Body::Facts(facts),
    };
    let note = trouble.map(|sentence| Section {
        key: "notes",
        title: String::new(),
        caption: String::new(),
        body: Body::Prose(vec![sentence.to_owned()]),
    });
    View {
        schema: Schema { name: "recording", version: 1 },
        title: format!("whither record: {command}"),
        sections: [section, samples(&profile.tally)].into_iter().chain(note).collect(),
    }
}
