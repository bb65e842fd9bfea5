//! Stalls: how long, and who may be to blame.
//!
//! ```text
//! samples at an instruction
//!   − frequency × least cycles        what the code itself takes
//!   = what is left                    noise, a gain, or a dynamic stall
//!       └─► every cause is guilty until a rule proves it innocent, or bounds it
//! ```

mod rules;

pub(crate) use rules::{Bound, Happened, Scene, candidates};

use crate::report::Culprit;

/// How a dynamic stall divides among those who may be to blame.
#[derive(Clone, Debug, Default)]
pub(crate) struct Blame {
    pub(crate) culprits: Vec<Culprit>,
    /// The share that nobody is left for.
    pub(crate) unexplained: f64,
}

/// Divides a stall of `stall_cycles` each time: who is bounded can have no more than that, and
/// who could be alone responsible for what the others cannot explain, is.
pub(crate) fn blame(stall_cycles: f64, bounds: &[Bound]) -> Blame {
    let share = |bound: &Bound| (bound.cycles / stall_cycles).min(1.0);
    let all: f64 = bounds.iter().map(share).sum();
    let culprit = |bound: &Bound| {
        let most = share(bound);
        Culprit {
            cause: bound.cause,
            share_min: (1.0 - (all - most)).clamp(0.0, most),
            share_max: most,
            responsible: bound.responsible,
        }
    };
    let mut culprits: Vec<Culprit> =
        bounds.iter().filter(|bound| bound.cycles > 0.0).map(culprit).collect();
    culprits.sort_by(|a, b| b.share_max.total_cmp(&a.share_max));
    Blame { culprits, unexplained: (1.0 - all).clamp(0.0, 1.0) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::DynamicCause;

    fn bound(cause: DynamicCause, cycles: f64) -> Bound {
        Bound { cause, cycles, responsible: None }
    }

    #[test]
    fn what_others_cannot_explain_is_certain() {
        let bounds =
            [bound(DynamicCause::DataCache, f64::INFINITY), bound(DynamicCause::Fetch, 2.0)];
        let found = blame(10.0, &bounds);
        let shares: Vec<(f64, f64)> =
            found.culprits.iter().map(|c| (c.share_min, c.share_max)).collect();
        assert_eq!(shares, [(0.8, 1.0), (0.0, 0.2)]);
        assert_eq!(found.unexplained, 0.0);
    }

    #[test]
    fn what_nobody_can_explain_stays_unexplained() {
        let found = blame(10.0, &[bound(DynamicCause::Fetch, 2.0)]);
        assert_eq!((found.culprits[0].share_min, found.culprits[0].share_max), (0.2, 0.2));
        assert!((found.unexplained - 0.8).abs() < 1e-12);
        assert_eq!(blame(10.0, &[]).unexplained, 1.0);
    }
}
