//! A procedure by its name, an event by its own.

use analyse::ProcedureTime;
use image::{Procedure, Procedures};
use pmu::nearest;
use vocab::{Count, EventId, ImageId, ImageKind, Offset, Profile};

use super::Sampled;
use crate::failure::{ERROR, Failure};

/// By which an event is shown where none was asked for: where time went comes before everything
/// else that was sampled beside it.
pub(crate) fn rank(event: &str, samples: Count) -> (bool, Count) {
    let is_time = analyse::Sampled::named(event).is_some_and(analyse::Sampled::is_time);
    (is_time && samples > Count::ZERO, samples)
}

/// The event of that name, or the one with the most samples.
pub(super) fn event(profile: &Profile, asked: Option<&str>) -> Result<EventId, Failure> {
    let mut sums = vec![Count::ZERO; profile.events.len()];
    for (spot, &count) in &profile.counts {
        if let Some(sum) = sums.get_mut(usize::from(spot.event.0)) {
            *sum += count;
        }
    }
    let found = match asked {
        Some(name) => profile.events.iter().position(|event| event.name == name),
        None => (0..sums.len()).max_by_key(|&k| {
            let rank = rank(&profile.events[k].name, sums[k]);
            (rank, std::cmp::Reverse(k))
        }),
    };
    let found = found.filter(|&k| sums.get(k).is_some_and(|sum| *sum > Count::ZERO));
    found.map(|k| EventId(k as u16)).ok_or_else(|| {
        let known: Vec<&str> = profile.events.iter().map(|event| event.name.as_str()).collect();
        match asked {
            Some(name) => Failure::new(ERROR, format!("no samples of an event '{name}' match"))
                .remedy(format!("there are {}", known.join(", "))),
            None => Failure::new(ERROR, "no sample of what was asked for has a place")
                .remedy("`whither prof` says what became of the samples"),
        }
    })
}

impl Sampled {
    /// The procedure of that name with its samples; the hottest of all if none is named. Where
    /// several images have one, the one with the most samples; they are looked through from the
    /// image with the most samples down.
    pub(crate) fn find(&mut self, name: Option<&str>) -> Result<ProcedureTime, Failure> {
        let order = self.by_image.clone();
        let mut best: Option<ProcedureTime> = None;
        for (id, of_image) in order {
            let most = best.as_ref().map_or(Count::ZERO, |best| best.count);
            if most >= of_image && best.is_some() {
                break;
            }
            self.need(id);
            let found = match name {
                Some(name) => self.named(id, name),
                None => self.hottest(id),
            };
            best = match (best, found) {
                (Some(held), Some(found)) if found.count <= held.count => Some(held),
                (held, found) => found.or(held),
            };
        }
        best.ok_or_else(|| self.nowhere(name))
    }

    /// Of those whose code can be shown: the kernel has names without.
    fn hottest(&self, id: ImageId) -> Option<ProcedureTime> {
        self.images.code(id)?;
        let known = self.images.procedures().get(&id)?;
        let mut best: Option<(Count, &Procedure)> = None;
        let mut sum: Option<(Count, &Procedure)> = None;
        for (offset, count) in self.offsets(id, self.event, Offset(0), Offset(u64::MAX)) {
            let Some(procedure) = known.find(offset) else { continue };
            sum = match sum {
                Some((held, same)) if same.start == procedure.start => Some((held + count, same)),
                _ => Some((count, procedure)),
            };
            if sum.map(|(count, _)| count) > best.map(|(count, _)| count) {
                best = sum;
            }
        }
        best.map(|(_, procedure)| self.time_of(id, procedure))
    }

    fn named(&self, id: ImageId, name: &str) -> Option<ProcedureTime> {
        let known = self.images.procedures().get(&id)?;
        let image = self.image_name(id);
        let procedure = known.named(name).or_else(|| placed(known, image, name))?;
        let time = self.time_of(id, procedure);
        (time.count > Count::ZERO).then_some(time)
    }

    pub(crate) fn time_of(&self, image: ImageId, procedure: &Procedure) -> ProcedureTime {
        let offsets = self.offsets(image, self.event, procedure.start, procedure.end);
        let count = offsets.values().copied().sum();
        ProcedureTime { image, procedure: Some(procedure.clone()), count, offsets }
    }

    fn nowhere(&self, name: Option<&str>) -> Failure {
        // An image that cannot be read may hold it: that is the likelier reason.
        let refused = self.by_image.iter().find_map(|(id, count)| {
            let why = self.refusal(*id)?;
            let image = self.image(*id).filter(|image| image.kind == ImageKind::File)?;
            Some(format!("{} with {count} samples cannot be looked into: {why}", image.path))
        });
        let Some(name) = name else {
            let what = refused.unwrap_or_else(|| "no sample lies in a known procedure".into());
            return Failure::new(ERROR, what).remedy("`whither prof` still counts its samples");
        };
        let names = self.by_image.iter().flat_map(|(id, _)| self.sampled_names(*id));
        let names: Vec<String> = names.collect();
        let near = nearest(name, names.iter().map(String::as_str));
        let what = format!("no procedure '{name}' has samples");
        match (near, refused) {
            (Some(near), _) => Failure::new(ERROR, what).remedy(format!("did you mean '{near}'?")),
            (None, Some(why)) => {
                Failure::new(ERROR, what).kept(why).remedy("`whither prof` still counts them")
            }
            (None, None) => {
                Failure::new(ERROR, what).remedy("`whither prof` lists those that have")
            }
        }
    }

    fn sampled_names(&self, id: ImageId) -> Vec<String> {
        let Some(known) = self.images.procedures().get(&id) else { return Vec::new() };
        let offsets = self.offsets(id, self.event, Offset(0), Offset(u64::MAX));
        let mut found: Vec<&Procedure> =
            offsets.keys().filter_map(|offset| known.find(*offset)).collect();
        found.dedup_by_key(|procedure| procedure.start);
        found.into_iter().map(|procedure| procedure.name(self.image_name(id))).collect()
    }
}

/// `gzip+0x4f50`, or `+0x4f50` alone: the procedure that holds that place in the file.
fn placed<'a>(known: &'a Procedures, image: &str, name: &str) -> Option<&'a Procedure> {
    let place = name.strip_prefix(image).unwrap_or(name);
    let digits = place.strip_prefix('+').unwrap_or(place).strip_prefix("0x")?;
    known.find(Offset(u64::from_str_radix(digits, 16).ok()?))
}
