//! What came of a measurement: every event that was asked for, with its estimate or its reason.

use std::fmt;

use metrology::Estimate;
use perf::Refusal;
use pmu::estimate::{Counted, Estimator, scaled_totals, totals};
use pmu::{Grouping, Reading};

use crate::capacity::TIME;

/// Why an event has no count. None of these is 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NotCounted {
    /// The kernel would not open it.
    Refused(Refusal),
    /// A breakpoint for which no slot was free: this measurement or another one holds them all.
    NoSlot,
    /// It was switched on and never had a counter.
    NeverRan,
    /// The measurement ended before its turn came.
    NoTurn,
}

impl fmt::Display for NotCounted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotCounted::Refused(refusal) => refusal.fmt(f),
            NotCounted::NoSlot => f.write_str(
                "no breakpoint slot was free: a CPU has few, and the others asked for, or another \
                 user, hold them",
            ),
            NotCounted::NeverRan => {
                f.write_str("its group never had its counters: too large, or another user has them")
            }
            NotCounted::NoTurn => f.write_str(
                "the measurement ended before its turn; measure longer or slice shorter",
            ),
        }
    }
}

/// One event of the outcome.
#[derive(Clone, PartialEq, Debug)]
pub struct EventOutcome {
    /// The name that was asked for.
    pub name: String,
    /// What was counted, under which name: `cycles` may have become `cycles:u`.
    pub counted_as: String,
    /// The total, or why there is none.
    pub total: Result<Counted, NotCounted>,
}

/// The outcome of a measurement, or of a lap.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// In the order asked for.
    pub events: Vec<EventOutcome>,
    /// The groups that took turns.
    pub grouping: Grouping,
    /// The slices, one list a CPU (or one for all).
    pub readings: Vec<Vec<Reading>>,
    /// The time that targets ran while anything was counted or might have been, in nanoseconds.
    pub time_ns: u64,
    /// How much of it another user held our counters.
    pub stolen_ns: u64,
    /// How often groups were switched.
    pub switches: u64,
    /// Whether the kernel stopped answering before the end, so that this is only a part.
    pub cut_short: Option<String>,
}

impl Outcome {
    /// The event of that name.
    pub fn find(&self, name: &str) -> Option<&EventOutcome> {
        self.events.iter().find(|event| event.name == name)
    }

    /// One sentence where counters were taken away.
    pub fn stolen(&self) -> Option<String> {
        (self.stolen_ns > 0).then(|| {
            let share = 100.0 * self.stolen_ns as f64 / self.time_ns.max(1) as f64;
            format!("another user held the counters for {share:.1} % of the time")
        })
    }
}

/// A bank's readings: one list, or one a group where the kernel rotates.
pub(crate) type Lanes = Vec<Vec<Reading>>;

/// Every event's total over all banks: totals add, and so do variances. Where one bank has none,
/// there is no total, because a part is missing.
pub(crate) fn estimates(grouping: &Grouping, banks: &[Lanes]) -> Vec<Option<Counted>> {
    let used = banks.iter().filter(|lanes| lanes.iter().any(|lane| !lane.is_empty()));
    let mut sums: Option<Vec<Option<Counted>>> = None;
    for lanes in used {
        let mut best: Vec<Option<Counted>> = vec![None; grouping.events.len()];
        for readings in lanes {
            let found = one_list(grouping, readings);
            // An anchor is in every group; where each group has its list, the fullest tells most.
            best.iter_mut().zip(found).for_each(|(best, found)| {
                if found.is_some_and(|found| best.is_none_or(|held| found.share >= held.share)) {
                    *best = found;
                }
            });
        }
        sums = Some(match sums {
            None => best,
            Some(sums) => {
                sums.iter().zip(&best).map(|(a, b)| Some(added(&(*a)?, &(*b)?))).collect()
            }
        });
    }
    sums.unwrap_or_else(|| vec![None; grouping.events.len()])
}

/// The totals of one list.
///
/// Where time is the first anchor (cycles cannot be counted), they are scaled by time, as MPX did: a switch takes a fixed part
/// of every slice's time, so that short slices seem slower than long ones, and following the rate
/// from slice to slice would follow their lengths. Cycles and instructions have no such part.
pub(crate) fn one_list(grouping: &Grouping, readings: &[Reading]) -> Vec<Option<Counted>> {
    if grouping.anchors > 1 && grouping.events.first().is_some_and(|first| first != TIME) {
        return totals(grouping, readings);
    }
    scaled_totals(grouping, readings)
}

fn added(a: &Counted, b: &Counted) -> Counted {
    let (u, v) = (a.estimate.standard_uncertainty, b.estimate.standard_uncertainty);
    let variance = u * u + v * v;
    // Welch and Satterthwaite's degrees of freedom.
    let spread =
        u.powi(4) / a.estimate.degrees_of_freedom + v.powi(4) / b.estimate.degrees_of_freedom;
    let degrees_of_freedom = if spread > 0.0 && variance.is_finite() {
        variance * variance / spread
    } else {
        f64::INFINITY
    };
    let total = a.slices + b.slices;
    let weight = |counted: &Counted| counted.slices as f64 / total.max(1) as f64;
    Counted {
        estimate: Estimate {
            value: a.estimate.value + b.estimate.value,
            standard_uncertainty: variance.sqrt(),
            degrees_of_freedom,
        },
        counted: a.counted.saturating_add(b.counted),
        share: a.share * weight(a) + b.share * weight(b),
        slices: total,
        estimator: if a.estimator == Estimator::Exact { b.estimator } else { a.estimator },
    }
}
