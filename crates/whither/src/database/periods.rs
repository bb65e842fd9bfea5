//! How many of an event a sample stands for, as an epoch keeps it.

use std::collections::BTreeMap;

use recording::{Body, Item, RecordedEvent};

/// Periods by the event's name; a name whose events do not agree has none.
pub(crate) fn agreed<'a>(told: impl IntoIterator<Item = (&'a str, u64)>) -> BTreeMap<String, u64> {
    let mut found: BTreeMap<String, Option<u64>> = BTreeMap::new();
    for (name, period) in told {
        let held = found.entry(name.to_owned()).or_insert(Some(period));
        *held = held.filter(|&held| held == period);
    }
    found.into_iter().filter_map(|(name, period)| Some((name, period?))).collect()
}

/// What the samples of a recording say of themselves.
#[derive(Debug, Default)]
pub(crate) struct Periods(Vec<Sum>);

#[derive(Clone, Debug, Default)]
struct Sum {
    samples: u64,
    /// None once a sample did not say.
    events: Option<u64>,
}

impl Periods {
    /// The next item of the recording.
    pub(crate) fn take(&mut self, item: &Item) {
        let Body::Sample(sample) = &item.body else { return };
        if self.0.len() <= item.event {
            self.0.resize(item.event + 1, Sum { samples: 0, events: Some(0) });
        }
        let Some(sum) = self.0.get_mut(item.event) else { return };
        sum.samples += 1;
        sum.events = sum.events.zip(sample.period).and_then(|(a, b)| a.checked_add(b));
    }

    /// The mean period of each event: its samples' own words, else what was asked of the kernel.
    pub(crate) fn of(&self, events: &[RecordedEvent]) -> BTreeMap<String, u64> {
        let mean = |k: usize| {
            let sum = self.0.get(k)?;
            sum.events?.checked_div(sum.samples).filter(|&mean| mean > 0)
        };
        let told = events.iter().enumerate().filter_map(|(k, recorded)| {
            Some((recorded.event.name.as_str(), mean(k).or(recorded.period)?))
        });
        agreed(told)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_of_one_name_must_agree() {
        let told = [("cycles", 500), ("clock", 7), ("cycles", 501), ("cycles", 500), ("clock", 7)];
        assert_eq!(agreed(told), BTreeMap::from([("clock".to_owned(), 7)]));
    }
}
