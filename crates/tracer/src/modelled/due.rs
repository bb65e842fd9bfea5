//! When what was counted is published.

/// Instructions before the first time.
const FIRST: u64 = 1 << 10;
/// A call that may be the last is worth a publication when so much of the run is new.
const NEW_SHARE: u64 = 16;

/// Soon after the start, then ever more seldom: a program that is killed early has run little, and
/// most of that should be known.
#[derive(Clone, Copy, Debug)]
pub(super) struct Due {
    left: u64,
    spell: u64,
    most: u64,
    /// Instructions of the spells before this one, and of those that a call has had published.
    ran: u64,
    known: u64,
}

impl Due {
    /// In the end every `most` instructions.
    pub(super) fn new(most: u64) -> Due {
        Due { left: FIRST.min(most), spell: FIRST.min(most), most, ran: 0, known: 0 }
    }

    /// So many instructions have run: how many since the last time, if it is time.
    #[inline]
    pub(super) fn passed(&mut self, instructions: u64) -> Option<u64> {
        self.left = self.left.saturating_sub(instructions);
        if self.left > 0 {
            return None;
        }
        Some(self.next())
    }

    #[cold]
    fn next(&mut self) -> u64 {
        let spell = self.spell;
        self.ran += spell;
        self.spell = (2 * spell).min(self.most);
        self.left = self.spell;
        spell
    }

    /// Whether enough is new for a publication out of turn, however often one is asked for. If so
    /// the caller publishes.
    pub(super) fn is_worth_it(&mut self) -> bool {
        let ran = self.ran + (self.spell - self.left);
        let is_worth_it = (ran - self.known) * NEW_SHARE >= ran;
        if is_worth_it {
            self.known = ran;
        }
        is_worth_it
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_of_any_length_is_known_but_for_two_thirds_or_the_most() {
        let mut due = Due::new(1 << 18);
        let (mut known, mut times) = (0, 0);
        for ran in 1..=10_000_000_u64 {
            if let Some(spell) = due.passed(1) {
                known += spell;
                times += 1;
                assert_eq!(known, ran);
            }
            assert!(ran - known <= (1 << 18).min(FIRST.max(2 * ran / 3 + 1)), "{known} of {ran}");
        }
        // Eight that grow, and then one every 2^18.
        assert_eq!(times, 8 + (10_000_000 - 255 * FIRST) / (1 << 18));
    }

    #[test]
    fn calls_that_may_be_the_last_publish_seldom_and_soon() {
        let mut due = Due::new(1 << 18);
        let (mut times, mut known) = (0, 0);
        for ran in 1..=10_000_000_u64 {
            due.passed(1);
            if due.is_worth_it() {
                times += 1;
                known = ran;
            }
            assert!((ran - known) * NEW_SHARE <= ran);
        }
        assert!(times < 250, "{times}");
    }
}
