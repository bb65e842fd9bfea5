//! A rate as a mixture of known ones.
//!
//! ```text
//! columns at the nodes   a: 1 4 2 0 ...      counts ≈ size · Σ part · column, no part below 0
//!                        b: 0 1 7 3 ...
//! ```
//!
//! Parts are found by the multiplicative step that lowers Σ c·ln(c/predicted) (Richardson and Lucy's),
//! which is the distance that distributions over time are judged by. They start where each column
//! would stand if it were alone, and few steps are taken: what starts as nothing stays nothing, and
//! chance is not followed to its end.

/// A column that is this much smaller at the nodes than elsewhere has not been seen enough.
const SEEN_MIN: f64 = 0.1;
/// How much worse, in nats, a column may be alone before it starts at a third of the best one's part.
const NATS: f64 = 0.1;
/// A column that is 0 where something was counted is not ruled out by that alone.
const FLOOR: f64 = 0.01;

/// Where an event was counted: counts and cycles of the nodes that take part.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen<'a> {
    pub(super) counts: &'a [f64],
    pub(super) sizes: &'a [f64],
    /// Every so manieth node is held out, from this one on.
    pub(super) held: Option<(usize, usize)>,
}

impl Seen<'_> {
    pub(super) fn nodes(&self) -> impl Iterator<Item = (usize, f64, f64)> {
        let held = self.held;
        let is_in = move |k: usize| held.is_none_or(|(of, first)| k % of != first);
        let pairs = self.counts.iter().zip(self.sizes).enumerate();
        pairs.filter(move |(k, _)| is_in(*k)).map(|(k, (&count, &size))| (k, count, size))
    }

    /// Count and cycles of all that take part.
    pub(super) fn sums(&self) -> (f64, f64) {
        self.nodes().fold((0.0, 0.0), |sum, (_, count, size)| (sum.0 + count, sum.1 + size))
    }
}

/// How parts begin.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Start {
    /// All alike: for columns that add up to 1 everywhere.
    Alike,
    /// By how well each does alone.
    Alone,
}

/// A column at the nodes, and its mean over all slices.
#[derive(Debug)]
pub(super) struct Column {
    pub(super) at_nodes: Vec<f64>,
    pub(super) mean: f64,
}

/// The part of each column.
pub(super) fn fit(columns: &[Column], seen: Seen<'_>, start: Start, steps: usize) -> Vec<f64> {
    let (counted, size) = seen.sums();
    let at = |column: &Column, k: usize| column.at_nodes.get(k).copied().unwrap_or(0.0);
    let nodes: Vec<(usize, f64, f64)> = seen.nodes().collect();
    let sums: Vec<f64> = columns
        .iter()
        .map(|column| nodes.iter().map(|&(k, _, size)| at(column, k) * size).sum())
        .collect();
    let is_seen = |column: &Column, sum: f64| sum > SEEN_MIN * column.mean * size && sum > 0.0;
    let mut parts: Vec<f64> = match start {
        Start::Alike => vec![counted / size; columns.len()],
        Start::Alone => alone(columns, &sums, &nodes, counted, &is_seen),
    };
    let mut predicted = vec![0.0; nodes.len()];
    for _ in 0..steps {
        predicted.fill(0.0);
        for (column, part) in columns.iter().zip(&parts).filter(|(_, part)| **part > 0.0) {
            for (sum, &(k, _, size)) in predicted.iter_mut().zip(&nodes) {
                *sum += part * at(column, k) * size;
            }
        }
        for ((column, part), &sum) in columns.iter().zip(&mut parts).zip(&sums) {
            if *part <= 0.0 || !is_seen(column, sum) {
                continue;
            }
            let pull = |(&(k, count, size), &predicted): (&(usize, f64, f64), &f64)| {
                if predicted > 0.0 { at(column, k) * size * count / predicted } else { 0.0 }
            };
            *part *= nodes.iter().zip(&predicted).map(pull).sum::<f64>() / sum;
        }
    }
    parts
}

/// The parts by how near each column, alone, is to what was counted.
fn alone(
    columns: &[Column],
    sums: &[f64],
    nodes: &[(usize, f64, f64)],
    counted: f64,
    is_seen: &dyn Fn(&Column, f64) -> bool,
) -> Vec<f64> {
    let floor = FLOOR / nodes.len().max(1) as f64;
    let far = |(column, &sum): (&Column, &f64)| {
        if !is_seen(column, sum) {
            return f64::INFINITY;
        }
        let term = |&(k, count, size): &(usize, f64, f64)| {
            let share = column.at_nodes.get(k).copied().unwrap_or(0.0) * size / sum;
            if count > 0.0 { -count / counted * (share * (1.0 - FLOOR) + floor).ln() } else { 0.0 }
        };
        nodes.iter().map(term).sum::<f64>()
    };
    let far: Vec<f64> = columns.iter().zip(sums).map(far).collect();
    let least = far.iter().copied().fold(f64::INFINITY, f64::min);
    let near: Vec<f64> = far
        .iter()
        .map(|far| if far.is_finite() { ((least - far) / NATS).exp() } else { 0.0 })
        .collect();
    let all: f64 = near.iter().sum();
    let part =
        |(near, sum): (&f64, &f64)| if *near > 0.0 { near / all * counted / sum } else { 0.0 };
    near.iter().zip(sums).map(part).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(at_nodes: Vec<f64>) -> Column {
        let mean = at_nodes.iter().sum::<f64>() / at_nodes.len() as f64;
        Column { at_nodes, mean }
    }

    #[test]
    fn a_mixture_is_taken_apart() {
        let columns: Vec<Column> = (0..3_u64)
            .map(|c| column((0..60).map(|k| ((k * (7 + 4 * c) + 3 * c) % 11) as f64).collect()))
            .collect();
        let sizes = vec![100.0; 60];
        let mix = |k: usize| 100.0 * (2.0 * columns[0].at_nodes[k] + 0.5 * columns[2].at_nodes[k]);
        let counts: Vec<f64> = (0..60).map(mix).collect();
        let seen = Seen { counts: &counts, sizes: &sizes, held: None };
        for start in [Start::Alike, Start::Alone] {
            let parts = fit(&columns, seen, start, 3000);
            for (part, truth) in parts.iter().zip([2.0, 0.0, 0.5]) {
                assert!((part - truth).abs() < 1e-2, "{start:?} {parts:?}");
            }
        }
    }

    #[test]
    fn held_nodes_take_no_part_and_unseen_columns_get_none() {
        // The second column happens at held nodes alone.
        let columns =
            [column(vec![1.0; 10]), column((0..10).map(|k| f64::from(k % 5 == 2)).collect())];
        let counts: Vec<f64> = (0..10).map(|k| if k % 5 == 2 { 1e6 } else { 3.0 }).collect();
        let seen = Seen { counts: &counts, sizes: &[1.0; 10], held: Some((5, 2)) };
        let parts = fit(&columns, seen, Start::Alone, 20);
        assert!((parts[0] - 3.0).abs() < 1e-9 && parts[1] == 0.0, "{parts:?}");
    }
}
