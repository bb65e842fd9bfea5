//! Least squares with weights, on few features, beginning from what a machine's latencies suggest.

use super::features::{FEATURES, Features, LACKED, product};
use super::reaching::FromMemory;
use crate::machine::Machine;

/// What is thought of the coefficients before any window is seen.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Prior {
    /// Cycles that one more of each feature costs.
    pub(super) cycles: Features,
    /// How far that may be off.
    pub(super) scale: Features,
    /// Cycles that a line from memory takes, and who counts them.
    pub(super) memory_cycles: f64,
    pub(super) from_memory: FromMemory,
    /// Cycles that a branch takes which goes another way than thought.
    pub(super) mispredict_cycles: f64,
}

impl Prior {
    /// A miss costs about half its latency, since an out-of-order core hides some, give or take as
    /// much; of what blocks usually take half is their own, and half what they happened to meet. In the
    /// order of the features.
    pub(super) fn of(machine: &Machine) -> Prior {
        let l2 = f64::from(machine.caches.l2.latency_cycles);
        let l3 = machine.caches.l3.as_ref().map_or(l2, |l3| f64::from(l3.latency_cycles));
        let memory = f64::from(machine.memory.latency_cycles);
        let walk = f64::from(machine.tlbs.walk_cycles).max(10.0);
        // Once to fill the pipeline anew, and about as long until it is found out.
        let mispredict = 2.0 * f64::from(machine.window.mispredict_cycles);
        let halves = [0.0, mispredict, 0.0, l2 / 2.0, l2, l3, memory, memory / 8.0, walk, 1.0];
        let mut scale = halves.map(|latency| latency / 2.0);
        scale[2] = 1.0;
        // The constant is left to the windows alone.
        scale[0] = f64::INFINITY;
        let cycles = halves.map(|latency| latency / 2.0);
        let from_memory = FromMemory::of(machine.caches.l3.is_some());
        Prior { cycles, scale, memory_cycles: memory, from_memory, mispredict_cycles: mispredict }
    }

    /// The same of what caches and translation lack, and 0 of the others.
    pub(super) fn lacking(&self) -> Features {
        std::array::from_fn(|k| if LACKED.contains(&k) { self.cycles[k] } else { 0.0 })
    }
}

/// The sums of squares and products of the features, decomposed, so that many events can be fitted
/// on the same windows.
#[derive(Clone, Debug)]
pub(super) struct Regression {
    /// The lower triangle whose product with itself is the sums.
    triangle: [Features; FEATURES],
}

impl Regression {
    /// Of weighted features. Each is drawn towards the prior as if `noise`, the weighted variance of
    /// one window, had been seen once at the prior's scale: with few windows that met a feature its
    /// coefficient would be mostly chance.
    pub(super) fn new(
        windows: impl Iterator<Item = (f64, Features)>,
        noise: f64,
        scale: &Features,
    ) -> Regression {
        let mut sums = [[0.0; FEATURES]; FEATURES];
        for (weight, x) in windows {
            for (row, xj) in sums.iter_mut().zip(&x) {
                for (sum, xk) in row.iter_mut().zip(&x) {
                    *sum += weight * xj * xk;
                }
            }
        }
        let all = sums[0][0].max(f64::MIN_POSITIVE);
        for (k, (row, scale)) in sums.iter_mut().zip(scale).enumerate() {
            // A feature that never occurred must not make the triangle end.
            row[k] += noise / (scale * scale) + all * 1e-12;
        }
        Regression { triangle: decomposed(&sums) }
    }

    /// The variance of what coefficients make of so much of each feature.
    pub(super) fn variance(&self, noise: f64, features: &Features) -> f64 {
        let half = self.half_solved(features);
        noise * product(&half, &half)
    }

    /// What the triangle makes the right side of.
    fn half_solved(&self, right: &Features) -> Features {
        let lower = &self.triangle;
        let mut half = [0.0; FEATURES];
        for k in 0..FEATURES {
            half[k] = (right[k] - product(&lower[k], &half)) / lower[k][k];
        }
        half
    }

    /// The coefficients for one event, from Σ weight · feature · rate.
    pub(super) fn coefficients(&self, products: &Features) -> Features {
        let lower = &self.triangle;
        let half = self.half_solved(products);
        let mut solution = [0.0; FEATURES];
        for k in (0..FEATURES).rev() {
            let known: f64 = (k + 1..FEATURES).map(|j| lower[j][k] * solution[j]).sum();
            solution[k] = (half[k] - known) / lower[k][k];
        }
        solution
    }
}

/// Cholesky's triangle of a positive matrix.
fn decomposed(sums: &[Features; FEATURES]) -> [Features; FEATURES] {
    let mut lower = [[0.0; FEATURES]; FEATURES];
    for row in 0..FEATURES {
        for column in 0..=row {
            let known: f64 = (0..column).map(|k| lower[row][k] * lower[column][k]).sum();
            let rest = sums[row][column] - known;
            lower[row][column] = if row == column {
                // Rounding may leave less than nothing where features depend on each other.
                rest.max(sums[row][row] * 1e-12).sqrt()
            } else {
                rest / lower[column][column]
            };
        }
    }
    lower
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Dice;

    #[test]
    fn coefficients_come_back_where_features_explain_everything() {
        let mut dice = Dice::new(3);
        let truth: Features = std::array::from_fn(|k| 0.5 + k as f64);
        let mut unit = || (dice.next() % 1000) as f64 / 1000.0;
        let windows: Vec<(f64, Features)> = (0..200)
            .map(|_| {
                let mut x: Features = std::array::from_fn(|_| unit());
                (x[0], x[FEATURES - 1]) = (1.0, 0.0);
                (1.0 + unit(), x)
            })
            .collect();
        let fit = Regression::new(windows.iter().copied(), 0.0, &[1.0; FEATURES]);
        let mut products = [0.0; FEATURES];
        for (weight, x) in &windows {
            let y = product(x, &truth);
            products.iter_mut().zip(x).for_each(|(sum, x)| *sum += weight * x * y);
        }
        let found = fit.coefficients(&products);
        for k in 0..FEATURES - 1 {
            assert!((found[k] - truth[k]).abs() < 1e-6, "{k}: {}", found[k]);
        }
        // The last never occurred: it explains nothing.
        assert!(found[FEATURES - 1].abs() < 1e-6, "{}", found[FEATURES - 1]);
    }
}
