//! Least squares with weights, on few features.

use super::features::{FEATURES, Features, product};

/// The sums of squares and products of the features, decomposed, so that many events can be fitted
/// on the same windows.
#[derive(Clone, Debug)]
pub(super) struct Regression {
    /// The lower triangle whose product with itself is the sums.
    triangle: [Features; FEATURES],
}

impl Regression {
    /// Of weighted features. Each feature but the first (the constant) is drawn towards having no
    /// effect, as strongly as `draw` of its own squares: with few windows a coefficient is mostly
    /// chance.
    pub(super) fn new<'a>(
        windows: impl Iterator<Item = (f64, &'a Features)>,
        draw: f64,
    ) -> Regression {
        let mut sums = [[0.0; FEATURES]; FEATURES];
        for (weight, x) in windows {
            for (row, xj) in sums.iter_mut().zip(x) {
                for (sum, xk) in row.iter_mut().zip(x) {
                    *sum += weight * xj * xk;
                }
            }
        }
        let scale = sums[0][0].max(f64::MIN_POSITIVE);
        for (k, row) in sums.iter_mut().enumerate().skip(1) {
            // A feature that never occurred must not make the triangle end.
            row[k] += row[k] * draw + scale * 1e-12;
        }
        sums[0][0] = scale;
        Regression { triangle: decomposed(&sums) }
    }

    /// The coefficients for one event, from Σ weight · feature · rate.
    pub(super) fn coefficients(&self, products: &Features) -> Features {
        let lower = &self.triangle;
        let mut half = [0.0; FEATURES];
        for k in 0..FEATURES {
            half[k] = (products[k] - product(&lower[k], &half)) / lower[k][k];
        }
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
                (x[0], x[8]) = (1.0, 0.0);
                (1.0 + unit(), x)
            })
            .collect();
        let fit = Regression::new(windows.iter().map(|(w, x)| (*w, x)), 0.0);
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
        assert!(found[8].abs() < 1e-6, "{}", found[8]);
    }
}
