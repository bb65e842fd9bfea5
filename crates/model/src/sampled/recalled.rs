//! A window looked at twice: warmed for longer, and as if it had not been.
//!
//! ```text
//! |----rrrrrrrrrrrrrrrrrrrrrrrwwwwwwwwwwwwwwwpMMM-----|  what runs
//!      units kept          |rrrrrrrrrrrrrrwwwwpMMM       what is run again, from the units kept
//! ```
//!
//! Both looks see the same instructions, so that their difference is due to warming alone: a few
//! dozen tell a bias of a fraction of a per cent, where windows apart would take thousands.

use super::plan::reaching;
use super::{LINES_TOGETHER, SampledCore};
use crate::event::{Counts, Event};
use crate::stream::{Access, BlockId, CoreListener};
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
}

impl Recalled {
    /// Nothing ran since the units were kept.
    pub(super) fn new(units: Box<Units>) -> Recalled {
        let (runs, accesses, turns) = Default::default();
        Recalled { units: Some(units), runs, accesses, turns }
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

    /// The window is over, and the next block is at `pc`: if it was warmed for longer than most, how
    /// it looks when it is not, and how long all should be warmed from now on.
    pub(super) fn look_again(&mut self, pc: u64) {
        let Some(mut recalled) = self.recalled.take() else { return };
        let Some(long) = self.window.as_ref().map(|window| window.rate(Event::Cycles)) else {
            return;
        };
        let usual = self.plan.warm_instructions;
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

    /// Cycles an instruction in the window from the units that were kept, when so many instructions
    /// are warmed before.
    fn run_again(&mut self, recalled: &mut Recalled, warm: u64, pc: u64) -> Option<f64> {
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
    fn replay(&mut self, recalled: &Recalled, warm: u64, pc: u64) -> Option<f64> {
        let &[(prime, prime_pc), (measure, _)] = recalled.turns.as_slice() else { return None };
        let (warming, timed) = recalled.runs.split_at_checked(prime)?;
        let (priming, measuring) = timed.split_at_checked(measure.checked_sub(prime)?)?;
        let mut accesses = recalled.accesses.as_slice();
        self.warmer.skip();
        let mut left: u64 = warming.iter().map(|run| u64::from(run.ran)).sum();
        play(warming, &mut accesses, |run, own| {
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
        Some(cycles_an_instruction(&counts))
    }
}
