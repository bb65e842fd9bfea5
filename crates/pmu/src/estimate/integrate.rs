//! From the rates at the nodes to the total, and how sure it is.

use super::frame::Frame;

/// A total with what is known of its error.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Integral {
    pub(super) value: f64,
    pub(super) variance: f64,
    pub(super) degrees_of_freedom: f64,
    /// Whether it was predicted along the line between neighbours.
    pub(super) is_walk: bool,
}

/// The total of what has these rates at the nodes; there are at least three.
pub(super) fn integrate(frame: &Frame, rates: &[f64]) -> Integral {
    let squares: Vec<f64> = rates.windows(2).map(|w| (w[1] - w[0]).powi(2)).collect();
    integrate_by(frame, rates, &squares)
}

/// The same where squared steps between neighbours are known otherwise than from the rates.
pub(super) fn integrate_by(frame: &Frame, rates: &[f64], squares: &[f64]) -> Integral {
    let part = walk_part(squares, &frame.lags);
    let is_walk = part > 0.5;
    let weights = if is_walk { &frame.between } else { &frame.own };
    let predicted: f64 = weights.stands_for.iter().zip(rates).map(|(w, r)| w * r).sum();
    let counted: f64 = frame.nodes().zip(rates).map(|((_, size), r)| size * r).sum();
    let (noise, walk) = (1.0 - part, part);
    let brings = weights.noise.iter().zip(&weights.walk);
    let parts: Vec<f64> = squares
        .iter()
        .zip(&frame.lags)
        .zip(brings)
        .map(|((square, (inverse, lag)), (by_noise, by_walk))| {
            let scale = square / (noise * inverse + walk * lag);
            scale * (noise * by_noise + walk * by_walk)
        })
        .collect();
    let variance: f64 = parts.iter().sum();
    let fourth: f64 = parts.iter().map(|p| p * p).sum();
    // Where few differences bring most of the variance, it rests on few degrees of freedom, and one
    // more burst may have been missed altogether.
    let effective = if fourth > 0.0 { variance * variance / fourth } else { parts.len() as f64 };
    let degrees_of_freedom = effective.clamp(1.0, 2.0 / 3.0 * parts.len() as f64 + 1.0);
    let variance = variance * (1.0 + 1.0 / effective.max(1.0));
    Integral { value: counted + predicted, variance, degrees_of_freedom, is_walk }
}

/// The part of a walk that fits the squared differences best, each taken relative to those around
/// it: how wild a stretch is says nothing about the mixture.
///
/// A walk makes the rest easier to predict than noise of the same size, so only as much of it is
/// believed as the data insist on: the fit less its standard error.
pub(super) fn walk_part(squares: &[f64], lags: &[(f64, f64)]) -> f64 {
    let mut sums = [0.0_f64; 6];
    for ((square, near), &(x, y)) in squares.iter().zip(means_around(squares)).zip(lags) {
        if near <= 0.0 {
            continue;
        }
        let z = square / near;
        for (sum, term) in sums.iter_mut().zip([x * x, x * y, y * y, x * z, y * z, z * z]) {
            *sum += term;
        }
    }
    let [xx, xy, yy, xz, yz, zz] = sums;
    let determinant = xx * yy - xy * xy;
    if determinant <= 1e-9 * xx * yy {
        return 0.0;
    }
    let noise = (xz * yy - yz * xy) / determinant;
    let walk = (yz * xx - xz * xy) / determinant;
    let left = (zz - noise * xz - walk * yz).max(0.0) / (lags.len() as f64).max(3.0);
    let unsure = (left * xx / determinant).sqrt();
    ((walk - unsure) / (noise + walk).max(f64::MIN_POSITIVE)).clamp(0.0, 1.0)
}

/// The mean of each value and the few on either side.
pub(super) fn means_around(values: &[f64]) -> Vec<f64> {
    const AROUND: usize = 6;
    let mut window: f64 = values.iter().take(AROUND).sum();
    let mut means = Vec::with_capacity(values.len());
    for k in 0..values.len() {
        window += values.get(k + AROUND).unwrap_or(&0.0);
        if let Some(gone) = k.checked_sub(AROUND + 1).and_then(|gone| values.get(gone)) {
            window -= gone;
        }
        let count = (k + AROUND + 1).min(values.len()) - k.saturating_sub(AROUND);
        means.push(window / count as f64);
    }
    means
}
