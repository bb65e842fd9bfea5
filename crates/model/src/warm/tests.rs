use super::*;
use crate::core::Settings;
use crate::event::Event;
use crate::fast::FastCore;
use crate::testing::*;

fn sweep(core: &mut impl CoreListener, lines: u64) {
    for k in 0..lines {
        core.executed(BlockId(0), 2, &[load(0, k * 64)]);
    }
}

#[test]
fn a_core_started_from_warm_units_misses_nothing_that_fits() {
    let zen4 = machine("zen4", &[]);
    let blocks = [block(0x1000, &[LOAD, &[0xeb, 0xfb]])];
    let mut warmer = Warmer::new(&zen4);
    translate(&mut warmer, &blocks);
    sweep(&mut warmer, 400);
    assert_eq!(warmer.instructions(), 800);
    let (memory, predictor) = warmer.into_units();
    let mut warm = FastCore::new(&zen4, Settings::default()).with_units(memory, predictor);
    let mut cold = FastCore::new(&zen4, Settings::default());
    for core in [&mut warm, &mut cold] {
        translate(core, &blocks);
        sweep(core, 400);
        core.finish();
    }
    let misses = [Event::L1iMisses, Event::DtlbLoadMisses, Event::L1dLoadMisses, Event::Resteers];
    for event in misses {
        assert_eq!(warm.counts()[event], 0, "{}", event.name());
        assert!(cold.counts()[event] > 0, "{}", event.name());
    }
}

#[test]
fn far_from_windows_a_line_is_told_once_and_the_last_level_still_has_it() {
    let small = machine("zen4", &[("caches.l2.size_kib", "256")]);
    // Too far apart for streams, and more than the second level holds.
    let lines: Vec<u64> = (0..10_000).map(|k| 5 * 64 * k).collect();
    let (mut near, mut far) = (Warmer::new(&small), Warmer::new(&small));
    for _ in 0..3 {
        near.refresh(&lines);
        far.refresh_far(&lines, 1000);
    }
    let counts = |warmer: &Warmer| (warmer.memory().counts.l3, warmer.memory().counts.l3_misses);
    let once = 10_000;
    assert_eq!(counts(&near), (3 * once, once));
    assert_eq!(counts(&far), (once, once));
    far.refresh_far(&lines, 1000 + far::FORGET);
    assert_eq!(counts(&far), (2 * once, once), "told anew, and there all along");
    far.come_near();
    far.refresh_far(&lines, 1000 + far::FORGET);
    assert_eq!(counts(&far), (3 * once, once), "the second level hears again of what is in use");
}

#[test]
fn code_that_ran_unseen_is_not_fetched_from_memory_afterwards() {
    let zen4 = machine("zen4", &[("prefetch.code_next_line", "false")]);
    // A jump to itself in each of 400 pages: too far apart for streams.
    let blocks: Vec<StaticBlock> =
        (0..400).map(|k| block(0x10_0000 + 4096 * k, &[&[0xeb, 0xfe]])).collect();
    let fetched_after = |tell: fn(&mut Warmer, &[(BlockId, u32)])| {
        let mut warmer = Warmer::new(&zen4);
        translate(&mut warmer, &blocks);
        let runs: Vec<(BlockId, u32)> = (0..400).map(|id| (BlockId(id), 7)).collect();
        tell(&mut warmer, &runs);
        let before = warmer.memory().counts.l3_misses;
        runs.iter().for_each(|&(id, _)| warmer.executed(id, 1, &[]));
        warmer.memory().counts.l3_misses - before
    };
    // Translation reads a line of tables for every eight pages.
    assert_eq!(fetched_after(|_, _| {}), 400 + 400 / 8);
    let in_bulk = |warmer: &mut Warmer, runs: &[(BlockId, u32)]| {
        let mut lines = Vec::new();
        warmer.lines_of(runs, &mut lines);
        assert_eq!(lines.len(), 400);
        warmer.refresh_far(&lines, 0);
    };
    assert_eq!(fetched_after(in_bulk), 0);
    let one_by_one = |warmer: &mut Warmer, runs: &[(BlockId, u32)]| {
        for &(id, times) in runs {
            let mut lines = Vec::new();
            (0..times).for_each(|_| warmer.reach(id, 1, &[], true, &mut lines));
            assert_eq!(lines.len(), 1, "a line is told once");
            warmer.refresh(&lines);
        }
    };
    assert_eq!(fetched_after(one_by_one), 0);
}

#[test]
fn a_table_is_read_for_pages_that_nobody_follows_when_translation_lacks_them() {
    // So small a second level of caches that every table's line has left when it is read again.
    let small = machine("zen4", &[("caches.l2.size_kib", "8")]);
    let held = u64::from(small.tlbs.l2d.as_ref().unwrap().entries);
    for (pages, walked) in [(held / 2, 1), (2 * held, 3)] {
        let addresses: Vec<u64> = (0..pages).map(|page| page * 4096).collect();
        let mut near = Warmer::new(&small);
        (0..3).for_each(|_| near.pages_of(&addresses, true));
        let read = (near.memory().counts.l2_misses, near.memory().counts.l3_misses);
        assert_eq!(read, (walked * pages / 8, pages / 8), "eight pages to a line");
        let mut far = Warmer::new(&small);
        for _ in 0..3 {
            far.pages_of(&addresses, false);
            far.refresh_far(&[], 0);
        }
        let read = |far: &Warmer| (far.memory().counts.l3, far.memory().counts.l3_misses);
        assert_eq!(read(&far), (pages / 8, pages / 8), "the last level alone hears of it, once");
        far.refresh_far(&[], far::FORGET);
        far.pages_of(&addresses, false);
        far.refresh_far(&[], far::FORGET);
        assert_eq!(read(&far), (pages / 4, pages / 8), "told anew, and there all along");
    }
}

#[test]
fn what_was_told_from_afar_is_in_the_second_level_when_it_comes_near() {
    let small = machine("zen4", &[("caches.l2.size_kib", "256")]);
    let held = 256 * 1024 / 64;
    // Too far apart for streams. Of the first the second level has nothing left, of the others all.
    let lines: Vec<u64> = (0..9 * held).map(|k| 5 * 64 * k).collect();
    let mut warmer = Warmer::new(&small);
    lines.chunks(1000).for_each(|some| warmer.refresh_far(some, 0));
    let lacks = |warmer: &Warmer, lines: &[u64]| {
        let mut again = warmer.clone();
        again.refresh(lines);
        again.memory().counts.l2_misses - warmer.memory().counts.l2_misses
    };
    let (older, latest) = lines.split_at(8 * held as usize);
    assert_eq!(lacks(&warmer, latest), held, "it has not heard of anything");
    warmer.come_near();
    assert_eq!(lacks(&warmer, latest), 0);
    assert_eq!(lacks(&warmer, &older[..held as usize]), held);
    assert_eq!(warmer.memory().counts.l2_misses, 0, "nobody asked");
}

#[test]
fn lines_of_a_stream_told_from_afar_come_before_they_are_asked_for() {
    let zen4 = machine("zen4", &[]);
    let counts = |lines: &[u64]| {
        let mut warmer = Warmer::new(&zen4);
        warmer.refresh_far(lines, 0);
        let of = warmer.memory().counts;
        (of.memory_reads, of.l3_misses)
    };
    let rising: Vec<u64> = (0..4096).map(|k| 64 * k).collect();
    let ahead = u64::from(zen4.prefetch.l2_stream_lines_max);
    assert_eq!(
        counts(&rising),
        (4096 + ahead, 4),
        "the first is alone, the fourth is the third of a stream, which asks for more than there is"
    );
    let scattered: Vec<u64> = (0..4096).map(|k| 64 * (k * 2741 % 65536)).collect();
    assert_eq!(counts(&scattered), (4096, 4096));
}

#[test]
fn a_predictor_that_alone_sees_blocks_learns_as_one_that_is_warmed() {
    let zen4 = machine("zen4", &[]);
    // A conditional jump back, and a jump back: taken by a pattern of seven.
    let blocks = [block(0x1000, &[NOP, &[0x75, 0xfd]]), block(0x1003, &[&[0xeb, 0xfb]])];
    let mut all = Warmer::new(&zen4);
    let mut alone = Warmer::new(&zen4);
    for warmer in [&mut all, &mut alone] {
        translate(warmer, &blocks);
    }
    for k in 0..5000_u32 {
        let id = BlockId(u32::from(k % 7 == 3));
        let ran = if id.0 == 0 { 2 } else { 1 };
        all.executed(id, ran, &[]);
        alone.steer(id, ran);
    }
    assert!(all.branches().taken > 3000 && all.branches().mispredicted > 0);
    assert_eq!(alone.branches(), all.branches());
    assert_eq!(alone.memory().counts, Default::default(), "nothing else saw them");
}

#[test]
fn strays_do_no_harm() {
    let mut warmer = Warmer::new(&machine("zen4", &[]));
    warmer.executed(BlockId(3), 1, &[]);
    translate(&mut warmer, &[block(u64::MAX - 5, &[LOAD, NOP])]);
    warmer.executed(BlockId(0), 9, &[load(0, u64::MAX), load(500, 1), store(2, 7)]);
    assert_eq!(warmer.instructions(), 2);
}
