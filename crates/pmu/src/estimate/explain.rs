//! How much of an event the anchors explain.
//!
//! The instructions per cycle of every slice are known, also where the event was not counted. A
//! slice full of misses retires little, and a slice that retires little is likely to be full of
//! misses; so the event's rate is fitted as a bent line over instructions per cycle, and only what
//! the line leaves has to be predicted from neighbours.

use super::frame::Frame;
use crate::Reading;

/// Slices that a bend of the line must be worth.
const SLICES_A_BEND: usize = 40;
/// More bends follow chance rather than the program.
const BENDS_MAX: usize = 10;
/// How many are tried: where few lumps make the spread, only a line of few numbers can be fitted.
const BENDS: [usize; 4] = [0, 1, 3, BENDS_MAX];

/// The bent line's pieces at every node of a frame, and their integrals over all slices.
#[derive(Debug)]
pub(super) struct Pieces {
    at_nodes: Vec<Vec<f64>>,
    integrals: Vec<f64>,
    /// The normal equations' left side, which does not depend on the event.
    normal: Vec<Vec<f64>>,
    /// For each pair of neighbours, how its residual and those of the pairs on either side add up to
    /// what is left of it by a fit that knows none of the three.
    held_out: Vec<[f64; 3]>,
    /// By how much an error of each step moves the total, through the slopes: where what is between is
    /// predicted by its round, and along the line.
    sways: [Vec<f64>; 2],
}

impl Pieces {
    /// Lines of more and more bends, the straight one first.
    pub(super) fn ladder(frame: &Frame, readings: &[Reading], anchors: usize) -> Vec<Pieces> {
        let most = (frame.len() / SLICES_A_BEND).min(BENDS_MAX);
        let mut bends: Vec<usize> = BENDS.iter().map(|&bends| bends.min(most)).collect();
        bends.dedup();
        bends.into_iter().filter_map(|bends| Pieces::new(frame, readings, anchors, bends)).collect()
    }

    /// `None` without a second anchor, or if instructions per cycle never vary.
    fn new(frame: &Frame, readings: &[Reading], anchors: usize, bends: usize) -> Option<Pieces> {
        if anchors < 2 {
            return None;
        }
        let all: Vec<f64> = readings.iter().map(Reading::instructions_per_cycle).collect();
        let mut sorted = all.clone();
        sorted.sort_by(f64::total_cmp);
        let quantile = |k: usize| sorted.get(k * sorted.len() / (bends + 1)).copied();
        let mut knots: Vec<f64> = (0..=bends).filter_map(quantile).collect();
        knots.dedup();
        let mut integrals = vec![0.0; knots.len()];
        for (reading, &x) in readings.iter().zip(&all) {
            let size = reading.counts.first().map_or(0.0, |&cycles| cycles as f64);
            for (k, (sum, &knot)) in integrals.iter_mut().zip(&knots).enumerate() {
                *sum += size * hinge(k, knot, x);
            }
        }
        let of = |x: f64| knots.iter().enumerate().map(|(k, &knot)| hinge(k, knot, x)).collect();
        let at_nodes: Vec<Vec<f64>> =
            frame.nodes().map(|(place, _)| of(all.get(place).copied().unwrap_or(0.0))).collect();
        let p = knots.len();
        let mut normal = vec![vec![0.0; p]; p];
        for pair in at_nodes.windows(2) {
            let step: Vec<f64> = pair[1].iter().zip(&pair[0]).map(|(b, a)| b - a).collect();
            for (row, a) in normal.iter_mut().zip(&step) {
                row.iter_mut().zip(&step).for_each(|(cell, b)| *cell += a * b);
            }
        }
        if *normal.first()?.first()? <= 0.0 {
            return None;
        }
        let steps = Steps::new(&at_nodes, &normal);
        let sways = [&frame.own, &frame.between].map(|weights| {
            let mut reach = integrals.clone();
            let nodes = frame.nodes().zip(&weights.stands_for).zip(&at_nodes);
            for (((_, size), stands_for), pieces) in nodes {
                reach.iter_mut().zip(pieces).for_each(|(sum, x)| *sum -= (size + stands_for) * x);
            }
            steps.followed.iter().map(|followed| dot(followed, &reach)).collect()
        });
        let held_out = steps.held_out();
        Some(Pieces { at_nodes, integrals, normal, held_out, sways })
    }

    /// How many numbers a fit has.
    pub(super) fn numbers(&self) -> usize {
        self.integrals.len()
    }

    /// Fits the steps between neighbours: what is left at the nodes, the integral of what was
    /// explained, and the squared steps that are left where each was predicted by a fit without it.
    pub(super) fn explain(&self, rates: &[f64]) -> (Vec<f64>, f64, Vec<f64>) {
        let (left, slopes) = self.fit(rates);
        let explained = dot(&self.integrals, &slopes);
        let steps: Vec<f64> = left.windows(2).map(|w| w[1] - w[0]).collect();
        let at =
            |pair: Option<usize>| pair.and_then(|pair| steps.get(pair)).copied().unwrap_or(0.0);
        let square = |(pair, [before, own, after]): (usize, &[f64; 3])| {
            let held = before * at(pair.checked_sub(1))
                + own * at(Some(pair))
                + after * at(Some(pair + 1));
            held * held
        };
        let squares = self.held_out.iter().enumerate().map(square).collect();
        (left, explained, squares)
    }

    /// What the slopes' own error brings to the variance of the total, given the squared steps that
    /// are left. It is large where the line is used far from where it was fitted.
    pub(super) fn sway(&self, squares: &[f64], is_walk: bool) -> f64 {
        let sways = &self.sways[usize::from(is_walk)];
        sways.iter().zip(squares).map(|(sway, square)| sway * sway * square).sum()
    }

    fn fit(&self, rates: &[f64]) -> (Vec<f64>, Vec<f64>) {
        let mut right = vec![0.0; self.integrals.len()];
        for (y, x) in rates.windows(2).zip(self.at_nodes.windows(2)) {
            let step = y[1] - y[0];
            for ((sum, a), b) in right.iter_mut().zip(&x[0]).zip(&x[1]) {
                *sum += (b - a) * step;
            }
        }
        let slopes = solve(self.normal.clone(), right);
        let left = rates.iter().zip(&self.at_nodes).map(|(y, x)| y - dot(x, &slopes)).collect();
        (left, slopes)
    }
}

/// The pieces' steps between neighbours, and how a fit follows each.
struct Steps {
    steps: Vec<Vec<f64>>,
    /// By how much each slope changes with the step.
    followed: Vec<Vec<f64>>,
}

impl Steps {
    fn new(at_nodes: &[Vec<f64>], normal: &[Vec<f64>]) -> Steps {
        let p = normal.len();
        let unit = |k: usize| (0..p).map(|row| if row == k { 1.0 } else { 0.0 }).collect();
        let inverse: Vec<Vec<f64>> = (0..p).map(|k| solve(normal.to_vec(), unit(k))).collect();
        let step = |pair: &[Vec<f64>]| -> Vec<f64> {
            pair[1].iter().zip(&pair[0]).map(|(b, a)| b - a).collect()
        };
        let steps: Vec<Vec<f64>> = at_nodes.windows(2).map(step).collect();
        let follow = |step: &Vec<f64>| inverse.iter().map(|row| dot(row, step)).collect();
        let followed = steps.iter().map(follow).collect();
        Steps { steps, followed }
    }

    /// The row of (1 − H)⁻¹ that belongs to each pair, where H says how far a fit follows the pair and
    /// the two beside it, each of which shares a slice with it.
    ///
    /// A fit follows most where it has least to go by, and few bursts are all it has: what is left
    /// there is small because it was fitted. What a fit without those three leaves is not.
    fn held_out(&self) -> Vec<[f64; 3]> {
        let hat = |a: Option<usize>, b: Option<usize>| {
            let (step, followed) = (self.steps.get(a?)?, self.followed.get(b?)?);
            Some(dot(step, followed))
        };
        let row = |pair: usize| {
            let beside = [pair.checked_sub(1), Some(pair), Some(pair + 1)];
            let cell = |a: usize, b: usize| {
                let hat = hat(beside[a], beside[b]).unwrap_or(0.0);
                if a == b { 1.0 - hat } else { -hat }
            };
            let rest = (0..3).map(|a| (0..3).map(|b| cell(a, b)).collect()).collect();
            let row = solve(rest, vec![0.0, 1.0, 0.0]);
            [row[0], row[1], row[2]]
        };
        (0..self.steps.len()).map(row).collect()
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// The first piece is straight; each further one begins at its knot.
fn hinge(k: usize, knot: f64, x: f64) -> f64 {
    if k == 0 { x - knot } else { (x - knot).max(0.0) }
}

/// Solves a symmetric system by elimination. A direction in which nothing varies gets no slope.
pub(super) fn solve(mut a: Vec<Vec<f64>>, mut b: Vec<f64>) -> Vec<f64> {
    let n = b.len();
    let scale: Vec<f64> = (0..n).map(|k| a[k][k]).collect();
    let mut is_flat = vec![false; n];
    for k in 0..n {
        if a[k][k] <= 1e-9 * scale[k] || scale[k] <= 0.0 {
            is_flat[k] = true;
            continue;
        }
        let pivot = a[k].clone();
        for row in k + 1..n {
            let factor = a[row][k] / pivot[k];
            a[row].iter_mut().zip(&pivot).skip(k).for_each(|(cell, above)| *cell -= factor * above);
            b[row] -= factor * b[k];
        }
    }
    let mut x = vec![0.0; n];
    for k in (0..n).rev() {
        if !is_flat[k] {
            let known: f64 = (k + 1..n).map(|column| a[k][column] * x[column]).sum();
            x[k] = (b[k] - known) / a[k][k];
        }
    }
    x
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_follows_a_bent_line_is_explained_whole() {
        let ipc = |k: u64| k * 7919 % 400;
        let truth = |x: f64| 3.0 * x - 2.0 * (x - 2.0).max(0.0);
        // Every other slice is counted.
        let readings: Vec<Reading> = (0..800)
            .map(|k| Reading { group: (k % 2) as usize, round: k / 2, counts: vec![100, ipc(k)] })
            .collect();
        let frame = Frame::new(&readings, &[0]);
        let pieces = Pieces::new(&frame, &readings, 2, BENDS_MAX).unwrap();
        let rates: Vec<f64> = (0..400).map(|k| 10.0 + truth(ipc(2 * k) as f64 / 100.0)).collect();
        let (left, explained, _) = pieces.explain(&rates);
        assert_eq!(pieces.numbers(), 11);
        let mean = left.iter().sum::<f64>() / 400.0;
        // The bend lies between two knots.
        assert!(left.iter().all(|rest| (rest - mean).abs() < 0.2), "{left:?}");
        let total: f64 = (0..800).map(|k| 100.0 * truth(ipc(k) as f64 / 100.0)).sum();
        let found = explained + 80_000.0 * (mean - 10.0);
        assert!((found - total).abs() < 1e-3 * total, "{found} {total}");
    }

    #[test]
    fn what_never_varies_explains_nothing() {
        let readings: Vec<Reading> =
            (0..9).map(|k| Reading { group: 0, round: k, counts: vec![100, 50] }).collect();
        let frame = Frame::new(&readings, &[0]);
        assert!(Pieces::ladder(&frame, &readings, 2).is_empty());
        assert!(Pieces::ladder(&frame, &readings, 1).is_empty());
    }

    #[test]
    fn what_is_left_of_a_step_is_what_a_fit_without_it_and_its_neighbours_leaves() {
        let ipc = |k: u64| 100 + k * 7919 % 83;
        let readings: Vec<Reading> =
            (0..12).map(|k| Reading { group: 0, round: k, counts: vec![100, ipc(k)] }).collect();
        let frame = Frame::new(&readings, &[0]);
        let pieces = Pieces::new(&frame, &readings, 2, 0).unwrap();
        let x: Vec<f64> = (0..12).map(|k| ipc(k) as f64 / 100.0).collect();
        let y: Vec<f64> = (0..12_u64).map(|k| (k * k % 7) as f64 + 2.0 * x[k as usize]).collect();
        let (_, _, squares) = pieces.explain(&y);
        let steps = |v: &[f64]| -> Vec<f64> { v.windows(2).map(|w| w[1] - w[0]).collect() };
        let (dx, dy) = (steps(&x), steps(&y));
        for (pair, square) in squares.iter().enumerate() {
            let others = || (0..dx.len()).filter(|k| k.abs_diff(pair) > 1);
            let slope = others().map(|k| dx[k] * dy[k]).sum::<f64>()
                / others().map(|k| dx[k] * dx[k]).sum::<f64>();
            let left = dy[pair] - slope * dx[pair];
            assert!(
                (square - left * left).abs() < 1e-6 * (1.0 + square),
                "{pair}: {square} {left}"
            );
        }
    }
}
