//! What is touched shortly before something is timed, and that nobody follows.
//!
//! It reaches the levels beyond the first as a miss would, and so do the pages. The outer caches are more
//! than the host's near ones hold: while a few lines are told, the host brings what is known of the next.
//!
//! ```text
//! told        1111111111111111 2222222222222222 3333333333333333
//! brought   1 2                3                4
//! ```

use super::{GUESSED, Memory, NO_LINE};

/// Lines that the host brings together.
const TOGETHER: usize = 16;

impl Memory {
    /// A line is touched by something that nobody follows: it reaches the levels beyond the first as
    /// a miss would.
    ///
    /// So does the next one, where the first level would have guessed it; who then asks for that finds
    /// it in the first level, and the others do not hear of it again. A walk down columns never asks:
    /// outer levels that had not heard of its guesses kept twice as much of what it comes back to.
    pub fn refresh(&mut self, address: u64) {
        let line = address >> self.line_shift;
        let slot = &mut self.guessed[line as usize % GUESSED];
        if *slot == line {
            *slot = NO_LINE;
            return;
        }
        self.beyond::<false>(line, 0);
        if let Some(next) = self.guess_of(line) {
            self.guessed[next as usize % GUESSED] = next;
            self.beyond::<false>(next, 0);
        }
    }

    /// The page of code that an address lies in is used by something that nobody follows.
    #[inline]
    pub fn refresh_code_page(&mut self, address: u64) {
        if self.itlb.refresh(address) {
            self.walk::<false>(address, 0, 0);
        }
    }

    /// The page of data that an address lies in is used by something that nobody follows.
    ///
    /// What translation lacks is read from the page table, no more and no less: a table's lines that
    /// are not there when a window comes would be waited for there alone, and those of pages that
    /// translation holds leave the caches in truth, however often the pages are used.
    #[inline]
    pub fn refresh_data_page(&mut self, address: u64) {
        if self.dtlb.refresh(address) {
            self.walk::<false>(address, 0, 0);
        }
    }

    /// The host brings what the outer caches know of an address, and of what is guessed beside it.
    #[inline]
    fn bring_outer(&self, address: u64) {
        let line = address >> self.line_shift;
        for line in std::iter::once(line).chain(self.guess_of(line)) {
            self.l2.bring_all(line);
            self.l3.iter().for_each(|l3| l3.bring_all(line));
        }
    }

    /// The same of many, in order. The outer caches are more than the host's near ones hold: what they
    /// know of the next few lines is on its way meanwhile.
    pub fn refresh_all(&mut self, addresses: &[u64]) {
        few_ahead(
            addresses,
            self,
            |memory, &address| memory.bring_outer(address),
            |memory, &address| {
                memory.refresh(address);
            },
        );
    }
}

/// Does something with each of many, in order, and before that something with each of the next few.
#[inline]
pub(super) fn few_ahead<A, T>(
    all: &[T],
    with: &mut A,
    bring: impl Fn(&A, &T),
    mut do_it: impl FnMut(&mut A, &T),
) {
    let mut chunks = all.chunks(TOGETHER);
    let first = chunks.next().unwrap_or_default();
    first.iter().for_each(|one| bring(with, one));
    let nexts = chunks.map(Some).chain([None]);
    for (few, next) in all.chunks(TOGETHER).zip(nexts) {
        next.into_iter().flatten().for_each(|one| bring(with, one));
        few.iter().for_each(|one| do_it(with, one));
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    #[test]
    fn each_is_brought_once_and_before_it_is_done_and_all_in_order() {
        for count in [0, 1, 15, 16, 17, 31, 32, 33, 100] {
            let all: Vec<usize> = (0..count).collect();
            let brought = RefCell::new(Vec::new());
            let mut done = Vec::new();
            few_ahead(
                &all,
                &mut done,
                |_, &one| brought.borrow_mut().push(one),
                |done, &one| {
                    let ahead = brought.borrow().len() - one;
                    assert!((1..=2 * TOGETHER).contains(&ahead), "{one} of {count}: {ahead}");
                    done.push(one);
                },
            );
            assert_eq!((brought.into_inner(), done), (all.clone(), all));
        }
    }
}
