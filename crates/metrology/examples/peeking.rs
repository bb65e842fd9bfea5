//! Computes the factors of `metrology::peeking_factor`: for each coverage the least factor with
//! which the interval at the moment of stopping covers as claimed, whatever the true spread.
//!
//! With factor f, the rule f·s/√n ≤ d stops as the plain rule does for d/f; since all true spreads
//! are tried, the plain rule suffices here. The mean at the moment of stopping is normal around the
//! truth with variance σ²/n, independent of s, so that an interval of f·t·s/√n covers with
//! probability E[2Φ(f·t·s/σ) − 1] over the distribution of (n, s) at stopping.

use metrology::{Draws, FIRST_LOOK, normal_cdf, student_quantile};

const PATHS: usize = 100_000;
const COVERAGES: [f64; 7] = [0.5, 0.6827, 0.8, 0.9, 0.95, 0.99, 0.999];

fn main() {
    let mut greatest = [(0.0_f64, 0.0_f64); COVERAGES.len()];
    let optima = (0..34).map(|k| 4.0 * 1.1_f64.powi(k));
    for optimum in optima {
        let stopped = paths(optimum);
        for (slot, coverage) in greatest.iter_mut().zip(COVERAGES) {
            let needed = factor(&stopped, coverage);
            if needed > slot.0 {
                *slot = (needed, optimum);
            }
        }
    }
    for ((factor, optimum), coverage) in greatest.iter().zip(COVERAGES) {
        println!("({coverage}, {factor:.4}), // worst at {optimum:.0} runs");
    }
}

/// Runs and spread (in true standard deviations) at stopping, where a known spread would stop after
/// `optimum` runs.
fn paths(optimum: f64) -> Vec<(usize, f64)> {
    let mut draws = Draws::new(optimum.to_bits());
    let path = |_| {
        let (mut squares, mut runs) = (0.0, 1);
        loop {
            // Helmert: the sum of squares grows by the square of a normal with every run.
            squares += draws.normal().powi(2);
            runs += 1;
            let variance = squares / (runs - 1) as f64;
            if runs >= FIRST_LOOK && variance / runs as f64 <= 1.0 / optimum {
                return (runs, variance.sqrt());
            }
        }
    };
    (0..PATHS).map(path).collect()
}

fn factor(stopped: &[(usize, f64)], coverage: f64) -> f64 {
    let most = stopped.iter().map(|s| s.0).max().unwrap_or(0);
    let quantiles: Vec<f64> = (0..=most)
        .map(|runs| student_quantile(0.5 + coverage / 2.0, (runs as f64 - 1.0).max(1.0)))
        .collect();
    let covered = |factor: f64| {
        let one = |&(runs, s): &(usize, f64)| {
            let t = quantiles.get(runs).copied().unwrap_or(2.0);
            2.0 * normal_cdf(factor * t * s) - 1.0
        };
        stopped.iter().map(one).sum::<f64>() / stopped.len() as f64
    };
    let (mut low, mut high) = (0.5, 4.0);
    for _ in 0..24 {
        let middle = 0.5 * (low + high);
        if covered(middle) < coverage { low = middle } else { high = middle }
    }
    high
}
