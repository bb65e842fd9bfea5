//! Tagged tables over geometrically longer histories.
//!
//! The longest history whose tag matches predicts; a miss of it allocates in a longer table.
//!
//! ```text
//! history:  4 bits      8 bits      16 bits ...     128 bits
//! base      table 0     table 1     table 2   ...   table n-1     -> longest match wins
//! ```

use super::direction::Bimodal;
use crate::machine::BranchFacts;

/// Counter of an entry: three bits, signed; taken when not negative.
const COUNTER_MAX: i8 = 3;
const COUNTER_MIN: i8 = -4;
/// Lookups after which usefulness is halved, so that stale entries may be replaced.
const AGEING: u32 = 1 << 18;

#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    tag: u16,
    counter: i8,
    useful: u8,
}

#[derive(Clone, Copy, Debug)]
struct Span {
    low: u64,
    high: u64,
}

/// The predictor.
#[derive(Clone, Debug)]
pub(super) struct Tage {
    base: Bimodal,
    entries: Vec<Entry>,
    spans: Vec<Span>,
    table_shift: u32,
    history: [u64; 2],
    /// Prefers the alternative while a fresh entry has not proved itself.
    trust_fresh: i8,
    clock: u32,
    /// Turns so that allocation does not always favour the same table.
    turn: u32,
}

/// Where a branch looks: place and tag in each table.
type Looks = [(u32, u16); 16];

impl Tage {
    pub(super) fn new(facts: &BranchFacts) -> Tage {
        let tables = facts.tables.clamp(1, 16);
        let table_shift = facts.table_entries.max(2).ilog2();
        Tage {
            base: Bimodal::new(facts.base_entries),
            entries: vec![Entry::default(); (tables as usize) << table_shift],
            spans: (0..tables).map(|k| span(length(k, tables, facts.history_bits))).collect(),
            table_shift,
            history: [0; 2],
            trust_fresh: 0,
            clock: 0,
            turn: 1,
        }
    }

    /// Predicts, then learns.
    #[inline]
    pub(super) fn observe(&mut self, pc: u64, taken: bool) -> bool {
        let mut looks: Looks = [(0, 0); 16];
        let (mut best, mut second) = (usize::MAX, usize::MAX);
        for (k, span) in self.spans.iter().enumerate() {
            let look = look(pc, self.history, *span, k as u32, self.table_shift);
            looks[k & 15] = look;
            if self.entries[look.0 as usize].tag == look.1 {
                second = best;
                best = k;
            }
        }
        let by_base = self.base.at(pc ^ (pc >> 13)).says();
        let says = |place: usize| self.entries[place].counter >= 0;
        let place_of = |k: usize| looks[k & 15].0 as usize;
        let alternative = if second == usize::MAX { by_base } else { says(place_of(second)) };
        let guess = if best == usize::MAX {
            by_base
        } else {
            let entry = &self.entries[place_of(best)];
            let is_fresh = entry.useful == 0 && matches!(entry.counter, -1 | 0);
            if is_fresh && self.trust_fresh < 0 { alternative } else { entry.counter >= 0 }
        };
        self.learn(pc, taken, guess, alternative, best, &looks);
        self.history =
            [self.history[0] << 1 | u64::from(taken), self.history[1] << 1 | self.history[0] >> 63];
        guess
    }

    #[inline]
    fn learn(
        &mut self,
        pc: u64,
        taken: bool,
        guess: bool,
        alternative: bool,
        best: usize,
        looks: &Looks,
    ) {
        if best == usize::MAX {
            self.base.at(pc ^ (pc >> 13)).learn(taken);
        } else {
            let entry = &mut self.entries[looks[best & 15].0 as usize];
            let said = entry.counter >= 0;
            let is_fresh = entry.useful == 0 && matches!(entry.counter, -1 | 0);
            if is_fresh && said != alternative {
                let step = if said == taken { 1 } else { -1 };
                self.trust_fresh = (self.trust_fresh + step).clamp(-8, 7);
            }
            if said != alternative {
                entry.useful = if said == taken {
                    (entry.useful + 1).min(3)
                } else {
                    entry.useful.saturating_sub(1)
                };
            }
            let step = if taken { 1 } else { -1 };
            entry.counter = (entry.counter + step).clamp(COUNTER_MIN, COUNTER_MAX);
        }
        if guess != taken {
            self.allocate(taken, best, looks);
        }
    }

    #[cold]
    fn allocate(&mut self, taken: bool, best: usize, looks: &Looks) {
        let first = if best == usize::MAX { 0 } else { best + 1 };
        if first >= self.spans.len() {
            return;
        }
        self.turn = self.turn.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        // Half the time skip one table, so that histories of several lengths are tried.
        let skip = usize::from(self.turn >> 31 == 1 && first + 1 < self.spans.len());
        let candidates = || (first + skip..looks.len()).take_while(|&k| k < self.spans.len());
        let free = candidates().find(|&k| self.entries[looks[k].0 as usize].useful == 0);
        match free {
            Some(k) => {
                let (place, tag) = looks[k];
                let counter = if taken { 0 } else { -1 };
                self.entries[place as usize] = Entry { tag, counter, useful: 0 };
            }
            None => {
                let places: Vec<u32> = candidates().map(|k| looks[k].0).collect();
                for place in places {
                    let entry = &mut self.entries[place as usize];
                    entry.useful = entry.useful.saturating_sub(1);
                }
            }
        }
        self.clock += 1;
        if self.clock >= AGEING {
            self.clock = 0;
            self.entries.iter_mut().for_each(|entry| entry.useful >>= 1);
        }
    }
}

/// History length of table `k`: geometric from 4 to the machine's longest.
fn length(k: u32, tables: u32, longest: u32) -> u32 {
    let longest = f64::from(longest.clamp(4, 128));
    if tables == 1 {
        return longest as u32;
    }
    let share = f64::from(k) / f64::from(tables - 1);
    (4.0 * (longest / 4.0).powf(share)).round() as u32
}

fn span(bits: u32) -> Span {
    let mask = |bits: u32| if bits >= 64 { u64::MAX } else { (1 << bits) - 1 };
    Span { low: mask(bits), high: if bits > 64 { mask(bits - 64) } else { 0 } }
}

/// Hashes the address with a stretch of history; high bits give the place, middle bits the tag.
#[inline]
fn look(pc: u64, history: [u64; 2], span: Span, k: u32, shift: u32) -> (u32, u16) {
    let low = (history[0] & span.low).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let high = (history[1] & span.high).wrapping_mul(0xc2b2_ae3d_27d4_eb4f);
    let mixed =
        (low ^ high.rotate_left(23) ^ pc.wrapping_mul(0xff51_afd7_ed55_8ccd) ^ u64::from(k))
            .wrapping_mul(0xd6e8_feb8_6659_fd93);
    let place = (mixed >> (64 - shift)) as u32 | k << shift;
    // Tag 0 marks an empty entry.
    (place, (mixed >> 20) as u16 & 0x0fff | 0x1000)
}
