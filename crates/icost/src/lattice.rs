//! Costs and interaction costs of sets, from the time of every subset.
//!
//! ```text
//! cost(S)  = time(nothing idealised) − time(S idealised)
//! icost(S) = cost(S) − Σ icost(T) over the proper subsets T of S
//! ```
//!
//! so that the icosts of all subsets of S sum to cost(S).

use std::collections::HashMap;

use crate::Categories;

/// The time of a program with each of some sets idealised.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Lattice {
    times: HashMap<Categories, f64>,
}

impl Lattice {
    /// From the cycles of each set; the empty one is the program as it is.
    pub fn new(times: impl IntoIterator<Item = (Categories, f64)>) -> Lattice {
        Lattice { times: times.into_iter().collect() }
    }

    /// The cycles with a set idealised; none if it was not evaluated.
    pub fn time(&self, set: Categories) -> Option<f64> {
        self.times.get(&set).copied()
    }

    /// What idealising a set saves, in cycles.
    pub fn cost(&self, set: Categories) -> Option<f64> {
        Some(self.time(Categories::NONE)? - self.time(set)?)
    }

    /// What idealising a set saves beyond what all its smaller parts explain, in cycles; none if a
    /// subset was not evaluated.
    ///
    /// Written out, the sum over subsets T of (−1)^(|S|−|T|) · cost(T).
    pub fn icost(&self, set: Categories) -> Option<f64> {
        let signed = |part: Categories| {
            let sign = if (set.len() - part.len()).is_multiple_of(2) { 1.0 } else { -1.0 };
            Some(sign * self.cost(part)?)
        };
        subsets(set).map(signed).sum()
    }

    /// The Shapley share of each category of a set: its saving averaged over all orders in which
    /// the set could be fixed one by one. The shares sum to the cost of the set.
    pub fn shapley(&self, set: Categories) -> Option<Vec<(crate::Category, f64)>> {
        set.iter().map(|category| Some((category, self.share(set, category as usize)?))).collect()
    }

    /// The Shapley share of the member with a number.
    pub fn share(&self, set: Categories, member: usize) -> Option<f64> {
        let n = set.len();
        let member = Categories::single(member);
        let others = Categories(set.0 & !member.0);
        let gain = |part: Categories| {
            let weight = 1.0 / (f64::from(n) * binomial(n - 1, part.len()));
            Some(weight * (self.cost(part.union(member))? - self.cost(part)?))
        };
        subsets(others).map(gain).sum()
    }
}

/// Every subset, the empty one and the whole included.
fn subsets(set: Categories) -> impl Iterator<Item = Categories> {
    let mut next = Some(set.0);
    std::iter::from_fn(move || {
        let part = next?;
        next = (part != 0).then(|| (part - 1) & set.0);
        Some(Categories(part))
    })
}

fn binomial(n: u32, k: u32) -> f64 {
    (1..=k).fold(1.0, |product, j| product * f64::from(n - k + j) / f64::from(j))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Category::{Bmisp, Dmiss, Shalu, Win};

    fn lattice(times: &[(&[crate::Category], f64)]) -> Lattice {
        Lattice::new(times.iter().map(|(set, time)| (Categories::of(set), *time)))
    }

    #[test]
    fn misses_side_by_side_cost_nothing_alone_and_all_together() {
        // Two misses of 100 cycles at the same time.
        let found =
            lattice(&[(&[], 100.0), (&[Dmiss], 100.0), (&[Win], 100.0), (&[Dmiss, Win], 0.0)]);
        assert_eq!(found.cost(Categories::of(&[Dmiss])), Some(0.0));
        assert_eq!(found.icost(Categories::of(&[Dmiss, Win])), Some(100.0));
    }

    #[test]
    fn in_a_row_beside_other_work_either_is_enough() {
        // Two dependent misses of 100 cycles beside 100 cycles of work: 200, then 100, then 100.
        let found =
            lattice(&[(&[], 200.0), (&[Dmiss], 100.0), (&[Win], 100.0), (&[Dmiss, Win], 100.0)]);
        assert_eq!(found.cost(Categories::of(&[Dmiss])), Some(100.0));
        assert_eq!(found.icost(Categories::of(&[Dmiss, Win])), Some(-100.0));
    }

    #[test]
    fn icosts_of_all_subsets_sum_to_the_cost_and_so_do_shapley_shares() {
        let all = [Dmiss, Win, Bmisp, Shalu];
        let whole = Categories::of(&all);
        // Any times will do.
        let time = |set: Categories| 1000.0 - f64::from(u32::from(set.0) * 7919 % 613);
        let found = Lattice::new(subsets(whole).map(|set| (set, time(set))));
        let cost = found.cost(whole).unwrap();
        let sum: f64 = subsets(whole).map(|set| found.icost(set).unwrap()).sum();
        assert!((sum - cost).abs() < 1e-9);
        let shares: f64 = found.shapley(whole).unwrap().iter().map(|(_, share)| share).sum();
        assert!((shares - cost).abs() < 1e-9);
    }

    #[test]
    fn what_was_not_evaluated_has_no_cost() {
        let found = lattice(&[(&[], 100.0), (&[Dmiss], 60.0)]);
        assert_eq!(found.icost(Categories::of(&[Dmiss, Win])), None);
        assert_eq!(found.shapley(Categories::of(&[Dmiss, Win])), None);
    }
}
