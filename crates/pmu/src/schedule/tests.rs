use super::*;
use crate::{Counters, group};

fn turns(scheduler: &mut Scheduler, count: usize) -> Vec<Turn> {
    let mut turn = scheduler.start(0);
    let mut list = vec![turn];
    while list.len() < count {
        turn = scheduler.advance(turn.until);
        list.push(turn);
    }
    list
}

fn plan(groups: usize) -> Plan {
    Plan { opening: None, ..Plan::even(groups, 100, 7) }
}

#[test]
fn every_round_is_a_permutation_and_orders_differ() {
    let list = turns(&mut Scheduler::new(plan(5)), 500);
    let mut orders = std::collections::BTreeSet::new();
    for (round, turns) in list.chunks(5).enumerate() {
        let order: Vec<usize> = turns.iter().map(|t| t.group).collect();
        let mut sorted = order.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, [0, 1, 2, 3, 4]);
        assert!(turns.iter().all(|t| t.round == round as u64));
        orders.insert(order);
    }
    assert!(orders.len() > 50, "{}", orders.len());
    assert_eq!(list.last().unwrap().until, 50_000);
}

#[test]
fn every_order_of_three_groups_is_as_likely() {
    let list = turns(&mut Scheduler::new(plan(3)), 18_000);
    let mut counts = std::collections::BTreeMap::new();
    for turns in list.chunks(3) {
        *counts.entry(turns.iter().map(|t| t.group).collect::<Vec<_>>()).or_insert(0) += 1;
    }
    // 6,000 rounds over six orders: 1,000 each, standard deviation 29.
    assert_eq!(counts.len(), 6);
    assert!(counts.values().all(|&c: &i32| (c - 1000).abs() < 130), "{counts:?}");
}

#[test]
fn several_turns_of_a_group_are_spread_over_the_round_and_every_place_is_as_likely() {
    let shares = vec![4, 1, 1, 1, 1];
    let list = turns(&mut Scheduler::new(Plan { shares, ..plan(5) }), 80_000);
    let (mut beside, mut firsts, mut seconds) = (0, [0_i32; 8], [0_i32; 8]);
    for turns in list.chunks(8) {
        beside += turns.windows(2).filter(|w| w[0].group == 0 && w[1].group == 0).count();
        for (place, turn) in turns.iter().enumerate() {
            firsts[place] += i32::from(turn.group == 0);
            seconds[place] += i32::from(turn.group == 1);
        }
    }
    // 10,000 rounds: half of every place, and an eighth; standard deviations 50 and 33.
    assert!(firsts.iter().all(|&n| (n - 5_000).abs() < 250), "{firsts:?}");
    assert!(seconds.iter().all(|&n| (n - 1_250).abs() < 165), "{seconds:?}");
    // Shuffled, four turns of eight are beside one another 7 · 4/8 · 3/7 = 1.5 times a round, give or
    // take 0.9: 15,000 in all, give or take 90.
    assert!(beside < 13_000, "{beside}");
}

#[test]
fn a_fixed_order_repeats_and_shares_are_slices_per_round() {
    let fixed = Plan { shares: vec![1, 3], order: Order::Fixed, ..plan(2) };
    let list = turns(&mut Scheduler::new(fixed), 12);
    let groups: Vec<usize> = list.iter().map(|t| t.group).collect();
    assert_eq!(groups, [0, 1, 1, 1, 0, 1, 1, 1, 0, 1, 1, 1]);
}

#[test]
fn the_opening_is_short_and_grows_to_whole_slices() {
    let opened = Plan { opening: Some(10), ..plan(2) };
    let list = turns(&mut Scheduler::new(opened), 1_000);
    let lengths: Vec<u64> = list.windows(2).map(|w| w[1].until - w[0].until).collect();
    assert_eq!(list[0].until, 10);
    assert!(lengths[..198].iter().all(|&length| length == 10), "{lengths:?}");
    assert!(lengths.windows(2).all(|w| w[0] <= w[1]));
    assert_eq!(lengths.last(), Some(&100));
    // Both slices of a round are equally long.
    assert!(lengths[1..].chunks(2).all(|w| w.len() < 2 || w[0] == w[1]), "{lengths:?}");
}

#[test]
fn a_stop_keeps_the_rest_of_the_slice_for_the_next_start() {
    let mut scheduler = Scheduler::new(plan(2));
    let first = scheduler.start(1000);
    assert_eq!(first.until, 1100);
    assert_eq!(scheduler.start(1010), first);
    scheduler.stop(1030);
    assert_eq!(scheduler.turn(), None);
    let again = scheduler.start(5000);
    assert_eq!((again.group, again.until), (first.group, 5070));
    // Late by 20: the next slice is whole all the same.
    let second = scheduler.advance(5090);
    assert_eq!((second.group, second.until), (1 - first.group, 5190));
}

#[test]
fn shares_follow_the_spread_when_asked() {
    let counters = Counters::alike(3);
    let units = vec![vec!["steady".to_owned()], vec!["bursty".to_owned()]];
    let grouping = group(&counters, &["cycles", "instructions"], &units).unwrap();
    assert_eq!(grouping.groups.len(), 2);
    let mut scheduler = Scheduler::new(Plan { adapts: true, ..plan(2) });
    let mut turn = scheduler.start(0);
    let mut random = crate::random::Random::new(3);
    for _ in 0..2_000 {
        // Relative deviations 0.1 and 0.8: eight to the power of two thirds is four.
        let spread = if turn.group == 0 { 10 } else { 80 };
        let count = if random.below(2) == 0 { 100 - spread } else { 100 + spread };
        let counts = vec![100, 100, count];
        let reading = Reading { group: turn.group, round: turn.round, counts };
        scheduler.observe(&grouping, &reading);
        turn = scheduler.advance(turn.until);
    }
    let shares = &scheduler.plan().shares;
    assert_eq!(shares[0], 1);
    assert!((3..=5).contains(&shares[1]), "{shares:?}");
}

#[test]
fn early_rounds_have_shares_of_their_own_and_later_ones_have_not() {
    let early = Some(Early { until: 1_000, shares: vec![5, 1, 1] });
    let list = turns(&mut Scheduler::new(Plan { shares: vec![2, 1, 1], early, ..plan(3) }), 200);
    let in_round = |round: u64| list.iter().filter(move |turn| turn.round == round);
    // Rounds of seven slices of 100: the second begins at 700, the third at 1,400.
    for (round, turns, first) in [(0, 7, 5), (1, 7, 5), (2, 4, 2), (3, 4, 2)] {
        assert_eq!(in_round(round).count(), turns, "{round}");
        assert_eq!(in_round(round).filter(|turn| turn.group == 0).count(), first, "{round}");
    }
}
