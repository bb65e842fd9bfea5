//! What a profiler hears of a modelled core: single interrupts, and double ones.

use std::collections::BTreeMap;

use model::core::{Life, Stalled, Watcher};
use model::event::Event;
use model::machine::Machine;
use model::pmu::{DoubleSample, DoubleSampler, Doubling, Sampler, SamplerError};
use model::uop::Flow;

use super::{EdgeRow, InterruptAsk, SAMPLED_MOST};

/// Samples of one instruction.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Heard {
    /// By event.
    pub(super) samples: [u64; SAMPLED_MOST],
    /// Where control went from it.
    pub(super) edges: EdgeRow,
}

/// The samplers of one thread.
#[derive(Debug)]
pub(super) struct Listened {
    sampler: Sampler,
    doubles: Option<DoubleSampler>,
    is_precise: [bool; SAMPLED_MOST],
    is_time: [bool; SAMPLED_MOST],
    /// Whether each instruction is a branch or jump that stays in its procedure, as a rule.
    turns: Vec<bool>,
}

impl Listened {
    pub(super) fn new(
        machine: &Machine,
        ask: &InterruptAsk,
        thread: u32,
    ) -> Result<Listened, SamplerError> {
        // Another seed, so that its interrupts are not those of the single samples.
        let doubles = ask.gap_cycles.map(|gap_cycles| {
            let doubling = Doubling { period_cycles: ask.periods(), gap_cycles };
            DoubleSampler::new(machine, doubling, !ask.seed_of(thread))
        });
        Ok(Listened {
            sampler: ask.sampler(machine, thread)?,
            doubles,
            is_precise: ask.is_precise,
            is_time: ask.events.map(|event| event == Some(Event::Cycles)),
            turns: Vec::new(),
        })
    }

    /// Adds what was heard since it was last asked, by instruction and by way; tells who changed.
    pub(super) fn gather(
        &mut self,
        heard: &mut BTreeMap<u32, Heard>,
        ways: &mut BTreeMap<(u32, u32), u64>,
        mut changed: impl FnMut(u32),
    ) {
        for sample in self.sampler.take() {
            let of = |list: [bool; SAMPLED_MOST]| list.get(sample.sampling).copied();
            let is_precise = of(self.is_precise) == Some(true);
            let who = if is_precise { sample.overflowed } else { sample.instruction };
            let held = heard.entry(who).or_default();
            if let Some(count) = held.samples.get_mut(sample.sampling) {
                *count += 1;
            }
            // A handler that wants directions reads them where it finds the program.
            let finds = self.doubles.is_some() && !is_precise && of(self.is_time) == Some(true);
            match sample.turns.filter(|_| finds) {
                Some(true) => held.edges.taken += 1,
                Some(false) => held.edges.straight += 1,
                None => {}
            }
            changed(who);
        }
        let pairs = self.doubles.as_mut().map(DoubleSampler::take).unwrap_or_default();
        for sample in pairs {
            self.pass(&sample, heard, ways, &mut changed);
        }
    }

    fn pass(
        &self,
        sample: &DoubleSample,
        heard: &mut BTreeMap<u32, Heard>,
        ways: &mut BTreeMap<(u32, u32), u64>,
        changed: &mut impl FnMut(u32),
    ) {
        for (k, &who) in sample.passed.iter().enumerate() {
            let edges = &mut heard.entry(who).or_default().edges;
            edges.passed += 1;
            edges.pairs += u64::from(!sample.passed[..k].contains(&who));
            edges.begun += u64::from(k == 0);
            changed(who);
        }
        for way in sample.ways() {
            if self.turns.get(way.0 as usize) == Some(&true) {
                *ways.entry(way).or_default() += 1;
            }
        }
    }

    /// Forgets what was not asked for.
    pub(super) fn forget(&mut self) {
        drop(self.sampler.take());
        drop(self.doubles.as_mut().map(DoubleSampler::take));
    }

    /// Interrupts that were lost so far.
    pub(super) fn lost(&self) -> u64 {
        self.sampler.lost()
    }
}

impl Watcher for Listened {
    fn lived(&mut self, life: &Life) {
        self.sampler.lived(life);
        let Some(doubles) = &mut self.doubles else { return };
        doubles.lived(life);
        if matches!(life.flow, Flow::Conditional | Flow::Jump | Flow::IndirectJump) {
            let place = life.instruction as usize;
            if self.turns.len() <= place {
                self.turns.resize((place + 1).next_multiple_of(256), false);
            }
            self.turns[place] = true;
        }
    }

    fn stalled(&mut self, stall: &Stalled) {
        self.sampler.stalled(stall);
    }
}
