//! Behind the first level: the second and third one, and memory.

use super::{Level, Line, Memory};

/// What comes of asking for a line that a level lacks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Brought {
    /// When it is there.
    pub(super) ready: u64,
    /// Which level had it, or would have it soon.
    pub(super) level: Level,
    /// Whence what is waited for comes: from beyond that level, if it was still on its way there.
    pub(super) from: Level,
}

impl Brought {
    /// The line as a level keeps it that asked for it at a time.
    #[inline]
    pub(super) fn line(&self, asked: u64) -> Line {
        Line::coming(asked, self.ready, self.from)
    }
}

impl Memory {
    /// Brings a line from behind the first level.
    pub(super) fn beyond<const TIMED: bool>(&mut self, line: u64, at: u64) -> Brought {
        let run = self.streams.as_mut().and_then(|streams| streams.observe(line));
        let found = match self.l2.touch(line) {
            Some(state) => {
                let guessed = state.ask();
                self.counts.prefetches_useful += u64::from(guessed);
                let answered = at + self.l2_cycles;
                if !TIMED || state.ready() <= answered {
                    let ready = if TIMED { answered } else { 0 };
                    Brought { ready, level: Level::L2, from: Level::L2 }
                } else {
                    let (ready, from) = self.l2_comes(line, at);
                    Brought { ready: ready.max(answered), level: Level::L2, from }
                }
            }
            None => self.beyond_l2::<TIMED>(line, at, false),
        };
        if let Some(run) = run {
            for line in run.lines() {
                let level = self.guess_l2::<TIMED>(line, at);
                if let (Some(level), Some(streams)) = (level, &mut self.streams) {
                    streams.answered(level == Level::Memory);
                }
            }
        }
        found
    }

    /// Brings a line from behind the second level.
    pub(super) fn beyond_l2<const TIMED: bool>(
        &mut self,
        line: u64,
        at: u64,
        is_guess: bool,
    ) -> Brought {
        self.counts.l2_misses += u64::from(!is_guess);
        let start = if TIMED { self.l2_misses.admit(at) } else { 0 };
        let found = self.l3.as_mut().and_then(|l3| l3.touch(line)).map(|state| state.ready());
        let has_l3 = self.l3.is_some();
        self.counts.l3 += u64::from(has_l3 && !is_guess);
        let (ready, level, from) = match found {
            Some(there) if TIMED => {
                let answered = self.l3_answers(start);
                let from = if there > answered { Level::Memory } else { Level::L3 };
                (there.max(answered), Level::L3, from)
            }
            Some(_) => (0, Level::L3, Level::L3),
            None => {
                self.counts.l3_misses += u64::from(has_l3 && !is_guess);
                self.counts.memory_reads += 1;
                let ready = if TIMED { self.memory_answers(start) } else { 0 };
                (ready, Level::Memory, Level::Memory)
            }
        };
        let ready = if TIMED { ready } else { 0 };
        if TIMED {
            self.l2_misses.hold(start, ready);
        }
        if found.is_none() {
            self.fill_l3(line, ready);
        }
        let brought = Brought { ready, level, from };
        let state = brought.line(at).guessed(is_guess);
        if let Some((left, was)) = self.l2.insert(line, state) {
            self.counts.prefetches_useless += u64::from(was.is_guess());
            self.leave_l2(left, was);
        }
        brought
    }

    /// When a line that the third level has is there.
    fn l3_answers(&mut self, at: u64) -> u64 {
        let start = self.l3_channel.as_mut().map_or(at, |channel| channel.book(at));
        start + self.l3_cycles
    }

    /// When a line asked of memory at a time is there.
    fn memory_answers(&mut self, at: u64) -> u64 {
        let start = self.l3_misses.as_mut().map_or(at, |misses| misses.admit(at));
        let ready = self.channel.book(start) + self.memory_cycles;
        if let Some(misses) = &mut self.l3_misses {
            misses.hold(start, ready);
        }
        ready
    }

    pub(super) fn fill_l3(&mut self, line: u64, ready: u64) {
        let state = Line::coming(0, ready, Level::Memory);
        let left = self.l3.as_mut().and_then(|l3| l3.insert(line, state));
        self.counts.writebacks_memory += u64::from(left.is_some_and(|(_, was)| was.is_dirty()));
    }

    /// A line leaves the second level: what was written goes to the third, or to memory if that
    /// has let go of the line already.
    pub(super) fn leave_l2(&mut self, line: u64, was: Line) {
        if !was.is_dirty() {
            return;
        }
        match self.l3.as_mut().and_then(|l3| l3.peek_mut(line)) {
            Some(below) => below.write(true),
            None => self.counts.writebacks_memory += 1,
        }
    }

    /// Fetches a line that the second level lacks: whence it comes.
    fn guess_l2<const TIMED: bool>(&mut self, line: u64, at: u64) -> Option<Level> {
        if self.l2.peek(line).is_some() {
            return None;
        }
        self.counts.prefetches_l2 += 1;
        Some(self.beyond_l2::<TIMED>(line, at, true).level)
    }
}
