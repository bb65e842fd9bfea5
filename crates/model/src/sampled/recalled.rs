//! A window looked at twice: warmed for longer, and as if it had not been.
//!
//! ```text
//! |----rrrrrrrrrrrrrrrrrrrrrrrwwwwwwwwwwwwwwwpMMM-----|  what runs
//!      units kept          |rrrrrrrrrrrrrrwwwwpMMM       what is run again, from the units kept
//! ```
//!
//! Both looks see the same instructions, so that their difference is due to warming alone: a few
//! dozen tell a bias of a fraction of a per cent, where windows apart would take thousands. What caches
//! and translation lack is compared over more than the window, from the middle of the usual warming on:
//! that tells more surely whether there is a bias, if less surely how large it is.

use super::features::LACKED;
use super::plan::reaching;
use super::{LINES_TOGETHER, SampledCore};
use crate::event::{Counts, Event};
use crate::stream::{Access, BlockId, CoreListener};
use crate::units::memory::Memory;
use crate::warm::Units;

/// One block that ran.
#[derive(Clone, Copy, Debug)]
struct Run {
    id: BlockId,
    ran: u16,
    /// How many of the accesses are its own.
    accesses: u32,
}

/// What is needed to look again.
#[derive(Clone, Debug)]
pub(super) struct Recalled {
    /// None once they were used.
    units: Option<Box<Units>>,
    runs: Vec<Run>,
    accesses: Vec<Access>,
    /// Where priming and measuring began: how many had run, and the address of the next.
    turns: Vec<(usize, u64)>,
    /// How many had run in the middle of the usual warming, and what was lacked by then.
    middle: usize,
    lacked: Lacked,
}

/// What looks show of a window.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Look {
    /// Cycles an instruction.
    pub(super) cycles: f64,
    /// Cycles an instruction that what was lacked from the middle of the usual warming on would take.
    pub(super) lacked: f64,
}

/// What caches and translation lacked, as those features.
type Lacked = [u64; 6];

fn lacked(memory: &Memory) -> Lacked {
    let of = &memory.counts;
    let outer = [of.l2_misses, of.l3_misses, of.memory_reads];
    [of.l2_data, of.l2_code, outer[0], outer[1], outer[2], memory.translation_misses()]
}

impl Recalled {
    /// Nothing ran since the units were kept.
    pub(super) fn new(units: Box<Units>) -> Recalled {
        let (runs, accesses, turns, middle, lacked) = Default::default();
        Recalled { units: Some(units), runs, accesses, turns, middle, lacked }
    }

    /// A block ran.
    #[inline]
    pub(super) fn note(&mut self, id: BlockId, ran: u16, accesses: &[Access]) {
        self.runs.push(Run { id, ran, accesses: accesses.len() as u32 });
        self.accesses.extend_from_slice(accesses);
    }
}

/// Calls with each run and its accesses, which are taken off the front.
fn play(runs: &[Run], accesses: &mut &[Access], mut tell: impl FnMut(&Run, &[Access])) {
    for run in runs {
        let (own, after) = accesses.split_at_checked(run.accesses as usize).unwrap_or((&[], &[]));
        *accesses = after;
        tell(run, own);
    }
}

fn cycles_an_instruction(counts: &Counts) -> f64 {
    counts[Event::Cycles] as f64 / counts[Event::Instructions].max(1) as f64
}

impl SampledCore {
    /// A phase begins with the block at `pc`.
    pub(super) fn note_turn(&mut self, pc: u64) {
        if let Some(recalled) = &mut self.recalled {
            recalled.turns.push((recalled.runs.len(), pc));
        }
    }

    /// In a stratum that is warmed for longer: half of the usual warming is still to come.
    pub(super) fn note_middle(&mut self) {
        if let Some(recalled) = &mut self.recalled {
            recalled.middle = recalled.runs.len();
            recalled.lacked = lacked(self.warmer.memory());
        }
    }

    /// What was lacked since, by what windows wait for it, over so many instructions.
    fn lacked_since(&self, before: &Lacked, instructions: u64) -> f64 {
        let now = lacked(self.warmer.memory());
        let costs = &self.prior.cycles[LACKED];
        let cycles = now.iter().zip(before).zip(costs);
        let cycles: f64 = cycles.map(|((now, before), cost)| (now - before) as f64 * cost).sum();
        self.overlap.share() * cycles / instructions.max(1) as f64
    }

    /// The window is over, and the next block is at `pc`: if it was warmed for longer than most, how
    /// it looks when it is not, and how long all should be warmed from now on.
    pub(super) fn look_again(&mut self, pc: u64) {
        let Some(mut recalled) = self.recalled.take() else { return };
        let Some(cycles) = self.window.as_ref().map(|window| window.rate(Event::Cycles)) else {
            return;
        };
        let usual = self.plan.warm_instructions;
        let compared = self.stratum.end - self.stratum.prime + usual / 2;
        let long = Look { cycles, lacked: self.lacked_since(&recalled.lacked, compared) };
        let again = self.warmth.asks_for_half().then(|| recalled.units.clone());
        let short = self.run_again(&mut recalled, usual, pc);
        let half = again.and_then(|units| {
            recalled.units = units;
            self.run_again(&mut recalled, usual / 2, pc)
        });
        let Some(short) = short else { return };
        let times = self.warmth.note(long, short, half, self.plan.error);
        self.plan.warm_instructions = self.warm_at_first * times;
    }

    /// The window from the units that were kept, when so many instructions are warmed before.
    fn run_again(&mut self, recalled: &mut Recalled, warm: u64, pc: u64) -> Option<Look> {
        let mut units = std::mem::take(&mut recalled.units)?;
        self.warmer.swap_units(&mut units);
        let rate = self.replay(recalled, warm, pc);
        self.warmer.swap_units(&mut units);
        rate
    }

    /// Lines that were reached while looking again.
    fn refresh_all(&mut self) {
        self.warmer.refresh(&self.lines);
        self.lines.clear();
    }

    /// The same, from the units that the warmer has now.
    fn replay(&mut self, recalled: &Recalled, warm: u64, pc: u64) -> Option<Look> {
        let &[(prime, prime_pc), (measure, _)] = recalled.turns.as_slice() else { return None };
        let (warming, timed) = recalled.runs.split_at_checked(prime)?;
        let (priming, measuring) = timed.split_at_checked(measure.checked_sub(prime)?)?;
        let mut accesses = recalled.accesses.as_slice();
        self.warmer.skip();
        let mut left: u64 = warming.iter().map(|run| u64::from(run.ran)).sum();
        let (mut place, mut lacked_before, mut compared) = (0, Lacked::default(), 0);
        play(warming, &mut accesses, |run, own| {
            if place == recalled.middle {
                (lacked_before, compared) = (lacked(self.warmer.memory()), left);
            }
            place += 1;
            if left <= warm {
                self.refresh_all();
                self.warmer.executed(run.id, run.ran, own);
            } else if left <= reaching(warm) || self.reaching.is_on() {
                self.warmer.steer(run.id, run.ran);
                self.warmer.reach(run.id, run.ran, own, true, &mut self.lines);
                // As soon as when it ran: page tables are read in between.
                if self.lines.len() >= LINES_TOGETHER {
                    self.refresh_all();
                }
            }
            left = left.saturating_sub(u64::from(run.ran));
        });
        self.refresh_all();
        self.enter_core(prime_pc);
        play(priming, &mut accesses, |run, own| self.core.executed(run.id, run.ran, own));
        let before = self.core.counts();
        play(measuring, &mut accesses, |run, own| self.core.executed(run.id, run.ran, own));
        self.core.settle(Some(pc));
        let counts = self.core.counts().since(&before);
        self.exchange();
        compared += timed.iter().map(|run| u64::from(run.ran)).sum::<u64>();
        let lacked = self.lacked_since(&lacked_before, compared);
        Some(Look { cycles: cycles_an_instruction(&counts), lacked })
    }
}
