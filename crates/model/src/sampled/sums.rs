//! The windows added up, event by event.

/// What the windows say of one event, added up as they come, so that memory does not grow.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sums {
    /// Σ weight · rate
    pub(super) weighted: f64,
    /// Σ of what each pair of neighbours adds to the variance: w·w'·(r − r')²/2
    pub(super) spread: f64,
    /// Σ of the squares of those
    spread_squares: f64,
}

impl Sums {
    pub(super) fn add(&mut self, weight: f64, rate: f64, before: Option<(f64, f64)>) {
        self.weighted += weight * rate;
        if let Some((other, earlier)) = before {
            let pair = weight * other * (rate - earlier).powi(2) / 2.0;
            self.spread += pair;
            self.spread_squares += pair * pair;
        }
    }

    /// How many independent pairs the variance rests on (Satterthwaite): fewer than there are where
    /// a few heavy or wild ones make most of it. Neighbouring pairs share a window, so that at best
    /// two thirds count.
    pub(super) fn degrees_of_freedom(&self, windows: u64) -> f64 {
        let most = ((windows - 1) as f64 * 2.0 / 3.0).max(1.0);
        if self.spread_squares == 0.0 {
            return most;
        }
        (2.0 * self.spread * self.spread / self.spread_squares).clamp(1.0, most)
    }
}
