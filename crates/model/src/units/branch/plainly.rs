//! The predictors without shortcuts, for tests to hold the others against.

use std::collections::HashMap;

use super::*;
use crate::machine::Machine;
use crate::testing::Dice;

/// What is known of a branch by its address alone.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Base {
    Always(bool),
    /// Counts from -2 to 1.
    Both(i8),
}

/// Tagged tables as maps, over a history that is a list.
#[derive(Default)]
struct Plainly {
    base: HashMap<u64, Base>,
    /// Tag, counter and usefulness by table and place.
    entries: HashMap<(usize, u64), (u64, i8, u8)>,
    /// Newest first.
    history: Vec<bool>,
    trust_fresh: i8,
    clock: u32,
    turn: u32,
}

impl Plainly {
    /// Where a branch looks in a table, and the tag it looks for.
    fn look(&self, facts: &BranchFacts, pc: u64, k: u32) -> ((usize, u64), u64) {
        let share = f64::from(k) / f64::from(facts.tables - 1);
        let bits = (4.0 * (f64::from(facts.history_bits) / 4.0).powf(share)).round() as usize;
        let word = |from: usize| {
            let ahead = (from..bits.min(from + 64)).filter(|&k| self.history.get(k) == Some(&true));
            ahead.fold(0, |word, k| word | 1_u64 << (k - from))
        };
        let stretch = word(0) ^ word(64).rotate_left(29);
        let salted = pc.wrapping_mul(0xff51_afd7_ed55_8ccd).rotate_left(7 * k) ^ stretch;
        let mixed = (salted ^ salted >> 31).wrapping_mul(0xd6e8_feb8_6659_fd93);
        let place = mixed >> (64 - facts.table_entries.ilog2());
        ((k as usize, place), mixed >> 36 & 0xfff)
    }

    fn observe(&mut self, facts: &BranchFacts, pc: u64, taken: bool) -> bool {
        let place = (pc ^ pc >> 13) & u64::from(facts.base_entries - 1);
        let counter = match self.base.get(&place).copied() {
            None => {
                self.base.insert(place, Base::Always(taken));
                return false;
            }
            Some(Base::Always(before)) if before == taken => return taken,
            Some(Base::Always(_)) => {
                self.base.insert(place, Base::Both(if taken { -1 } else { 0 }));
                self.history.insert(0, taken);
                return !taken;
            }
            Some(Base::Both(counter)) => counter,
        };
        let looks: Vec<_> = (0..facts.tables).map(|k| self.look(facts, pc, k)).collect();
        let is_held = |(place, tag): &((usize, u64), u64)| {
            self.entries.get(place).is_some_and(|entry| entry.0 == *tag)
        };
        let held: Vec<usize> = (0..looks.len()).rev().filter(|&k| is_held(&looks[k])).collect();
        let step = if taken { 1 } else { -1 };
        let guess = match held.first() {
            None => {
                self.base.insert(place, Base::Both((counter + step).clamp(-2, 1)));
                counter >= 0
            }
            Some(&best) => {
                let second = held.get(1).map(|&k| self.entries[&looks[k].0].1 >= 0);
                self.learn(looks[best].0, second.unwrap_or(counter >= 0), taken)
            }
        };
        if guess != taken {
            let first = held.first().map_or(0, |best| best + 1);
            self.allocate(taken, &looks[first..]);
        }
        self.history.insert(0, taken);
        self.history.truncate(128);
        guess
    }

    fn learn(&mut self, place: (usize, u64), alternative: bool, taken: bool) -> bool {
        let entry = self.entries.get_mut(&place).unwrap();
        let (_, counter, useful) = *entry;
        let said = counter >= 0;
        let is_fresh = useful == 0 && (counter == 0 || counter == -1);
        let guess = if is_fresh && self.trust_fresh < 0 { alternative } else { said };
        entry.1 = (counter + if taken { 1 } else { -1 }).clamp(-4, 3);
        if said != alternative {
            let was_right = if said == taken { 1 } else { -1 };
            if is_fresh {
                self.trust_fresh = (self.trust_fresh + was_right).clamp(-8, 7);
            }
            entry.2 = (useful as i8 + was_right).clamp(0, 3) as u8;
        }
        guess
    }

    fn allocate(&mut self, taken: bool, longer: &[((usize, u64), u64)]) {
        if longer.is_empty() {
            return;
        }
        self.turn = self.turn.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let skip = usize::from(self.turn >> 31 == 1 && longer.len() > 1);
        let useful = |place| self.entries.get(place).map_or(0, |entry| entry.2);
        match longer[skip..].iter().find(|(place, _)| useful(place) == 0) {
            Some(&(place, tag)) => {
                self.entries.insert(place, (tag, if taken { 0 } else { -1 }, 0));
            }
            None => {
                for (place, _) in &longer[skip..] {
                    let entry = self.entries.get_mut(place).unwrap();
                    entry.2 = entry.2.saturating_sub(1);
                }
            }
        }
        self.clock += 1;
        if self.clock >= 1 << 18 {
            self.clock = 0;
            self.entries.values_mut().for_each(|entry| entry.2 >>= 1);
        }
    }
}

#[test]
fn packed_tables_say_what_plain_ones_say() {
    let machines = ["zen4", "zen4", "icelake-server", "zen5", "zen5"];
    for (name, seed) in machines.into_iter().zip(1..) {
        let facts = Machine::named(name).unwrap().branch;
        let mut packed = tage::Tage::new(&facts);
        let mut plainly = Plainly { turn: 1, ..Plainly::default() };
        let mut dice = Dice::new(seed);
        let mut recent = 0_u64;
        for step in 0..200_000_u64 {
            // Some branches are loops, some follow the ones before, some are coins; more addresses
            // than places, so that they share.
            let pc = 0x40_0000 + dice.next() % if step % 5 == 0 { 100_000 } else { 300 };
            let taken = match pc % 4 {
                0 => (step / 3) % (2 + pc % 9) != 0,
                1 => recent.count_ones() % 2 == 1,
                2 => dice.next() % 16 < 15,
                _ => dice.next().is_multiple_of(2),
            };
            recent = (recent << 1 | u64::from(taken)) & 0xff;
            let said = (packed.observe(pc, taken), plainly.observe(&facts, pc, taken));
            assert_eq!(said.0, said.1, "{name}, seed {seed}, step {step}");
        }
    }
}

#[test]
fn targets_are_known_as_a_plain_buffer_knows_them() {
    // No table by path, so that what the buffer held is what is told.
    let facts = BranchFacts { indirect_entries: 0, ..Machine::named("zen4").unwrap().branch };
    let mut predictor = Predictor::new(&facts);
    let mut buffer = Cache::new(facts.btb_entries as usize, facts.btb_ways as usize);
    let mut dice = Dice::new(9);
    for step in 0..300_000_u64 {
        // A few hot jumps, and more cold ones in their sets than these have ways.
        let pc = dice.next() % 16
            + if dice.next().is_multiple_of(3) { 1024 * (dice.next() % 24) } else { 0 };
        let target = if dice.next().is_multiple_of(8) { dice.next() % 4 } else { pc + 1 };
        let flow = if pc.is_multiple_of(2) { Flow::Jump } else { Flow::IndirectJump };
        let jump = Branch { pc, flow, taken: true, target, next: pc + 2 };
        let held = buffer.touch(pc).map(|held| std::mem::replace(held, target));
        if held.is_none() {
            buffer.insert(pc, target);
        }
        let verdict = predictor.observe(&jump);
        let is_new = verdict.resteered || verdict.retargeted;
        assert_eq!(is_new, held != Some(target), "step {step}");
    }
}
