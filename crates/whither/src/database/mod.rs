//! What the commands that write or read the database have in common.

mod aside;
mod facts;
mod keep;
mod moment;
mod periods;
mod placing;
mod select;
mod this_host;

pub(crate) use aside::Aside;
pub(crate) use facts::note_facts;
pub(crate) use keep::{Keeping, Kept, keep};
pub(crate) use moment::{now_unix_ns, shown};
pub(crate) use periods::{Periods, agreed};
pub(crate) use placing::take_item;
pub(crate) use select::{Selected, select};
pub(crate) use this_host::{ThisHost, host_name, kernel_build_id};

use show::{Body, Cell, Fact, Section};
use vocab::{Count, Tally};

/// What a view does not see; the last section of every one.
pub(crate) fn notes(sentences: Vec<String>) -> Section {
    Section {
        key: "notes",
        title: "WHAT THIS VIEW DOES NOT SEE".into(),
        caption: String::new(),
        body: Body::Prose(sentences),
    }
}

/// What became of the samples; the same in every view.
pub(crate) fn samples(tally: &Tally) -> Section {
    let count = |key, label, count| Fact::new(key, label, Cell::Count(count));
    let mut facts = vec![
        count("taken", "samples taken", tally.taken()),
        count("stored", "placed in an image", tally.stored),
        count("unplaced", "unplaced", tally.unplaced_total()),
        count("lost", "lost", tally.lost),
        count("throttled", "times throttled", tally.throttled),
    ];
    // Only a handler that counts its entries looks for blind spots too.
    let blind = match tally.entries {
        Some(_) => Cell::Count(tally.blind),
        None if tally.blind > Count::ZERO => Cell::Count(tally.blind),
        None => Cell::NotCounted("nobody looked for them".into()),
    };
    facts.push(Fact::new("blind", "at blind spots, of those placed", blind));
    facts.push(Fact::new(
        "entries",
        "counted by the handler itself",
        match tally.entries {
            Some(entries) => Cell::Count(entries),
            None => Cell::NotCounted("the handler did not count".into()),
        },
    ));
    Section {
        key: "samples",
        title: "WHAT BECAME OF THE SAMPLES".into(),
        caption: String::new(),
        body: Body::Facts(facts),
    }
}
