//! The performance monitor of the interaction-cost paper: two kinds of samples from the lives of
//! micro-ops, from which fragments of the program's dependence graph are put together again.
//!
//! ```text
//! instructions   … b b b b b b b b b b I b b b b b b b b b b …      b: two bits each
//!                  └─ ten ─────────┘   └─ ten ─────────┘
//! detailed         all that was seen of I, and where it went if its bytes do not say
//!
//! signature        ten before, the pc of the first, and two bits for each of a thousand
//! ```
//!
//! Hardware could do this: at most one instruction is followed in detail at a time, and at most
//! one signature is written. What is seen of an instruction is up to a [`Recorder`]; this room
//! knows lives, not graphs.

mod bits;
mod sample;
mod seen;
#[cfg(test)]
mod tests;

pub use bits::{AROUND, Bits, Surroundings};
pub use sample::{DetailedSample, LENGTH, Samples, SignatureSample};
pub use seen::Seen;

use std::collections::VecDeque;

use metrology::Draws;

use crate::core::{Life, Watcher};

/// Sees every micro-op and says what a detailed sample would keep of it.
pub trait Recorder: Send {
    /// What is kept of a micro-op.
    type Detail: Clone + Send;

    /// The next micro-op in program order.
    fn record(&mut self, life: &Life) -> Self::Detail;
}

/// How often samples are taken, in instructions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rates {
    /// From the start of a signature to the next, on average; never less than its length.
    pub signature_every: u64,
    /// From a detailed sample to the next, on average; never so few that two are open at a time.
    pub detail_every: u64,
    /// Decides where they fall.
    pub seed: u64,
}

impl Default for Rates {
    /// A signature half of the time, an instruction of a hundred in detail.
    fn default() -> Rates {
        Rates { signature_every: 2 * LENGTH as u64, detail_every: 100, seed: 1 }
    }
}

/// The fewest instructions from a detailed sample to the next: its surroundings, once.
const DETAIL_LEAST: u64 = 2 * AROUND as u64 + 1;

/// Takes both kinds of samples.
#[derive(Clone, Debug)]
pub struct Monitor<R: Recorder> {
    recorder: R,
    rates: Rates,
    draws: Draws,
    /// The bits of the last instructions, the newest last.
    before: VecDeque<Bits>,
    /// The bits of the instruction that is under way, and whether it has begun.
    bits: Bits,
    is_inside: bool,
    until_signature: u64,
    until_detail: u64,
    signature: Option<SignatureSample>,
    detail: Option<Open<R::Detail>>,
    /// Where instructions seldom seen are preferred.
    seen: Option<Seen>,
    /// Instructions that the detailed sample under way waited for.
    waited: u64,
    /// Where each signature really went, for those who check.
    path: Option<Vec<u64>>,
    samples: Samples<R::Detail>,
}

/// A detailed sample that still waits for the bits behind it.
#[derive(Clone, Debug)]
struct Open<D> {
    sample: DetailedSample<D>,
    /// How many instructions have been seen, itself included.
    seen: usize,
    wants_target: bool,
}

impl<R: Recorder> Monitor<R> {
    /// A monitor that has seen nothing.
    pub fn new(recorder: R, rates: Rates) -> Monitor<R> {
        let mut monitor = Monitor {
            recorder,
            rates,
            draws: Draws::new(rates.seed),
            before: VecDeque::new(),
            bits: Bits::default(),
            is_inside: false,
            until_signature: 0,
            until_detail: 0,
            signature: None,
            detail: None,
            seen: None,
            waited: 0,
            path: None,
            samples: Samples::default(),
        };
        monitor.schedule();
        monitor
    }

    /// Keeps beside each signature the pcs that hardware would not know.
    #[must_use]
    pub fn with_truth(mut self) -> Monitor<R> {
        self.path = Some(Vec::new());
        self
    }

    /// Prefers instructions of which there are few detailed samples, by what was seen so far.
    #[must_use]
    pub fn preferring_rare(mut self, seen: Seen) -> Monitor<R> {
        self.seen = Some(seen);
        self
    }

    /// Takes out how often instructions were sampled, for the monitor of the next stretch.
    pub fn take_seen(&mut self) -> Seen {
        self.seen.take().unwrap_or_default()
    }

    /// What follows does not follow from what was seen: open samples are dropped, and another
    /// recorder takes over.
    pub fn restart(&mut self, recorder: R) {
        self.recorder = recorder;
        self.samples.cut += u64::from(self.signature.is_some());
        self.signature = None;
        self.detail = None;
        self.before.clear();
        self.is_inside = false;
        self.schedule();
    }

    /// The samples so far.
    pub fn samples(&self) -> &Samples<R::Detail> {
        &self.samples
    }

    /// Takes the samples out.
    pub fn take(&mut self) -> Samples<R::Detail> {
        std::mem::take(&mut self.samples)
    }

    /// The first samples of a stretch.
    fn schedule(&mut self) {
        // The ten before the first must have been seen.
        self.until_signature = AROUND as u64 + self.even(2 * self.pause());
        self.until_detail = AROUND as u64 + self.even(2 * self.rates.detail_every);
    }

    /// Instructions between the end of a signature and the next, on average.
    fn pause(&self) -> u64 {
        self.rates.signature_every.saturating_sub(LENGTH as u64)
    }

    /// Drawn evenly from 0 up to a bound.
    fn even(&mut self, bound: u64) -> u64 {
        self.draws.below(usize::try_from(bound).unwrap_or(usize::MAX).saturating_add(1)) as u64
    }

    /// The first micro-op of an instruction.
    fn begin(&mut self, life: &Life) {
        self.is_inside = true;
        self.bits = Bits::default();
        if let Some(open) = &mut self.detail
            && open.wants_target
        {
            open.sample.target = Some(life.pc);
            open.wants_target = false;
        }
        if self.until_signature == 0 && self.signature.is_none() {
            let before = Surroundings::of(self.before.iter().copied());
            self.signature = Some(SignatureSample { start: life.pc, before, bits: Vec::new() });
            if let Some(path) = &mut self.path {
                path.clear();
            }
        }
        if self.until_detail == 0 && self.detail.is_none() && self.takes(life.pc) {
            let around = Surroundings::of(self.before.iter().copied());
            let sample = DetailedSample { pc: life.pc, around, target: None, ops: Vec::new() };
            self.detail = Some(Open { sample, seen: 0, wants_target: false });
        }
        if self.signature.is_some()
            && let Some(path) = &mut self.path
        {
            path.push(life.pc);
        }
    }

    /// Whether the detailed sample that is due is taken of this instruction.
    fn takes(&mut self, pc: u64) -> bool {
        let Some(seen) = &mut self.seen else { return true };
        let takes = seen.takes(pc);
        if takes {
            self.waited = seen.taken();
        }
        takes
    }

    /// The last micro-op of an instruction has been seen.
    fn end(&mut self, life: &Life) {
        self.is_inside = false;
        self.bits = Bits::from_number(self.bits.number());
        self.samples.instructions += 1;
        self.until_signature = self.until_signature.saturating_sub(1);
        self.until_detail = self.until_detail.saturating_sub(1);
        self.extend_signature();
        self.extend_detail(life);
        if self.before.len() == AROUND {
            self.before.pop_front();
        }
        self.before.push_back(self.bits);
    }

    fn extend_signature(&mut self) {
        let Some(mut signature) = self.signature.take() else { return };
        signature.bits.push(self.bits);
        if signature.bits.len() < LENGTH {
            self.signature = Some(signature);
            return;
        }
        self.samples.signatures.push(signature);
        self.until_signature = self.even(2 * self.pause());
        if let Some(path) = &mut self.path {
            self.samples.paths.push(std::mem::take(path));
        }
    }

    fn extend_detail(&mut self, life: &Life) {
        let Some(mut open) = self.detail.take() else { return };
        open.sample.around.push(self.bits);
        if open.seen == 0 {
            open.wants_target = life.flow.is_indirect();
        }
        open.seen += 1;
        if open.seen <= AROUND {
            self.detail = Some(open);
            return;
        }
        self.samples.details.push(open.sample);
        // It began its surroundings ago.
        let every = self.rates.detail_every.max(DETAIL_LEAST);
        // Who waited for a rare one comes earlier next time, so that as many are taken.
        let pause = self.even(2 * (every - DETAIL_LEAST));
        self.until_detail = AROUND as u64 + pause.saturating_sub(self.waited);
    }
}

impl<R: Recorder> Watcher for Monitor<R> {
    fn lived(&mut self, life: &Life) {
        let detail = self.recorder.record(life);
        if !self.is_inside {
            self.begin(life);
        }
        self.bits.add(life);
        if let Some(open) = &mut self.detail
            && open.seen == 0
        {
            open.sample.ops.push(detail);
        }
        if life.is_last {
            self.end(life);
        }
    }
}
