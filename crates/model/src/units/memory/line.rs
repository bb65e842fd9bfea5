//! A line as a cache keeps it.

/// What is known of a line in a cache: when it is there, whether it was written, and whether it was
/// fetched on a guess and not yet asked for. In a word, since a last level has very many.
///
/// ```text
/// | ready: 62 bits | dirty | guess |
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Line(u64);

impl Line {
    const GUESS: u64 = 1;
    const DIRTY: u64 = 2;

    #[inline]
    pub(super) fn new(ready: u64, is_dirty: bool, is_guess: bool) -> Line {
        Line(ready << 2 | u64::from(is_dirty) << 1 | u64::from(is_guess))
    }

    #[inline]
    pub(super) fn ready(self) -> u64 {
        self.0 >> 2
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
