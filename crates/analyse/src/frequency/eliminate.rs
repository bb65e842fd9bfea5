//! A resistor network, solved directly.
//!
//! Control flow is nearly a tree, so eliminating the place with the fewest neighbours first leaves
//! little to fill in. Each elimination joins the neighbours by what the place carried between them
//! (a star becomes a mesh); nothing is ever subtracted, so conductances of any size stay exact.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// A place that was eliminated: its number, all that it conducts, and its neighbours then.
#[derive(Debug)]
struct Gone {
    place: usize,
    conducts: f64,
    neighbours: Vec<(usize, f64)>,
}

/// A network taken apart.
#[derive(Debug)]
pub(super) struct Factors(Vec<Gone>);

/// Beyond so many entries a network is no control flow; it is given up.
const ENTRIES_MAX: usize = 4_000_000;

impl Factors {
    /// Of conductances between places, each of which also leaks `ground`. None if taking it apart
    /// fills in too much.
    pub(super) fn of(
        places: usize,
        ways: impl Iterator<Item = (usize, usize, f64)>,
        ground: f64,
    ) -> Option<Factors> {
        let mut around: Vec<BTreeMap<usize, f64>> = vec![BTreeMap::new(); places];
        for (a, b, conductance) in ways.filter(|(a, b, _)| a != b) {
            *around[a].entry(b).or_default() += conductance;
            *around[b].entry(a).or_default() += conductance;
        }
        let mut leak = vec![ground; places];
        let mut queue: BinaryHeap<Reverse<(usize, usize)>> =
            around.iter().enumerate().map(|(place, near)| Reverse((near.len(), place))).collect();
        let (mut gone, mut entries) = (Vec::with_capacity(places), 0);
        let mut is_gone = vec![false; places];
        while let Some(Reverse((count, place))) = queue.pop() {
            if is_gone[place] || count != around[place].len() {
                continue;
            }
            is_gone[place] = true;
            let neighbours: Vec<(usize, f64)> =
                std::mem::take(&mut around[place]).into_iter().collect();
            entries += neighbours.len();
            if entries > ENTRIES_MAX {
                return None;
            }
            let conducts = leak[place] + neighbours.iter().map(|(_, c)| c).sum::<f64>();
            for (k, &(a, to_a)) in neighbours.iter().enumerate() {
                leak[a] += to_a * leak[place] / conducts;
                around[a].remove(&place);
                for &(b, to_b) in &neighbours[k + 1..] {
                    let through = to_a * to_b / conducts;
                    *around[a].entry(b).or_default() += through;
                    *around[b].entry(a).or_default() += through;
                }
            }
            for &(near, _) in &neighbours {
                queue.push(Reverse((around[near].len(), near)));
            }
            gone.push(Gone { place, conducts, neighbours });
        }
        Some(Factors(gone))
    }

    /// The prices that make these currents flow.
    pub(super) fn solve(&self, currents: &[f64]) -> Vec<f64> {
        let mut left = currents.to_vec();
        for gone in &self.0 {
            let carried = left[gone.place] / gone.conducts;
            for &(near, conductance) in &gone.neighbours {
                left[near] += conductance * carried;
            }
        }
        let mut price = vec![0.0; currents.len()];
        for gone in self.0.iter().rev() {
            let from: f64 = gone.neighbours.iter().map(|&(near, c)| c * price[near]).sum();
            price[gone.place] = (left[gone.place] + from) / gone.conducts;
        }
        price
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prices_fall_along_a_chain_by_current_over_conductance() {
        // 0 ─2─ 1 ─4─ 2: a current of 8 from 0 to 2.
        let ways = [(0, 1, 2.0), (1, 2, 4.0)];
        let factors = Factors::of(3, ways.into_iter(), 1e-12).unwrap();
        let price = factors.solve(&[8.0, 0.0, -8.0]);
        assert!((price[0] - price[1] - 4.0).abs() < 1e-6, "{price:?}");
        assert!((price[1] - price[2] - 2.0).abs() < 1e-6);
    }

    #[test]
    fn a_mesh_with_a_loop_gives_back_its_currents() {
        let ways = [(0, 1, 1e-9), (1, 2, 3.0), (2, 3, 1e3), (3, 0, 2.0), (0, 2, 0.5), (1, 1, 7.0)];
        let currents = [1.0, -2.0, 0.5, 0.5];
        let price = Factors::of(4, ways.into_iter(), 1e-13).unwrap().solve(&currents);
        let mut back = [0.0; 4];
        for (a, b, c) in ways {
            back[a] += c * (price[a] - price[b]);
            back[b] += c * (price[b] - price[a]);
        }
        for (back, current) in back.iter().zip(currents) {
            assert!((back - current).abs() < 1e-6, "{back} {current}");
        }
    }
}
