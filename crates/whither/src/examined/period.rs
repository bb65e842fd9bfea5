//! How many events a sample stands for, as far as the epochs remember.

use store::EpochEntry;

/// The mean over the samples of the epochs that sampled the event, if every one of them knows.
pub(super) fn of(epochs: &[EpochEntry], event: &str) -> Option<f64> {
    let told = |epoch: &EpochEntry| {
        let facts = epoch.facts();
        let modelled = facts.modelled.as_ref().map(|by| by.period);
        Some((modelled.or_else(|| facts.periods.get(event).copied())?, epoch.tally().stored.0))
    };
    let with_it = epochs.iter().filter(|epoch| epoch.samples(event));
    mean(&with_it.map(told).collect::<Option<Vec<(u64, u64)>>>()?)
}

/// Of periods by their samples.
fn mean(told: &[(u64, u64)]) -> Option<f64> {
    let samples: f64 = told.iter().map(|&(_, samples)| samples as f64).sum();
    let events: f64 = told.iter().map(|&(period, samples)| period as f64 * samples as f64).sum();
    (samples > 0.0).then(|| events / samples)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_epoch_of_few_samples_says_little_about_the_mean() {
        assert_eq!(mean(&[(1000, 30), (3000, 10)]), Some(1500.0));
        assert_eq!(mean(&[]), None);
    }
}
