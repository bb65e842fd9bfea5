//! The time of many idealisations at once.
//!
//! Each lane is the same graph with another set idealised. All lanes take the same steps, so that
//! one pass over the micro-ops times them all, side by side in vector registers.

mod advance;
mod far;

use advance::Times;
use far::{BLOCK, Far};

use crate::chunk::{Chunk, Plain};
#[cfg(target_arch = "x86_64")]
use crate::chunk::{Eight, Sixteen};
use crate::fixed::Fixed;
use crate::history::{IDEAL_WINDOW, SPAN};
use crate::node::Node;
use crate::player::{Keeps, Player};
use crate::ports::Ports;
use crate::step::Step;
use crate::walkers::Walkers;
use crate::{Categories, Category, Kind};
use model::units::misses::SPELL_CYCLES;

/// Who decides how long a micro-op waits for a port.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Arbitration {
    /// What was observed, in every lane: then idealising more never takes longer.
    Frozen,
    /// Every lane gives its ports out anew.
    #[default]
    Anew,
}

/// Micro-ops whose arrival is remembered. To fetch as many takes longer than any edge between two
/// arrivals is, so that one from further back binds nobody.
const ARRIVALS: u32 = 128;
/// Stores whose writing is remembered.
const STORES: u32 = 1 << 11;

/// How lanes are evaluated.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Form {
    /// On any machine.
    Plain,
    /// Eight at a time, with AVX2.
    #[cfg(target_arch = "x86_64")]
    Eight,
    /// Sixteen at a time, with AVX-512.
    #[cfg(target_arch = "x86_64")]
    Sixteen,
}

impl Form {
    /// The widest that so many lanes can be divided into and the processor has.
    fn widest(lanes: usize) -> Form {
        #[cfg(target_arch = "x86_64")]
        {
            let has_avx2 = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("bmi1");
            let has_avx512 = has_avx2 && is_x86_feature_detected!("avx512f");
            if has_avx512 && lanes.is_multiple_of(Sixteen::LANES) {
                return Form::Sixteen;
            }
            if has_avx2 && lanes.is_multiple_of(Eight::LANES) {
                return Form::Eight;
            }
        }
        let _ = lanes;
        Form::Plain
    }
}

/// As many idealisations as there are lanes, evaluated side by side.
#[derive(Clone, Debug)]
pub struct Lanes<const L: usize> {
    fixed: Fixed,
    sets: Vec<Categories>,
    keeps: Keeps<L>,
    /// The instruction of the last micro-op.
    last: u32,
    count: usize,
    stores: usize,
    arrived: Node<L>,
    dispatched: Node<L>,
    issued: Node<L>,
    completed: Node<L>,
    committed: Node<L>,
    far: Far,
    written: Node<L>,
    /// Whether a block of lanes has one that keeps widths.
    is_wide: Vec<bool>,
    /// Cycles taken off all times to keep them small.
    base: [u64; L],
    /// None where waits are frozen.
    ports: Option<Ports>,
    walkers: Walkers<L>,
    /// Whether no lane idealises dependences.
    keeps_dependences: bool,
    /// The micro-op that is under way.
    row: Option<Box<Times<L>>>,
    form: Form,
}

impl<const L: usize> Lanes<L> {
    /// What every lane keeps.
    const EVERYWHERE: [u32; L] = [u32::MAX; L];

    /// Lanes for these sets of categories; the rest of them stand idle.
    pub fn new(fixed: Fixed, sets: &[Categories], arbitration: Arbitration) -> Lanes<L> {
        let players: Vec<Player> = Category::EVERY.iter().copied().map(Player::category).collect();
        Lanes::of_players(fixed, &players, sets, arbitration)
    }

    /// Lanes for sets of players, by number.
    pub fn of_players(
        fixed: Fixed,
        players: &[Player],
        sets: &[Categories],
        arbitration: Arbitration,
    ) -> Lanes<L> {
        let drops = |set: &Categories, kind: Kind| {
            let mut members = set.numbers().filter_map(|number| players.get(number));
            members.any(|player| player.places.is_none() && player.kinds.has(kind))
        };
        // Lanes with ports come first: there is nothing to give out in the others. Those with an
        // ideal window meet in the middle, so that most others need not look so far back.
        let place = |set: &Categories| {
            let (is_free, is_ideal) = (drops(set, Kind::Ports), drops(set, Kind::Window));
            (is_free, is_free != is_ideal)
        };
        let mut sets: Vec<Categories> = sets.iter().copied().take(L).collect();
        sets.sort_by_key(place);
        let ported = sets.iter().filter(|set| !drops(set, Kind::Ports)).count();
        let is_ideal: Vec<bool> = sets.iter().map(|set| drops(set, Kind::Window)).collect();
        let is_wide =
            sets.chunks(BLOCK).map(|block| block.iter().any(|set| !drops(set, Kind::Width)));
        let is_wide = is_wide.collect();
        let keeps = Keeps::new(players, &sets);
        // An edge spans at most as many micro-ops as fill a queue or window, and some slots hold
        // several; an ideal queue that is longer than that has no end.
        let (window, queue) = (4 * fixed.window, 4 * fixed.queue);
        let ideal = IDEAL_WINDOW * fixed.window * 3 / 2;
        let keeps_dependences = !players.iter().enumerate().any(|(number, player)| {
            let is_asked = sets.iter().any(|set| set.0 >> (number & 15) & 1 == 1);
            is_asked && player.kinds.has(Kind::Dependence)
        });
        Lanes {
            fixed,
            sets,
            keeps,
            last: 0,
            count: 0,
            stores: 0,
            arrived: Node::new(ARRIVALS),
            dispatched: Node::new(queue),
            issued: Node::new(window),
            completed: Node::new(ideal),
            committed: Node::new(window),
            far: Far::new(ideal, &is_ideal),
            is_wide,
            written: Node::new(STORES),
            base: [0; L],
            ports: (arbitration == Arbitration::Anew).then(|| Ports::new(ported)),
            walkers: Walkers::new(fixed.walkers),
            keeps_dependences,
            row: Some(Box::default()),
            form: Form::widest(L),
        }
    }

    /// The cycles of each set so far.
    pub fn times(&self) -> Vec<(Categories, f64)> {
        let last = self.committed.at(self.count.wrapping_sub(1));
        let time = |lane: usize| {
            let within = if self.count == 0 { 0 } else { last[lane] };
            (self.base[lane] + u64::from(within)) as f64
        };
        self.sets.iter().enumerate().map(|(lane, &set)| (set, time(lane))).collect()
    }

    /// Adds a micro-op.
    #[inline]
    pub fn step(&mut self, step: &Step) {
        #[allow(unsafe_code)]
        #[cfg(target_arch = "x86_64")]
        match self.form {
            // SAFETY: this form is chosen only where the processor has its instructions.
            Form::Sixteen => unsafe { self.advance_sixteen(step) },
            // SAFETY: so is this one.
            Form::Eight => unsafe { self.advance_eight(step) },
            Form::Plain => self.advance_plain(step),
        }
        #[cfg(not(target_arch = "x86_64"))]
        self.advance_plain(step);
        // Long before any lane could overflow.
        if self.count.is_multiple_of(SPAN) {
            self.rebase();
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f,avx2,bmi1")]
    fn advance_sixteen(&mut self, step: &Step) {
        self.advance::<Sixteen>(step);
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,bmi1")]
    fn advance_eight(&mut self, step: &Step) {
        self.advance::<Eight>(step);
    }

    fn advance_plain(&mut self, step: &Step) {
        if L.is_multiple_of(Plain::<4>::LANES) {
            self.advance::<Plain<4>>(step);
        } else {
            self.advance::<Plain<1>>(step);
        }
    }

    /// Takes what all nodes have in common off their times.
    #[cold]
    fn rebase(&mut self) {
        let last = *self.dispatched.at(self.count - 1);
        for (lane, last) in last.into_iter().enumerate() {
            // What lies so far back binds nobody.
            let oldest = last.saturating_sub(1 << 24);
            // Walkers are booked by spells.
            let oldest = oldest & !(SPELL_CYCLES as u32 - 1);
            if oldest == 0 {
                continue;
            }
            self.base[lane] += u64::from(oldest);
            self.walkers.lower(lane, oldest);
            self.far.lower(lane, oldest);
            if let Some(ports) = &mut self.ports {
                ports.clear(lane);
            }
            for node in [
                &mut self.arrived,
                &mut self.dispatched,
                &mut self.issued,
                &mut self.completed,
                &mut self.committed,
                &mut self.written,
            ] {
                node.lower(lane, oldest);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::subsets_up_to;
    use model::machine::Machine;

    #[test]
    fn every_form_gives_the_same_times() {
        let fixed = Fixed::of(&Machine::named("zen4").unwrap());
        let sets = subsets_up_to(2);
        let mut sixteen: Lanes<48> = Lanes::new(fixed, &sets, Arbitration::Anew);
        let mut eight: Lanes<40> = Lanes::new(fixed, &sets, Arbitration::Anew);
        let mut plain = Lanes { form: Form::Plain, ..eight.clone() };
        let mut odd: Lanes<37> = Lanes::new(fixed, &sets, Arbitration::Anew);
        for k in 0..20_000_u32 {
            let step = Step {
                instruction: k % 90,
                producers: [k % 3, k % 17, 0, 0],
                ports: (0b11 << (k % 4), 1 + k % 40 / 39 * 7),
                short: k % 2,
                miss: if k % 31 == 0 { 400 } else { 0 },
                window: 300,
                width: 6,
                retire_width: 8,
                queue: Some(0),
                redirect: if k % 57 == 0 { (1, 12) } else { (0, 0) },
                takes_store: k % 11 == 1,
                write: (k % 11 == 2).then_some(k % 200),
                ..Step::default()
            };
            sixteen.step(&step);
            eight.step(&step);
            plain.step(&step);
            odd.step(&step);
        }
        for times in [sixteen.times(), eight.times(), odd.times()] {
            assert_eq!(times, plain.times());
        }
        assert!(plain.times()[0].1 > 20_000.0 / 6.0);
    }
}
