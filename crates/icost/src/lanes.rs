//! The time of many idealisations at once.
//!
//! Each lane is the same graph with another set of categories idealised. All lanes take the same
//! steps, so that one pass over the micro-ops times them all, side by side in vector registers.

use crate::label::{Fixed, SPAN};
use crate::ports::Ports;
use crate::step::{Step, Wait};
use crate::{Categories, Category};

/// Who decides how long a micro-op waits for a port.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Arbitration {
    /// What was observed, in every lane: then idealising more never takes longer.
    Frozen,
    /// Every lane gives its ports out anew.
    #[default]
    Anew,
}

/// What a lane keeps of a label: all bits, or none where its category is idealised.
type Keep<const L: usize> = [[u32; L]; Category::ALL.len()];

/// Times of one node of the last micro-ops, by lane.
#[derive(Clone, Debug)]
struct Node<const L: usize> {
    times: Vec<[u32; L]>,
}

impl<const L: usize> Node<L> {
    fn new() -> Node<L> {
        Node { times: vec![[0; L]; SPAN] }
    }

    #[inline(always)]
    fn at(&self, place: usize) -> &[u32; L] {
        &self.times[place & (SPAN - 1)]
    }
}

/// As many idealisations as there are lanes, evaluated side by side.
#[derive(Clone, Debug)]
pub struct Lanes<const L: usize> {
    fixed: Fixed,
    sets: Vec<Categories>,
    keep: Keep<L>,
    count: usize,
    dispatched: Node<L>,
    issued: Node<L>,
    completed: Node<L>,
    committed: Node<L>,
    /// Cycles taken off all times to keep them small.
    base: [u64; L],
    /// None where waits are frozen.
    ports: Option<Ports>,
}

impl<const L: usize> Lanes<L> {
    /// Lanes for these sets; the rest of them stand idle.
    pub fn new(fixed: Fixed, sets: &[Categories], arbitration: Arbitration) -> Lanes<L> {
        let mut keep = [[u32::MAX; L]; Category::ALL.len()];
        for (lane, set) in sets.iter().enumerate().take(L) {
            for category in set.iter() {
                keep[category as usize][lane] = 0;
            }
        }
        let node = Node::new;
        Lanes {
            fixed,
            sets: sets.iter().copied().take(L).collect(),
            keep,
            count: 0,
            dispatched: node(),
            issued: node(),
            completed: node(),
            committed: node(),
            base: [0; L],
            ports: (arbitration == Arbitration::Anew).then(|| Ports::new(L)),
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
    pub fn step(&mut self, step: &Step) {
        let dispatched = self.dispatch(step);
        let ready = self.ready(step, &dispatched);
        let issued = self.issue(step, &dispatched, &ready);
        let completed = self.complete(step, &issued);
        let committed = self.commit(step, &completed);
        let place = self.count & (SPAN - 1);
        self.dispatched.times[place] = dispatched;
        self.issued.times[place] = issued;
        self.completed.times[place] = completed;
        self.committed.times[place] = committed;
        self.count += 1;
        // Long before any lane could overflow.
        if self.count.is_multiple_of(SPAN) {
            self.rebase();
        }
    }

    #[inline(always)]
    fn dispatch(&self, step: &Step) -> [u32; L] {
        let keep = &self.keep;
        let mut at = *self.dispatched.at(self.count.wrapping_sub(1));
        if self.count == 0 {
            at = [0; L];
        }
        if step.code | step.bubble | step.stuck | step.resteer > 0 {
            at = plus(&at, step.code, &keep[Category::Imiss as usize]);
            at = plus(&at, step.resteer, &keep[Category::Bmisp as usize]);
            at = plus(&at, step.bubble, &keep[Category::Bw as usize]);
            at = plus(&at, step.stuck, &keep[Category::Win as usize]);
        }
        let bandwidth = &keep[Category::Bw as usize];
        self.edge(&mut at, &self.dispatched, (step.width, 1), bandwidth);
        let window = &keep[Category::Win as usize];
        self.edge(&mut at, &self.committed, (step.window, 0), window);
        self.edge(&mut at, &self.committed, (step.ideal_window, 0), &[u32::MAX; L]);
        if let Some(wait) = step.wait {
            let from = match wait.from {
                Wait::Issue => &self.issued,
                Wait::Commit => &self.committed,
            };
            self.edge(&mut at, from, (wait.distance, wait.label), window);
        }
        self.edge(&mut at, &self.completed, step.redirect, &keep[Category::Bmisp as usize]);
        at
    }

    #[inline(always)]
    fn ready(&self, step: &Step, dispatched: &[u32; L]) -> [u32; L] {
        let mut at = dispatched.map(|time| time + self.fixed.to_issue);
        for &producer in step.producers.iter().chain([&step.data]) {
            self.edge(&mut at, &self.completed, (producer, self.fixed.wakeup), &[u32::MAX; L]);
        }
        at
    }

    #[inline(always)]
    fn issue(&mut self, step: &Step, dispatched: &[u32; L], ready: &[u32; L]) -> [u32; L] {
        let bandwidth = &self.keep[Category::Bw as usize];
        let Some(ports) = &mut self.ports else {
            return plus(ready, step.contention, bandwidth);
        };
        let mut at = *ready;
        if step.ports.0 != 0 {
            for lane in (0..self.sets.len()).filter(|&lane| bandwidth[lane] != 0) {
                at[lane] = ports.take(lane, dispatched[lane], ready[lane], step.ports);
            }
        }
        at
    }

    #[inline(always)]
    fn complete(&self, step: &Step, issued: &[u32; L]) -> [u32; L] {
        let keep = &self.keep;
        let mut at = issued.map(|time| time + step.fixed);
        for (label, category) in [
            (step.hit, Category::Dl1),
            (step.short, Category::Shalu),
            (step.long, Category::Lgalu),
            (step.miss, Category::Dmiss),
        ] {
            if label > 0 {
                at = plus(&at, label, &keep[category as usize]);
            }
        }
        self.edge(&mut at, &self.completed, step.line, &keep[Category::Dmiss as usize]);
        self.edge(&mut at, &self.completed, step.forward, &[u32::MAX; L]);
        at
    }

    #[inline(always)]
    fn commit(&self, step: &Step, completed: &[u32; L]) -> [u32; L] {
        let mut at = completed.map(|time| time + self.fixed.to_retire);
        if self.count > 0 {
            self.edge(&mut at, &self.committed, (1, 0), &[u32::MAX; L]);
        }
        let bandwidth = &self.keep[Category::Bw as usize];
        self.edge(&mut at, &self.committed, (step.retire_width, 1), bandwidth);
        at.map(|time| time + step.late)
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
        let from = from.at(self.count - distance);
        for lane in 0..L {
            at[lane] = at[lane].max((from[lane] + label) & keep[lane]);
        }
    }

    /// Takes what all nodes have in common off their times.
    fn rebase(&mut self) {
        let last = *self.dispatched.at(self.count - 1);
        for lane in 0..L {
            // What lies a whole span back binds nobody; one cycle must stay to tell from never.
            let oldest = last[lane].saturating_sub(1 << 24);
            self.base[lane] += u64::from(oldest);
            if let Some(ports) = &mut self.ports {
                ports.rebase(lane, oldest);
            }
            for node in
                [&mut self.dispatched, &mut self.issued, &mut self.completed, &mut self.committed]
            {
                node.times
                    .iter_mut()
                    .for_each(|times| times[lane] = times[lane].saturating_sub(oldest));
            }
        }
    }
}

/// Adds a label in the lanes that keep it.
#[inline(always)]
fn plus<const L: usize>(at: &[u32; L], label: u32, keep: &[u32; L]) -> [u32; L] {
    let mut sum = *at;
    for lane in 0..L {
        sum[lane] += label & keep[lane];
    }
    sum
}

/// All sets of at most so many categories, the empty one first.
pub fn subsets_up_to(most: u32) -> Vec<Categories> {
    let mut sets: Vec<Categories> =
        (0..=Categories::ALL.0).map(Categories).filter(|set| set.len() <= most).collect();
    sets.sort_by_key(|set| (set.len(), set.0));
    sets
}
