//! The time of many idealisations at once.
//!
//! Each lane is the same graph with another set idealised. All lanes take the same steps, so that
//! one pass over the micro-ops times them all, side by side in vector registers.

use crate::fixed::Fixed;
use crate::history::{IDEAL_WINDOW, SPAN};
use crate::node::{Node, behind, has_wide_registers, latest, plus};
use crate::player::{Keep, Keeps, Player};
use crate::ports::Ports;
use crate::step::{Step, Wait};
use crate::{Categories, Category, Kind};

/// Who decides how long a micro-op waits for a port.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Arbitration {
    /// What was observed, in every lane: then idealising more never takes longer.
    Frozen,
    /// Every lane gives its ports out anew.
    #[default]
    Anew,
}

/// Stores whose writing is remembered.
const STORES: usize = 1 << 11;

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
    written: Node<L>,
    /// Cycles taken off all times to keep them small.
    base: [u64; L],
    /// None where waits are frozen.
    ports: Option<Ports>,
    /// Whether no lane idealises dependences.
    keeps_dependences: bool,
    /// Whether the machine has the wide registers that the fast form needs.
    is_wide: bool,
}

impl<const L: usize> Lanes<L> {
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
        // Lanes with ports come first: there is nothing to give out in the others.
        let is_free = |set: &Categories| {
            let mut members = set.numbers().filter_map(|number| players.get(number));
            members.any(|player| player.places.is_none() && player.kinds.has(Kind::Ports))
        };
        let mut sets: Vec<Categories> = sets.iter().copied().take(L).collect();
        sets.sort_by_key(is_free);
        let ported = sets.iter().filter(|set| !is_free(set)).count();
        let keeps = Keeps::new(players, &sets);
        let node = || Node::new(SPAN);
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
            arrived: node(),
            dispatched: node(),
            issued: node(),
            completed: node(),
            committed: node(),
            written: Node::new(STORES),
            base: [0; L],
            ports: (arbitration == Arbitration::Anew).then(|| Ports::new(ported)),
            keeps_dependences,
            is_wide: has_wide_registers(),
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
        #[cfg(target_arch = "x86_64")]
        if self.is_wide {
            // SAFETY: `is_wide` is set only where the processor has AVX2.
            #[allow(unsafe_code)]
            unsafe {
                self.advance_wide(step);
            }
            return;
        }
        self.advance(step);
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    fn advance_wide(&mut self, step: &Step) {
        self.advance(step);
    }

    #[inline(always)]
    fn advance(&mut self, step: &Step) {
        let keep = self.keeps.of(step.instruction);
        let arrived = self.arrive(step, keep);
        let dispatched = self.dispatch(step, keep, &arrived);
        let ready = self.ready(step, keep, &dispatched);
        let issued = match &mut self.ports {
            Some(ports) => {
                let mut at = ready;
                if step.ports.0 != 0 {
                    ports.take(&mut at, step.ports);
                }
                at
            }
            None => plus(&ready, step.contention, &keep[Kind::Ports as usize]),
        };
        let completed = self.complete(step, keep, &issued);
        let committed = self.commit(step, keep, &completed);
        if let Some(cycles) = step.write {
            self.write(cycles, step, &committed);
        }
        self.arrived.put(self.count, &arrived);
        self.dispatched.put(self.count, &dispatched);
        self.issued.put(self.count, &issued);
        self.completed.put(self.count, &completed);
        self.committed.put(self.count, &committed);
        self.last = step.instruction;
        self.count += 1;
        // Long before any lane could overflow.
        if self.count.is_multiple_of(SPAN) {
            self.rebase();
        }
    }

    #[inline(always)]
    fn arrive(&self, step: &Step, keep: &Keep<L>) -> [u32; L] {
        if self.count == 0 {
            return [0; L];
        }
        let last = self.count - 1;
        let mut at = *self.arrived.at(last);
        let window = &keep[Kind::Window as usize];
        match step.queue {
            None => behind(&mut at, self.dispatched.at(last), 0),
            Some(distance) => {
                self.edge(&mut at, &self.dispatched, (distance, self.fixed.front), window);
            }
        }
        self.always(&mut at, &self.dispatched, (step.ideal_queue, self.fixed.front));
        if step.redirect.0 | step.resteer > 0 {
            // The fault is the branch's, which is the instruction before.
            let branch = &self.keeps.of(self.last)[Kind::Mispredict as usize];
            latest(&mut at, self.arrived.at(last), step.resteer, branch);
            self.edge(&mut at, &self.completed, step.redirect, branch);
        }
        let width = &keep[Kind::Width as usize];
        self.edge(&mut at, &self.arrived, step.taken, width);
        if step.code | step.code_translation > 0 {
            at = plus(&at, step.code, &keep[Kind::Code as usize]);
            at = plus(&at, step.code_translation, &keep[Kind::CodeTranslation as usize]);
        }
        self.edge(&mut at, &self.arrived, (step.fetch_width, 1), width);
        if step.bubble > 0 {
            at = plus(&at, step.bubble, width);
        }
        at
    }

    #[inline(always)]
    fn dispatch(&self, step: &Step, keep: &Keep<L>, arrived: &[u32; L]) -> [u32; L] {
        let mut at = *arrived;
        if self.count == 0 {
            return at;
        }
        let last = self.dispatched.at(self.count - 1);
        behind(&mut at, last, 0);
        let window = &keep[Kind::Window as usize];
        if step.stuck > 0 {
            latest(&mut at, last, step.stuck, window);
        }
        self.edge(&mut at, &self.dispatched, (step.width, 1), &keep[Kind::Width as usize]);
        self.edge(&mut at, &self.committed, (step.window, 0), window);
        self.always(&mut at, &self.committed, (step.ideal_window, 0));
        self.edge(&mut at, &self.committed, (step.load_room, 0), window);
        if step.takes_store {
            self.wait_for_store(&mut at, self.fixed.store_queue, window);
            self.wait_for_store(&mut at, IDEAL_WINDOW * self.fixed.store_queue, &[u32::MAX; L]);
        }
        if let Some(wait) = step.wait {
            let from = match wait.from {
                Wait::Issue => &self.issued,
                Wait::Commit => &self.committed,
            };
            self.edge(&mut at, from, (wait.distance, wait.label), window);
        }
        at
    }

    /// No earlier than the store so many before has been written.
    #[inline(always)]
    fn wait_for_store(&self, at: &mut [u32; L], places: u32, keep: &[u32; L]) {
        let places = places as usize;
        if places <= self.stores && places < STORES {
            latest(at, self.written.at(self.stores - places), 0, keep);
        }
    }

    #[inline(always)]
    fn ready(&self, step: &Step, keep: &Keep<L>, dispatched: &[u32; L]) -> [u32; L] {
        let mut at = dispatched.map(|time| time + self.fixed.to_issue);
        let wakeup = self.fixed.wakeup;
        let producers = step.producers.iter().chain([&step.data]);
        if self.keeps_dependences {
            producers.for_each(|&from| self.always(&mut at, &self.completed, (from, wakeup)));
        } else {
            let dependence = &keep[Kind::Dependence as usize];
            for &from in producers {
                self.edge(&mut at, &self.completed, (from, wakeup), dependence);
            }
        }
        at
    }

    #[inline(always)]
    fn complete(&self, step: &Step, keep: &Keep<L>, issued: &[u32; L]) -> [u32; L] {
        let mut at = issued.map(|time| time + step.fixed);
        for (label, kind) in [
            (step.hit, Kind::Hit),
            (step.short, Kind::Short),
            (step.long, Kind::Long),
            (step.miss, step.level),
            (step.translation, Kind::Translation),
        ] {
            if label > 0 {
                at = plus(&at, label, &keep[kind as usize]);
            }
        }
        self.edge(&mut at, &self.completed, step.line, &keep[Kind::Line as usize]);
        self.edge(&mut at, &self.completed, step.miss_room, &keep[step.level as usize]);
        let (data, label) = step.forward;
        if data > 0 {
            let (label, dependence) =
                (&keep[Kind::Forward as usize].map(|keep| keep & label), Kind::Dependence as usize);
            self.labelled(&mut at, data, label, &keep[dependence]);
            self.labelled(&mut at, data + 1, label, &keep[dependence]);
        }
        at
    }

    #[inline(always)]
    fn commit(&self, step: &Step, keep: &Keep<L>, completed: &[u32; L]) -> [u32; L] {
        let mut at = completed.map(|time| time + self.fixed.to_retire);
        if self.count > 0 {
            behind(&mut at, self.committed.at(self.count - 1), 0);
        }
        let width = &keep[Kind::Width as usize];
        self.edge(&mut at, &self.committed, (step.retire_width, 1), width);
        at.map(|time| time + step.late)
    }

    /// Writes the store whose data has just retired.
    #[inline(always)]
    fn write(&mut self, cycles: u32, step: &Step, committed: &[u32; L]) {
        let keep = self.keeps.of(step.instruction);
        let mut at = committed.map(|time| time + 1);
        if self.count > 0 {
            // All of it goes with the misses: who hits writes within a cycle too.
            let misses = &keep[Kind::Line as usize];
            let cycles = misses.map(|keep| keep & cycles);
            let issued = self.issued.at(self.count - 1);
            for lane in 0..L {
                at[lane] = at[lane].max(issued[lane] + cycles[lane]);
            }
        }
        if self.stores > 0 {
            behind(&mut at, self.written.at(self.stores - 1), 0);
        }
        let ports = self.fixed.stores_per_cycle as usize;
        if ports <= self.stores && ports < STORES {
            let before = self.written.at(self.stores - ports);
            latest(&mut at, before, 1, &keep[Kind::Width as usize]);
        }
        self.written.put(self.stores, &at);
        self.stores += 1;
    }

    /// No earlier than so long after a node of an earlier micro-op, in the lanes that keep it.
    #[inline(always)]
    fn edge(
        &self,
        at: &mut [u32; L],
        from: &Node<L>,
        (distance, label): (u32, u32),
        keep: &[u32; L],
    ) {
        let distance = distance as usize;
        if distance == 0 || distance > self.count.min(SPAN - 1) {
            return;
        }
        latest(at, from.at(self.count - distance), label, keep);
    }

    /// The same in every lane.
    #[inline(always)]
    fn always(&self, at: &mut [u32; L], from: &Node<L>, (distance, label): (u32, u32)) {
        let distance = distance as usize;
        if distance == 0 || distance > self.count.min(SPAN - 1) {
            return;
        }
        behind(at, from.at(self.count - distance), label);
    }

    /// The same from completion, with a label of each lane's own.
    #[inline(always)]
    fn labelled(&self, at: &mut [u32; L], distance: u32, label: &[u32; L], keep: &[u32; L]) {
        let distance = distance as usize;
        if distance == 0 || distance > self.count.min(SPAN - 1) {
            return;
        }
        let from = self.completed.at(self.count - distance);
        for lane in 0..L {
            at[lane] = at[lane].max((from[lane] + label[lane]) & keep[lane]);
        }
    }

    /// Takes what all nodes have in common off their times.
    #[cold]
    fn rebase(&mut self) {
        let last = *self.dispatched.at(self.count - 1);
        for lane in 0..L {
            // What lies so far back binds nobody.
            let oldest = last[lane].saturating_sub(1 << 24);
            if oldest == 0 {
                continue;
            }
            self.base[lane] += u64::from(oldest);
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
                let lowered =
                    |times: &mut [u32; L]| times[lane] = times[lane].saturating_sub(oldest);
                node.times.iter_mut().for_each(lowered);
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
    fn wide_registers_change_nothing() {
        let fixed = Fixed::of(&Machine::named("zen4").unwrap());
        let mut wide: Lanes<40> = Lanes::new(fixed, &subsets_up_to(2), Arbitration::Anew);
        let mut plain = Lanes { is_wide: false, ..wide.clone() };
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
            wide.step(&step);
            plain.step(&step);
        }
        assert_eq!(wide.times(), plain.times());
        assert!(wide.times()[0].1 > 20_000.0 / 6.0);
    }
}
