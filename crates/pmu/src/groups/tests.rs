use super::*;
use crate::{Limit, Rule};

fn units(text: &str) -> Vec<Vec<String>> {
    text.split(' ').map(|unit| unit.split('+').map(str::to_owned).collect()).collect()
}

fn rule(events: &[&str], limit: Limit) -> Rule {
    let events = events.iter().map(|e| (*e).to_owned()).collect();
    Rule { events, limit, source: "the manual".into() }
}

fn names(grouping: &Grouping) -> Vec<Vec<&str>> {
    let name = |&event: &usize| grouping.events[event].as_str();
    grouping
        .groups
        .iter()
        .map(|g| g.events[grouping.anchors..].iter().map(name).collect())
        .collect()
}

fn with_fixed() -> Counters {
    Counters {
        general: 4,
        fixed: vec!["cycles".into(), "instructions".into()],
        free: vec!["faults".into()],
        rules: vec![rule(&["p", "q"], Limit::Only(vec![0])), rule(&["x", "y"], Limit::Together(1))],
    }
}

const ANCHORS: [&str; 2] = ["cycles", "instructions"];

#[test]
fn anchors_on_fixed_counters_leave_the_general_ones_free() {
    let grouping = group(&with_fixed(), &ANCHORS, &units("a b c d e")).unwrap();
    assert_eq!(grouping.groups.len(), 2);
    assert!(grouping.is_fewest);
    assert_eq!(grouping.events, ["cycles", "instructions", "a", "b", "c", "d", "e"]);
    for group in &grouping.groups {
        assert_eq!(group.places[..2], [Counter::Fixed(0), Counter::Fixed(1)]);
    }
    // Without fixed counters the anchors cost two of four.
    let bare = group(&Counters::alike(4), &ANCHORS, &units("a b c d e")).unwrap();
    assert_eq!((bare.groups.len(), bare.is_fewest), (3, true));
}

#[test]
fn two_events_of_one_counter_and_two_that_exclude_each_other_part() {
    let grouping = group(&with_fixed(), &ANCHORS, &units("p q x y")).unwrap();
    assert_eq!((grouping.groups.len(), grouping.is_fewest), (2, true));
    for group in names(&grouping) {
        assert!(!(group.contains(&"p") && group.contains(&"q")), "{group:?}");
        assert!(!(group.contains(&"x") && group.contains(&"y")), "{group:?}");
    }
}

#[test]
fn braces_stay_together_and_in_order() {
    let grouping = group(&with_fixed(), &ANCHORS, &units("a d+b+c e")).unwrap();
    let groups = names(&grouping);
    assert!(groups.iter().any(|g| ["b", "c", "d"].iter().all(|e| g.contains(e))), "{groups:?}");
    assert_eq!(grouping.groups.len(), 2);
    let alone = group(&with_fixed(), &ANCHORS, &units("z+b+p")).unwrap();
    assert_eq!(names(&alone), [["z", "b", "p"]]);
}

#[test]
fn what_cannot_be_is_named_with_its_constraint() {
    let conflict = group(&with_fixed(), &ANCHORS, &units("a x+y")).unwrap_err().to_string();
    assert_eq!(
        conflict,
        "y cannot be counted within {x,y}: at most 1 of x, y at one time (the manual); there are 4 \
         general counters"
    );
    let mut alpha = Counters::alike(1);
    alpha.rules.push(rule(&["cycles"], Limit::Only(vec![0])));
    let impossible = group(&alpha, &["cycles"], &units("a")).unwrap_err().to_string();
    assert_eq!(impossible, "a cannot be counted beside cycles: there is one general counter");
    let none = group(&Counters::alike(0), &[], &units("a")).unwrap_err().to_string();
    assert_eq!(none, "a cannot be counted: there is no general counter");
}

#[test]
fn events_that_need_no_counter_and_repeated_ones_cost_nothing() {
    let grouping = group(&with_fixed(), &ANCHORS, &units("a b c d faults a cycles")).unwrap();
    assert_eq!(grouping.groups.len(), 1);
    assert_eq!(grouping.groups[0].places.last(), Some(&Counter::Free));
    let only = group(&with_fixed(), &ANCHORS, &units("cycles")).unwrap();
    assert_eq!((only.groups.len(), only.events.len()), (1, 2));
}

/// The fewest bins by trying every partition of the events.
fn fewest(counters: &Counters, anchors: &[&str], events: &[&str]) -> usize {
    fn go(
        counters: &Counters,
        anchors: &[&str],
        rest: &[&str],
        bins: &mut Vec<Vec<String>>,
    ) -> usize {
        let Some((first, rest)) = rest.split_first() else { return bins.len() };
        let mut best = usize::MAX;
        for k in 0..=bins.len() {
            if k == bins.len() {
                bins.push(Vec::new());
            }
            bins[k].push((*first).to_owned());
            let all: Vec<&str> =
                anchors.iter().copied().chain(bins[k].iter().map(String::as_str)).collect();
            if place(counters, &all).is_ok() {
                best = best.min(go(counters, anchors, rest, bins));
            }
            bins[k].pop();
            if bins[k].is_empty() {
                bins.pop();
                break;
            }
        }
        best
    }
    go(counters, anchors, events, &mut Vec::new())
}

#[test]
fn no_partition_of_a_small_set_has_fewer_groups() {
    let letters = ["a", "b", "c", "d", "e", "f", "g"];
    let mut state = 1_u64;
    let mut roll = |n: u64| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % n
    };
    for _ in 0..60 {
        let mut counters = Counters::alike(2 + roll(2) as u32);
        for _ in 0..3 {
            let some: Vec<&str> = letters.into_iter().filter(|_| roll(3) == 0).collect();
            let general = u64::from(counters.general);
            let limit = match roll(2) {
                0 => Limit::Only((0..=roll(general) as u32).collect()),
                _ => Limit::Together(1 + roll(2) as u32),
            };
            counters.rules.push(rule(&some, limit));
        }
        let asked: Vec<Vec<String>> = letters.iter().map(|l| vec![(*l).to_owned()]).collect();
        let grouping = group(&counters, &["cycles"], &asked);
        let best = fewest(&counters, &["cycles"], &letters);
        match grouping {
            Ok(grouping) => {
                assert!(grouping.is_fewest);
                assert_eq!(grouping.groups.len(), best, "{counters:?}");
            }
            Err(_) => assert_eq!(best, usize::MAX, "{counters:?}"),
        }
    }
}

#[test]
fn eighty_events_on_eight_counters_take_ten_groups_whatever_the_rules() {
    let mut counters = Counters::alike(8);
    counters.fixed = vec!["cycles".into(), "instructions".into()];
    let events: Vec<String> = (0..80).map(|k| format!("e{k}")).collect();
    let some: Vec<&str> = events[20..50].iter().map(String::as_str).collect();
    counters.rules.push(rule(&some, Limit::Only(vec![0, 1, 2, 3])));
    let units: Vec<Vec<String>> = events.iter().map(|e| vec![e.clone()]).collect();
    let grouping = group(&counters, &ANCHORS, &units).unwrap();
    assert_eq!((grouping.groups.len(), grouping.is_fewest), (10, true));
}
