//! One procedure before and after.

use metrology::{Coverage, Estimate, mean, student_cdf};
use vocab::Count;

/// The probability of one false claim among all procedures together.
const FALSE_CLAIMS: f64 = 0.05;

/// Samples of a run before and after, and what can be said of their difference.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Change {
    pub(super) image: String,
    pub(super) procedure: String,
    /// Samples of a run.
    pub(super) a: Estimate,
    pub(super) b: Estimate,
    pub(super) difference: Estimate,
    /// The probability of so large a difference if there were none.
    pub(super) p: f64,
    /// Whether the change holds among all procedures that are compared.
    pub(super) is_sure: bool,
}

impl Change {
    pub(super) fn of(image: &str, procedure: &str, a: &[Count], b: &[Count]) -> Change {
        let (a, b) = (per_run(a), per_run(b));
        let difference = b.minus(a);
        let p = chance(difference);
        let is_sure = p < FALSE_CLAIMS;
        Change { image: image.into(), procedure: procedure.into(), a, b, difference, p, is_sure }
    }

    /// Whether it grew by more than so many samples a run, whatever the uncertainty.
    pub(super) fn surely_above(&self, allowed: f64) -> bool {
        self.difference.interval(Coverage::P95).low > allowed
    }
}

/// The mean over runs. The runs' own spread decides, but no less than what sampling alone does:
/// runs that happen to agree to the sample are no proof of more.
fn per_run(counts: &[Count]) -> Estimate {
    let runs = counts.len().max(1) as f64;
    let sum: f64 = counts.iter().map(|count| count.as_f64()).sum();
    // Nothing seen still leaves room for about one sample.
    let sampling = Estimate::known(sum / runs, sum.max(1.0).sqrt() / runs);
    let readings: Vec<f64> = counts.iter().map(|count| count.as_f64()).collect();
    match mean(&readings) {
        Ok(spread) if spread.standard_uncertainty > sampling.standard_uncertainty => spread,
        _ => sampling,
    }
}

fn chance(difference: Estimate) -> f64 {
    if difference.standard_uncertainty <= 0.0 {
        return 1.0;
    }
    let t = (difference.value / difference.standard_uncertainty).abs();
    (2.0 * (1.0 - student_cdf(t, difference.degrees_of_freedom))).clamp(0.0, 1.0)
}

/// Holm's rule: the smallest p is held to the strictest limit, and the first that fails takes all
/// after it along. Among hundreds of procedures some look changed by chance alone.
pub(super) fn hold(rows: &mut [Change]) {
    let mut order: Vec<usize> = (0..rows.len()).collect();
    order.sort_by(|&x, &y| rows[x].p.total_cmp(&rows[y].p));
    let mut holds = true;
    for (rank, &place) in order.iter().enumerate() {
        let left = (order.len() - rank) as f64;
        if let Some(row) = rows.get_mut(place) {
            holds &= row.p * left < FALSE_CLAIMS;
            row.is_sure = holds;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use metrology::Draws;

    fn counts(list: &[u64]) -> Vec<Count> {
        list.iter().map(|&count| Count(count)).collect()
    }

    #[test]
    fn single_runs_differ_by_the_square_root_of_their_samples() {
        let change = Change::of("i", "p", &counts(&[10_000]), &counts(&[10_600]));
        assert_eq!(change.difference.value, 600.0);
        let expected = (10_000.0_f64 + 10_600.0).sqrt();
        assert!((change.difference.standard_uncertainty - expected).abs() < 1e-9);
        assert!(change.p < 1e-4 && change.surely_above(300.0) && !change.surely_above(600.0));
    }

    #[test]
    fn runs_that_differ_among_themselves_need_more_to_differ_from_others() {
        let steady = Change::of("i", "p", &counts(&[100, 101, 99]), &counts(&[160, 161, 159]));
        let wild = Change::of("i", "p", &counts(&[40, 160, 100]), &counts(&[100, 220, 160]));
        assert!(steady.p < 0.01 && wild.p > 0.1, "{} {}", steady.p, wild.p);
    }

    #[test]
    fn among_many_that_did_not_change_false_claims_are_rare() {
        // Counts drawn from one distribution on both sides, 100 procedures, 200 comparisons: a
        // claim in at most one comparison in twenty, give or take the drawing.
        let mut draws = Draws::new(7);
        let mut poisson =
            |mean: f64| Count((mean + draws.normal() * mean.sqrt()).max(0.0).round() as u64);
        let mut claimed = 0;
        for _ in 0..200 {
            let mut rows: Vec<Change> = (0..100)
                .map(|_| Change::of("i", "p", &[poisson(400.0)], &[poisson(400.0)]))
                .collect();
            hold(&mut rows);
            claimed += usize::from(rows.iter().any(|row| row.is_sure));
        }
        assert!(claimed <= 20, "{claimed} of 200");
    }
}
