//! Tagged tables over geometrically longer histories.
//!
//! The longest history whose tag matches predicts; a miss of it allocates in a longer table.
//!
//! ```text
//! history:  4 bits      8 bits      16 bits ...     128 bits
//! base      table 0     table 1     table 2   ...   table n-1     -> longest match wins
//! ```
//!
//! A branch that has only ever gone one way is taken to go on so: it uses no table and leaves no
//! trace in the history, which then reaches further back. Only once it has gone both ways do the
//! tables learn it.

use crate::machine::BranchFacts;

/// Counter of an entry: three bits, signed; taken when not negative.
const COUNTER_MAX: i8 = 3;
const COUNTER_MIN: i8 = -4;
/// Usefulness has two bits.
const USEFUL_MAX: u8 = 3;
/// Lookups after which usefulness is halved, so that stale entries may be replaced.
const AGEING: u32 = 1 << 18;

/// What is known of a branch by its address alone: which ways it has gone and, once it has gone
/// both, two bits that count up and down. In a byte, since every branch looks at one.
///
/// ```text
/// 0 unseen   1 always straight   2 always taken   4 5 both, leans straight   6 7 both, leans taken
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Base(u8);

impl Base {
    const UNSEEN: Base = Base(0);
    const BOTH: u8 = 4;
    const LEANS_TAKEN: u8 = 6;

    /// Has only ever gone this way.
    #[inline]
    fn always(taken: bool) -> Base {
        Base(1 + u8::from(taken))
    }

    /// Has gone both ways, and leans weakly to this one.
    fn leaning(taken: bool) -> Base {
        Base(Base::BOTH + 1 + u8::from(taken))
    }

    #[inline]
    fn has_both(self) -> bool {
        self.0 >= Base::BOTH
    }

    #[inline]
    fn says(self) -> bool {
        self.0 >= Base::LEANS_TAKEN
    }

    #[inline]
    fn learn(&mut self, taken: bool) {
        let next = if taken { self.0 + 1 } else { self.0 - 1 };
        self.0 = next.clamp(Base::BOTH, Base::BOTH + 3);
    }
}

/// An entry of a tagged table. Tag 0 marks one that was never used.
#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    tag: u16,
    counter: i8,
    useful: u8,
}

impl Entry {
    /// Whether it has not proved itself.
    #[inline]
    fn is_fresh(self) -> bool {
        self.useful == 0 && matches!(self.counter, -1 | 0)
    }
}

#[derive(Clone, Copy, Debug)]
struct Span {
    low: u64,
    high: u64,
}

/// The predictor.
#[derive(Clone, Debug)]
pub(super) struct Tage {
    base: Vec<Base>,
    /// The tables one after the other, in order of history.
    entries: Vec<Entry>,
    spans: [Span; TABLES_MAX],
    tables: usize,
    table_shift: u32,
    shape: Shape,
    history: [u64; 2],
    /// Prefers the alternative while a fresh entry has not proved itself.
    trust_fresh: i8,
    clock: u32,
    /// Turns so that allocation does not always favour the same table.
    turn: u32,
}

/// The most tables there are.
const TABLES_MAX: usize = 16;

/// How many tables there are, where machines that travel with the tool have as many and as many entries
/// in each, and only the last reaches beyond a word. What is done with each is then unrolled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Shape {
    FiveSmall,
    FiveLarge,
    Six,
    Other,
}

/// Entries of a table of each shape, as powers of two.
const SMALL_SHIFT: u32 = 11;
const LARGE_SHIFT: u32 = 12;
const SIX_SHIFT: u32 = 13;

impl Shape {
    fn of(tables: usize, table_shift: u32, spans: &[Span; TABLES_MAX]) -> Shape {
        if spans.iter().take(tables.saturating_sub(1)).any(|span| span.high != 0) {
            return Shape::Other;
        }
        match (tables, table_shift) {
            (5, SMALL_SHIFT) => Shape::FiveSmall,
            (5, LARGE_SHIFT) => Shape::FiveLarge,
            (6, SIX_SHIFT) => Shape::Six,
            _ => Shape::Other,
        }
    }
}

/// Where a branch looks in a table, and the tag that it looks for.
type Look = (u32, u16);

impl Tage {
    pub(super) fn new(facts: &BranchFacts) -> Tage {
        let tables = facts.tables.clamp(1, TABLES_MAX as u32);
        let table_shift = facts.table_entries.max(2).ilog2();
        let mut spans = [Span { low: 0, high: 0 }; TABLES_MAX];
        for (k, place) in (0..tables).zip(&mut spans) {
            *place = span(length(k, tables, facts.history_bits));
        }
        Tage {
            base: vec![Base::default(); facts.base_entries.next_power_of_two() as usize],
            entries: vec![Entry::default(); (tables as usize) << table_shift],
            spans,
            tables: tables as usize,
            table_shift,
            shape: Shape::of(tables as usize, table_shift, &spans),
            history: [0; 2],
            trust_fresh: 0,
            clock: 0,
            turn: 1,
        }
    }

    /// Predicts, then learns.
    #[inline]
    pub(super) fn observe(&mut self, pc: u64, taken: bool) -> bool {
        let mask = self.base.len() - 1;
        let place = (pc ^ (pc >> 13)) as usize & mask;
        let base = self.base[place];
        if base.has_both() {
            self.observe_both(pc, taken, place)
        } else if base == Base::always(taken) {
            taken
        } else {
            self.change(place, taken)
        }
    }

    /// A branch goes a way that it never went. Nothing led one to expect that, unless it was never
    /// seen at all and goes straight on.
    #[cold]
    fn change(&mut self, place: usize, taken: bool) -> bool {
        let base = &mut self.base[place];
        if *base == Base::UNSEEN {
            *base = Base::always(taken);
            return false;
        }
        // It leans the way that it always went.
        *base = Base::leaning(!taken);
        self.push(taken);
        !taken
    }

    #[inline]
    fn push(&mut self, taken: bool) {
        self.history =
            [self.history[0] << 1 | u64::from(taken), self.history[1] << 1 | self.history[0] >> 63];
    }

    #[inline]
    fn observe_both(&mut self, pc: u64, taken: bool, base: usize) -> bool {
        let mixed_pc = pc.wrapping_mul(0xff51_afd7_ed55_8ccd);
        match self.shape {
            Shape::FiveSmall => {
                self.look_and_learn::<5, SMALL_SHIFT, { 5 << SMALL_SHIFT }>(mixed_pc, taken, base)
            }
            Shape::FiveLarge => {
                self.look_and_learn::<5, LARGE_SHIFT, { 5 << LARGE_SHIFT }>(mixed_pc, taken, base)
            }
            Shape::Six => {
                self.look_and_learn::<6, SIX_SHIFT, { 6 << SIX_SHIFT }>(mixed_pc, taken, base)
            }
            Shape::Other => {
                let (looks, matches) = self.look_into(mixed_pc);
                self.learn_all(taken, base, matches, &looks)
            }
        }
    }

    #[inline]
    fn look_and_learn<const TABLES: usize, const SHIFT: u32, const ALL: usize>(
        &mut self,
        mixed_pc: u64,
        taken: bool,
        base: usize,
    ) -> bool {
        let (looks, matches) = self.look_usually::<TABLES, SHIFT, ALL>(mixed_pc);
        self.learn_all(taken, base, matches, &looks)
    }

    /// Predicts from what was found, then learns.
    #[inline]
    fn learn_all(&mut self, taken: bool, base: usize, matches: u32, looks: &[Look]) -> bool {
        let guess = if matches == 0 {
            let base = &mut self.base[base];
            let guess = base.says();
            base.learn(taken);
            guess
        } else {
            self.learn(base, taken, matches, looks)
        };
        if guess != taken {
            self.allocate(taken, matches, looks);
        }
        self.push(taken);
        guess
    }

    /// Where a branch looks in each table, and which of them have it, a bit each: no decision until
    /// all are known, because which of them match is hard to guess for the host too.
    fn look_into(&self, mixed_pc: u64) -> ([Look; TABLES_MAX], u32) {
        let (mut looks, mut matches) = ([(0, 0); TABLES_MAX], 0);
        for (k, (place, span)) in looks.iter_mut().zip(&self.spans).enumerate().take(self.tables) {
            let far = (self.history[1] & span.high).rotate_left(29);
            *place = look(mixed_pc, self.history[0] & span.low ^ far, k as u32, self.table_shift);
            let is_held = self.entries.get(place.0 as usize).is_some_and(|e| e.tag == place.1);
            matches |= u32::from(is_held) << k;
        }
        (looks, matches)
    }

    /// The same of tables of usual shape. The host unrolls what is done with each, and need not ask
    /// whether a place lies within: none lies outside.
    #[inline]
    fn look_usually<const TABLES: usize, const SHIFT: u32, const ALL: usize>(
        &self,
        mixed_pc: u64,
    ) -> ([Look; TABLES], u32) {
        let (mut looks, mut matches) = ([(0, 0); TABLES], 0);
        let Ok(entries) = <&[Entry; ALL]>::try_from(self.entries.as_slice()) else {
            return (looks, matches);
        };
        for (k, (place, span)) in looks.iter_mut().zip(&self.spans).enumerate() {
            let mut stretch = self.history[0] & span.low;
            if k + 1 == TABLES {
                stretch ^= (self.history[1] & span.high).rotate_left(29);
            }
            *place = look(mixed_pc, stretch, k as u32, SHIFT);
            matches |= u32::from(entries[place.0 as usize].tag == place.1) << k;
        }
        (looks, matches)
    }

    /// The guess of the longest history that matches, which then learns.
    #[inline]
    fn learn(&mut self, base: usize, taken: bool, matches: u32, looks: &[Look]) -> bool {
        let best = matches.ilog2();
        let rest = matches ^ 1 << best;
        let place_of = |k: u32| looks.get(k as usize).map_or(0, |look| look.0 as usize);
        let place = place_of(best);
        let entry = self.entries[place];
        let said = entry.counter >= 0;
        let counter = stepped(entry.counter, taken);
        let is_fresh = entry.is_fresh();
        // Useful to the full and in agreement: whatever the alternative says, nothing else changes.
        if entry.useful == USEFUL_MAX && said == taken {
            self.entries[place].counter = counter;
            return said;
        }
        let alternative = match rest.checked_ilog2() {
            Some(second) => self.entries[place_of(second)].counter >= 0,
            None => self.base[base].says(),
        };
        let guess = if is_fresh && self.trust_fresh < 0 { alternative } else { said };
        let mut useful = entry.useful;
        if said != alternative {
            if is_fresh {
                let step = if said == taken { 1 } else { -1 };
                self.trust_fresh = (self.trust_fresh + step).clamp(-8, 7);
            }
            useful =
                if said == taken { (useful + 1).min(USEFUL_MAX) } else { useful.saturating_sub(1) };
        }
        self.entries[place] = Entry { counter, useful, ..entry };
        guess
    }

    #[cold]
    fn allocate(&mut self, taken: bool, matches: u32, looks: &[Look]) {
        let first = matches.checked_ilog2().map_or(0, |best| best as usize + 1);
        if first >= self.tables {
            return;
        }
        self.turn = self.turn.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        // Half the time skip one table, so that histories of several lengths are tried.
        let skip = usize::from(self.turn >> 31 == 1 && first + 1 < self.tables);
        let candidates = || first + skip..self.tables;
        let free = candidates().find(|&k| self.entries[looks[k].0 as usize].useful == 0);
        match free {
            Some(k) => {
                let (place, tag) = looks[k];
                let counter = if taken { 0 } else { -1 };
                self.entries[place as usize] = Entry { tag, counter, useful: 0 };
            }
            None => {
                for (place, _) in &looks[first + skip..self.tables] {
                    let entry = &mut self.entries[*place as usize];
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

#[inline]
fn stepped(counter: i8, up: bool) -> i8 {
    (counter + if up { 1 } else { -1 }).clamp(COUNTER_MIN, COUNTER_MAX)
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

/// Hashes a mixed address with a stretch of history; high bits give the place, those below the tag.
#[inline]
fn look(mixed_pc: u64, stretch: u64, k: u32, shift: u32) -> Look {
    let salted = mixed_pc.rotate_left(7 * k) ^ stretch;
    let mixed = (salted ^ salted >> 31).wrapping_mul(0xd6e8_feb8_6659_fd93);
    let place = (mixed >> (64 - shift)) as u32 | k << shift;
    // Tag 0 marks an empty entry.
    (place, (mixed >> 36) as u16 & 0x0fff | 0x1000)
}
