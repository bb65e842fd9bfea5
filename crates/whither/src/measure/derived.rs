//! Measures that are made of others: ratios, with the covariance of what was counted together.

use metrology::{Estimate, Joint, Summary, propagate};
use show::Unit;

use super::experiment::Reading;
use super::quantity::Choice;

/// A ratio of two quantities.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Ratio {
    pub(super) name: String,
    pub(super) above: String,
    pub(super) below: String,
    pub(super) unit: Unit,
    pub(super) value: Estimate,
    /// How many runs counted both; 0 where each was counted in runs of its own.
    pub(super) together: usize,
}

/// Ratios with names of their own.
const NAMED: [(&str, &str, &str, Unit); 5] = [
    ("instructions a cycle", "instructions", "cycles", Unit::Number),
    ("mispredicted branches", "branch-misses", "branches", Unit::Share),
    ("last-level misses", "cache-misses", "cache-references", Unit::Share),
    ("CPUs used", "task-clock", "wall-clock", Unit::Number),
    ("stalled cycles", "stall-cycles", "cycles", Unit::Share),
];

/// Every ratio that the quantities allow: the named ones, and each event by instruction.
pub(super) fn ratios(choice: &Choice, readings: &[Reading], widening: f64) -> Vec<Ratio> {
    let has = |name: &str| choice.quantities.iter().any(|q| q.name == name);
    let mut wanted: Vec<(String, String, String, Unit)> = NAMED
        .iter()
        .filter(|(_, above, below, _)| has(above) && has(below))
        .map(|(name, above, below, unit)| ((*name).into(), (*above).into(), (*below).into(), *unit))
        .collect();
    if has("instructions") {
        let counted = choice.quantities.iter().filter(|q| q.unit() == Unit::Count);
        for quantity in counted.filter(|q| !matches!(&*q.name, "instructions" | "cycles")) {
            let name = format!("{} per 1000 instructions", quantity.name);
            wanted.push((name, quantity.name.clone(), "instructions".into(), Unit::Number));
        }
    }
    wanted.into_iter().filter_map(|ask| ratio(choice, readings, widening, ask)).collect()
}

fn ratio(
    choice: &Choice,
    readings: &[Reading],
    widening: f64,
    (name, above, below, unit): (String, String, String, Unit),
) -> Option<Ratio> {
    let place = |name: &str| choice.quantities.iter().position(|q| q.name == name);
    let (over, under) = (place(&above)?, place(&below)?);
    let both = together(readings, over, under);
    let plain = match both {
        Some(ref joint) => propagate(std::slice::from_ref(joint), |x| quotient(x, 0))?,
        None => apart(choice, readings, over, under)?,
    };
    let scale = if name.ends_with("per 1000 instructions") { 1000.0 } else { 1.0 };
    let value = Estimate { standard_uncertainty: plain.standard_uncertainty * widening, ..plain };
    let together = both.map_or(0, |_| {
        readings.iter().filter(|r| r.value(over).is_some() && r.value(under).is_some()).count()
    });
    Some(Ratio { name, above, below, unit, value: value.scaled(scale), together })
}

/// Two quantities in the runs that counted both; none where fewer than two did.
fn together(readings: &[Reading], a: usize, b: usize) -> Option<Joint> {
    let both = readings.iter().filter_map(|r| Some((r.value(a)?, r.value(b)?)));
    let (a, b): (Vec<f64>, Vec<f64>) = both.unzip();
    Joint::of(&[&a, &b]).ok()
}

/// Never counted together, but each beside the measurand: the quotient of the two quotients, so
/// that what makes a run longer cancels.
fn apart(choice: &Choice, readings: &[Reading], over: usize, under: usize) -> Option<Estimate> {
    let beside = |place| together(readings, place, choice.measurand);
    let sets = [beside(over)?, beside(under)?];
    propagate(&sets, |x| quotient(x, 0) / quotient(x, 2))
}

fn quotient(x: &[f64], first: usize) -> f64 {
    x.get(first).zip(x.get(first + 1)).map_or(f64::NAN, |(a, b)| a / b)
}

/// The relative standard uncertainty; none where the value is zero.
pub(super) fn relative(estimate: Estimate) -> Option<f64> {
    (estimate.value != 0.0).then(|| estimate.standard_uncertainty / estimate.value.abs())
}

/// The same of a summary.
pub(super) fn relative_of(summary: &Summary) -> Option<f64> {
    relative(summary.estimate)
}
