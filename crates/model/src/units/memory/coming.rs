//! Lines on their way, and who asks for them meanwhile.
//!
//! A one-pass core asks in the order of the program, not of time. Whoever comes later in the program
//! may come earlier in time: then it would have brought the line itself, and sooner. What the one who
//! did bring it met on the way, a translation or a queue, it would have met as well.
//!
//! ```text
//! time         10        20            34        44
//! older load             asks ------------------> has it
//! younger load asks --------- (not 44) ->has it,  and the line is there from then on
//! ```
//!
//! The older one has been told already, and has it too late by that much.

use super::{Level, Line, Memory};

impl Memory {
    /// When a line of the first level that is on its way is there for whoever asks at a time, and
    /// whence it comes.
    #[cold]
    pub(super) fn l1d_comes(&mut self, line: u64, asked: u64) -> (u64, Level) {
        self.l1d.peek_mut(line).map_or((asked, Level::L1), |state| comes(state, asked))
    }

    /// The same of the second level.
    #[cold]
    pub(super) fn l2_comes(&mut self, line: u64, asked: u64) -> (u64, Level) {
        self.l2.peek_mut(line).map_or((asked, Level::L2), |state| comes(state, asked))
    }
}

fn comes(state: &mut Line, asked: u64) -> (u64, Level) {
    if let Some(sooner) = state.had_it_been_asked(asked) {
        state.comes_at(asked, sooner);
    }
    (state.ready(), state.from())
}
