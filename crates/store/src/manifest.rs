//! What an epoch consists of: the one file whose replacement makes a change visible.
//!
//! Readers take the manifest and open what it lists; whatever else lies in the folder is either
//! not yet part of the epoch or no longer.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use serde::{Deserialize, Serialize};
use vocab::{Count, Event, EventCode, Mode, Source, Tally, Unplaced};

use crate::StoreError;
use crate::durable;

/// The manifest's name in an epoch's folder.
pub(crate) const NAME: &str = "epoch.json";
/// The newest version of the format: of the manifest and of the tables that it lists.
pub(crate) const VERSION: u32 = 2;

/// An epoch's manifest.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Manifest {
    /// Says what this file is.
    pub(crate) format: String,
    pub(crate) version: u32,
    pub(crate) host: String,
    /// Rises by one from epoch to epoch of a host, whatever the clock does.
    pub(crate) number: u64,
    pub(crate) began_unix_ns: u64,
    /// Set when nothing more will be appended.
    pub(crate) ended_unix_ns: Option<u64>,
    /// Set while no writer is at work, when the last one left in good order.
    pub(crate) left_unix_ns: Option<u64>,
    pub(crate) facts: Facts,
    pub(crate) events: Vec<StoredEvent>,
    pub(crate) segments: Vec<Segment>,
    pub(crate) gaps: Vec<Gap>,
    /// The number that the next segment gets.
    pub(crate) next_segment: u64,
}

/// What holds for all of an epoch.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Facts {
    /// Who wrote it: `daemon`, `record`, or the name of what was imported.
    pub origin: String,
    /// Where modelled samples come from; measured ones have none.
    pub modelled: Option<ModelledBy>,
    /// How long a time slice is, where time is kept apart.
    pub slice_ns: Option<u64>,
    /// How many of an event a sample stands for on average, by the event's name, where that is
    /// known; nanoseconds of a clock. Epochs that were written before it was kept have none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub periods: BTreeMap<String, u64>,
}

impl Facts {
    /// Machine or model.
    pub fn source(&self) -> Source {
        if self.modelled.is_some() { Source::Modelled } else { Source::Measured }
    }
}

/// The modelled core that samples come from.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ModelledBy {
    /// The machine's name.
    pub machine: String,
    /// The seed of the sampler's periods.
    pub seed: u64,
    /// The mean number of events between samples.
    pub period: u64,
    /// Cycles from the first to the second interrupt of a double sample, where there were any:
    /// first interrupts come a period apart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gap_cycles: Option<u64>,
}

/// An event and the label by which rows name it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct StoredEvent {
    pub(crate) label: String,
    pub(crate) name: String,
    /// `""`, `"u"` or `"k"`.
    pub(crate) mode: String,
    pub(crate) kind: u32,
    pub(crate) config: u64,
    pub(crate) config1: u64,
    pub(crate) config2: u64,
}

impl StoredEvent {
    fn new(event: &Event, label: String) -> StoredEvent {
        let EventCode { kind, config, config1, config2 } = event.code;
        let (name, mode) = (event.name.clone(), modifier(event.mode).to_owned());
        StoredEvent { label, name, mode, kind, config, config1, config2 }
    }

    fn event(&self) -> Event {
        let mode = match self.mode.as_str() {
            "u" => Mode::User,
            "k" => Mode::Kernel,
            _ => Mode::Both,
        };
        let code = EventCode {
            kind: self.kind,
            config: self.config,
            config1: self.config1,
            config2: self.config2,
        };
        Event { name: self.name.clone(), code, mode }
    }
}

fn modifier(mode: Mode) -> &'static str {
    match mode {
        Mode::Both => "",
        Mode::User => "u",
        Mode::Kernel => "k",
    }
}

/// What one append, or several that were merged, left behind.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Segment {
    /// `7`, or `3-7` where segments 3 to 7 were merged.
    pub(crate) name: String,
    pub(crate) from_unix_ns: u64,
    pub(crate) to_unix_ns: u64,
    /// The tables that it has.
    pub(crate) files: Vec<TableEntry>,
    pub(crate) tally: StoredTally,
}

impl Segment {
    /// Rows of the counts: what merging costs goes by them.
    pub(crate) fn rows(&self) -> u64 {
        self.files.iter().map(|file| file.rows).sum()
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).sum()
    }
}

/// One Parquet file.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct TableEntry {
    pub(crate) table: String,
    pub(crate) file: String,
    pub(crate) rows: u64,
    pub(crate) bytes: u64,
    pub(crate) checks: Checks,
}

/// What the file's bytes must hash to: a part that is not read is not checked.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Checks {
    /// Where the last column chunk ends and the footer begins.
    pub(crate) footer_at: u64,
    /// xxHash64 in hexadecimal: of each column chunk, row group after row group, then the footer.
    pub(crate) xxh64: Vec<String>,
}

/// What became of a segment's samples: entries = stored + unplaced + lost.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub(crate) struct StoredTally {
    /// The handler's own count, where it counts.
    pub(crate) entries: Option<u64>,
    pub(crate) stored: u64,
    pub(crate) unplaced: BTreeMap<String, u64>,
    pub(crate) lost: u64,
    pub(crate) throttled: u64,
    pub(crate) blind: u64,
}

/// The words for the reasons, in the manifest.
const REASONS: [(Unplaced, &str); 3] = [
    (Unplaced::UnknownProcess, "unknown process"),
    (Unplaced::UnknownAddress, "unknown address"),
    (Unplaced::HiddenKernel, "hidden kernel"),
];

impl StoredTally {
    pub(crate) fn new(tally: &Tally) -> StoredTally {
        let word =
            |reason| REASONS.iter().find(|(known, _)| *known == reason).map(|(_, word)| word);
        let unplaced = tally.unplaced.iter().filter_map(|(&reason, count)| {
            Some((word(reason)?.to_string(), count.0)).filter(|(_, count)| *count > 0)
        });
        StoredTally {
            entries: tally.entries.map(|count| count.0),
            stored: tally.stored.0,
            unplaced: unplaced.collect(),
            lost: tally.lost.0,
            throttled: tally.throttled.0,
            blind: tally.blind.0,
        }
    }

    pub(crate) fn tally(&self) -> Tally {
        let reason = |word: &str| REASONS.iter().find(|(_, known)| *known == word).map(|(r, _)| *r);
        let mut unplaced = BTreeMap::new();
        for (word, &count) in &self.unplaced {
            // A reason that a later version added is still a sample without a place.
            let reason = reason(word).unwrap_or(Unplaced::UnknownAddress);
            *unplaced.entry(reason).or_default() += Count(count);
        }
        Tally {
            stored: Count(self.stored),
            unplaced,
            lost: Count(self.lost),
            throttled: Count(self.throttled),
            blind: Count(self.blind),
            entries: self.entries.map(Count),
        }
    }
}

/// A time without samples inside an epoch.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Gap {
    /// The last moment from which samples are stored.
    pub from_unix_ns: u64,
    /// The first moment from which there may be samples again.
    pub to_unix_ns: u64,
    /// Why.
    pub why: String,
}

impl Manifest {
    /// An epoch that begins.
    pub(crate) fn new(host: &str, number: u64, began_unix_ns: u64, facts: Facts) -> Manifest {
        Manifest {
            format: "whither epoch".into(),
            version: VERSION,
            host: host.into(),
            number,
            began_unix_ns,
            ended_unix_ns: None,
            left_unix_ns: None,
            facts,
            events: Vec::new(),
            segments: Vec::new(),
            gaps: Vec::new(),
            next_segment: 1,
        }
    }

    pub(crate) fn read(folder: &Path) -> Result<Manifest, StoreError> {
        /// What every version has.
        #[derive(Deserialize)]
        struct Head {
            version: u32,
        }
        let path = folder.join(NAME);
        let text = std::fs::read(&path).map_err(StoreError::io("read", &path))?;
        let head: Head = serde_json::from_slice(&text).map_err(StoreError::damaged(&path))?;
        match head.version {
            // Version 1 has no table of ways. What is written to it from now on may have.
            1 | VERSION => {
                let manifest: Manifest =
                    serde_json::from_slice(&text).map_err(StoreError::damaged(&path))?;
                Ok(Manifest { version: VERSION, ..manifest })
            }
            version => Err(StoreError::TooNew { path, version, known: VERSION }),
        }
    }

    pub(crate) fn write(&self, folder: &Path) -> Result<(), StoreError> {
        let path = folder.join(NAME);
        let text = serde_json::to_vec_pretty(self).map_err(StoreError::damaged(&path))?;
        durable::replace(&path, &text)
    }

    /// The labels of events, adding those that are new; no two events share one.
    pub(crate) fn labels(&mut self, events: &[Event]) -> Vec<String> {
        events.iter().map(|event| self.label(event)).collect()
    }

    fn label(&mut self, event: &Event) -> String {
        if let Some(known) = self.events.iter().find(|known| known.event() == *event) {
            return known.label.clone();
        }
        let plain = match event.mode {
            Mode::Both => event.name.clone(),
            mode => format!("{}:{}", event.name, modifier(mode)),
        };
        let taken = |label: &String| self.events.iter().any(|known| known.label == *label);
        let numbered = (2_u32..).map(|number| format!("{plain} ({number})"));
        let mut candidates = std::iter::once(plain.clone()).chain(numbered);
        let label = candidates.find(|label| !taken(label)).unwrap_or(plain);
        self.events.push(StoredEvent::new(event, label.clone()));
        label
    }

    /// The events in the order in which they came.
    pub(crate) fn event_list(&self) -> Vec<Event> {
        self.events.iter().map(StoredEvent::event).collect()
    }

    /// Events by label.
    pub(crate) fn known_events(&self) -> HashMap<String, Event> {
        self.events.iter().map(|stored| (stored.label.clone(), stored.event())).collect()
    }

    /// What became of all samples.
    pub(crate) fn tally(&self) -> Tally {
        let mut whole = Tally::default();
        self.segments.iter().for_each(|segment| whole.merge(&segment.tally.tally()));
        whole
    }

    pub(crate) fn last_append_unix_ns(&self) -> u64 {
        self.segments.last().map_or(self.began_unix_ns, |segment| segment.to_unix_ns)
    }
}
