//! How long to sleep until a turn is over.
//!
//! The boundary's quantity runs at the target's own pace: not at all while it waits, on several
//! CPUs faster than time. The pace of the last stretch predicts the next.

use std::time::{Duration, Instant};

/// While nothing moves we look this often.
const IDLE: Duration = Duration::from_millis(10);
/// Sleeping for less than this costs more than it waits.
const LEAST: Duration = Duration::from_micros(5);

/// The pace of a quantity.
#[derive(Debug)]
pub(crate) struct Pace {
    at: Instant,
    reached: u64,
    per_ns: f64,
}

impl Pace {
    /// A quantity that begins at nought, at about `per_ns`.
    pub(crate) fn new(per_ns: f64) -> Pace {
        Pace { at: Instant::now(), reached: 0, per_ns }
    }

    /// The quantity has reached `now`, and `left` is left.
    pub(crate) fn sleep(&mut self, now: u64, left: u64) -> Duration {
        let at = Instant::now();
        self.step(at.duration_since(self.at).as_nanos() as f64, now);
        self.at = at;
        if self.per_ns <= 0.0 {
            return IDLE;
        }
        Duration::from_nanos((left as f64 / self.per_ns).min(1e15) as u64).clamp(LEAST, IDLE)
    }

    /// Half of what was known, half of what was just seen: a target that wakes is noticed within a
    /// few slices, and one odd stretch does not upset the pace.
    fn step(&mut self, passed_ns: f64, now: u64) {
        if passed_ns > 0.0 {
            let seen = now.saturating_sub(self.reached) as f64 / passed_ns;
            self.per_ns = (self.per_ns + seen) / 2.0;
        }
        self.reached = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pace_follows_the_target() {
        let mut pace = Pace::new(1.0);
        for step in 1..=20 {
            pace.step(1000.0, 2000 * step);
        }
        assert!((pace.per_ns - 2.0).abs() < 1e-5, "{}", pace.per_ns);
        let still = pace.reached;
        (0..60).for_each(|_| pace.step(1000.0, still));
        assert!(pace.per_ns < 1e-9);
        assert_eq!(pace.sleep(still, 1_000_000), IDLE);
    }
}
