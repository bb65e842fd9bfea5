//! Whether all that is skipped reaches the last level.
//!
//! A last level that does not hear of what is skipped lacks lines that a window then waits for. That
//! shows: windows that wait for memory for a small part of their time cannot be off by more. Where
//! they wait for longer all that is skipped is told, which takes time, until hardly any line comes from
//! memory any more; then nothing leaves the last level either, and it may be left alone again.
//!
//! ```text
//! share of waits:   .-''-._______.---.________________
//! told              |#########|      |##################|      longer each time
//! ```

/// Waits for memory that make a difference, and those that make none, as shares of the time.
const MUCH: f64 = 0.008;
const LITTLE: f64 = 0.004;
/// What was seen of a window counts for so much less with each that follows.
const FADING: f64 = 15.0 / 16.0;
/// Windows after a change before there can be another one: on the one hand to see what it does, and on
/// the other at first. Each time that leaving it alone made a difference it is told for twice as long.
const LEFT_ALONE_MIN: u64 = 4;
const TOLD_AT_FIRST: u64 = 32;
const TOLD_MAX: u64 = 1 << 20;

/// What windows waited for, and what follows from it.
#[derive(Clone, Debug)]
pub(super) struct Reaching {
    is_on: bool,
    /// Windows since that changed, and how long it is on at least.
    windows: u64,
    told_min: u64,
    waits: f64,
    cycles: f64,
}

impl Reaching {
    pub(super) fn new() -> Reaching {
        Reaching { is_on: false, windows: 0, told_min: TOLD_AT_FIRST, waits: 0.0, cycles: 0.0 }
    }

    /// Whether it is told of everything.
    pub(super) fn is_on(&self) -> bool {
        self.is_on
    }

    /// Of so many cycles of a window so many were waits for memory, had each been waited for alone.
    pub(super) fn note(&mut self, waits: f64, cycles: f64) {
        self.waits = FADING * self.waits + waits;
        self.cycles = FADING * self.cycles + cycles;
        self.windows += 1;
        let share = self.waits / self.cycles.max(f64::MIN_POSITIVE);
        let changes = match self.is_on {
            true => self.windows >= self.told_min && share < LITTLE,
            false => self.windows >= LEFT_ALONE_MIN && share > MUCH,
        };
        if changes {
            self.is_on = !self.is_on;
            self.windows = 0;
            if !self.is_on {
                self.told_min = (2 * self.told_min).min(TOLD_MAX);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Windows until it changes, when every window waits for that share of its time.
    fn changes_after(reaching: &mut Reaching, share: f64) -> Option<u64> {
        let was = reaching.is_on();
        (1..1000).find(|_| {
            reaching.note(share, 1.0);
            reaching.is_on() != was
        })
    }

    #[test]
    fn what_is_skipped_is_told_while_windows_wait_for_memory() {
        let mut reaching = Reaching::new();
        assert_eq!(changes_after(&mut reaching, 0.9 * MUCH), None);
        assert_eq!(changes_after(&mut reaching, 0.3), Some(1));
        assert_eq!(changes_after(&mut reaching, 1.1 * LITTLE), None, "it goes on waiting");
        assert!(reaching.is_on());
    }

    #[test]
    fn a_last_level_that_has_everything_is_left_alone_until_that_shows() {
        let mut reaching = Reaching::new();
        assert_eq!(changes_after(&mut reaching, 0.3), Some(LEFT_ALONE_MIN));
        // What was waited for has to fade to little of all: x = 15/16 to the n, seen of before x · so
        // many windows, seen since (1 - x) · 16.
        let before: f64 = (0..LEFT_ALONE_MIN).map(|k| FADING.powi(k as i32)).sum();
        let all = 1.0 / (1.0 - FADING);
        let x = LITTLE * all / (0.3 * before + LITTLE * (all - before));
        let faded = x.ln() / FADING.ln();
        let first = changes_after(&mut reaching, 0.0).unwrap();
        assert!((first as f64 - faded).abs() <= 1.0, "{first} and not {faded}");
        assert_eq!(changes_after(&mut reaching, 0.0), None);
        assert_eq!(changes_after(&mut reaching, 0.3), Some(1));
        let again = changes_after(&mut reaching, 0.9 * LITTLE).unwrap();
        assert!(again >= 2 * TOLD_AT_FIRST, "longer than at first: {again}");
    }
}
