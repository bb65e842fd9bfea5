//! Two clocks: one that is set, and one that only goes on.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Both clocks at one moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Moment {
    pub(super) steady: Instant,
    /// Nanoseconds since 1970, as the system has it.
    pub(super) unix_ns: u64,
}

impl Moment {
    pub(super) fn now() -> Moment {
        let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Moment { steady: Instant::now(), unix_ns: unix.as_nanos() as u64 }
    }

    /// How far the wall clock was set since, in seconds: less than a second is drift, not a step.
    pub(super) fn step_since(&self, before: &Moment) -> Option<f64> {
        let went = self.steady.saturating_duration_since(before.steady).as_nanos() as i128;
        let shown = i128::from(self.unix_ns) - i128::from(before.unix_ns);
        let step = (shown - went) as f64 / 1e9;
        (step.abs() >= 1.0).then_some(step)
    }
}

/// Something that is done again and again; being late does not add up.
#[derive(Clone, Copy, Debug)]
pub(super) struct Every {
    interval: Duration,
    next: Instant,
}

impl Every {
    pub(super) fn starting(now: Instant, interval: Duration) -> Every {
        Every { interval, next: now + interval }
    }

    /// Whether it is time; if so, the next time is one interval from now.
    pub(super) fn is_due(&mut self, now: Instant) -> bool {
        let due = now >= self.next;
        if due {
            self.next = now + self.interval;
        }
        due
    }

    pub(super) fn wait(&self, now: Instant) -> Duration {
        self.next.saturating_duration_since(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_is_set_is_noticed_and_one_that_drifts_is_not() {
        let start = Moment { steady: Instant::now(), unix_ns: 1_000_000_000_000 };
        let later = |steady_s: u64, unix_s: i64| Moment {
            steady: start.steady + Duration::from_secs(steady_s),
            unix_ns: (start.unix_ns as i64 + unix_s * 1_000_000_000) as u64,
        };
        assert_eq!(later(300, 300).step_since(&start), None);
        assert_eq!(later(300, 3900).step_since(&start), Some(3600.0));
        assert_eq!(later(300, -600).step_since(&start), Some(-900.0));
    }

    #[test]
    fn what_is_due_is_due_once_an_interval() {
        let start = Instant::now();
        let mut every = Every::starting(start, Duration::from_secs(10));
        assert!(!every.is_due(start + Duration::from_secs(9)));
        assert!(every.is_due(start + Duration::from_secs(35)));
        assert!(!every.is_due(start + Duration::from_secs(44)));
        assert!(every.is_due(start + Duration::from_secs(45)));
    }
}
