//! The code side: fetching lines of instructions.

use super::outer::Brought;
use super::{Memory, NO_LINE, Outcome};
use crate::units::Level;
use crate::units::tlb::Translation;

impl Memory {
    /// Fetches the line of code that holds `pc`. Cycles beyond the pipeline's own are returned.
    #[inline]
    pub fn code<const TIMED: bool>(&mut self, pc: u64, at: u64) -> Outcome {
        let mut translation = self.itlb.translate(pc);
        if translation.walked {
            translation.cycles += self.walk::<TIMED>(pc, at, translation.cycles);
        }
        let line = pc >> self.line_shift;
        let start = at + u64::from(translation.cycles);
        let in_time = start + u64::from(self.l1i_cycles);
        let mut outcome = match self.l1i.touch(line) {
            Some(state) => {
                self.l1i_newest.note(line, line);
                Outcome {
                    cycles: state.ready().saturating_sub(in_time) as u32,
                    level: Level::L1,
                    from: state.from(),
                    translation,
                    joined: state.ready() > in_time,
                    guessed: state.ask(),
                    split: false,
                }
            }
            None => self.code_miss::<TIMED>(line, start),
        };
        outcome.cycles += translation.cycles;
        outcome.translation = translation;
        outcome
    }

    /// A line of code that hits TLB and first level, when nobody asks for the time: true, and all is
    /// done that `code` would do. False leaves everything to `code`.
    #[inline]
    pub fn plain_code(&mut self, pc: u64) -> bool {
        let line = pc >> self.line_shift;
        self.l1i_newest.of(line) == line && self.itlb.hits(pc)
    }

    /// Does what `code` does with a line when nobody asks for the time, and takes the shortest way to it.
    #[inline]
    pub(crate) fn warm_code<const USUAL: bool>(&mut self, line: u64) {
        let (line_shift, page_shift) = self.shifts::<USUAL>();
        let page = line << line_shift >> page_shift;
        if !self.itlb.has(page) {
            self.warm_code_page(page);
        }
        if self.l1i_newest.of(line) != line {
            self.warm_older_code(line);
        }
    }

    /// Brings the translation that the first level lacks.
    #[cold]
    #[inline(never)]
    fn warm_code_page(&mut self, page: u64) {
        if self.itlb.miss(page).walked {
            self.walk::<false>(page << self.page_shift, 0, 0);
        }
    }

    /// Uses a line that is not known to be the newest of its set.
    #[inline(never)]
    fn warm_older_code(&mut self, line: u64) {
        let Some(state) = self.l1i.touch(line) else {
            self.code_miss::<false>(line, 0);
            return;
        };
        state.ask();
        self.l1i_newest.note(line, line);
    }

    #[inline(never)]
    fn code_miss<const TIMED: bool>(&mut self, line: u64, at: u64) -> Outcome {
        let Brought { ready, level, from } = self.fill_code::<TIMED>(line, at, false);
        if self.code_next_line && self.l1i.peek(line + 1).is_none() {
            self.fill_code::<TIMED>(line + 1, at, true);
        }
        let past_pipeline = ready.saturating_sub(at + u64::from(self.l1i_cycles));
        Outcome {
            cycles: past_pipeline as u32,
            level,
            from,
            translation: Translation::default(),
            joined: false,
            guessed: false,
            split: false,
        }
    }

    fn fill_code<const TIMED: bool>(&mut self, line: u64, at: u64, is_guess: bool) -> Brought {
        self.counts.l2_code += 1;
        let start = if TIMED { self.l1i_misses.admit(at) } else { 0 };
        let brought = self.beyond::<TIMED>(line, start);
        if TIMED {
            self.l1i_misses.hold(start, brought.ready);
        }
        self.l1i.insert(line, brought.line(at).guessed(is_guess));
        self.l1i_newest.note(line, if is_guess { NO_LINE } else { line });
        brought
    }
}
