use super::*;
use crate::cause::Cause;
use crate::core::{Ideal, Life, Mode, NOBODY};
use crate::fast::FastCore;
use crate::testing::*;

fn cycles_of(machine: &Machine, text: &[u8], times: u32) -> u64 {
    let mut core = ReferenceCore::new(machine, Settings::default());
    repeat(&mut core, text, times);
    core.finish();
    core.cycles()
}

fn steady(machine: &Machine, text: &[u8]) -> u64 {
    cycles_of(machine, text, 12_800) - cycles_of(machine, text, 6_400)
}

#[test]
fn chains_and_ports_take_their_closed_forms() {
    let zen4 = machine("zen4", &[]);
    assert_eq!(steady(&zen4, ADD_RAX_RAX), 6400);
    assert_eq!(steady(&zen4, IMUL_RAX_RAX), 3 * 6400);
    assert_eq!(steady(&zen4, DIV_EBX), 12 * 6400);
    assert!(steady(&zen4, NOP).abs_diff(6400 / 12) <= 1);
    assert_eq!(steady(&zen4, MOV_ECX_1), 6400 / 4);
    assert_eq!(steady(&zen4, IMUL_ECX_EDX_3), 6400);
    let slow = machine("zen4", &[("window.wakeup_cycles", "2")]);
    assert_eq!(steady(&slow, ADD_RAX_RAX), 2 * 6400);
}

/// mov rcx,rax; imul rax,rcx; imul esi,edx,3; imul edi,edx,3
///
/// A chain through a move that renaming does, and as much beside it as the one multiplier can take:
/// if the chain gives way to what is younger, that is lost.
#[test]
fn a_chain_through_eliminated_moves_keeps_its_age() {
    let body: [&[u8]; 4] =
        [&[0x48, 0x89, 0xc1], &[0x48, 0x0f, 0xaf, 0xc1], &[0x6b, 0xf2, 3], &[0x6b, 0xfa, 3]];
    for name in ["icelake-server", "zen4"] {
        let cycles = |times: usize| {
            let mut core = ReferenceCore::new(&machine(name, &[]), Settings::default());
            translate(&mut core, &[block(0x1000, &body.repeat(16))]);
            (0..times / 16).for_each(|_| core.executed(BlockId(0), 64, &[]));
            core.finish();
            core.cycles()
        };
        assert_eq!(cycles(12_800) - cycles(6_400), 3 * 6_400, "{name}");
    }
}

#[test]
fn a_chase_takes_the_latency_of_its_level_and_forwarding_its_own() {
    let quiet = [
        ("prefetch.l1_next_line", "false"),
        ("prefetch.l1_stride", "false"),
        ("prefetch.l2_stream", "false"),
        ("tlbs.page_bytes", "1073741824"),
    ];
    let mut core = ReferenceCore::new(&machine("zen4", &quiet), Settings::default());
    translate(&mut core, &[block(0x1000, &[CHASE])]);
    let lines = 8192;
    let walk = |core: &mut ReferenceCore| {
        (0..lines).for_each(|k| core.executed(BlockId(0), 1, &[load(0, k * 7919 % lines * 64)]));
        core.cycles()
    };
    walk(&mut core);
    let warm = walk(&mut core);
    assert_eq!(walk(&mut core) - warm, 14 * lines);
    for (name, cycles) in [("icelake-server", 6), ("zen4", 1)] {
        let mut core = ReferenceCore::new(&machine(name, &[]), Settings::default());
        translate(&mut core, &[block(0x1000, &[STORE_RAX, RELOAD_RAX])]);
        let accesses = [store(0, 0x8000), load(1, 0x8000)];
        let run = |core: &mut ReferenceCore| {
            (0..4000).for_each(|_| core.executed(BlockId(0), 2, &accesses));
            core.cycles()
        };
        let warm = run(&mut core);
        assert!((run(&mut core) - warm).abs_diff(4000 * cycles) <= 8, "{name}");
        core.finish();
        assert_eq!(core.counts()[Event::Forwards], 8000, "{name}");
    }
}

/// Random blocks of every kind of instruction, seeded.
fn program(seed: u64) -> Vec<StaticBlock> {
    let mut dice = Dice::new(seed);
    let texts = [
        NOP,
        ADD_RAX_RAX,
        MOV_ECX_1,
        IMUL_RAX_RAX,
        IMUL_ECX_EDX_3,
        ADDSD,
        LOAD,
        STORE_RAX,
        RELOAD_RAX,
        CHASE,
        &[0x48, 0x01, 0xd1],
        &[0x48, 0x39, 0xd8],
    ];
    (0..24)
        .map(|k| {
            let count = 3 + dice.next() % 10;
            let mut body: Vec<&[u8]> =
                (0..count).map(|_| texts[(dice.next() % texts.len() as u64) as usize]).collect();
            body.push(JNE);
            block(0x1000 + k * 0x60, &body)
        })
        .collect()
}

/// Runs the blocks in a seeded order with loops, and memory mostly within the first level.
fn run(core: &mut impl CoreListener, seed: u64, steps: u32) {
    let blocks = program(seed);
    translate(core, &blocks);
    let mut dice = Dice::new(seed ^ 0x55);
    let mut at = 0;
    for step in 0..steps {
        if step % 6 == 5 || dice.next().is_multiple_of(40) {
            at = (at + 1 + dice.next() as usize % 3) % blocks.len();
        }
        let body = &blocks[at].instructions;
        let mut accesses = Vec::new();
        for (k, code) in body.iter().enumerate() {
            let text = &code.bytes[..usize::from(code.len)];
            let far = if dice.next().is_multiple_of(50) { 1 << 22 } else { 1 << 13 };
            let address = 0x10_0000 + (dice.next() % far) / 8 * 8;
            if [LOAD, RELOAD_RAX, CHASE].contains(&text) {
                accesses.push(load(k as u16, address));
            } else if text == STORE_RAX {
                accesses.push(store(k as u16, address));
            }
        }
        core.executed(BlockId(at as u32), body.len() as u16, &accesses);
    }
}

fn both(machine: &Machine, settings: Settings, seed: u64) -> (Counts, Counts) {
    let mut fast = FastCore::new(machine, settings);
    let mut slow = ReferenceCore::new(machine, settings);
    run(&mut fast, seed, 3000);
    run(&mut slow, seed, 3000);
    fast.finish();
    slow.finish();
    (fast.counts(), slow.counts())
}

#[test]
fn the_fast_core_agrees_with_this_one_on_cycles() {
    let mut worst: (f64, String) = (0.0, String::new());
    let mut sum = 0.0;
    let mut count = 0.0;
    for name in crate::machine::machines() {
        for mode in [Mode::Native, Mode::Single, Mode::InOrder, Mode::InOrderSuperscalar] {
            let settings = Settings { mode, ideal: Ideal::NONE };
            let (fast, slow) = both(&machine(name, &[]), settings, 5);
            let (f, s) = (fast[Event::Cycles] as f64, slow[Event::Cycles] as f64);
            let off = (f / s - 1.0).abs();
            sum += off;
            count += 1.0;
            if off > worst.0 {
                worst = (off, format!("{name} {mode:?}: {f} against {s}"));
            }
        }
    }
    assert!(worst.0 < 0.10, "{} ({})", worst.1, worst.0);
    assert!(sum / count < 0.03, "mean {}", sum / count);
}

#[test]
fn what_does_not_depend_on_time_agrees_exactly() {
    let (fast, slow) = both(&machine("zen4", &[]), Settings::default(), 9);
    for &event in Event::ALL {
        let exact = event.is_static()
            || [Event::BranchMisses, Event::TakenBranches, Event::Resteers, Event::Issues]
                .contains(&event);
        if exact {
            assert_eq!(fast[event], slow[event], "{}", event.name());
        }
    }
}

#[test]
fn idealisations_agree_as_well() {
    for (name, ideal) in Ideal::NAMES {
        let settings = Settings { mode: Mode::Native, ideal };
        let (fast, slow) = both(&machine("icost-table6", &[]), settings, 3);
        let (f, s) = (fast[Event::Cycles] as f64, slow[Event::Cycles] as f64);
        assert!((f / s - 1.0).abs() < 0.08, "{name}: {f} against {s}");
    }
}

#[test]
fn the_stack_of_causes_sums_to_the_cycles() {
    for name in ["zen4", "ppc970", "alpha21164"] {
        for mode in [Mode::Native, Mode::Single, Mode::InOrder, Mode::InOrderSuperscalar] {
            let settings = Settings { mode, ideal: Ideal::NONE };
            let mut core = ReferenceCore::new(&machine(name, &[]), settings);
            run(&mut core, 7, 1500);
            core.finish();
            let counts = core.counts();
            let sum = |event: fn(Cause) -> Event| -> u64 {
                Cause::ALL.iter().map(|&cause| counts[event(cause)]).sum()
            };
            assert_eq!(sum(Cause::exact_event), counts[Event::StallCycles], "{name} {mode:?}");
            assert_eq!(sum(Cause::charged_event), counts[Event::StallCycles], "{name} {mode:?}");
            assert_eq!(core.account().ticks_total(), counts[Event::Cycles] * crate::core::TICKS);
        }
    }
}

#[test]
fn every_micro_op_lives_once_with_its_stages_in_order() {
    for name in ["zen4", "ppc970", "alpha21164"] {
        let mut seen: Vec<Life> = Vec::new();
        let watcher = |life: &Life| seen.push(*life);
        let mut core = ReferenceCore::watched(&machine(name, &[]), Settings::default(), watcher);
        run(&mut core, 2, 500);
        core.finish();
        let counts = core.counts();
        drop(core);
        assert_eq!(seen.len() as u64, counts[Event::Uops], "{name}");
        for (k, life) in seen.iter().enumerate() {
            assert_eq!(life.sequence, k as u64);
            let stages = [
                life.fetched,
                life.dispatched,
                life.ready,
                life.issued,
                life.completed,
                life.committed,
            ];
            assert!(stages.is_sorted(), "{name} {life:?}");
            for &producer in life.producers.iter().filter(|&&p| p != NOBODY) {
                assert!(seen[producer as usize].completed <= life.ready, "{name} {life:?}");
            }
        }
        assert!(seen.iter().map(|l| l.committed).is_sorted(), "{name}");
    }
}

/// mov [rdi],eax; mov rax,[rdi]; mfence
///
/// The store has half of what the load wants, and the fence waits for what is older: where all three
/// retire together, waiting for the store to be written would have no end.
#[test]
fn what_retires_together_does_not_wait_for_its_own_store_to_be_written() {
    let body: [&[u8]; 3] = [&[0x89, 0x07], RELOAD_RAX, &[0x0f, 0xae, 0xf0]];
    let half = Access { size: 4, ..store(0, 0x8000) };
    let modes = [Mode::Native, Mode::Single, Mode::InOrder, Mode::InOrderSuperscalar];
    for (name, mode) in ["ppc970", "zen4", "alpha21164"].iter().flat_map(|n| modes.map(|m| (n, m)))
    {
        let settings = Settings { mode, ..Settings::default() };
        let mut core = ReferenceCore::new(&machine(name, &[]), settings);
        translate(&mut core, &[block(0x1000, &body)]);
        (0..400).for_each(|_| core.executed(BlockId(0), 3, &[half, load(1, 0x8000)]));
        core.finish();
        let counts = core.counts();
        assert_eq!(counts[Event::Instructions], 3 * 400, "{name} {mode:?}");
        let met = counts[Event::Forwards] + counts[Event::BlockedForwards];
        assert_eq!(met, 400, "{name} {mode:?}");
    }
}
