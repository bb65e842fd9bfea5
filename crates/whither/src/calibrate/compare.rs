//! What the readings say of the facts of a description.

use host::{Kept, Quantity};
use metrology::{Coverage, Estimate};
use model::machine::{Class, Machine};

use super::Readings;

/// Whether a description could take the value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Takes {
    /// As clock or latency.
    Latency,
    /// As another fact about memory.
    Memory,
    /// It is here to be checked: what it says has causes that one number does not hold.
    Nothing,
}

/// A fact and what was measured of it.
#[derive(Debug)]
pub(super) struct Compared {
    pub(super) what: &'static str,
    /// Where it stands in the file, where it is one fact.
    pub(super) key: Option<&'static str>,
    pub(super) unit: &'static str,
    pub(super) file: f64,
    /// None when too few runs were kept.
    pub(super) measured: Option<Estimate>,
    pub(super) kept: usize,
    pub(super) dropped: usize,
    pub(super) takes: Takes,
}

impl Compared {
    /// Within the interval, five hundredths, or half of the last whole number.
    pub(super) fn agrees(&self) -> Option<bool> {
        let measured = self.measured?;
        let room = measured.half_width(Coverage::P95).max(0.05 * self.file).max(0.5);
        Some((measured.value - self.file).abs() <= room)
    }

    /// As the file would have it.
    pub(super) fn whole(&self) -> Option<u32> {
        let value = self.measured?.value.round().max(0.0);
        let least = f64::from(u8::from(self.key != Some("tlbs.walk_cycles")));
        Some(value.max(least) as u32)
    }
}

pub(super) fn compare(machine: &Machine, readings: &Readings) -> Vec<Compared> {
    let kept = |quantity: Quantity| readings.get(&quantity).cloned().unwrap_or_default();
    let estimate = |quantity: Quantity| middle(&kept(quantity));
    let row = |what, key, unit, file: f64, takes, quantity, measured| {
        let Kept { values, dropped } = kept(quantity);
        Compared { what, key, unit, file, measured, kept: values.len(), dropped, takes }
    };
    let plain = |what, key, unit, file, takes, quantity| {
        row(what, Some(key), unit, file, takes, quantity, estimate(quantity))
    };
    let caches = &machine.caches;
    let cycles = |value: u32| f64::from(value);
    let latency = |what, key, file: u32, quantity| {
        plain(what, key, "cycles", f64::from(file), Takes::Latency, quantity)
    };
    let clock = cycles(machine.identity.clock_mhz);
    let clock_key = "identity.clock_mhz";
    let mut rows = vec![
        plain("clock", clock_key, "MHz", clock, Takes::Latency, Quantity::Clock),
        latency(
            "first-level hit",
            "caches.l1d.latency_cycles",
            caches.l1d.latency_cycles,
            Quantity::L1,
        ),
        latency(
            "second-level hit",
            "caches.l2.latency_cycles",
            caches.l2.latency_cycles,
            Quantity::L2,
        ),
    ];
    if let Some(l3) = &caches.l3 {
        // The second level of translation was asked every time.
        let measured =
            estimate(Quantity::L3).zip(look_up(readings)).map(|(all, look)| all.minus(look));
        let (key, file) = (Some("caches.l3.latency_cycles"), cycles(l3.latency_cycles));
        let what = "third-level hit";
        rows.push(row(what, key, "cycles", file, Takes::Latency, Quantity::L3, measured));
    }
    // Every page was walked for.
    let walks =
        estimate(Quantity::Walk).zip(estimate(Quantity::L2)).map(|(all, hit)| all.minus(hit));
    let measured = estimate(Quantity::Memory).zip(walks).map(|(all, walk)| all.minus(walk));
    let (key, file) = (Some("memory.latency_cycles"), cycles(machine.memory.latency_cycles));
    rows.push(row("memory", key, "cycles", file, Takes::Latency, Quantity::Memory, measured));
    let of = |quantity: Quantity| estimate(quantity);
    if let Some(second) = &machine.tlbs.l2d {
        let key = Some("tlbs.l2d.latency_cycles");
        let file = cycles(second.latency_cycles);
        let what = "second translation level";
        rows.push(row(
            what,
            key,
            "cycles",
            file,
            Takes::Latency,
            Quantity::SecondTlb,
            look_up(readings),
        ));
    }
    let file = cycles(machine.tlbs.walk_cycles);
    let key = Some("tlbs.walk_cycles");
    let what = "walk of the tables";
    rows.push(row(what, key, "cycles", file, Takes::Latency, Quantity::Walk, walk(readings)));
    let bandwidth = cycles(machine.memory.bytes_per_cycle);
    let key = "memory.bytes_per_cycle";
    rows.push(plain(
        "memory, in order",
        key,
        "bytes a cycle",
        bandwidth,
        Takes::Memory,
        Quantity::Bandwidth,
    ));
    rows.extend(checked(machine, &row, &of));
    rows
}

/// The standard error of a median of normal readings, in those of their mean: √(π/2).
const MEDIAN_ERROR: f64 = 1.2533;
/// The standard deviation of normal readings, in the median distance from their middle.
const DEVIATION: f64 = 1.4826;

/// The median of the kept runs. Whoever else uses the caches and the memory meanwhile slows some of
/// them down many times over, which a mean would follow; the spread is told by the median distance
/// for the same reason.
fn middle(kept: &Kept) -> Option<Estimate> {
    let value = kept.median().filter(|_| kept.values.len() > 1)?;
    let count = kept.values.len() as f64;
    let far = kept.values.iter().map(|one| (one - value).abs()).collect();
    let spread = DEVIATION * Kept { values: far, dropped: 0 }.median()?;
    Some(Estimate {
        value,
        standard_uncertainty: MEDIAN_ERROR * spread / count.sqrt(),
        degrees_of_freedom: count - 1.0,
    })
}

/// What the second level of translation adds to the first-level hit that a chase would have been.
fn look_up(readings: &Readings) -> Option<Estimate> {
    let of = |quantity: Quantity| middle(readings.get(&quantity)?);
    Some(of(Quantity::SecondTlb)?.minus(of(Quantity::L1)?))
}

/// The chase also has the line's own second-level hit, the second translation level's look-up and
/// the read of the last table in the second level.
fn walk(readings: &Readings) -> Option<Estimate> {
    let of = |quantity: Quantity| middle(readings.get(&quantity)?);
    let (all, hit) = (of(Quantity::Walk)?, of(Quantity::L2)?);
    Some(all.minus(hit.scaled(2.0)).minus(look_up(readings)?))
}

/// What is only checked: penalties with several parts, and widths.
fn checked(
    machine: &Machine,
    row: &impl Fn(
        &'static str,
        Option<&'static str>,
        &'static str,
        f64,
        Takes,
        Quantity,
        Option<Estimate>,
    ) -> Compared,
    of: &impl Fn(Quantity) -> Option<Estimate>,
) -> Vec<Compared> {
    let window = &machine.window;
    let ports = |class: Class| machine.execution(class).map_or(0, |e| e.ports.len() as u32);
    let latency = |class: Class| machine.execution(class).map_or(0, |e| e.latency);
    let mispredict = window.mispredict_cycles + window.dispatch_to_issue_cycles + 1;
    let forward = window.store_forward_cycles + latency(Class::StoreData);
    let stores =
        window.stores_per_cycle.min(ports(Class::StoreAddress)).min(ports(Class::StoreData));
    [
        ("misprediction", "cycles", mispredict, Quantity::Mispredict),
        ("value through memory", "cycles", forward, Quantity::Forward),
        ("additions", "a cycle", ports(Class::Alu).min(window.dispatch_width), Quantity::Adds),
        ("loads", "a cycle", ports(Class::Load).min(window.dispatch_width), Quantity::Loads),
        ("stores", "a cycle", stores.min(window.dispatch_width), Quantity::Stores),
    ]
    .map(|(what, unit, file, quantity)| {
        row(what, None, unit, f64::from(file), Takes::Nothing, quantity, of(quantity))
    })
    .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn readings(values: &[(Quantity, f64)]) -> Readings {
        let kept = |v: f64| Kept { values: vec![v - 0.01, v, v + 0.01], dropped: 2 };
        values.iter().map(|&(quantity, value)| (quantity, kept(value))).collect()
    }

    #[test]
    fn parts_of_a_chase_that_are_known_are_taken_off() {
        let machine = Machine::named("zen4").unwrap();
        let told = readings(&[
            (Quantity::L1, 4.0),
            (Quantity::L2, 15.0),
            (Quantity::SecondTlb, 11.0),
            (Quantity::Walk, 90.0),
            (Quantity::L3, 67.0),
            (Quantity::Memory, 700.0),
        ]);
        let rows = compare(&machine, &told);
        let of = |key: &str| rows.iter().find(|row| row.key == Some(key)).unwrap();
        assert_eq!(of("caches.l1d.latency_cycles").agrees(), Some(true));
        assert_eq!(of("tlbs.l2d.latency_cycles").whole(), Some(7));
        // 90 less twice 15 and the 7 of the look-up.
        assert_eq!(of("tlbs.walk_cycles").whole(), Some(53));
        let memory = of("memory.latency_cycles");
        // 700 less the 75 that the walk added to a second-level hit.
        assert_eq!((memory.agrees(), memory.whole()), (Some(false), Some(625)));
        assert_eq!(of("caches.l3.latency_cycles").whole(), Some(60));
        assert_eq!((memory.kept, memory.dropped), (3, 2));
        // Nothing was read of the clock, so nothing is said.
        let clock = of("identity.clock_mhz");
        assert_eq!((clock.agrees(), clock.whole(), clock.kept), (None, None, 0));
    }

    #[test]
    fn a_few_slow_runs_do_not_move_what_was_measured() {
        let quiet = [50.0, 51.0, 49.0, 50.0, 52.0, 50.0, 48.0];
        let mut disturbed = quiet.to_vec();
        disturbed.extend([400.0, 380.0]);
        let kept = |values: &[f64]| Kept { values: values.to_vec(), dropped: 0 };
        let told = middle(&kept(&quiet)).unwrap();
        assert_eq!(told.value, 50.0);
        // Distances 0 0 0 1 1 2 2: one in the middle.
        let expected = 1.2533 * 1.4826 / 7.0_f64.sqrt();
        assert!((told.standard_uncertainty - expected).abs() < 1e-12);
        assert_eq!(told.degrees_of_freedom, 6.0);
        assert_eq!(middle(&kept(&disturbed)).unwrap().value, 50.0);
        assert_eq!((middle(&kept(&[7.0])), middle(&kept(&[]))), (None, None));
    }

    #[test]
    fn widths_and_penalties_are_checked_and_never_taken() {
        let machine = Machine::named("zen4").unwrap();
        let rows = compare(&machine, &readings(&[(Quantity::Stores, 2.0), (Quantity::Adds, 3.9)]));
        let nothing: Vec<f64> =
            rows.iter().filter(|row| row.takes == Takes::Nothing).map(|row| row.file).collect();
        assert_eq!(nothing, [16.0, 7.0, 4.0, 3.0, 2.0]);
        assert!(rows.iter().filter(|row| row.takes == Takes::Nothing).all(|row| row.key.is_none()));
    }

    #[test]
    fn a_machine_without_a_third_level_is_not_asked_about_it() {
        let machine = Machine::named("icost-table6").unwrap();
        let rows = compare(&machine, &Readings::new());
        let has = rows.iter().any(|row| row.key == Some("caches.l3.latency_cycles"));
        assert_eq!(has, machine.caches.l3.is_some());
    }
}
