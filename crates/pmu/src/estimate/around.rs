//! Sums over what lies around, weighted by nearness.

/// Σ value · e^(−distance/reach) at each of `len` places, distances in slices. A place's own value
/// counts whole.
///
/// The weight falls by the same part from place to place, so that two passes are enough.
pub(super) fn around(places: &[usize], values: &[f64], len: usize, reach: f64) -> Vec<f64> {
    let kept = (-1.0 / reach).exp();
    let mut sums = vec![0.0; len];
    for (&place, value) in places.iter().zip(values) {
        if let Some(sum) = sums.get_mut(place) {
            *sum += value;
        }
    }
    let own = sums.clone();
    let mut from_before = 0.0;
    for (sum, own) in sums.iter_mut().zip(&own) {
        from_before = from_before * kept + own;
        *sum = from_before;
    }
    let mut from_after = 0.0;
    for (sum, own) in sums.iter_mut().zip(&own).rev() {
        *sum += from_after;
        from_after = (from_after + own) * kept;
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_passes_give_the_sum_over_all_pairs() {
        let (places, values) = ([1, 2, 6, 9], [3.0, 5.0, 0.5, 7.0]);
        for (at, sum) in around(&places, &values, 12, 2.5).into_iter().enumerate() {
            let weight = |place: usize| (-(at.abs_diff(place) as f64) / 2.5).exp();
            let whole: f64 = places.iter().zip(&values).map(|(&p, v)| v * weight(p)).sum();
            assert!((sum - whole).abs() < 1e-12, "{at}: {sum} {whole}");
        }
    }
}
