//! A modelled core whose counters interrupt: samples, added up by instruction where they fall.
//!
//! The account of time and happenings stays inside; what is published is what a profiler would
//! have seen. The words of a row are the samples of the first event, 1, the interrupts that were
//! lost so far (in one row of the thread), the samples of the other events, and where control went
//! from it as an [`EdgeRow`](super::EdgeRow) tells it. Ways of double samples have chunks of their
//! own.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use model::core::{Accounting, Settings};
use model::event::{Counts, Event};
use model::fast::FastCore;
use model::machine::Machine;
use model::pmu::{Attribution, Sampler, SamplerError, Sampling};
use model::stream::{Access, BlockId, CoreListener, StaticBlock};

use super::due::Due;
use super::listened::{Heard, Listened};
use super::listener::{KILLING_CALLS, LAST_CALLS, uncertainty};
use super::{CHUNK_ROWS, CHUNK_WAYS, ROW_WORDS, TOTALS_EVERY, WAY_WORDS};
use crate::results::Publisher;
use crate::tally::{CurrentResults, current};

/// How many events can be sampled at a time.
pub const SAMPLED_MOST: usize = 4;
/// Words of a row that say where control went.
pub(super) const EDGE_WORDS: usize = 5;

/// What interrupts, and how often.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InterruptAsk {
    /// The events; the first is always there.
    pub events: [Option<Event>; SAMPLED_MOST],
    /// Which of them name the instruction that did it, as precise hardware does; the others name the
    /// one that an interrupt finds.
    pub is_precise: [bool; SAMPLED_MOST],
    /// The mean period. Each is drawn evenly from a range of an eighth around it, so that no loop
    /// keeps step with it.
    pub period: u64,
    /// The seed of the periods.
    pub seed: u64,
    /// Cycles from the first to the second interrupt of a double sample, if such are taken; first
    /// ones come a period of cycles apart. Then directions of sampled branches are kept too.
    pub gap_cycles: Option<u64>,
}

impl InterruptAsk {
    pub(crate) fn to_word(self) -> String {
        let known = self.events.iter().zip(self.is_precise);
        let events = known.filter_map(|(event, is_precise)| {
            Some(format!("{}{}", (*event)? as usize, if is_precise { "p" } else { "" }))
        });
        let events: Vec<String> = events.collect();
        let gap = self.gap_cycles.unwrap_or(0);
        format!("interrupts:{}:{}:{}:{gap}", self.period, self.seed, events.join("+"))
    }

    pub(crate) fn from_word(word: &str) -> Option<InterruptAsk> {
        let mut parts = word.strip_prefix("interrupts:")?.split(':');
        let (period, seed) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        let mut events = [None; SAMPLED_MOST];
        let mut is_precise = [false; SAMPLED_MOST];
        for (place, number) in parts.next()?.split('+').enumerate() {
            let plain = number.strip_suffix('p');
            let event = *Event::ALL.get(plain.unwrap_or(number).parse::<usize>().ok()?)?;
            *events.get_mut(place)? = Some(event);
            *is_precise.get_mut(place)? = plain.is_some();
        }
        let gap: u64 = parts.next()?.parse().ok()?;
        let gap_cycles = (gap > 0).then_some(gap);
        Some(InterruptAsk { events, is_precise, period, seed, gap_cycles })
    }

    /// The counters' programming; an error names an event that no instruction owns.
    pub fn sampler(&self, machine: &Machine, thread: u32) -> Result<Sampler, SamplerError> {
        let period = self.periods();
        let attribution = Attribution::NextCommitting;
        let sampling = |&event: &Event| Sampling { event, period, attribution };
        let samplings: Vec<Sampling> = self.events.iter().flatten().map(sampling).collect();
        Sampler::new(machine, &samplings, self.seed_of(thread))
    }

    /// The shortest and the longest period.
    pub(super) fn periods(&self) -> (u64, u64) {
        let spread = self.period / 16;
        (self.period.saturating_sub(spread).max(1), self.period + spread)
    }

    /// Threads are interrupted at places of their own.
    pub(super) fn seed_of(&self, thread: u32) -> u64 {
        self.seed.wrapping_add(u64::from(thread) << 32)
    }
}

/// One thread's core.
#[derive(Debug)]
pub(super) struct Interrupted {
    core: FastCore<Listened>,
    current: CurrentResults,
    thread: u32,
    totals: Publisher,
    slabs: BTreeMap<usize, &'static [AtomicU64]>,
    samples: BTreeMap<u32, Heard>,
    /// Where each way is published, and how often it was gone: the first that came is in the first
    /// place.
    ways: BTreeMap<(u32, u32), (usize, u64)>,
    way_slabs: Vec<&'static [AtomicU64]>,
    due: Due,
    /// What belongs to the parent of a fork.
    before: Option<(Counts, u64)>,
}

impl Interrupted {
    pub(super) fn new(
        machine: &Machine,
        settings: Settings,
        listened: Listened,
        current: CurrentResults,
        thread: u32,
    ) -> Interrupted {
        let totals = Publisher::new(self::current(&current), thread);
        Interrupted {
            core: FastCore::watched(machine, settings, listened),
            current,
            thread,
            totals,
            slabs: BTreeMap::new(),
            samples: BTreeMap::new(),
            ways: BTreeMap::new(),
            way_slabs: Vec::new(),
            due: Due::new(TOTALS_EVERY),
            before: None,
        }
    }

    #[cold]
    fn publish(&mut self) {
        let mut touched = BTreeSet::new();
        let mut ways = BTreeMap::new();
        self.core.watcher_mut().gather(&mut self.samples, &mut ways, |who| {
            touched.insert(who);
        });
        // The first row also carries what was lost.
        touched.extend(self.samples.keys().next());
        touched.into_iter().for_each(|instruction| self.publish_row(instruction));
        ways.into_iter().for_each(|(way, count)| self.publish_way(way, count));
        self.publish_totals();
    }

    /// Adds to a way, and publishes it.
    fn publish_way(&mut self, way: (u32, u32), count: u64) {
        let next = self.ways.len();
        let (place, sum) = self.ways.entry(way).or_insert((next, 0));
        *sum += count;
        let (place, sum) = (*place, *sum);
        if self.way_slabs.len() <= place / CHUNK_WAYS {
            let Some(slab) = current(&self.current).ways(self.thread) else { return };
            self.way_slabs.push(slab);
        }
        let slab = self.way_slabs.get(place / CHUNK_WAYS);
        let start = place % CHUNK_WAYS * WAY_WORDS;
        if let Some([ends, held]) = slab.and_then(|slab| slab.get(start..start + WAY_WORDS)) {
            ends.store(u64::from(way.0) << 32 | u64::from(way.1), Relaxed);
            held.store(sum, Relaxed);
        }
    }

    fn publish_row(&mut self, instruction: u32) {
        let number = instruction as usize / CHUNK_ROWS;
        let slab = match self.slabs.get(&number) {
            Some(slab) => slab,
            None => {
                let first = (number * CHUNK_ROWS) as u32;
                let Some(slab) = current(&self.current).rows(self.thread, first) else { return };
                self.slabs.entry(number).or_insert(slab)
            }
        };
        let Some(samples) = self.samples.get(&instruction) else { return };
        let is_first = self.samples.keys().next() == Some(&instruction);
        let before = self.before.as_ref().map_or(0, |(_, lost)| *lost);
        let lost = if is_first { self.core.watcher().lost() - before } else { 0 };
        let Heard { samples, edges } = *samples;
        let edges = [edges.taken, edges.straight, edges.passed, edges.pairs, edges.begun];
        let words = [samples[0], 1, lost].into_iter().chain(samples.into_iter().skip(1));
        let words = words.chain(edges);
        let start = instruction as usize % CHUNK_ROWS * ROW_WORDS;
        if let Some(cells) = slab.get(start..start + ROW_WORDS) {
            cells.iter().zip(words).for_each(|(cell, word)| cell.store(word, Relaxed));
        }
    }

    fn publish_totals(&mut self) {
        let counts = Accounting::counts(&self.core);
        let counts = match &self.before {
            Some((before, _)) => counts.since(before),
            None => counts,
        };
        let mut bytes: Vec<u8> = counts.0.iter().flat_map(|count| count.to_le_bytes()).collect();
        for &event in Event::ALL {
            let (u, dof) = uncertainty(&self.core, event);
            bytes.extend(u.to_le_bytes());
            bytes.extend(dof.to_le_bytes());
        }
        self.totals.publish(&bytes);
    }
}

impl CoreListener for Interrupted {
    fn translated(&mut self, id: BlockId, block: &StaticBlock) {
        self.core.translated(id, block);
    }

    #[inline]
    fn executed(&mut self, id: BlockId, ran: u16, accesses: &[Access]) {
        self.core.executed(id, ran, accesses);
        if self.due.passed(u64::from(ran)).is_some() {
            self.publish();
        }
    }

    fn continued(&mut self, id: BlockId, accesses: &[Access]) {
        self.core.continued(id, accesses);
    }

    fn interrupted(&mut self) {
        self.core.interrupted();
    }

    fn system_call(&mut self, number: u64) {
        self.core.system_call(number);
        if LAST_CALLS.contains(&number) {
            self.core.settle_all();
            self.publish();
        } else if KILLING_CALLS.contains(&number) && self.due.is_worth_it() {
            self.publish();
        }
    }

    fn forked(&mut self) {
        self.core.forked();
        self.core.settle_all();
        self.core.watcher_mut().forget();
        self.before = Some((Accounting::counts(&self.core), self.core.watcher().lost()));
        self.thread = 0;
        self.slabs.clear();
        self.samples.clear();
        self.ways.clear();
        self.way_slabs.clear();
        self.totals = Publisher::new(current(&self.current), 0);
        self.due = Due::new(TOTALS_EVERY);
    }

    fn ended(&mut self) {
        self.core.settle_all();
        self.publish();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_comes_back_and_odd_words_do_not() {
        let events = [Some(Event::Cycles), Some(Event::L1dLoadMisses), None, None];
        let is_precise = [false, true, false, false];
        for gap_cycles in [None, Some(16)] {
            let ask = InterruptAsk { events, is_precise, period: 20_000, seed: 7, gap_cycles };
            assert_eq!(InterruptAsk::from_word(&ask.to_word()), Some(ask));
        }
        for word in
            ["", "interrupts:", "interrupts:1:2", "interrupts:1:2:x:0", "interrupts:1:2:999:0"]
        {
            assert_eq!(InterruptAsk::from_word(word), None, "{word}");
        }
        assert_eq!(InterruptAsk::from_word("interrupts:1:2:0+0+0+0+0:0"), None, "too many");
    }
}
