//! What was sampled, as the database has it, with the images behind it.
//!
//! Images are read when they are asked for: looking at one procedure of a large program must not
//! wait for the libraries beside it.
//!
//! ```text
//! Selection ─► epochs ─► one Profile ─► procedure by name (images from the most samples down)
//!                                   └─► every procedure (all images)
//! ```

mod find;
mod sets;
mod tell;

use std::collections::{BTreeMap, HashSet};

use analyse::ProcedureTime;
use collect::KernelLayout;
use vocab::{Count, EventId, Image, ImageId, Offset, Profile};

use crate::cli::Selection;
use crate::database::{Aside, Selected, ThisHost, select};
use crate::failure::{ERROR, Failure};
use crate::progress::Progress;
use crate::run::{Images, kernel_layout};
pub(crate) use find::rank;
pub(crate) use sets::{SetRow, Sets};

/// The samples of a selection.
pub(crate) struct Sampled {
    pub(crate) selected: Selected,
    /// All epochs together.
    pub(crate) profile: Profile,
    /// The event that was asked for, or the one with the most samples.
    pub(crate) event: EventId,
    /// Samples of that event by image, most first.
    by_image: Vec<(ImageId, Count)>,
    host: ThisHost,
    aside: Aside,
    layout: Option<KernelLayout>,
    images: Images,
    loaded: HashSet<ImageId>,
}

impl Sampled {
    /// Reads the counts; no image yet.
    pub(crate) fn load(asked: &Selection) -> Result<Sampled, Failure> {
        let mut selected = select(asked)?;
        let mut whole: Option<Profile> = None;
        for epoch in &selected.epochs {
            let failed = |error: store::StoreError| Failure::new(ERROR, error.to_string());
            let loaded = epoch.load().map_err(failed)?;
            selected.troubles.extend(loaded.troubles);
            let mut profile = loaded.value;
            match &mut whole {
                None => whole = Some(profile),
                Some(whole) => {
                    // Epochs are added because they were asked for together.
                    profile.epoch = whole.epoch.clone();
                    whole
                        .merge(&profile)
                        .map_err(|error| Failure::new(ERROR, error.to_string()))?;
                }
            }
        }
        let Some(profile) = whole else {
            return Err(Failure::new(ERROR, "no epoch matches"));
        };
        Sampled::of(asked, selected, profile)
    }

    fn of(asked: &Selection, selected: Selected, profile: Profile) -> Result<Sampled, Failure> {
        let event = find::event(&profile, asked.event.as_deref())?;
        let mut sums: BTreeMap<ImageId, Count> = BTreeMap::new();
        for (spot, &count) in profile.counts.iter().filter(|(spot, _)| spot.event == event) {
            *sums.entry(spot.image).or_default() += count;
        }
        let wants = |id: &ImageId| match (&asked.image, profile.image(*id)) {
            (None, _) => true,
            (Some(wanted), Some(image)) => image.path == *wanted || image.short_name() == wanted,
            (Some(_), None) => false,
        };
        let mut by_image: Vec<(ImageId, Count)> =
            sums.into_iter().filter(|(id, _)| wants(id)).collect();
        by_image.sort_by_key(|&(id, count)| (std::cmp::Reverse(count), id));
        if by_image.is_empty() {
            let of = asked.image.as_deref().map_or(String::new(), |image| format!(" of '{image}'"));
            return Err(Failure::new(ERROR, format!("there are no samples{of}"))
                .remedy("`whither prof by image` lists what was sampled"));
        }
        let epochs = selected.epochs.iter().map(|epoch| (epoch.host(), epoch.began_unix_ns()));
        let host = ThisHost::judge(epochs);
        let aside = Aside::of(&selected.database, &selected.epochs);
        Ok(Sampled {
            selected,
            profile,
            event,
            by_image,
            host,
            aside,
            layout: None,
            images: Images::default(),
            loaded: HashSet::new(),
        })
    }

    /// The event's name.
    pub(crate) fn event_name(&self) -> &str {
        self.profile.events.get(usize::from(self.event.0)).map_or("?", |event| event.name.as_str())
    }

    /// Samples of the event in the images that were asked for: the whole of every share.
    pub(crate) fn whole(&self) -> Count {
        self.by_image.iter().map(|(_, count)| *count).sum()
    }

    pub(crate) fn image(&self, id: ImageId) -> Option<&Image> {
        self.profile.image(id)
    }

    pub(crate) fn image_name(&self, id: ImageId) -> &str {
        self.profile.image(id).map_or("?", Image::short_name)
    }

    pub(crate) fn images(&self) -> &Images {
        &self.images
    }

    /// Reads an image, or what the daemon kept of it, unless its names would be something else's.
    fn need(&mut self, id: ImageId) {
        let Some(image) = self.profile.image(id) else { return };
        if !self.loaded.insert(id) {
            return;
        }
        let layout = self.layout.get_or_insert_with(kernel_layout);
        self.images.load_believed(id, image, self.host, &self.aside, layout);
    }

    /// Why an image cannot be looked into.
    pub(crate) fn refusal(&self, id: ImageId) -> Option<&str> {
        self.images.refusal(id)
    }

    /// Every procedure of the images that were asked for, most samples first.
    pub(crate) fn procedures(&mut self, progress: bool) -> Vec<ProcedureTime> {
        let ids: Vec<ImageId> = self.by_image.iter().map(|(id, _)| *id).collect();
        let bar = Progress::new("reading images", ids.len(), progress);
        for &id in &ids {
            self.need(id);
            bar.step();
        }
        drop(bar);
        let wanted: HashSet<ImageId> = ids.into_iter().collect();
        let mut times = analyse::by_procedure(&self.profile, self.event, self.images.procedures());
        times.retain(|time| wanted.contains(&time.image));
        times
    }

    /// Whether an image was asked for.
    pub(crate) fn wants(&self, id: ImageId) -> bool {
        self.by_image.iter().any(|(wanted, _)| *wanted == id)
    }

    /// Reads the images of stacks and branches too.
    pub(crate) fn need_all(&mut self) {
        for id in 0..self.profile.images.len() as u32 {
            self.need(ImageId(id));
        }
    }

    /// Counts of another event at the places of a procedure.
    pub(crate) fn offsets(
        &self,
        image: ImageId,
        event: EventId,
        start: Offset,
        end: Offset,
    ) -> BTreeMap<Offset, Count> {
        let spot = |offset, event| vocab::Spot { image, offset, event };
        let range = spot(start, EventId(0))..spot(end, EventId(0));
        let of_event = self.profile.counts.range(range).filter(|(spot, _)| spot.event == event);
        of_event.map(|(spot, &count)| (spot.offset, count)).collect()
    }

    /// A sentence about the images whose names cannot be known, if there are any.
    pub(crate) fn unread(&self) -> Option<String> {
        let without = |&&(id, _): &&(ImageId, Count)| self.refusal(id).is_some();
        let refused: Vec<_> = self.by_image.iter().filter(without).collect();
        let &&(largest, _) = refused.first()?;
        let samples: Count = refused.iter().map(|(_, count)| *count).sum();
        let why = self.refusal(largest).unwrap_or_default();
        let path = self.profile.image(largest).map_or("?", |image| image.path.as_str());
        Some(match refused.len() {
            1 => format!("{path} with {samples} samples is counted without names: {why}"),
            n => format!(
                "{n} images with {samples} samples are counted without names; {path}: {why}"
            ),
        })
    }
}
