//! Closed forms of the graph on steps made by hand, and identities of all its sets.
#![allow(clippy::unwrap_used)]

use std::collections::HashSet;

use icost::sample::Window;
use icost::{
    Arbitration, Categories, Category, Costs, Fixed, Kind, Player, Step, Walk, subsets_of,
};
use model::machine::Machine;

fn fixed() -> Fixed {
    Fixed::of(&Machine::named("icost-table6").unwrap())
}

/// A load of a static instruction that misses for so many cycles, behind another so far before.
fn miss(instruction: u32, cycles: u32, behind: u32) -> Step {
    let producers = [behind, 0, 0, 0];
    let level = Kind::Memory;
    Step { instruction, producers, miss: cycles, level, queue: Some(0), ..Step::default() }
}

fn work(instruction: u32, cycles: u32) -> Step {
    Step { instruction, long: cycles, queue: Some(0), ..Step::default() }
}

/// The costs of the misses of instructions 0 and 1.
fn costs(steps: Vec<Step>) -> Costs {
    let window = Window { steps, instructions: 0, cycles: 0 };
    let of = |place: u32| Player::part("", Category::Dmiss, HashSet::from([place]));
    let players = [of(0), of(1)];
    Costs::of(fixed(), &[window], &players, &subsets_of(2, 2), Arbitration::Frozen)
}

const FIRST: Categories = Categories(1);
const SECOND: Categories = Categories(2);
const BOTH: Categories = Categories(3);

#[test]
fn two_parallel_misses_cost_nothing_alone_and_everything_together() {
    let costs = costs(vec![miss(0, 100, 0), miss(1, 100, 0)]);
    let whole = costs.whole();
    assert_eq!(whole.cost(FIRST), Some(0.0));
    assert_eq!(whole.cost(SECOND), Some(0.0));
    assert_eq!(whole.icost(BOTH), Some(100.0));
}

#[test]
fn two_dependent_misses_beside_as_much_work_as_one_have_a_negative_icost() {
    let costs = costs(vec![miss(0, 100, 0), miss(1, 100, 1), work(2, 100)]);
    let whole = costs.whole();
    for set in [FIRST, SECOND, BOTH] {
        assert_eq!(whole.cost(set), Some(100.0));
    }
    assert_eq!(whole.icost(BOTH), Some(-100.0));
}

#[test]
fn ten_rounds_of_four_walks_take_ten_times_as_long_as_one() {
    let walk = Some(Walk { cycles: 32, waits: true, holds_up: true });
    let step = Step { walk, queue: Some(0), ..Step::default() };
    assert_eq!(fixed().walkers, 4);
    // They issue after a cycle; the first round ends at 33, the others at 64, 96 and so on.
    let costs = costs(vec![step; 40]);
    assert_eq!(costs.cycles(), 320.0 + 1.0);
    assert_eq!(costs.whole().cost(FIRST), Some(320.0 - 1.0));
}

#[test]
fn a_load_that_shares_a_line_waits_for_whoever_brings_it() {
    let second = Step { line: (1, 0), queue: Some(0), instruction: 1, ..Step::default() };
    let costs = costs(vec![miss(0, 100, 0), second]);
    // With the first prefetched the second finds its line; with the second alone nothing is saved.
    assert_eq!(costs.whole().cost(FIRST), Some(100.0));
    assert_eq!(costs.whole().cost(SECOND), Some(0.0));
}

#[test]
fn a_mispredict_is_the_fault_of_the_branch_before() {
    let steps = vec![
        Step { instruction: 0, short: 1, queue: Some(0), ..Step::default() },
        Step { instruction: 1, redirect: (1, 10), queue: Some(0), ..Step::default() },
    ];
    let window = Window { steps, instructions: 2, cycles: 0 };
    let of = |place: u32| Player::part("", Category::Bmisp, HashSet::from([place]));
    let (players, sets) = ([of(0), of(1)], subsets_of(2, 2));
    let costs = Costs::of(fixed(), &[window], &players, &sets, Arbitration::Frozen);
    // Behind it the next would be dispatched at 12 and retire at 14; else it retires with it, at 3.
    assert_eq!(costs.whole().cost(FIRST), Some(11.0));
    assert_eq!(costs.whole().cost(SECOND), Some(0.0));
}

#[test]
fn a_code_miss_hides_behind_a_full_window_and_shows_once_that_is_ideal() {
    // A miss of 100 cycles fills a window of one; a code miss of 30 behind it.
    let behind = Step { window: 1, code: 30, queue: Some(0), instruction: 1, ..Step::default() };
    let window = Window { steps: vec![miss(0, 100, 0), behind], ..Window::default() };
    let players = [Category::Imiss, Category::Dmiss].map(Player::category);
    let costs = Costs::of(fixed(), &[window], &players, &subsets_of(2, 2), Arbitration::Frozen);
    // 104 as it is; 32 with the data there; with the code there too both leave together, at 4.
    assert_eq!(costs.cycles(), 104.0);
    assert_eq!(costs.whole().cost(FIRST), Some(0.0));
    assert_eq!(costs.whole().cost(SECOND), Some(72.0));
    assert_eq!(costs.whole().cost(BOTH), Some(100.0));
}

#[test]
fn icosts_over_the_power_set_and_what_is_left_are_all_of_the_time() {
    let mut steps = Vec::new();
    for k in 0..500_u32 {
        steps.push(miss(k % 7, 20 + k % 90, k % 5));
        steps.push(Step { width: 6, retire_width: 6, window: 64, ..work(k % 7, 1 + k % 4) });
    }
    let window = Window { steps, instructions: 1000, cycles: 0 };
    let players: Vec<Player> = Category::ALL.iter().copied().map(Player::category).collect();
    let sets = subsets_of(8, 8);
    let costs = Costs::of(fixed(), &[window], &players, &sets, Arbitration::Frozen);
    let whole = costs.whole();
    let icosts: f64 = sets.iter().map(|&set| whole.icost(set).unwrap()).sum();
    let left = whole.time(Categories::ALL).unwrap();
    assert!((icosts + left - costs.cycles()).abs() < 1e-6);
    // One more idealised is never slower, with ports frozen.
    for &set in &sets {
        for number in 0..8 {
            let more = set.union(Categories::single(number));
            assert!(whole.time(more).unwrap() <= whole.time(set).unwrap());
        }
    }
}

#[test]
fn with_everything_idealised_the_pipeline_is_what_is_left() {
    // Ten in a row: each is dispatched, issues a cycle later and retires one after that.
    let steps: Vec<Step> = (0..10).map(|k| miss(k, 100, 1)).collect();
    let window = Window { steps, instructions: 10, cycles: 0 };
    let players = [Player::category(Category::Dmiss)];
    let costs = Costs::of(fixed(), &[window], &players, &subsets_of(1, 1), Arbitration::Frozen);
    assert_eq!(costs.cycles(), 1002.0);
    assert_eq!(costs.whole().time(Categories(1)), Some(2.0));
}
