use super::*;
use crate::machine::text_of;

/// A machine of which every prefetcher is off.
fn quiet(overrides: &[(&str, &str)]) -> Memory {
    let mut all = vec![
        ("prefetch.l1_next_line", "false"),
        ("prefetch.l1_stride", "false"),
        ("prefetch.l2_stream", "false"),
    ];
    all.extend(overrides);
    Memory::new(&Machine::load("zen4", text_of("zen4").unwrap(), &all).unwrap())
}

fn sweep(memory: &mut Memory, bytes: u64, mut at: u64) -> Vec<Outcome> {
    let lines = (0..bytes).step_by(64);
    lines
        .map(|address| {
            at += 1_000_000;
            memory.data::<true>(1, address, 8, false, at)
        })
        .collect()
}

fn share(outcomes: &[Outcome], level: Level) -> usize {
    outcomes.iter().filter(|outcome| outcome.level == level).count()
}

#[test]
fn a_sweep_over_twice_a_level_is_served_by_the_next_one_exactly() {
    // One page, so that no line of a table is in the way.
    let mut memory = quiet(&[("tlbs.page_bytes", "1073741824")]);
    let l1 = 2 * 32 * 1024;
    assert_eq!(share(&sweep(&mut memory, l1, 0), Level::Memory), 1024);
    assert_eq!(share(&sweep(&mut memory, l1, 1 << 40), Level::L2), 1024);
    let l2 = 2 * 1024 * 1024;
    sweep(&mut memory, l2, 1 << 41);
    assert_eq!(share(&sweep(&mut memory, l2, 1 << 42), Level::L3), 32_768);
}

#[test]
fn an_isolated_access_costs_the_latency_of_its_level() {
    let mut memory = quiet(&[("tlbs.page_bytes", "1073741824")]);
    memory.data::<true>(1, 1 << 29, 8, false, 0);
    let first = memory.data::<true>(1, 0, 8, false, 10_000);
    assert_eq!((first.cycles, first.level), (380, Level::Memory));
    let again = memory.data::<true>(1, 0, 8, false, 20_000);
    assert_eq!((again.cycles, again.level), (4, Level::L1));
    for way in 1..=8 {
        memory.data::<true>(1, way * 4096, 8, false, 30_000 * way);
    }
    let second = memory.data::<true>(1, 0, 8, false, 900_000);
    assert_eq!((second.cycles, second.level), (14, Level::L2));
}

#[test]
fn a_second_access_to_a_line_on_its_way_waits_for_the_same_moment() {
    let mut memory = quiet(&[("tlbs.page_bytes", "1073741824")]);
    memory.data::<true>(1, 1 << 29, 8, false, 0);
    assert_eq!(memory.data::<true>(1, 0, 8, false, 1000).cycles, 380);
    let joined = memory.data::<true>(1, 8, 8, false, 1100);
    assert_eq!((joined.cycles, joined.joined), (280, true));
    // It hits the first level, and waits for memory.
    assert_eq!((joined.level, joined.from), (Level::L1, Level::Memory));
    let after = memory.data::<true>(1, 8, 8, false, 1400);
    assert_eq!((after.cycles, after.joined, after.from), (4, false, Level::L1));
}

#[test]
fn whoever_asks_later_but_for_an_earlier_time_has_the_line_as_soon_as_if_it_had_brought_it() {
    let mut memory = quiet(&[("tlbs.page_bytes", "1073741824")]);
    memory.data::<true>(1, 1 << 29, 8, false, 0);
    assert_eq!(memory.data::<true>(1, 0, 8, false, 1100).cycles, 380);
    let sooner = memory.data::<true>(1, 8, 8, false, 1000);
    assert_eq!((sooner.cycles, sooner.joined, sooner.from), (380, true, Level::Memory));
    // The line is there at 1380 from now on, for whoever asks later still.
    assert_eq!(memory.data::<true>(1, 16, 8, false, 1200).cycles, 180);
    assert_eq!(memory.data::<true>(1, 16, 8, false, 1100).cycles, 280);
}

#[test]
fn who_waits_for_a_line_that_the_second_level_waits_for_waits_for_memory() {
    let mut memory = quiet(&[("tlbs.page_bytes", "1073741824"), ("caches.l1d.ways", "1")]);
    memory.data::<true>(1, 1 << 29, 8, false, 0);
    memory.data::<true>(1, 0, 8, false, 1000);
    // The first level holds one line of a set, and lets go of the one that is on its way.
    memory.data::<true>(1, 1 << 20, 8, false, 1010);
    let again = memory.data::<true>(1, 0, 8, false, 1100);
    assert_eq!((again.level, again.from, again.cycles), (Level::L2, Level::Memory, 280));
}

#[test]
fn a_line_keeps_what_it_is_told_in_its_word() {
    for (asked, ready, from) in
        [(0, 0, Level::L1), (7, 21, Level::L2), (1 << 40, (1 << 40) + 4000, Level::Memory)]
    {
        let mut line = Line::coming(asked, ready, from).guessed(true);
        line.write(true);
        assert_eq!((line.ready(), line.from(), line.is_dirty()), (ready, from, true));
        assert_eq!(line.had_it_been_asked(asked), None);
        assert!(line.ask() && !line.is_guess());
        if let Some(sooner) = asked.checked_sub(3) {
            assert_eq!(line.had_it_been_asked(sooner), Some(ready - 3));
            line.comes_at(sooner, ready - 3);
            assert_eq!((line.ready(), line.from(), line.is_dirty()), (ready - 3, from, true));
        }
    }
    // Nothing is known of who took longer than can be told.
    assert_eq!(Line::coming(100, 100 + 5000, Level::Memory).had_it_been_asked(0), None);
}

#[test]
fn misses_beyond_the_registers_wait() {
    let mut memory = quiet(&[
        ("tlbs.page_bytes", "1073741824"),
        ("caches.l1d.misses", "4"),
        ("memory.bytes_per_cycle", "64"),
    ]);
    memory.data::<true>(1, 1 << 29, 8, false, 0);
    let cycles: Vec<u32> =
        (0..8).map(|k| memory.data::<true>(1, k << 12, 8, false, 1000).cycles).collect();
    assert!(cycles[..4].iter().all(|&c| c < 390), "{cycles:?}");
    assert!(cycles[4..].iter().all(|&c| (750..770).contains(&c)), "{cycles:?}");
}

#[test]
fn a_streaming_sweep_is_covered_by_the_prefetchers() {
    let machine = Machine::named("zen4").unwrap();
    let mut memory = Memory::new(&machine);
    let outcomes = sweep(&mut memory, 1 << 22, 0);
    let late = share(&outcomes, Level::Memory);
    // At most the first few lines of each of the 1024 pages.
    assert!(late <= 4 * 1024, "{late} of {}", outcomes.len());
    assert!(memory.counts.prefetches_useful > 50_000, "{:?}", memory.counts);
}

#[test]
fn a_stride_is_followed_to_the_end_of_its_page_and_not_beyond() {
    let guesses = |step: u64| {
        let mut memory = quiet(&[("prefetch.l1_stride", "true")]);
        (0..64).for_each(|k| {
            memory.data::<true>(1, step * k, 8, false, 10_000 * k);
        });
        memory.counts.prefetches_l1
    };
    // 16 accesses a page, the last two of which would reach beyond it; the first three only teach.
    assert_eq!(guesses(256), 4 * 14 - 3);
    assert_eq!(guesses(4096), 0);
}

#[test]
fn an_access_across_lines_touches_both() {
    let mut memory = quiet(&[]);
    assert!(memory.data::<true>(1, 60, 8, false, 0).split);
    assert_eq!(memory.data::<true>(1, 0, 8, false, 9999).level, Level::L1);
    assert_eq!(memory.data::<true>(1, 64, 8, false, 9999).level, Level::L1);
    assert!(!memory.data::<true>(1, 56, 8, false, 9999).split);
}

#[test]
fn warming_leaves_the_same_lines_behind_as_timed_accesses() {
    let (mut warm, mut timed) = (quiet(&[]), quiet(&[]));
    let mut state = 12_345_u64;
    for k in 0..50_000 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let address = (state >> 33) % (1 << 21);
        let w = warm.data::<false>(1, address, 8, k % 5 == 0, 0);
        let t = timed.data::<true>(1, address, 8, k % 5 == 0, k * 1000);
        assert_eq!((w.level, w.translation.walked), (t.level, t.translation.walked));
    }
}

#[test]
fn the_short_way_of_a_load_leaves_what_the_long_one_leaves() {
    let machine = Machine::named("zen4").unwrap();
    let (mut short, mut long) = (Memory::new(&machine), Memory::new(&machine));
    let mut state = 99_u64;
    for k in 0..60_000 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let address = if k % 3 == 0 { k * 16 } else { (state >> 33) % (1 << 19) };
        if !short.plain_load::<false>(k % 7, address, 8, 0) {
            short.data::<false>(k % 7, address, 8, false, 0);
        }
        long.data::<false>(k % 7, address, 8, false, 0);
    }
    assert_eq!(short.counts, long.counts);
    assert!(short.counts.l2_data > 1000);
}

#[test]
fn a_walk_reads_the_table_through_the_second_level_and_waits_for_a_walker() {
    let mut memory = quiet(&[("tlbs.walkers", "1")]);
    // The walk's own 14, the second translation level's 7 and the entry from memory; then the data.
    let cold = memory.data::<true>(1, 0, 8, false, 10_000);
    assert_eq!((cold.translation.cycles, cold.cycles), (7 + 14 + 380, 7 + 14 + 380 + 380));
    // Seven more entries lie in the same line: found in the second level now.
    let warm = memory.data::<true>(1, 4096, 8, false, 20_000);
    assert_eq!(warm.translation.cycles, 7 + 14 + 14);
    // Two walks at once on one walker: the second begins when the first has ended, to the spell of
    // eight cycles in which walks are booked.
    let first = memory.data::<true>(1, 2 * 4096, 8, false, 32_000).translation.cycles;
    let second = memory.data::<true>(1, 3 * 4096, 8, false, 32_000).translation.cycles;
    assert_eq!(first, 35);
    assert!((28 + 35..=40 + 35).contains(&second), "{second}");
}

#[test]
fn misses_of_the_last_level_are_limited_too() {
    let few = [("caches.l3.misses", "1"), ("tlbs.page_bytes", "1073741824")];
    let mut memory = quiet(&few);
    memory.data::<true>(1, 1 << 29, 8, false, 0);
    let first = memory.data::<true>(1, 0, 8, false, 8000).cycles;
    let second = memory.data::<true>(1, 64, 8, false, 8000).cycles;
    assert_eq!(first, 380);
    assert!((380 + 376..=380 + 384).contains(&second), "{second}");
}

/// Everything that a cache holds, set by set.
fn held(memory: &Memory) -> Vec<(u64, u64, bool, bool)> {
    let lines = 0..1 << 13;
    let of = |cache: &Cache<Line>, level: u64| {
        let found = lines.clone().filter_map(move |line| Some((line, *cache.peek(line)?)));
        found.map(|(line, s)| (level, line, s.is_dirty(), s.is_guess())).collect::<Vec<_>>()
    };
    let l3 = memory.l3.as_ref().map_or(Vec::new(), |l3| of(l3, 3));
    [of(&memory.l1d, 1), of(&memory.l1i, 0), of(&memory.l2, 2), l3].concat()
}

#[test]
fn what_is_known_to_change_nothing_leaves_what_the_slow_way_leaves() {
    for (name, seed) in [("zen4", 1), ("icelake-server", 2), ("icost-table6", 3)] {
        let machine = Machine::named(name).unwrap();
        let (mut quick, mut slow) = (Memory::new(&machine), Memory::new(&machine));
        let mut dice = crate::testing::Dice::new(seed);
        let mut at = 0;
        for step in 0..120_000_u64 {
            // Mostly near where it was, sometimes on or far; a stride now and then.
            at = match dice.next() % 16 {
                0 => dice.next() % (1 << 19),
                1..4 => at + 64,
                4 => at ^ 0x1000,
                _ => at,
            };
            let address = at % (1 << 19) + dice.next() % 64;
            let (size, is_store, pc) = (1 << (dice.next() % 4), step % 3 == 0, dice.next() % 8);
            let is_code = dice.next().is_multiple_of(6);
            if is_code {
                if !quick.plain_code(address) {
                    quick.code::<false>(address, 0);
                }
                slow.code::<false>(address, 0);
                continue;
            }
            let is_plain = match is_store {
                true => quick.plain_store(address, size),
                false => quick.plain_load::<false>(pc, address, size, 0),
            };
            if !is_plain {
                quick.data::<false>(pc, address, size, is_store, 0);
            }
            slow.data::<false>(pc, address, size, is_store, 0);
            assert_eq!(quick.counts, slow.counts, "{name}, step {step}");
        }
        assert_eq!(held(&quick), held(&slow), "{name}");
        assert_eq!(quick.translation_misses(), slow.translation_misses());
    }
}

#[test]
fn warming_by_the_shortest_way_leaves_what_the_long_way_leaves() {
    for (name, seed) in [("zen4", 4), ("icelake-server", 5), ("icost-table6", 6)] {
        let machine = Machine::named(name).unwrap();
        let (mut quick, mut slow) = (Memory::new(&machine), Memory::new(&machine));
        let mut dice = crate::testing::Dice::new(seed);
        let mut at = 0;
        for step in 0..120_000_u64 {
            // Mostly near where it was, sometimes on or far; a stride now and then.
            at = match dice.next() % 16 {
                0 => dice.next() % (1 << 19),
                1..4 => at + 64,
                4 => at ^ 0x1000,
                _ => at,
            };
            let address = at % (1 << 19) + dice.next() % 64;
            let (size, is_store, pc) = (1 << (dice.next() % 4), step % 3 == 0, dice.next() % 8);
            let is_code = dice.next().is_multiple_of(6);
            if is_code {
                quick.warm_code::<false>(address >> quick.line_shift);
                slow.code::<false>(address, 0);
                continue;
            }
            match quick.is_usual() {
                true => quick.warm_data::<true>(pc, address, size, is_store),
                false => quick.warm_data::<false>(pc, address, size, is_store),
            }
            slow.data::<false>(pc, address, size, is_store, 0);
            assert_eq!(quick.counts, slow.counts, "{name}, step {step}");
        }
        assert_eq!(held(&quick), held(&slow), "{name}");
        assert_eq!(quick.translation_misses(), slow.translation_misses());
    }
}
