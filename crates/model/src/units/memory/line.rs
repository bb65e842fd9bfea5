//! A line as a cache keeps it.

use crate::units::Level;

/// What is known of a line in a cache: when it is there, how long before that it was asked for, whence
/// it came, whether it was written, and whether it was fetched on a guess and not yet asked for. In a
/// word, since a last level has very many.
///
/// ```text
/// | ready: 48 bits | asked so long before: 12 | whence: 2 | dirty | guess |
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Line(u64);

const READY_SHIFT: u32 = 16;
const BEFORE_SHIFT: u32 = 4;
/// The longest time between asking and having that is told; whoever took longer took at least this.
const BEFORE_MAX: u64 = (1 << (READY_SHIFT - BEFORE_SHIFT)) - 1;
const FROM_SHIFT: u32 = 2;

impl Line {
    const GUESS: u64 = 1;
    const DIRTY: u64 = 2;

    /// A line that is there already.
    #[inline]
    pub(super) fn here(is_dirty: bool, is_guess: bool) -> Line {
        Line(u64::from(is_dirty) << 1 | u64::from(is_guess))
    }

    /// A clean line that was asked for at a time and is there at another, from a level.
    #[inline]
    pub(super) fn coming(asked: u64, ready: u64, from: Level) -> Line {
        let before = ready.saturating_sub(asked).min(BEFORE_MAX);
        Line(ready << READY_SHIFT | before << BEFORE_SHIFT | (from as u64) << FROM_SHIFT)
    }

    /// The same, fetched on a guess.
    #[inline]
    pub(super) fn guessed(self, is_guess: bool) -> Line {
        Line(self.0 | u64::from(is_guess))
    }

    /// When it is there.
    #[inline]
    pub(super) fn ready(self) -> u64 {
        self.0 >> READY_SHIFT
    }

    /// When it would be there, had it been asked for at a time that is before the one at which it was:
    /// as long after that. None where it was asked for no later, or that is not known.
    #[inline]
    pub(super) fn had_it_been_asked(self, at: u64) -> Option<u64> {
        let before = self.0 >> BEFORE_SHIFT & BEFORE_MAX;
        let is_later = before < BEFORE_MAX && self.ready() - before > at;
        is_later.then_some(at + before)
    }

    /// Whence it came.
    #[inline]
    pub(super) fn from(self) -> Level {
        Level::ALL[(self.0 >> FROM_SHIFT & 3) as usize]
    }

    /// It is there at another time, since it was asked for at another.
    #[inline]
    pub(super) fn comes_at(&mut self, asked: u64, ready: u64) {
        let flags = self.0 & (Line::GUESS | Line::DIRTY);
        self.0 = Line::coming(asked, ready, self.from()).0 | flags;
    }

    #[inline]
    pub(super) fn is_dirty(self) -> bool {
        self.0 & Line::DIRTY != 0
    }

    #[inline]
    pub(super) fn is_guess(self) -> bool {
        self.0 & Line::GUESS != 0
    }

    /// It is written, or read.
    #[inline]
    pub(super) fn write(&mut self, is_store: bool) {
        self.0 |= u64::from(is_store) << 1;
    }

    /// It is asked for; whether it was a guess until now.
    #[inline]
    pub(super) fn ask(&mut self) -> bool {
        let was_guess = self.is_guess();
        self.0 &= !Line::GUESS;
        was_guess
    }
}
