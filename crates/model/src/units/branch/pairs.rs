//! Which taken branches follow another in its cycle.
//!
//! ```text
//! a loop of three taken branches:   a b | c | a b | c |      and never   a b | c a | b c |
//! ```
//!
//! Two targets are looked up together, by where the first branch is: one that led when it was met
//! first goes on leading, so that the odd one of a loop goes alone in every round.

/// Branches whose part is known. One that another displaces takes the part that comes its way.
const BRANCHES: usize = 1 << 12;

/// The parts of branches, and whether the last one taken has nobody behind it yet.
#[derive(Clone, Debug)]
pub(super) struct Pairs {
    /// The branch that was here last, and whether it follows.
    parts: Vec<(u64, bool)>,
    is_open: bool,
}

impl Pairs {
    pub(super) fn new() -> Pairs {
        Pairs { parts: vec![(u64::MAX, false); BRANCHES], is_open: false }
    }

    /// Whether a branch that is taken now opens a cycle of fetch, rather than to follow the one before.
    #[inline]
    pub(super) fn leads(&mut self, pc: u64) -> bool {
        let Some(part) = self.parts.get_mut(pc as usize % BRANCHES) else { return true };
        if part.0 != pc {
            *part = (pc, self.is_open);
        }
        self.is_open = !(part.1 && self.is_open);
        self.is_open
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leading(pairs: &mut Pairs, path: &str) -> String {
        let part = |pc: char| if pairs.leads(u64::from(pc)) { '|' } else { '.' };
        path.chars().map(part).collect()
    }

    #[test]
    fn pairs_do_not_shift_and_the_odd_one_goes_alone() {
        assert_eq!(leading(&mut Pairs::new(), "abcdabcd"), "|.|.|.|.");
        assert_eq!(leading(&mut Pairs::new(), "abcabcabc"), "|.||.||.|");
        assert_eq!(leading(&mut Pairs::new(), "aaa"), "|||");
    }

    #[test]
    fn one_that_follows_leads_where_nobody_is_before_it() {
        let mut pairs = Pairs::new();
        assert_eq!(leading(&mut pairs, "abcd"), "|.|.");
        // Another way to b: it opens the cycle, and d, which follows, goes along.
        assert_eq!(leading(&mut pairs, "bd"), "|.");
    }
}
