//! Branch prediction: whether, and where to.

mod direction;
mod tage;
mod targets;

use direction::Direction;
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

/// The predictors of a core.
#[derive(Clone, Debug)]
pub struct Predictor {
    direction: Direction,
    targets: Cache<u64>,
    /// The branch used last in each set, and its target.
    newest: Newest<(u64, u64)>,
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
            indirect: (indirect > 0).then(|| Indirect::new(indirect)),
            returns: Returns::new(facts.return_stack as usize),
        }
    }

    /// Predicts a branch, learns what it did, and says what was wrong.
    #[inline]
    pub fn observe(&mut self, branch: &Branch) -> Verdict {
        match branch.flow {
            Flow::Conditional => self.conditional(branch.pc, branch.taken, branch.target),
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
            Flow::Next => Verdict::default(),
        }
    }

    /// The same of a conditional branch, which most are.
    #[inline]
    pub(crate) fn conditional(&mut self, pc: u64, taken: bool, target: u64) -> Verdict {
        let wrong = self.direction.observe(pc, taken) != taken;
        let unknown = taken && self.learn_target(pc, target);
        Verdict {
            mispredicted: wrong,
            wrong_direction: wrong,
            resteered: unknown && !wrong,
            ..Verdict::default()
        }
    }

    #[inline]
    fn direct(&mut self, branch: &Branch) -> Verdict {
        let resteered = self.learn_target(branch.pc, branch.target);
        Verdict { resteered, ..Verdict::default() }
    }

    fn through_register(&mut self, branch: &Branch) -> Verdict {
        let held = self.targets.touch(branch.pc).map(|target| *target);
        if let Some(target) = held {
            self.newest.note(branch.pc, (branch.pc, target));
        }
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
        Verdict { mispredicted, retargeted: held != Some(branch.target), ..Verdict::default() }
    }

    /// Remembers a target; returns whether it was unknown.
    #[inline]
    fn learn_target(&mut self, pc: u64, target: u64) -> bool {
        if self.newest.of(pc) == Some((pc, target)) {
            return false;
        }
        self.learn_older(pc, target)
    }

    #[inline(never)]
    fn learn_older(&mut self, pc: u64, target: u64) -> bool {
        self.newest.note(pc, (pc, target));
        match self.targets.touch(pc) {
            Some(held) => std::mem::replace(held, target) != target,
            None => {
                self.targets.insert(pc, target);
                true
            }
        }
    }
}

#[cfg(test)]
mod plainly;
#[cfg(test)]
mod tests;
