//! A program that counts itself: `cargo run -p counters --example sets`.
//!
//! Two sets overlap; three events take turns on one counter, so that two of the totals are
//! estimates with an uncertainty.

use counters::sets::{EventSet, SetError, SetOptions, configure};

/// Touches new memory, which the kernel counts as page faults, and adds something up.
fn work(rounds: u64) -> u64 {
    let kept: Vec<Vec<u8>> = (0..rounds).map(|round| vec![round as u8; 1 << 16]).collect();
    kept.iter().flatten().map(|&byte| u64::from(byte)).sum()
}

fn show(what: &str, set: &mut EventSet) -> Result<(), SetError> {
    let values = set.stop()?;
    for (name, value) in set.names()?.iter().zip(values) {
        match value {
            Ok(counted) => println!(
                "{what}: {name:<14} {:>10.0} ± {:<8.0} counted {:.0} % of the time, {}",
                counted.estimate.value,
                counted.estimate.standard_uncertainty,
                100.0 * counted.share,
                counted.estimator.word(),
            ),
            Err(why) => println!("{what}: {name:<14} not counted: {why}"),
        }
    }
    Ok(())
}

fn main() -> Result<(), SetError> {
    configure(SetOptions { slice_ns: 1_000_000, counters: Some(1), seed: 7 })?;
    let mut whole = EventSet::new()?;
    whole.add("page-faults")?;
    whole.add("task-clock")?;
    let mut part = EventSet::new()?;
    part.add("page-faults")?;
    part.add("minor-faults")?;

    whole.start()?;
    std::hint::black_box(work(100));
    part.start()?;
    std::hint::black_box(work(300));
    show("part ", &mut part)?;
    std::hint::black_box(work(100));
    show("whole", &mut whole)
}
