//! Summaries of procedures as one.

use analyse::{CauseRange, Summary};

/// How the cycles of all of them were spent: shares weigh by samples.
pub(crate) fn combine<'a>(summaries: impl Iterator<Item = &'a Summary> + Clone) -> Summary {
    let samples: u64 = summaries.clone().map(|summary| summary.samples).sum();
    let mut whole = Summary { samples, ..Summary::default() };
    for one in summaries {
        let weight = one.samples as f64 / (samples as f64).max(1.0);
        whole.best_case += one.best_case;
        whole.actual += one.actual;
        whole.executions += one.executions;
        whole.unexplained_stall += weight * one.unexplained_stall;
        whole.unexplained_gain += weight * one.unexplained_gain;
        whole.subtotal_dynamic += weight * one.subtotal_dynamic;
        whole.subtotal_static += weight * one.subtotal_static;
        whole.total_stall += weight * one.total_stall;
        whole.execution += weight * one.execution;
        whole.sampling_error += weight * one.sampling_error;
        whole.total_tallied += weight * one.total_tallied;
        whole.share_of_all += one.share_of_all;
        whole.cycles_per_sample += weight * one.cycles_per_sample;
        for range in &one.dynamic {
            add_dynamic(&mut whole.dynamic, range, weight);
        }
        for &(cause, share) in &one.statics {
            match whole.statics.iter_mut().find(|(held, _)| *held == cause) {
                Some((_, sum)) => *sum += weight * share,
                None => whole.statics.push((cause, weight * share)),
            }
        }
    }
    whole
}

fn add_dynamic(sums: &mut Vec<CauseRange>, range: &CauseRange, weight: f64) {
    let scaled = CauseRange {
        cause: range.cause,
        share_min: weight * range.share_min,
        share_max: weight * range.share_max,
    };
    match sums.iter_mut().find(|held| held.cause == range.cause) {
        Some(sum) => {
            sum.share_min += scaled.share_min;
            sum.share_max += scaled.share_max;
        }
        None => sums.push(scaled),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use analyse::{DynamicCause, StaticCause};

    #[test]
    fn shares_weigh_by_samples_and_add_up_again() {
        let one = |samples, execution: f64, miss| Summary {
            samples,
            execution,
            total_stall: 1.0 - execution,
            total_tallied: 1.0,
            dynamic: vec![CauseRange {
                cause: DynamicCause::DataCache,
                share_min: miss,
                share_max: 2.0 * miss,
            }],
            statics: vec![(StaticCause::Slotting, 0.1)],
            ..Summary::default()
        };
        let both = combine([one(300, 0.4, 0.2), one(100, 0.8, 0.0)].iter());
        assert_eq!(both.samples, 400);
        assert!((both.execution - 0.5).abs() < 1e-12);
        assert!((both.execution + both.total_stall - both.total_tallied).abs() < 1e-12);
        let miss = both.dynamic[0];
        assert!((miss.share_min - 0.15).abs() < 1e-12 && (miss.share_max - 0.3).abs() < 1e-12);
        assert!((both.statics[0].1 - 0.1).abs() < 1e-12);
    }
}
