//! How many events a sample stands for, as far as the epochs remember.

use store::EpochEntry;

/// The mean over the epochs, if every one of them knows.
pub(super) fn of(epochs: &[EpochEntry], event: &str) -> Option<f64> {
    let periods: Option<Vec<f64>> = epochs
        .iter()
        .map(|epoch| match &epoch.facts().modelled {
            Some(by) => Some(by.period as f64),
            None => told(&epoch.facts().origin, event),
        })
        .collect();
    let periods = periods.filter(|periods| !periods.is_empty())?;
    Some(periods.iter().sum::<f64>() / periods.len() as f64)
}

/// `record gzip -9 (cpu-clock at 997 Hz, cycles every 100000)`: what the record says of itself. A
/// clock's period is in nanoseconds; of another event sampled by rate it is not known.
fn told(origin: &str, event: &str) -> Option<f64> {
    let (_, rates) = origin.strip_suffix(')')?.rsplit_once('(')?;
    rates.split(", ").find_map(|rate| {
        let rest = rate.strip_prefix(event)?.trim_start();
        if let Some(period) = rest.strip_prefix("every ") {
            return period.parse::<f64>().ok();
        }
        let hertz = rest.strip_prefix("at ")?.strip_suffix(" Hz")?.parse::<f64>().ok()?;
        event.ends_with("-clock").then_some(1e9 / hertz)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_says_how_often_it_sampled() {
        let origin = "record sh -c (x) (cpu-clock at 1000 Hz, cycles every 500)";
        assert_eq!(told(origin, "cpu-clock"), Some(1e6));
        assert_eq!(told(origin, "cycles"), Some(500.0));
        assert_eq!(told("record x (cycles at 99 Hz)", "cycles"), None);
        assert_eq!(told("daemon", "cycles"), None);
    }
}
