//! What samples told of where control went, and what frequencies rest on.

use std::collections::BTreeMap;

use analyse::{Doubles, EdgeSamples, Passed, Turns};
use image::{Binary, CodePart};
use vocab::{ImageId, Onward, Place, Way};

use super::{Examiner, extents, is_precise};

impl Examiner<'_> {
    /// Double samples and directions of a procedure, where the epochs have any.
    pub(super) fn edge_samples(
        &self,
        image: ImageId,
        binary: &Binary,
        parts: &[CodePart<'_>],
    ) -> Option<EdgeSamples> {
        let profile = &self.sampled.profile;
        if profile.ways.is_empty() {
            return None;
        }
        let event = self.sampled.event;
        let (mut passed, mut ways) = (BTreeMap::new(), BTreeMap::new());
        let mut turns: BTreeMap<u64, Turns> = BTreeMap::new();
        for (start, end) in extents(binary, parts) {
            let at = |offset| Way { event, place: Place { image, offset }, onward: Onward::Passed };
            for (way, tally) in profile.ways.range(at(start)..at(end)) {
                let Some(from) = binary.address_of(way.place.offset) else { continue };
                let count = tally.count.0;
                match way.onward {
                    Onward::Passed => {
                        let (pairs, begun) = (tally.pairs.0, tally.begun.0);
                        passed.insert(from, Passed { count, pairs, begun });
                    }
                    Onward::To(to) => {
                        ways.extend(binary.address_of(to).map(|to| ((from, to), count)));
                    }
                    Onward::Taken => turns.entry(from).or_default().taken += count,
                    Onward::Straight => turns.entry(from).or_default().straight += count,
                }
            }
        }
        let doubles = self.doubles_period().map(|period| Doubles { period, at: passed, ways });
        Some(EdgeSamples { doubles, turns })
    }

    /// How many runs one passing stands for, if all epochs that were asked for took double samples
    /// with the same gap.
    fn doubles_period(&self) -> Option<f64> {
        let mut gaps = self
            .sampled
            .selected
            .epochs
            .iter()
            .map(|epoch| epoch.facts().modelled.as_ref().and_then(|by| by.gap_cycles));
        let gap = gaps.next()??;
        let period = self.periods.get(usize::from(self.sampled.event.0))?;
        gaps.all(|other| other == Some(gap)).then_some(period / gap as f64)
    }

    /// What frequencies rest on, in words.
    pub(crate) fn evidence(&self) -> String {
        let profile = &self.sampled.profile;
        let mut kinds = vec![format!("samples of {}", self.sampled.event_name())];
        for (k, event) in profile.events.iter().enumerate() {
            let id = vocab::EventId(k as u16);
            let is_counted = matches!(
                analyse::Sampled::named(&event.name),
                Some(analyse::Sampled::Instructions | analyse::Sampled::TakenBranches)
            );
            if id != self.sampled.event && is_counted && is_precise(&profile.events, id) {
                kinds.push(event.name.clone());
            }
        }
        if !profile.branches.is_empty() {
            kinds.push("branch records".into());
        }
        let has = |kind: fn(&Onward) -> bool| {
            let mut ways = profile.ways.keys().filter(|way| way.event == self.sampled.event);
            ways.any(|way| kind(&way.onward))
        };
        if self.doubles_period().is_some() && has(|onward| *onward == Onward::Passed) {
            kinds.push("double samples".into());
            if has(|onward| matches!(onward, Onward::Taken | Onward::Straight)) {
                kinds.push("directions of branches".into());
            }
        }
        kinds.join(", ")
    }
}
