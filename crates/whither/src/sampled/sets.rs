//! Samples by procedure, set by set: each epoch is one set.

use std::collections::{BTreeMap, HashMap};

use vocab::{Count, ImageId, Offset, Profile};

use super::Sampled;
use crate::cli::Selection;
use crate::failure::Failure;

/// One procedure's samples in every set. It is known by its name and its image's: sets may come from
/// different builds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct SetRow {
    pub(crate) image: String,
    pub(crate) procedure: String,
    pub(crate) counts: Vec<Count>,
}

impl SetRow {
    pub(crate) fn sum(&self) -> Count {
        self.counts.iter().copied().sum()
    }
}

/// A selection, set by set.
pub(crate) struct Sets {
    pub(crate) sampled: Sampled,
    /// `HOST epoch N`, one a set.
    pub(crate) names: Vec<String>,
    pub(crate) totals: Vec<Count>,
    pub(crate) rows: Vec<SetRow>,
}

impl Sets {
    pub(crate) fn load(asked: &Selection, progress: bool) -> Result<Sets, Failure> {
        let mut sampled = Sampled::load(asked)?;
        sampled.procedures(progress);
        let mut sets = Sets { names: Vec::new(), totals: Vec::new(), rows: Vec::new(), sampled };
        let mut sums: BTreeMap<(String, String), Vec<Count>> = BTreeMap::new();
        let epochs = sets.sampled.selected.epochs.clone();
        for (set, epoch) in epochs.iter().enumerate() {
            sets.names.push(format!("{} epoch {}", epoch.host(), epoch.number()));
            // What cannot be read has been told already.
            let profile = epoch.load().map(|loaded| loaded.value).ok();
            let mut total = Count::ZERO;
            for (key, count) in profile.iter().flat_map(|profile| by_name(&sets.sampled, profile)) {
                let row = sums.entry(key).or_insert_with(|| vec![Count::ZERO; epochs.len()]);
                if let Some(sum) = row.get_mut(set) {
                    *sum += count;
                }
                total += count;
            }
            sets.totals.push(total);
        }
        let row = |((image, procedure), counts)| SetRow { image, procedure, counts };
        sets.rows = sums.into_iter().map(row).collect();
        Ok(sets)
    }

    pub(crate) fn total(&self) -> Count {
        self.totals.iter().copied().sum()
    }
}

/// One epoch's samples by the names of image and procedure.
fn by_name(sampled: &Sampled, profile: &Profile) -> HashMap<(String, String), Count> {
    let event = sampled.profile.events.get(usize::from(sampled.event.0));
    let wanted: Vec<Option<ImageId>> = profile
        .images
        .iter()
        .map(|image| {
            let place = sampled.profile.images.iter().position(|held| held == image)?;
            let id = ImageId(place as u32);
            sampled.by_image.iter().any(|(wanted, _)| *wanted == id).then_some(id)
        })
        .collect();
    let mut sums: HashMap<(ImageId, Option<Offset>), Count> = HashMap::new();
    for (spot, &count) in &profile.counts {
        let id = wanted.get(spot.image.0 as usize).copied().flatten();
        let Some(id) = id.filter(|_| profile.events.get(usize::from(spot.event.0)) == event) else {
            continue;
        };
        let known = sampled.images().procedures().get(&id);
        let procedure = known.and_then(|known| known.find(spot.offset));
        *sums.entry((id, procedure.map(|procedure| procedure.start))).or_default() += count;
    }
    let mut named = HashMap::new();
    for ((id, start), count) in sums {
        let image = sampled.image_name(id).to_owned();
        let known = sampled.images().procedures().get(&id);
        let procedure = start.and_then(|start| known.and_then(|known| known.find(start)));
        let name = match procedure {
            Some(procedure) => procedure.name(&image),
            None => "(no known procedure)".to_owned(),
        };
        *named.entry((image, name)).or_default() += count;
    }
    named
}
