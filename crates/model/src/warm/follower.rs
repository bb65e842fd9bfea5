//! A predictor that sees where blocks come from.

use crate::units::branch::{Branch, Predictor};
use crate::uop::Flow;

/// What a block needs for warming, two to a cache line of the host.
#[derive(Clone, Copy, Debug)]
#[repr(align(32))]
pub(super) struct Outline {
    /// Where it starts.
    pub(super) first: u64,
    /// Where its last instruction may go.
    pub(super) target: u64,
    /// The place of its first offset.
    pub(super) offsets: u32,
    pub(super) count: u16,
    /// How far from the start its last instruction lies, and what follows it: blocks end at pages.
    pub(super) last: u16,
    pub(super) next: u16,
    /// Lines of code that it reaches into beyond the first.
    pub(super) more_lines: u8,
    pub(super) flow: Flow,
}

const _: () = assert!(size_of::<Outline>() == 32);

pub(super) const NOTHING: Outline = Outline {
    first: 0,
    target: 0,
    offsets: 0,
    count: 0,
    last: 0,
    next: 0,
    more_lines: 0,
    flow: Flow::Next,
};

impl Outline {
    /// An address so far from the start.
    #[inline]
    pub(super) fn at(&self, offset: u16) -> u64 {
        self.first.wrapping_add(u64::from(offset))
    }
}

/// How often the predictor was wrong, and asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct BranchCounts {
    /// Branches that fetch would have followed the wrong way.
    pub mispredicted: u64,
    /// Branches that the decoder would have put right.
    pub resteered: u64,
    /// Branches that left the straight line.
    pub taken: u64,
}

/// A predictor, and the branch that it waits for.
#[derive(Clone, Debug)]
pub(super) struct Follower {
    pub(super) predictor: Predictor,
    /// The block whose branch has not been seen to go anywhere yet; one without a branch if none.
    open: Outline,
    pub(super) branches: BranchCounts,
}

impl Follower {
    pub(super) fn new(predictor: Predictor) -> Follower {
        Follower { predictor, open: NOTHING, branches: BranchCounts::default() }
    }

    /// What follows comes from no branch that was seen.
    pub(super) fn lose_open(&mut self) {
        self.open = NOTHING;
    }

    /// So many instructions of a block ran.
    #[inline]
    pub(super) fn pass(&mut self, outline: &Outline, ran: u16) {
        if ran > 0 && outline.count > 0 {
            self.follow(outline.first);
            self.open(outline, ran);
        }
    }

    /// A block's branch is open, if it came so far.
    #[inline]
    pub(super) fn open(&mut self, outline: &Outline, ran: u16) {
        self.open = *outline;
        if ran < outline.count {
            self.open.flow = Flow::Next;
        }
    }

    /// Learns where the open branch went.
    #[inline]
    pub(super) fn settle(&mut self, next: u64) {
        self.follow(next);
        self.open = NOTHING;
    }

    /// The same, where another branch is about to be open, or none.
    #[inline]
    pub(super) fn follow(&mut self, next: u64) {
        let open = &self.open;
        let (pc, straight) = (open.at(open.last), open.at(open.next));
        let taken = open.flow.is_taken(next, straight, open.target);
        // Asked first, and apart: most are.
        let verdict = match open.flow {
            Flow::Conditional => self.predictor.conditional(pc, taken, next),
            Flow::Next => return,
            flow => {
                let branch = Branch { pc, flow, taken, target: next, next: straight };
                self.predictor.observe(&branch)
            }
        };
        self.branches.mispredicted += u64::from(verdict.mispredicted);
        self.branches.resteered += u64::from(verdict.resteered);
        self.branches.taken += u64::from(taken);
    }
}
