//! Which epochs.

use std::path::PathBuf;

use store::{Database, EpochEntry, StoreError};
use vocab::{Source, Tally};

use crate::cli::{EpochChoice, Selection};
use crate::failure::{ERROR, Failure};

/// The epochs that match, and what could not be read on the way.
pub(crate) struct Selected {
    pub(crate) epochs: Vec<EpochEntry>,
    pub(crate) database: PathBuf,
    pub(crate) troubles: Vec<StoreError>,
    /// How many epochs are of the other source.
    pub(crate) other_source: usize,
}

impl Selected {
    /// What became of the samples of all of them.
    pub(crate) fn tally(&self) -> Tally {
        let mut whole = Tally::default();
        self.epochs.iter().for_each(|epoch| whole.merge(&epoch.tally()));
        whole
    }
}

pub(crate) fn select(asked: &Selection) -> Result<Selected, Failure> {
    let failed = |error: StoreError| Failure::new(ERROR, error.to_string());
    let found = Database::open(&asked.database).epochs().map_err(failed)?;
    let source = if asked.modelled { Source::Modelled } else { Source::Measured };
    let of_source = |epoch: &EpochEntry| epoch.facts().source() == source;
    let all = found.value.len();
    let (epochs, others): (Vec<_>, Vec<_>) = found.value.into_iter().partition(of_source);
    let newest = |epoch: &EpochEntry| {
        let of_host = epochs.iter().filter(|other| other.host() == epoch.host());
        of_host.map(EpochEntry::last_unix_ns).max() == Some(epoch.last_unix_ns())
    };
    let fits = |epoch: &&EpochEntry| {
        asked.host.as_deref().is_none_or(|host| host == epoch.host())
            && match asked.epoch {
                None => true,
                Some(EpochChoice::Numbers(first, last)) => (first..=last).contains(&epoch.number()),
                Some(EpochChoice::Last) => newest(epoch),
            }
    };
    let chosen: Vec<EpochEntry> = epochs
        .iter()
        .filter(fits)
        .map(|epoch| epoch.between(asked.since_unix_ns, asked.until_unix_ns))
        .filter(|epoch| !epoch.is_empty())
        .collect();
    if chosen.is_empty() {
        return Err(nothing(asked, all, others.len(), &found.troubles));
    }
    Ok(Selected {
        epochs: chosen,
        database: asked.database.clone(),
        troubles: found.troubles,
        other_source: others.len(),
    })
}

fn nothing(asked: &Selection, all: usize, others: usize, troubles: &[StoreError]) -> Failure {
    let database = asked.database.display();
    if let Some(trouble) = troubles.first() {
        return Failure::new(ERROR, format!("nothing in {database} can be shown: {trouble}"));
    }
    if all == 0 {
        return Failure::new(ERROR, format!("there is nothing in the database {database}"))
            .remedy("`whither record -- PROGRAM` or `whither import perf.data` puts something in");
    }
    let remedy = match (others, asked.modelled) {
        (0, _) => "`whither prof by epoch` lists all epochs",
        (_, true) => "there are measured samples: leave out --modelled",
        (_, false) => "there are modelled samples: --modelled shows them",
    };
    Failure::new(ERROR, format!("no epoch of {database} matches")).remedy(remedy)
}
