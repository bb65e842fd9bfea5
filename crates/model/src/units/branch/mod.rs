//! Branch prediction: whether, and where to.

mod crowd;
mod direction;
mod pairs;
mod tage;
mod targets;

use crowd::Crowds;
use direction::Direction;
use pairs::Pairs;
use targets::{Indirect, Returns};

use super::cache::Cache;
use super::newest::Newest;
use crate::machine::BranchFacts;
use crate::uop::Flow;

/// What the front end got wrong about a branch.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Verdict {
    /// Fetch went the wrong way until the branch executed.
    pub mispredicted: bool,
    /// It was the direction that was wrong, not the target.
    pub wrong_direction: bool,
    /// A taken direct branch was unknown: the decoder put fetch right.
    pub resteered: bool,
    /// An indirect branch went elsewhere than the target buffer said.
    pub retargeted: bool,
    /// Its line has more taken branches than the target buffer follows at once, and it is not among
    /// the first.
    pub crowded: bool,
    /// Taken, it does not go along with the taken branch before it, whatever room the cycle has.
    pub leads: bool,
}

/// A branch that has executed.
#[derive(Clone, Copy, Debug)]
pub struct Branch {
    /// Its address.
    pub pc: u64,
    /// Its kind.
    pub flow: Flow,
    /// Whether it left the straight line.
    pub taken: bool,
    /// Where it went.
    pub target: u64,
    /// The address after it.
    pub next: u64,
}

/// Marks the target of a crowded branch: no program's code lies so high.
const CROWDED: u64 = 1 << 63;

/// The predictors of a core.
#[derive(Clone, Debug)]
pub struct Predictor {
    direction: Direction,
    targets: Cache<u64>,
    /// The branch used last in each set, and its target with the mark, so that one that is crowded
    /// is never taken for known at once.
    newest: Newest<(u64, u64)>,
    /// None where lines hold any number of targets.
    crowds: Option<Crowds>,
    /// None where any branches share a cycle.
    pairs: Option<Pairs>,
    indirect: Option<Indirect>,
    returns: Returns,
}

impl Predictor {
    /// An untrained predictor.
    pub fn new(facts: &BranchFacts) -> Predictor {
        let indirect = facts.indirect_entries as usize;
        let targets = Cache::new(facts.btb_entries as usize, facts.btb_ways as usize);
        Predictor {
            direction: Direction::new(facts),
            newest: Newest::new(targets.sets(), (u64::MAX, 0)),
            targets,
            crowds: (facts.line_targets > 0).then(|| Crowds::new(facts.line_targets)),
            pairs: facts.fixed_pairs.then(Pairs::new),
            indirect: (indirect > 0).then(|| Indirect::new(indirect)),
            returns: Returns::new(facts.return_stack as usize),
        }
    }

    /// Predicts a branch, learns what it did, and says what was wrong.
    #[inline]
    pub fn observe(&mut self, branch: &Branch) -> Verdict {
        let verdict = match branch.flow {
            Flow::Conditional => {
                return self.conditional(branch.pc, branch.taken, branch.target);
            }
            Flow::Jump => self.direct(branch),
            Flow::Call => {
                self.returns.push(branch.next);
                self.direct(branch)
            }
            Flow::IndirectCall => {
                self.returns.push(branch.next);
                self.through_register(branch)
            }
            Flow::IndirectJump => self.through_register(branch),
            Flow::Return => {
                let wrong = self.returns.pop() != branch.target;
                Verdict { mispredicted: wrong, ..Verdict::default() }
            }
            Flow::Next => return Verdict::default(),
        };
        Verdict { leads: self.leads(branch.pc), ..verdict }
    }

    #[inline]
    fn leads(&mut self, pc: u64) -> bool {
        self.pairs.as_mut().is_some_and(|pairs| pairs.leads(pc))
    }

    /// The same of a conditional branch, which most are.
    #[inline]
    pub(crate) fn conditional(&mut self, pc: u64, taken: bool, target: u64) -> Verdict {
        let wrong = self.direction.observe(pc, taken) != taken;
        let known = if taken { self.learn_target(pc, target) } else { Known::AtOnce };
        Verdict {
            mispredicted: wrong,
            wrong_direction: wrong,
            resteered: known == Known::Not && !wrong,
            crowded: known == Known::Crowded,
            leads: taken && self.leads(pc),
            ..Verdict::default()
        }
    }

    #[inline]
    fn direct(&mut self, branch: &Branch) -> Verdict {
        let known = self.learn_target(branch.pc, branch.target);
        Verdict {
            resteered: known == Known::Not,
            crowded: known == Known::Crowded,
            ..Verdict::default()
        }
    }

    fn through_register(&mut self, branch: &Branch) -> Verdict {
        let held = self.targets.touch(branch.pc).map(|target| *target);
        if let Some(target) = held {
            self.newest.note(branch.pc, (branch.pc, target));
        }
        let crowded = held.is_some_and(|target| target & CROWDED != 0);
        let held = held.map(|target| target & !CROWDED);
        let guess = match &mut self.indirect {
            Some(indirect) => indirect.observe(branch.pc, branch.target).or(held),
            None => held,
        };
        let mispredicted = guess != Some(branch.target);
        // The target buffer is written when a branch went wrong. One whose targets are told by the
        // path keeps the target that it had.
        if mispredicted || held.is_none() {
            self.learn_target(branch.pc, branch.target);
        }
        let retargeted = held != Some(branch.target);
        Verdict { mispredicted, retargeted, crowded, ..Verdict::default() }
    }

    /// Remembers a target; tells how it was known.
    #[inline]
    fn learn_target(&mut self, pc: u64, target: u64) -> Known {
        if self.newest.of(pc) == (pc, target) {
            return Known::AtOnce;
        }
        self.learn_older(pc, target)
    }

    #[inline(never)]
    fn learn_older(&mut self, pc: u64, target: u64) -> Known {
        let (mark, known) = match self.targets.touch(pc) {
            Some(held) => {
                let (before, mark) = (*held & !CROWDED, *held & CROWDED);
                *held = target | mark;
                let known = if mark == 0 { Known::AtOnce } else { Known::Crowded };
                (mark, if before == target { known } else { Known::Not })
            }
            None => {
                let crowds = self.crowds.as_mut();
                let is_crowded = crowds.is_some_and(|crowds| crowds.is_one_too_many(pc));
                let mark = if is_crowded { CROWDED } else { 0 };
                self.targets.insert(pc, target | mark);
                (mark, Known::Not)
            }
        };
        self.newest.note(pc, (pc, target | mark));
        known
    }
}

/// How a target was known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Known {
    AtOnce,
    /// A little late.
    Crowded,
    Not,
}

#[cfg(test)]
mod plainly;
#[cfg(test)]
mod tests;
