//! Loads that meet stores whose addresses are not known yet.
//!
//! ```text
//!              store's address           dispatched again
//! load issued        |    restart             |  issued again
//!     |--------------|<---------------------->|------|--> result
//!      went ahead, and needed the store's data
//! ```

use super::engine::{Engine, Found};
use crate::cause::Cause;
use crate::core::{Ideal, Watcher};
use crate::event::Event;
use crate::program::Op;

/// When a load could have issued, when it might, and when it did.
#[derive(Clone, Copy, Debug)]
pub(super) struct Times {
    /// Its operands were there.
    pub(super) free: u64,
    /// It was not held back any longer either.
    pub(super) ready: u64,
    pub(super) issued: u64,
}

impl Times {
    /// Whether a store that became known at a time did a load harm, or would have, had the load not
    /// been held back.
    pub(super) fn are_harmed_by(&self, addressed: u64) -> bool {
        let was_held = self.ready > self.free;
        addressed > if was_held { self.free } else { self.issued }
    }
}

/// The second life of a load that is done again.
#[derive(Clone, Copy, Debug)]
pub(super) struct Again {
    pub(super) dispatched: u64,
    pub(super) ready: u64,
    pub(super) issued: u64,
}

impl<W: Watcher> Engine<W> {
    /// When a load may issue whose operands are there at a time: one that is not trusted waits for
    /// the addresses of all stores before it.
    pub(super) fn hold_back(&mut self, place: usize, pc: u64, free: u64) -> u64 {
        let trusted = self.ordering.as_ref().and_then(|ordering| ordering.trusts_from(pc));
        let until = self.addresses_known.min(trusted.unwrap_or(u64::MAX));
        if until <= free {
            return free;
        }
        self.account.happened(place, Event::HeldLoads);
        until
    }

    /// A load that overtook the store it needed is done again. Its line is on its way from the
    /// first time.
    pub(super) fn look_back(
        &mut self,
        place: usize,
        op: &Op,
        times: Times,
        found: &mut Found,
    ) -> Option<Again> {
        if found.addressed <= times.issued {
            return None;
        }
        self.account.happened(place, Event::OrderingRestarts);
        self.account.happened(place, Event::Replays);
        let restart = self.shape.disambiguation?.restart;
        let again = found.addressed + restart;
        self.front.restart(again - self.shape.front, Cause::Forward, place as u32);
        let dispatched = self.window.dispatch_again(again, op);
        let ready = (dispatched + self.shape.to_issue).max(times.ready).max(self.addresses_known);
        let issued = self.window.issue::<true>(&self.shape, op, ready);
        let hit = if self.shape.ideal.has(Ideal::L1D_LATENCY) { 0 } else { self.shape.l1d };
        found.completed = found.completed.max(issued + hit + u64::from(op.latency));
        found.cause = Cause::Forward;
        Some(Again { dispatched, ready, issued })
    }

    /// Learns from a load that has retired.
    pub(super) fn learn_from(&mut self, pc: u64, is_harmed: bool, retired: u64) {
        if let Some(ordering) = &mut self.ordering {
            ordering.learn(pc, is_harmed, retired);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::core::{Accounting, Life, Settings, TICKS};
    use crate::event::{Counts, Event};
    use crate::fast::FastCore;
    use crate::machine::Machine;
    use crate::reference::ReferenceCore;
    use crate::stream::{Access, BlockId, CoreListener};
    use crate::testing::*;

    /// imul rdi,rdi,1
    const LATE: &[u8] = &[0x48, 0x6b, 0xff, 1];
    /// add rbx,0
    const SOON: &[u8] = &[0x48, 0x83, 0xc3, 0];

    /// Blocks in which some stores' addresses come late, and loads that need one of them now and
    /// then.
    fn drive<C: CoreListener + Accounting>(mut core: C, seed: u64) -> Counts {
        let mut dice = Dice::new(seed);
        let kinds = [LATE, SOON, STORE_RAX, LOAD, LOAD, ADD_RAX_RAX, MOV_ECX_1, NOP];
        let bodies: Vec<Vec<&[u8]>> =
            (0..12).map(|_| (0..10).map(|_| kinds[(dice.next() % 8) as usize]).collect()).collect();
        let blocks: Vec<_> = bodies
            .iter()
            .enumerate()
            .map(|(k, body)| block(0x1000 + 256 * k as u64, body))
            .collect();
        translate(&mut core, &blocks);
        for _ in 0..20_000 {
            let at = (dice.next() % 12) as usize;
            // One load in thirty is near enough to the stores to need one.
            let far = if dice.next().is_multiple_of(10) { 0 } else { 0x4000 };
            let accesses: Vec<Access> = (0..10_u16)
                .filter_map(|k| match bodies[at][usize::from(k)] {
                    text if text == LOAD => Some(load(k, 0x8000 + far + dice.next() % 16 * 8)),
                    text if text == STORE_RAX => Some(store(k, 0x8000 + dice.next() % 16 * 8)),
                    _ => None,
                })
                .collect();
            core.executed(BlockId(at as u32), 10, &accesses);
        }
        core.settle_all();
        assert_eq!(core.account().ticks_total(), core.counts()[Event::Cycles] * TICKS);
        core.counts()
    }

    fn both(machine: &Machine, seed: u64) -> [Counts; 2] {
        let settings = Settings::default();
        [
            drive(FastCore::new(machine, settings), seed),
            drive(ReferenceCore::new(machine, settings), seed),
        ]
    }

    /// What the lives of a run say: how many there are, and that the stages of each, and the
    /// retirements of all, come in order.
    fn lives_in_order(lives: &[Life], uops: u64) {
        assert_eq!(lives.len() as u64, uops);
        for (k, life) in lives.iter().enumerate() {
            assert_eq!(life.sequence, k as u64);
            let Life { fetched, dispatched, ready, issued, completed, committed, .. } = *life;
            let stages = [fetched, dispatched, ready, issued, completed, committed];
            assert!(stages.is_sorted(), "{life:?}");
        }
        assert!(lives.iter().map(|life| life.committed).is_sorted());
        assert!(lives.iter().map(|life| life.dispatched).is_sorted());
    }

    #[test]
    fn what_is_done_again_lives_once_with_its_stages_in_order() {
        let (machine, settings) = (machine("icelake-server", &[]), Settings::default());
        let mut fast: Vec<Life> = Vec::new();
        let watcher = |life: &Life| fast.push(*life);
        let counts = drive(FastCore::watched(&machine, settings, watcher), 4);
        assert!(counts[Event::OrderingRestarts] > 100);
        lives_in_order(&fast, counts[Event::Uops]);
        let mut slow: Vec<Life> = Vec::new();
        let watcher = |life: &Life| slow.push(*life);
        let counts = drive(ReferenceCore::watched(&machine, settings, watcher), 4);
        assert!(counts[Event::OrderingRestarts] > 100);
        lives_in_order(&slow, counts[Event::Uops]);
        let producers =
            |lives: &[Life]| lives.iter().map(|life| life.producers).collect::<Vec<_>>();
        assert!(producers(&fast) == producers(&slow));
    }

    #[test]
    fn both_cores_agree_on_loads_that_overtake_stores() {
        for (name, seed) in [("icelake-server", 1), ("goldencove", 2), ("icelake-server", 3)] {
            let learning = machine(name, &[]);
            let knowing = machine(name, &[("window.disambiguation_entries", "0")]);
            let [fast, slow] = both(&learning, seed);
            let [fast_knowing, slow_knowing] = both(&knowing, seed);
            for event in [Event::HeldLoads, Event::OrderingRestarts] {
                assert_eq!(fast_knowing[event] + slow_knowing[event], 0);
                // Both cores see the same loads, though not at the same moments.
                assert!(fast[event] > 500 && slow[event] > 500, "{name} {seed} {}", event.name());
                let off = fast[event] as f64 / slow[event] as f64 - 1.0;
                assert!(off.abs() < 0.25, "{name} {seed}: {} {off}", event.name());
            }
            let off = fast[Event::Cycles] as f64 / slow[Event::Cycles] as f64 - 1.0;
            assert!(off.abs() < 0.03, "{name} {seed}: cycles {off}");
            // Not knowing costs: waiting, and doing again what went wrong.
            assert!(fast[Event::Cycles] > fast_knowing[Event::Cycles]);
            assert!(slow[Event::Cycles] > slow_knowing[Event::Cycles]);
        }
    }
}
