//! Did the first runs belong to the rest?
//!
//! The first run of a program reads its files from the disk, wakes the clock, fills caches. Such
//! runs are found as a change of the mean within the first third of the readings, and left out.

use crate::student_cdf;

/// The fewest readings that are looked at.
pub const WARM_UP_RUNS_MIN: usize = 5;

/// How many of the first readings differ from those after them; 0 where none do. The rate of false
/// alarms over all places that are tried is at most `false_alarms` for normal readings, and near
/// it for lognormal ones: positive readings are compared by their logarithms.
pub fn warm_up(readings: &[f64], false_alarms: f64) -> usize {
    if readings.len() < WARM_UP_RUNS_MIN {
        return 0;
    }
    let is_positive = readings.iter().all(|reading| *reading > 0.0);
    let scaled: Vec<f64> = readings.iter().map(|r| if is_positive { r.ln() } else { *r }).collect();
    let places = scaled.len() / 3;
    let tried = (1..=places).filter_map(|first| {
        let (early, late) = scaled.split_at_checked(first)?;
        Some((first, change(early, late)))
    });
    let best = tried.min_by(|a, b| a.1.total_cmp(&b.1));
    best.filter(|(_, p)| p * places as f64 <= false_alarms).map_or(0, |(first, _)| first)
}

/// The error to spend on the `look`-th look (from 0), so that all looks together spend `whole`.
pub fn spent_at_look(whole: f64, look: u32) -> f64 {
    whole / 2_f64.powi(look.min(1000) as i32 + 1)
}

/// The probability that two parts of one series differ so much by chance (Student, the spread of
/// both parts pooled).
fn change(early: &[f64], late: &[f64]) -> f64 {
    let (a, b) = (early.len() as f64, late.len() as f64);
    let mean = |part: &[f64]| part.iter().sum::<f64>() / part.len() as f64;
    let (early_mean, late_mean) = (mean(early), mean(late));
    let square = |part: &[f64], mean: f64| part.iter().map(|r| (r - mean).powi(2)).sum::<f64>();
    let dof = a + b - 2.0;
    let variance = (square(early, early_mean) + square(late, late_mean)) / dof;
    let error = (variance * (1.0 / a + 1.0 / b)).sqrt();
    let difference = (early_mean - late_mean).abs();
    // Equal readings differ by rounding at most.
    if difference <= 1e-12 * late_mean.abs() {
        return 1.0;
    }
    if error == 0.0 {
        return 0.0;
    }
    2.0 * student_cdf(-difference / error, dof)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Draws;

    #[test]
    fn a_cold_first_run_is_found_and_steady_runs_are_not() {
        assert_eq!(warm_up(&[14.0, 10.0, 10.1, 9.9, 10.05], 0.01), 1);
        assert_eq!(warm_up(&[10.0, 10.1, 9.9, 10.05, 10.0], 0.01), 0);
        let two = [30.0, 20.0, 10.0, 10.1, 9.9, 10.0, 10.1, 9.95, 10.02, 10.0];
        assert_eq!(warm_up(&two, 0.01), 2);
    }

    #[test]
    fn counts_without_spread_show_it_at_once() {
        assert_eq!(warm_up(&[1200.0, 1000.0, 1000.0, 1000.0, 1000.0], 0.01), 1);
        assert_eq!(warm_up(&[1000.0; 20], 0.01), 0);
        assert_eq!(warm_up(&[5.0, 1.0, 1.0, 1.0], 0.01), 0);
        assert_eq!(warm_up(&[3.0, 0.0, 0.0, 0.0, 0.0], 0.01), 1);
    }

    #[test]
    fn a_change_after_the_first_third_is_no_warm_up() {
        let late = [10.0, 10.1, 9.9, 10.0, 10.1, 20.0, 20.1, 19.9, 20.0];
        assert!(warm_up(&late, 0.01) <= 3);
    }

    #[test]
    fn looks_together_spend_what_there_is() {
        let spent: f64 = (0..60).map(|look| spent_at_look(0.01, look)).sum();
        assert!((spent - 0.01).abs() < 1e-12);
    }

    /// 4,000 experiments at 5 %: at most that, so at most 5 standard errors (0.34 points) above.
    #[test]
    fn false_alarms_stay_below_the_rate_asked_for() {
        for (runs, tail) in [(5, false), (10, false), (30, false), (10, true)] {
            let mut draws = Draws::new(runs as u64);
            let mut alarms = 0;
            for _ in 0..4000 {
                let readings: Vec<f64> = (0..runs)
                    .map(|_| draws.normal())
                    .map(|z| if tail { (0.5 * z).exp() } else { 100.0 + z })
                    .collect();
                alarms += u32::from(warm_up(&readings, 0.05) > 0);
            }
            assert!(alarms <= 269, "{alarms} of 4000 at {runs}");
        }
    }
}
