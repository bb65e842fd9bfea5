//! What is touched long before anything is timed.
//!
//! Only the last level remembers for so long, and it alone hears of each line; what the second level
//! would have of them it is told at once, when something is about to be timed. Whether memory has to
//! bring a line before it is asked for follows from the streams of those that it brings.

use super::near::few_ahead;
use super::{GUESSED, Line, Memory, NO_LINE, TABLES};

impl Memory {
    /// How many of the lines told last the second level can have kept some of: twice what it holds,
    /// since they do not fall evenly. None where it is the last level itself, which hears of all.
    pub(crate) fn far_lines(&self) -> usize {
        if self.l3.is_some() { 2 * self.l2.places() } else { 0 }
    }

    /// The line of an address, and the next one where the first level would have guessed it; none for
    /// what was such a guess, and is held by the first level.
    #[inline]
    pub(crate) fn far_lines_of(&mut self, address: u64) -> (Option<u64>, Option<u64>) {
        let line = address >> self.line_shift;
        if !self.next_line {
            return (Some(line), None);
        }
        let slot = &mut self.guessed[line as usize % GUESSED];
        if *slot == line {
            *slot = NO_LINE;
            return (None, None);
        }
        let Some(next) = self.guess_of(line) else { return (Some(line), None) };
        self.guessed[next as usize % GUESSED] = next;
        (Some(line), Some(next))
    }

    /// The page of data that an address lies in is used: the line of the table that is read for it, if
    /// translation lacks it.
    #[inline]
    pub(crate) fn far_page(&mut self, address: u64) -> Option<u64> {
        self.dtlb.refresh_far(address).then(|| self.table_line(address))
    }

    /// Pages are told anew from here on.
    pub(crate) fn forget_far_pages(&mut self) {
        self.dtlb.forget_far();
    }

    /// Data at these addresses is about to be used: the host brings what the last level knows of it.
    #[inline]
    pub(crate) fn approach(&self, addresses: &[u64]) {
        let Some(l3) = &self.l3 else { return };
        for address in addresses {
            let line = address >> self.line_shift;
            l3.bring(line);
            self.guess_of(line).into_iter().for_each(|next| l3.bring(next));
        }
    }

    /// The page of a line, as streams have it.
    #[inline]
    pub(crate) fn page_of_line(&self, line: u64) -> u64 {
        line >> self.page_lines.trailing_zeros()
    }

    /// Lines of so many other pages were asked for that no level needs to hear of.
    pub(crate) fn pass_pages(&mut self, pages: usize) {
        if let Some(streams) = self.streams.as_mut().filter(|_| pages > 0) {
            streams.pass(pages);
        }
    }

    /// Lines reach the last level, in order.
    pub(crate) fn reach_last(&mut self, lines: &[u64]) {
        few_ahead(
            lines,
            self,
            |memory, &line| memory.bring_last(line),
            |memory, &line| {
                memory.reach_last_with(line);
            },
        );
    }

    /// The host brings what the last level knows of a line, and of the one that its stream would ask for,
    /// were it as far ahead as with the line before. Where that is wrong nothing is lost but the bringing.
    #[inline]
    fn bring_last(&self, line: u64) {
        let Some(l3) = &self.l3 else { return };
        l3.bring_all(line);
        if self.far_ahead != 0 {
            l3.bring_all(line.wrapping_add(self.far_ahead));
        }
    }

    #[inline]
    fn reach_last_with(&mut self, line: u64) {
        let Some(l3) = &mut self.l3 else {
            self.beyond::<false>(line, 0);
            return;
        };
        self.counts.l3 += 1;
        let was_guess = match l3.touch(line).map(Line::ask) {
            Some(false) => return,
            found => found.is_some(),
        };
        // Streams do not hear of tables.
        let streams = self.streams.as_mut().filter(|_| line < TABLES);
        let (is_foreseen, run) = streams.map_or((false, None), |streams| streams.foresees(line));
        self.far_ahead = run.as_ref().map_or(0, |run| run.first.wrapping_sub(line));
        if !was_guess {
            self.counts.l3_misses += u64::from(!is_foreseen);
            self.counts.memory_reads += 1;
            self.fill_l3(line, 0);
        }
        if let Some(run) = run {
            run.lines().for_each(|line| self.guess_last(line));
        }
    }

    /// A stream asks for a line. It is there when the program comes to it, or comes back much later: what
    /// was guessed and not asked for is in the caches all the same.
    fn guess_last(&mut self, line: u64) {
        let Some(l3) = self.l3.as_mut().filter(|l3| l3.peek(line).is_none()) else { return };
        let left = l3.insert(line, Line::here(false, true));
        self.counts.writebacks_memory += u64::from(left.is_some_and(|(_, was)| was.is_dirty()));
        self.counts.memory_reads += 1;
    }

    /// Lines that reached the last level reach the second, in order, and so do pages.
    pub(crate) fn reach_second<'a>(&mut self, lines: impl Iterator<Item = &'a u64>) {
        self.dtlb.come_near();
        for &line in lines {
            if self.l2.touch(line).is_some() {
                continue;
            }
            if let Some((left, was)) = self.l2.insert(line, Line::here(false, false)) {
                self.counts.prefetches_useless += u64::from(was.is_guess());
                self.leave_l2(left, was);
            }
        }
    }
}
