//! What the windows say of the whole run so far.

use std::collections::{BTreeMap, BTreeSet};

use metrology::{Coverage, Estimate};

use super::features::Known;
use super::fit::Fitted;
use super::{Phase, SampledCore};
use crate::core::{Account, Accounting, Sampling};
use crate::event::{Counts, Event, STATIC};

/// The power of two of the bytes of code that are as fast or slow together.
const CODE_PAGE_SHIFT: u32 = 12;

impl SampledCore {
    /// How often each static instruction ran, timed or not: exact.
    pub fn runs(&self) -> Vec<u64> {
        let mut steps = self.steps.clone();
        for block in &self.blocks {
            steps[block.first as usize] += block.runs as i64;
            steps[(block.first + block.count) as usize] -= block.runs as i64;
        }
        running_sums(&steps)
    }

    /// Whether every instruction so far was timed.
    pub fn is_exact(&self) -> bool {
        self.certain.is_none()
    }

    /// The estimated count of an event over the whole run; none with fewer than two windows, unless
    /// everything was timed. Until `settle_all` it may rest on fewer windows than there are.
    pub fn estimate(&self, event: Event) -> Option<Estimate> {
        if event == Event::Instructions {
            return Some(Estimate::exact(self.instructions as f64));
        }
        let Some(certain) = &self.certain else {
            return Some(Estimate::exact(self.timed_whole()[event] as f64));
        };
        if event.is_static() && self.fixed.0 == self.instructions {
            return Some(Estimate::exact(self.fixed.1[event as usize] as f64));
        }
        let uncertain = self.instructions.saturating_sub(certain[Event::Instructions]);
        match &self.fitted {
            Some(fitted) if event == Event::WritebacksMemory => {
                let all = fitted.total(certain, Event::MemoryReads, uncertain, self.unseen);
                let seen = fitted.total(certain, event, uncertain, self.unseen);
                Some(if self.has_skipped() { between(seen, all) } else { seen })
            }
            Some(fitted) => {
                let total = fitted.total(certain, event, uncertain, self.unseen);
                Some(total.plus(self.unsure_steering(event)))
            }
            None => a_little_more(certain, event, uncertain),
        }
    }

    fn has_skipped(&self) -> bool {
        self.strata.iter().any(|stratum| stratum.known != Known::All)
    }

    /// Relative half-width of the cycles at 95 %.
    pub fn relative_error(&self) -> Option<f64> {
        let cycles = self.estimate(Event::Cycles)?;
        Some(cycles.interval(Coverage::P95).half_width() / cycles.value.max(1.0))
    }

    /// The two parts of the relative half-width of the cycles at 95 %: what the windows' spread and
    /// what was never timed make, and what windows are off by.
    pub fn error_parts(&self) -> Option<(f64, f64)> {
        let rate = self.fitted.as_ref()?.rates.get(Event::Cycles as usize)?;
        let certain = self.certain.as_ref()?;
        let uncertain = self.instructions.saturating_sub(certain[Event::Instructions]) as f64;
        let sampled = rate.spread(uncertain, certain[Event::Cycles] as f64, self.unseen);
        let share = |e: Estimate| e.interval(Coverage::P95).half_width() / sampled.value.max(1.0);
        let bias = rate.bias(uncertain).plus(self.unsure_steering(Event::Cycles));
        Some((share(sampled), share(bias)))
    }

    /// How much more cycles there would be, as a share, had every window been warmed for longer.
    fn longer_warming(&self) -> Option<Estimate> {
        let certain = self.certain.as_ref()?[Event::Instructions];
        self.warmth.longer(self.instructions.saturating_sub(certain))
    }

    /// Adds the stratum under way as far as it came. Of a skipped one without a window too little is
    /// known for it to stand alone: it is the end of the one before.
    fn add_unfinished(&mut self) {
        if matches!(self.phase, Phase::Certain | Phase::Forked) || self.in_stratum == 0 {
            return;
        }
        let mut so_far = self.so_far();
        if let Some(came) = &self.came_before {
            so_far.join(came);
        }
        let before = self.strata.last_mut().filter(|_| self.stratum.is_skipped);
        match (&self.window, before) {
            (Some(window), _) => self.strata.push(window.clone().within(so_far)),
            (None, Some(before)) => before.join(&so_far),
            (None, None) => self.strata.push(so_far),
        }
    }

    /// Fits all there is, the stratum under way included, and looks for code that was never timed.
    fn fit_all(&mut self) {
        let (count, last) = (self.strata.len(), self.strata.last().cloned());
        self.add_unfinished();
        self.fit_now();
        self.strata.truncate(count);
        if let (Some(place), Some(last)) = (self.strata.last_mut(), last) {
            *place = last;
        }
        self.unseen = self.look_for_unseen();
    }

    /// How much of the run was code that was never timed. Windows stand for that too, but their
    /// spread may not show what it does. How long it takes is unknown page by page of the code, so
    /// that many little things count for less than one that ran all the time:
    ///
    /// ```text
    /// √ Σ over pages: (instructions of the page that were never timed)²
    /// ```
    fn look_for_unseen(&self) -> f64 {
        let (runs, timed) = (self.runs(), self.core.account().runs());
        let code = &self.core.program().instructions;
        let seen = code.iter().zip(&timed).filter(|(_, timed)| **timed > 0);
        let seen: BTreeSet<u64> = seen.map(|(instruction, _)| instruction.pc).collect();
        let mut pages: BTreeMap<u64, u64> = BTreeMap::new();
        for (place, (instruction, runs)) in code.iter().zip(runs).enumerate() {
            let own = runs.saturating_sub(self.inherited.get(place).copied().unwrap_or(0));
            // The same instruction may belong to several blocks, of which one was timed.
            if own > 0 && !seen.contains(&instruction.pc) {
                *pages.entry(instruction.pc >> CODE_PAGE_SHIFT).or_default() += own;
            }
        }
        pages.into_values().map(|runs| (runs as f64).powi(2)).sum::<f64>().sqrt()
    }

    pub(super) fn fit_now(&mut self) {
        self.fitted = Fitted::new(&self.strata, &self.prior);
        self.fit_all_at = self.strata.len() + self.strata.len() / 2;
    }

    /// Fits what says how long strata should be: the cycles, and now and then all, which takes a
    /// hundred times as long.
    pub(super) fn fit_on(&mut self) {
        let count = self.strata.len();
        match &mut self.fitted {
            Some(fitted) if count < self.fit_all_at => {
                fitted.renew(Event::Cycles, &self.strata, &self.prior);
            }
            _ => self.fit_now(),
        }
        self.fit_at = count + 1 + count / 32;
    }

    /// Adds up what depends on the code alone.
    pub(super) fn add_fixed(&mut self) {
        let mut totals = [0; STATIC];
        for (block, counted) in self.core.program().blocks.iter().zip(&self.blocks) {
            let runs = counted.runs;
            let sums = totals.iter_mut().zip(&block.counts);
            sums.for_each(|(total, &count)| *total += runs * u64::from(count));
        }
        let in_part = running_sums(&self.steps).into_iter();
        for (runs, counts) in in_part.zip(&self.core.program().counts) {
            let sums = totals.iter_mut().zip(counts);
            sums.for_each(|(total, &count)| *total += runs * u64::from(count));
        }
        let before = self.fixed_before;
        self.fixed = (self.instructions, std::array::from_fn(|k| totals[k] - before[k]));
    }
}

/// Dirty lines that leave the last level. Nobody says of lines that are reached while the program runs
/// on whether they were written, so that windows see too few leave; and no more can leave than come.
fn between(seen: Estimate, all: Estimate) -> Estimate {
    let half = ((all.value - seen.value) / 2.0).max(0.0);
    seen.plus(Estimate::known(half, half / 3.0_f64.sqrt()))
}

/// What was timed whole, and a little more that was not: at its rate, give or take all of it.
fn a_little_more(certain: &Counts, event: Event, uncertain: u64) -> Option<Estimate> {
    let timed = certain[Event::Instructions];
    if timed == 0 {
        return None;
    }
    let more = certain[event] as f64 * uncertain as f64 / timed as f64;
    // Anything from nothing to twice as much is as likely: a rectangle of that half-width.
    Some(Estimate::known(certain[event] as f64 + more, more / 3.0_f64.sqrt()))
}

/// Runs from steps: how often a run began at an instruction, less how often one ended before it.
fn running_sums(steps: &[i64]) -> Vec<u64> {
    let sums = steps.iter().scan(0_i64, |sum, step| {
        *sum += step;
        Some(*sum as u64)
    });
    sums.take(steps.len().saturating_sub(1)).collect()
}

impl Accounting for SampledCore {
    fn settle_all(&mut self) {
        if self.phase == Phase::Certain {
            self.core.finish();
        } else {
            self.fit_all();
            self.add_fixed();
        }
    }

    fn counts(&self) -> Counts {
        let mut counts = Counts::default();
        for &event in Event::ALL {
            counts[event] = self.estimate(event).map_or(0, |e| e.value.round() as u64);
        }
        counts
    }

    fn account(&self) -> &Account {
        self.core.account()
    }

    fn runs(&self) -> Vec<u64> {
        SampledCore::runs(self)
    }

    fn estimate(&self, event: Event) -> Option<Estimate> {
        SampledCore::estimate(self, event)
    }

    fn sampling(&self) -> Option<Sampling> {
        self.certain.as_ref()?;
        Some(Sampling {
            windows: self.windows,
            timed: self.core.account().totals[Event::Instructions],
            longer_warming: self.longer_warming(),
            taken_off: self.steering.taken_off(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_may_have_been_written_are_anything_between_those_seen_and_all() {
        let seen = Estimate { standard_uncertainty: 1.0, ..Estimate::exact(10.0) };
        let estimate = between(seen, Estimate::exact(30.0));
        assert_eq!(estimate.value, 20.0);
        let variance = 1.0 + 100.0 / 3.0;
        assert!((estimate.standard_uncertainty.powi(2) - variance).abs() < 1e-9);
        assert_eq!(between(seen, Estimate::exact(9.0)).value, 10.0, "fewer came than were seen");
    }
}
