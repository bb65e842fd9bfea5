//! A resistor network, solved directly.
//!
//! Control flow is nearly a tree, so eliminating the place with the fewest neighbours first leaves
//! little to fill in. Each elimination joins the neighbours by what the place carried between them
//! (a star becomes a mesh); nothing is ever subtracted, so conductances of any size stay exact.
//!
//! In which order places go depends on who is joined to whom, not on how well. So a network is taken
//! apart once, and its conductances, which change at every step, run through what was found.
//!
//! ```text
//! Order     place 4 goes: neighbours 2, 7 by slots 3, 9; what it carried is added to slot 12
//! Factors   the slots' values when it went, and all that it conducted
//! ```

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A place that is eliminated, and where what it conducts is kept.
#[derive(Debug)]
struct Going {
    place: usize,
    /// Its neighbours then, by number: where `Order::near` begins to tell them.
    near: usize,
    near_end: usize,
    /// Where `Order::joins` begins to tell the slots of their pairs, in order.
    joins: usize,
}

/// How a network is taken apart.
#[derive(Debug, Default)]
pub(super) struct Order {
    places: usize,
    /// The slot of each way; none for those that lead back to where they begin.
    of_way: Vec<Option<u32>>,
    slots: usize,
    going: Vec<Going>,
    /// Neighbours and slots.
    near: Vec<(u32, u32)>,
    joins: Vec<u32>,
}

/// Beyond so many entries a network is no control flow; it is given up.
const ENTRIES_MAX: usize = 4_000_000;
/// And beyond so many pairs of neighbours.
const JOINS_MAX: usize = 32_000_000;

/// Who is joined to whom while places go.
struct Web {
    /// Neighbours and slots by place; those that are gone stay in the list.
    around: Vec<Vec<(u32, u32)>>,
    /// How many neighbours are left.
    left: Vec<usize>,
    is_gone: Vec<bool>,
    slots: usize,
    /// The slot by which a place is joined to the one in view, and which that is.
    found: Vec<(u32, u32)>,
}

/// No place is in view.
const NOBODY: u32 = u32::MAX;

impl Web {
    fn new(places: usize) -> Web {
        Web {
            around: vec![Vec::new(); places],
            left: vec![0; places],
            is_gone: vec![false; places],
            slots: 0,
            found: vec![(NOBODY, 0); places],
        }
    }

    fn join(&mut self, a: usize, b: usize) -> u32 {
        let slot = self.slots as u32;
        self.slots += 1;
        for (one, other) in [(a, b), (b, a)] {
            self.around[one].push((other as u32, slot));
            self.left[one] += 1;
        }
        slot
    }

    /// Those still there around a place, by number.
    fn near(&mut self, place: usize) -> Vec<(u32, u32)> {
        let mut near = std::mem::take(&mut self.around[place]);
        near.retain(|&(other, _)| !self.is_gone[other as usize]);
        near.sort_unstable();
        near
    }

    /// Puts a place in view, so that its slots are found at once.
    fn view(&mut self, place: u32) {
        let is_gone = &self.is_gone;
        self.around[place as usize].retain(|&(other, _)| !is_gone[other as usize]);
        for &(other, slot) in &self.around[place as usize] {
            self.found[other as usize] = (place, slot);
        }
    }

    /// The slot between the place in view and another; a new one where there is none.
    fn slot(&mut self, viewed: u32, other: u32) -> u32 {
        match self.found[other as usize] {
            (place, slot) if place == viewed => slot,
            _ => self.join(viewed as usize, other as usize),
        }
    }
}

impl Order {
    /// Takes a network of ways between places apart. None if that fills in too much.
    pub(super) fn of(places: usize, ways: impl Iterator<Item = (usize, usize)>) -> Option<Order> {
        let mut web = Web::new(places);
        let mut order = Order { places, ..Order::default() };
        let mut ways: Vec<(usize, (usize, usize))> =
            ways.map(|(a, b)| (a.min(b), a.max(b))).enumerate().collect();
        order.of_way = vec![None; ways.len()];
        ways.sort_unstable_by_key(|&(way, ends)| (ends, way));
        let mut before = None;
        for (way, (a, b)) in ways.into_iter().filter(|(_, (a, b))| a != b) {
            let slot = match before {
                Some((ends, slot)) if ends == (a, b) => slot,
                _ => web.join(a, b),
            };
            before = Some(((a, b), slot));
            order.of_way[way] = Some(slot);
        }
        let mut queue: BinaryHeap<Reverse<(usize, usize)>> =
            web.left.iter().enumerate().map(|(place, &left)| Reverse((left, place))).collect();
        while let Some(Reverse((count, place))) = queue.pop() {
            if web.is_gone[place] || count != web.left[place] {
                continue;
            }
            order.eliminate(place, &mut web)?;
            let going = &order.near[order.going.last()?.near..];
            queue.extend(
                going.iter().map(|&(near, _)| Reverse((web.left[near as usize], near as usize))),
            );
        }
        order.slots = web.slots;
        Some(order)
    }

    fn eliminate(&mut self, place: usize, web: &mut Web) -> Option<()> {
        web.is_gone[place] = true;
        let near = web.near(place);
        let (from, joins, count) = (self.near.len(), self.joins.len(), near.len());
        self.joins.resize(joins + count * count.saturating_sub(1) / 2, 0);
        if from + count > ENTRIES_MAX || self.joins.len() > JOINS_MAX {
            return None;
        }
        near.iter().for_each(|&(other, _)| web.left[other as usize] -= 1);
        // Of two places the one with fewer around is looked at: somebody knows them all.
        let mut by_size: Vec<usize> = (0..count).collect();
        by_size.sort_by_key(|&k| web.around[near[k].0 as usize].len());
        for (done, &k) in by_size.iter().enumerate() {
            let others = &by_size[done + 1..];
            if others.is_empty() {
                break;
            }
            let viewed = near[k].0;
            web.view(viewed);
            for &other in others {
                let slot = web.slot(viewed, near[other].0);
                self.joins[joins + pair(k.min(other), k.max(other), count)] = slot;
            }
        }
        let near_end = from + count;
        self.near.extend(near);
        self.going.push(Going { place, near: from, near_end, joins });
        Some(())
    }

    /// Conductances of the ways run through it; each place also leaks `ground`.
    pub(super) fn factors(&self, conductances: &[f64], ground: f64) -> Factors<'_> {
        let mut slots = vec![0.0; self.slots];
        for (slot, conductance) in self.of_way.iter().zip(conductances) {
            if let Some(slot) = slot {
                slots[*slot as usize] += conductance;
            }
        }
        let mut leak = vec![ground; self.places];
        let mut resists = Vec::with_capacity(self.going.len());
        for going in &self.going {
            let near = &self.near[going.near..going.near_end];
            let own = leak[going.place];
            let all = own + near.iter().map(|&(_, slot)| slots[slot as usize]).sum::<f64>();
            let resists_all = 1.0 / all;
            let mut joins = self.joins[going.joins..].iter();
            for (k, &(a, slot)) in near.iter().enumerate() {
                let share = slots[slot as usize] * resists_all;
                leak[a as usize] += share * own;
                for (&(_, slot), &joined) in near[k + 1..].iter().zip(&mut joins) {
                    slots[joined as usize] += share * slots[slot as usize];
                }
            }
            resists.push(resists_all);
        }
        Factors { order: self, slots, resists }
    }
}

/// The place of a pair `a < b` among all pairs of so many, in order.
fn pair(a: usize, b: usize, count: usize) -> usize {
    a * (2 * count - a - 1) / 2 + b - a - 1
}

/// A network taken apart, with what its places conducted.
#[derive(Debug)]
pub(super) struct Factors<'a> {
    order: &'a Order,
    slots: Vec<f64>,
    /// One over all that a place conducts, by the order in which they go.
    resists: Vec<f64>,
}

impl Factors<'_> {
    /// The prices that make these currents flow.
    pub(super) fn solve(&self, currents: &[f64]) -> Vec<f64> {
        let mut lanes: Vec<[f64; 1]> = currents.iter().map(|&current| [current]).collect();
        self.solve_lanes(&mut lanes);
        lanes.into_flattened()
    }

    /// The same for several sets of currents at a time, which take little longer than one: most of
    /// it is finding the way. Currents become prices where they stand, since a place's current is
    /// not looked at again once its price is known.
    pub(super) fn solve_lanes<const N: usize>(&self, lanes: &mut [[f64; N]]) {
        let order = self.order;
        for (going, resists) in order.going.iter().zip(&self.resists) {
            let carried = lanes[going.place].map(|left| left * resists);
            for &(near, slot) in &order.near[going.near..going.near_end] {
                let conducts = self.slots[slot as usize];
                let near = &mut lanes[near as usize];
                (0..N).for_each(|lane| near[lane] += conducts * carried[lane]);
            }
        }
        for (going, resists) in order.going.iter().zip(&self.resists).rev() {
            let mut sum = lanes[going.place];
            for &(near, slot) in &order.near[going.near..going.near_end] {
                let (conducts, near) = (self.slots[slot as usize], &lanes[near as usize]);
                (0..N).for_each(|lane| sum[lane] += conducts * near[lane]);
            }
            lanes[going.place] = sum.map(|sum| sum * resists);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use metrology::Draws;

    type Ways = [(usize, usize, f64)];

    fn solved(places: usize, ways: &Ways, ground: f64, currents: &[f64]) -> Vec<f64> {
        let order = Order::of(places, ways.iter().map(|&(a, b, _)| (a, b))).unwrap();
        let conductances: Vec<f64> = ways.iter().map(|&(_, _, c)| c).collect();
        order.factors(&conductances, ground).solve(currents)
    }

    #[test]
    fn prices_fall_along_a_chain_by_current_over_conductance() {
        // 0 ─2─ 1 ─4─ 2: a current of 8 from 0 to 2.
        let ways = [(0, 1, 2.0), (1, 2, 4.0)];
        let price = solved(3, &ways, 1e-12, &[8.0, 0.0, -8.0]);
        assert!((price[0] - price[1] - 4.0).abs() < 1e-6, "{price:?}");
        assert!((price[1] - price[2] - 2.0).abs() < 1e-6);
    }

    #[test]
    fn a_mesh_with_a_loop_gives_back_its_currents() {
        let ways = [(0, 1, 1e-9), (1, 2, 3.0), (2, 3, 1e3), (3, 0, 2.0), (0, 2, 0.5), (1, 1, 7.0)];
        let currents = [1.0, -2.0, 0.5, 0.5];
        let price = solved(4, &ways, 1e-13, &currents);
        let mut back = [0.0; 4];
        for (a, b, c) in ways {
            back[a] += c * (price[a] - price[b]);
            back[b] += c * (price[b] - price[a]);
        }
        for (back, current) in back.iter().zip(currents) {
            assert!((back - current).abs() < 1e-6, "{back} {current}");
        }
    }

    #[test]
    fn one_order_serves_all_conductances_of_a_tangle() {
        let (places, mut draws) = (60, Draws::new(5));
        let mut place = || (draws.normal().abs() * 1e6) as usize % places;
        let ends: Vec<(usize, usize)> = (0..400).map(|_| (place(), place())).collect();
        let order = Order::of(places, ends.iter().copied()).unwrap();
        let mut draws = Draws::new(6);
        for _ in 0..5 {
            let conductances: Vec<f64> = ends.iter().map(|_| draws.normal().abs() + 0.01).collect();
            let mut currents: Vec<f64> = (0..places).map(|_| draws.normal()).collect();
            currents[0] -= currents.iter().sum::<f64>();
            let price = order.factors(&conductances, 1e-12).solve(&currents);
            let mut back = vec![0.0; places];
            for (&(a, b), c) in ends.iter().zip(&conductances) {
                back[a] += c * (price[a] - price[b]);
                back[b] += c * (price[b] - price[a]);
            }
            for (back, current) in back.iter().zip(currents) {
                assert!((back - current).abs() < 1e-6, "{back} {current}");
            }
        }
    }

    #[test]
    fn pairs_are_told_one_behind_the_other() {
        let all = (0..5).flat_map(|a| (a + 1..5).map(move |b| pair(a, b, 5)));
        assert!(all.eq(0..10));
    }
}
