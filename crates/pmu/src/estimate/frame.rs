//! What all events of a group share: where they were counted and what stands for the rest.
//!
//! The rate of an event is taken as a walk with noise: two slices differ by noise, whose variance
//! falls with their size, and by a walk, whose variance grows with their distance. How much of each
//! there is follows from the differences between neighbouring slices that were counted:
//!
//! ```text
//! rate   r0 ·          · r2            d_j = r_(j+1) − r_j
//!            ·   r1 ·        · r3      E[d_j²] = scale_j · (noise · (1/x_j + 1/x_(j+1)) + walk · L_j)
//! ──────[0]─────[1]────[2]────[3]──►   L_j: from middle to middle; x_j: sizes in cycles
//! ```
//!
//! What lies between is predicted in one of two ways. At the rate of its own round's slice: best
//! for noise. Along the line between neighbours: best for a walk. The error of either is an integral
//! of the rate against a weight that sums to nothing, and its variance under that model is a sum
//! over the pairs of neighbours ([`Weights::noise`], [`Weights::walk`]). Each pair brings its own
//! scale, so a quiet stretch and a wild one each bring what they have.

use super::integrate::means_around;
use crate::Reading;

/// A slice so many times as long as half of all are has overrun its end: one instruction took it all.
const OVERRUN: f64 = 2.0;

/// A slice that was counted.
#[derive(Clone, Copy, Debug)]
struct Node {
    place: usize,
    size: f64,
    middle: f64,
}

/// One way to predict what was not counted.
#[derive(Debug, Default)]
pub(super) struct Weights {
    /// How many cycles that were not counted each node stands for.
    pub(super) stands_for: Vec<f64>,
    /// What noise between each pair of neighbours brings to the variance.
    pub(super) noise: Vec<f64>,
    /// What the walk between each pair of neighbours brings.
    pub(super) walk: Vec<f64>,
}

/// The nodes of one set of groups.
#[derive(Debug)]
pub(super) struct Frame {
    nodes: Vec<Node>,
    /// Each pair of neighbours: the sum of the inverse sizes, and the distance.
    pub(super) lags: Vec<(f64, f64)>,
    /// By the round's own slice.
    pub(super) own: Weights,
    /// Along the line between neighbours.
    pub(super) between: Weights,
    /// The share of cycles that was counted.
    pub(super) share: f64,
    /// Slices that overran and were not counted: the root of the sum of their squared sizes.
    pub(super) overlong: f64,
}

impl Frame {
    /// Where readings of these groups lie; cycles are the first anchor.
    pub(super) fn new(readings: &[Reading], groups: &[usize]) -> Frame {
        let size = |reading: &Reading| reading.counts.first().map_or(0.0, |&cycles| cycles as f64);
        let sizes: Vec<f64> = readings.iter().map(size).collect();
        let is_counted: Vec<bool> =
            readings.iter().map(|reading| groups.contains(&reading.group)).collect();
        let mut nodes = Vec::new();
        let (mut from, mut counted) = (0.0, 0.0);
        for (place, (&size, &is_counted)) in sizes.iter().zip(&is_counted).enumerate() {
            if is_counted && size > 0.0 {
                nodes.push(Node { place, size, middle: from + size / 2.0 });
                counted += size;
            }
            from += size;
        }
        let lag = |pair: &[Node]| match pair {
            [a, b] => (1.0 / a.size + 1.0 / b.size, b.middle - a.middle),
            _ => (1.0, 1.0),
        };
        let lags = nodes.windows(2).map(lag).collect();
        let share = if from > 0.0 { counted / from } else { 0.0 };
        let (own, between) = (Weights::default(), Weights::default());
        let overlong = overlong(&sizes, &is_counted);
        let mut frame = Frame { nodes, lags, own, between, share, overlong };
        if frame.nodes.len() > 1 {
            let (own, between) = frame.weigh(readings, &sizes, &is_counted);
            frame.own = frame.bring(own, &sizes, &is_counted);
            frame.between = frame.bring(between, &sizes, &is_counted);
            frame.level();
        }
        frame
    }

    /// Takes inverse sizes and distances relative to those around. The first slices of a run may be
    /// a fortieth of the last: the noise of those would otherwise count for nothing in the mean of all,
    /// and whatever varies would be called a walk.
    fn level(&mut self) {
        let (inverses, distances): (Vec<f64>, Vec<f64>) = self.lags.iter().copied().unzip();
        let (inverses, distances) = (means_around(&inverses), means_around(&distances));
        for (lag, (inverse, distance)) in self.lags.iter_mut().zip(inverses.iter().zip(&distances))
        {
            *lag = (lag.0 / inverse, lag.1 / distance);
        }
        for weights in [&mut self.own, &mut self.between] {
            weights.noise.iter_mut().zip(&inverses).for_each(|(noise, mean)| *noise /= mean);
            weights.walk.iter_mut().zip(&distances).for_each(|(walk, mean)| *walk /= mean);
        }
    }

    /// The places of the nodes among the readings, and their sizes.
    pub(super) fn nodes(&self) -> impl Iterator<Item = (usize, f64)> {
        self.nodes.iter().map(|node| (node.place, node.size))
    }

    /// How many nodes there are.
    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// What each node stands for, by its round and by interpolation.
    fn weigh(
        &self,
        readings: &[Reading],
        sizes: &[f64],
        is_counted: &[bool],
    ) -> (Vec<f64>, Vec<f64>) {
        let count = self.nodes.len();
        let (mut own, mut between) = (vec![0.0; count], vec![0.0; count]);
        let round = |node: Node| readings.get(node.place).map(|reading| reading.round);
        // The first node of each node's round, and what the round counted from there on.
        let mut rounds: Vec<(usize, f64)> = Vec::with_capacity(count);
        for (k, node) in self.nodes.iter().enumerate() {
            let first = match k.checked_sub(1).and_then(|before| self.nodes.get(before)) {
                Some(before) if round(*before) == round(*node) => rounds[k - 1].0,
                _ => k,
            };
            rounds.push((first, 0.0));
            rounds[first].1 += node.size;
        }
        // What a round did not count, by its first node.
        let mut left = vec![0.0; count];
        let (mut from, mut next) = (0.0, 0);
        for (place, &size) in sizes.iter().enumerate() {
            let middle = from + size / 2.0;
            from += size;
            while self.nodes.get(next).is_some_and(|node| node.place < place) {
                next += 1;
            }
            if is_counted[place] {
                continue;
            }
            let (earlier, after) = (next.saturating_sub(1), next.min(count - 1));
            let (a, b) = (self.nodes[earlier], self.nodes[after]);
            let gap = b.middle - a.middle;
            let along = if gap > 0.0 { ((middle - a.middle) / gap).clamp(0.0, 1.0) } else { 0.0 };
            between[earlier] += size * (1.0 - along);
            between[after] += size * along;
            let mine = readings.get(place).map(|reading| reading.round);
            // A round without a slice of the group is interpolated.
            if round(a) == mine {
                left[rounds[earlier].0] += size;
            } else if round(b) == mine {
                left[rounds[after].0] += size;
            } else {
                own[earlier] += size * (1.0 - along);
                own[after] += size * along;
            }
        }
        // All slices of a round are as good as each other, wherever in it they lie.
        for (k, node) in self.nodes.iter().enumerate() {
            let first = rounds[k].0;
            own[k] += left[first] * node.size / rounds[first].1;
        }
        (own, between)
    }

    /// What each pair of neighbours brings to the variance. The walk brings the square of the
    /// running sum of the error's weight.
    fn bring(&self, stands_for: Vec<f64>, sizes: &[f64], is_counted: &[bool]) -> Weights {
        let pairs = self.nodes.len() - 1;
        let (mut noise, mut walk) = (vec![0.0; pairs], vec![0.0; pairs]);
        for (k, (node, weight)) in self.nodes.iter().zip(&stands_for).enumerate() {
            let half = weight * weight / node.size / 2.0;
            noise[k.saturating_sub(1).min(pairs - 1)] += half;
            noise[k.min(pairs - 1)] += half;
        }
        let (mut sum, mut next) = (0.0_f64, 0_usize);
        for (place, &size) in sizes.iter().enumerate() {
            let pair = next.saturating_sub(1).min(pairs - 1);
            let before = sum;
            if self.nodes.get(next).is_some_and(|node| node.place == place) {
                sum += stands_for[next];
                walk[pair] += size / 2.0 * before * before;
                walk[next.min(pairs - 1)] += size / 2.0 * sum * sum;
                next += 1;
            } else if !is_counted[place] {
                sum -= size;
                walk[pair] += size * (before * before + before * sum + sum * sum) / 3.0;
                noise[pair] += size;
            }
        }
        Weights { stands_for, noise, walk }
    }
}

/// Slices that overran and were not counted: the root of the sum of their squared sizes.
fn overlong(sizes: &[f64], is_counted: &[bool]) -> f64 {
    let mut sorted = sizes.to_vec();
    sorted.sort_by(f64::total_cmp);
    let limit = OVERRUN * sorted.get(sorted.len() / 2).copied().unwrap_or(0.0);
    let all = sizes.iter().zip(is_counted);
    let missed = all.filter(|(size, is_counted)| !**is_counted && **size > limit);
    missed.map(|(size, _)| size * size).sum::<f64>().sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_that_overran_are_known_where_they_were_not_counted() {
        let sizes = [100, 400, 100, 300, 100, 100, 150, 500, 100];
        let reading = |(k, &size): (usize, &u64)| Reading {
            group: usize::from(k != 1),
            round: 0,
            counts: vec![size],
        };
        let readings: Vec<Reading> = sizes.iter().enumerate().map(reading).collect();
        // The one of 400 was counted by the first group; those of 300 and 500 were not.
        let missed = (300.0_f64 * 300.0 + 500.0 * 500.0).sqrt();
        assert!((Frame::new(&readings, &[0]).overlong - missed).abs() < 1e-9);
        assert_eq!(Frame::new(&readings, &[1]).overlong, 400.0);
    }

    #[test]
    fn rounds_of_any_length_weigh_as_much_in_what_is_noise_and_what_is_a_walk() {
        // The slices of the second half are forty times as long as those of the first.
        let size = |k: u64| if k < 200 { 100 } else { 4000 };
        let reading =
            |k: u64| Reading { group: (k % 4) as usize, round: k / 4, counts: vec![size(k)] };
        let readings: Vec<Reading> = (0..400).map(reading).collect();
        let frame = Frame::new(&readings, &[0]);
        for at in [10, 90] {
            let (inverse, distance) = frame.lags[at];
            assert!((inverse - 1.0).abs() < 1e-9 && (distance - 1.0).abs() < 1e-9);
        }
        // A round brings what its cycles do: the square of its length.
        let brought = frame.own.noise[90] / frame.own.noise[10];
        assert!((brought - 1600.0).abs() < 1e-6, "{brought}");
    }
}
