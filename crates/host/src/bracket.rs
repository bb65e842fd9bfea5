//! Runs between two readings of the clock.

use crate::{Pinned, clock_hz, steal};

/// How far two chains around a run may differ.
const CLOCKS_DIFFER_MAX: f64 = 0.01;

/// What a bracketed run told.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bracketed<T> {
    /// What the run itself brought.
    pub run: T,
    /// The clock around it, in hertz.
    pub clock_hz: f64,
}

/// Runs that were kept, and how many were not.
#[derive(Debug, Clone, PartialEq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Kept {
    /// What each kept run told.
    pub values: Vec<f64>,
    /// How many were dropped.
    pub dropped: usize,
}

impl Kept {
    /// The middle of the kept values.
    pub fn median(&self) -> Option<f64> {
        let mut values = self.values.clone();
        values.sort_by(f64::total_cmp);
        let (low, high) =
            (values.get((values.len().max(1) - 1) / 2)?, values.get(values.len() / 2)?);
        Some((low + high) / 2.0)
    }

    /// The largest distance of a kept value from the middle; none of fewer than two.
    pub fn spread(&self) -> Option<f64> {
        let middle = self.median().filter(|_| self.values.len() > 1)?;
        Some(self.values.iter().map(|value| (value - middle).abs()).fold(0.0, f64::max))
    }
}

/// Runs `run` between two chains; none when the clock was not steady or time was stolen.
///
/// # Errors
///
/// The run's own.
pub fn bracketed<T, E>(
    pinned: &Pinned,
    run: impl FnOnce() -> Result<T, E>,
) -> Result<Option<Bracketed<T>>, E> {
    let stolen = steal::ticks(pinned.cpu());
    let before = clock_hz();
    let run = run()?;
    let after = clock_hz();
    let is_steady = (before / after - 1.0).abs() <= CLOCKS_DIFFER_MAX;
    let is_whole = steal::ticks(pinned.cpu()) == stolen;
    Ok((is_steady && is_whole).then_some(Bracketed { run, clock_hz: (before + after) / 2.0 }))
}

/// Repeats until `wanted` runs are kept, or until there is no hope of it.
///
/// # Errors
///
/// A run's own.
pub fn repeat<T, E>(
    pinned: &Pinned,
    wanted: usize,
    mut run: impl FnMut() -> Result<T, E>,
    cycles: impl Fn(&Bracketed<T>) -> f64,
) -> Result<Kept, E> {
    let mut kept = Kept::default();
    while kept.values.len() < wanted && kept.dropped < 4 * wanted {
        match bracketed(pinned, &mut run)? {
            Some(told) => kept.values.push(cycles(&told)),
            None => kept.dropped += 1,
        }
    }
    Ok(kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_and_the_farthest_are_those_of_the_kept() {
        let kept = |values: &[f64]| Kept { values: values.to_vec(), dropped: 0 };
        assert_eq!(kept(&[3.0, 1.0, 8.0]).median(), Some(3.0));
        assert_eq!(kept(&[3.0, 1.0, 8.0]).spread(), Some(5.0));
        assert_eq!(kept(&[4.0, 2.0]).median(), Some(3.0));
        assert_eq!((kept(&[]).median(), kept(&[4.0]).spread()), (None, None));
    }

    #[test]
    fn runs_are_repeated_until_enough_are_kept_or_none_is() {
        let pinned = Pinned::to_one().unwrap();
        let kept = repeat(&pinned, 1, || Ok::<_, ()>(2.0), |told| told.run).unwrap();
        assert!(kept.values.len() == 1 && kept.values[0] == 2.0 || kept.dropped == 4);
        assert_eq!(repeat(&pinned, 1, || Err::<f64, _>("no"), |told| told.run), Err("no"));
    }
}
