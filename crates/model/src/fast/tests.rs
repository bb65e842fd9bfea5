use super::*;
use crate::core::{Life, Mode, NOBODY};
use crate::reference::ReferenceCore;
use crate::testing::*;

fn cycles_of(machine: &Machine, text: &[u8], times: u32) -> u64 {
    let mut core = FastCore::new(machine, Settings::default());
    repeat(&mut core, text, times);
    core.finish();
    core.cycles()
}

/// Cycles that 6400 more instructions take once everything is warm.
fn steady(machine: &Machine, text: &[u8]) -> u64 {
    cycles_of(machine, text, 12_800) - cycles_of(machine, text, 6_400)
}

#[test]
fn a_chain_takes_its_latency_for_every_link() {
    let zen4 = machine("zen4", &[]);
    assert_eq!(steady(&zen4, ADD_RAX_RAX), 6400);
    assert_eq!(steady(&zen4, IMUL_RAX_RAX), 3 * 6400);
    assert_eq!(steady(&zen4, ADDSD), 3 * 6400);
    assert_eq!(steady(&zen4, DIV_EBX), 12 * 6400);
    let slow = machine("zen4", &[("window.wakeup_cycles", "2")]);
    assert_eq!(steady(&slow, ADD_RAX_RAX), 2 * 6400);
}

#[test]
fn independent_work_is_bound_by_width_or_ports() {
    let zen4 = machine("zen4", &[]);
    // Six slots a cycle and two no-ops a slot, four adders, one multiplier.
    assert!(steady(&zen4, NOP).abs_diff(6400 / 12) <= 1);
    let apart = machine("zen4", &[("window.nop_fusion", "false")]);
    assert!(steady(&apart, NOP).abs_diff(6400 / 6) <= 1);
    assert_eq!(steady(&zen4, MOV_ECX_1), 6400 / 4);
    assert_eq!(steady(&zen4, IMUL_ECX_EDX_3), 6400);
    let icelake = machine("icelake-server", &[]);
    assert_eq!(steady(&icelake, NOP), 6400 / 5);
}

#[test]
fn independent_divisions_are_bound_by_the_divider() {
    // xorps clears nothing here: divsd xmm1,xmm0 has no chain through xmm1 but for the merge.
    let vdivsd: &[u8] = &[0xc5, 0xfb, 0x5e, 0xc8]; // vdivsd xmm1,xmm0,xmm0
    assert_eq!(steady(&machine("zen4", &[]), vdivsd), 5 * 6400);
    assert_eq!(steady(&machine("icelake-server", &[]), vdivsd), 4 * 6400);
}

/// A chase through a ring of lines: cycles per step once the ring has been walked.
fn chase(machine: &Machine, bytes: u64) -> f64 {
    let mut core = FastCore::new(machine, Settings::default());
    translate(&mut core, &[block(0x1000, &[CHASE])]);
    let lines = bytes / 64;
    let walk = |core: &mut FastCore| {
        // A stride prime to the ring keeps neighbours apart.
        (0..lines).for_each(|k| core.executed(BlockId(0), 1, &[load(0, k * 7919 % lines * 64)]));
        core.cycles()
    };
    let warm = walk(&mut core);
    (walk(&mut core) - warm) as f64 / lines as f64
}

const QUIET: [(&str, &str); 4] = [
    ("prefetch.l1_next_line", "false"),
    ("prefetch.l1_stride", "false"),
    ("prefetch.l2_stream", "false"),
    ("tlbs.page_bytes", "1073741824"),
];

#[test]
fn a_pointer_chase_takes_the_latency_of_the_level_that_holds_it() {
    let zen4 = machine("zen4", &QUIET);
    assert_eq!(chase(&zen4, 16 << 10), 4.0);
    assert_eq!(chase(&zen4, 512 << 10), 14.0);
    assert_eq!(chase(&zen4, 8 << 20), 50.0);
}

#[test]
fn a_chase_through_memory_takes_its_latency() {
    let small = [("caches.l3.size_kib", "2048"), ("caches.l3.ways", "16")];
    let all: Vec<_> = QUIET.iter().chain(&small).copied().collect();
    assert_eq!(chase(&machine("zen4", &all), 8 << 20), 380.0);
}

#[test]
fn independent_misses_overlap_up_to_the_miss_registers() {
    let mut small = QUIET.to_vec();
    small.push(("memory.bytes_per_cycle", "64"));
    let mut core = FastCore::new(&machine("zen4", &small), Settings::default());
    translate(&mut core, &[block(0x1000, &[LOAD])]);
    for k in 0..24_000 {
        core.executed(BlockId(0), 1, &[load(0, k * 64)]);
    }
    core.finish();
    // 24 at a time, 380 cycles each.
    let expected = 24_000 / 24 * 380;
    let off = core.cycles().abs_diff(expected) as f64 / expected as f64;
    assert!(off < 0.05, "{} against {expected}", core.cycles());
}

/// Cycles of a round of a block once it runs steadily, the same on both cores.
fn a_round(machine: &Machine, text: &[&[u8]], accesses: &[Access]) -> f64 {
    let cycles = |rounds: u64| {
        let mut fast = FastCore::new(machine, Settings::default());
        let mut reference = ReferenceCore::new(machine, Settings::default());
        let cores: [&mut dyn CoreListener; 2] = [&mut fast, &mut reference];
        for core in cores {
            core.translated(BlockId(0), &block(0x1000, text));
            (0..rounds).for_each(|_| core.executed(BlockId(0), text.len() as u16, accesses));
        }
        fast.finish();
        reference.finish();
        [fast.cycles(), reference.cycles()]
    };
    let (less, more) = (cycles(2000), cycles(4000));
    let [fast, reference] = [more[0] - less[0], more[1] - less[1]];
    assert!(fast.abs_diff(reference) <= 4, "{fast} and {reference} cycles for {text:02x?}");
    fast as f64 / 2000.0
}

fn access(instruction: u16, address: u64, size: u8, is_store: bool) -> Access {
    Access { address, instruction, size, is_store }
}

#[test]
fn a_value_through_memory_takes_the_forwarding_latency() {
    // The store's data micro-op takes one cycle before it can be forwarded.
    let whole = [access(0, 0x8000, 8, true), access(1, 0x8000, 8, false)];
    let icelake = machine("icelake-server", &[]);
    assert_eq!(a_round(&icelake, &[STORE_RAX, RELOAD_RAX], &whole), 5.0 + 1.0);
    // Renaming joins them where the machine does that, whatever the address is made of.
    let zen4 = machine("zen4", &[]);
    // mov rax,[rsi]
    assert_eq!(a_round(&zen4, &[STORE_RAX, &[0x48, 0x8b, 0x06]], &whole), 1.0);
    // mov eax,[rdi+4] begins elsewhere.
    let half = [access(0, 0x8000, 8, true), access(1, 0x8004, 4, false)];
    assert_eq!(a_round(&zen4, &[STORE_RAX, &[0x8b, 0x47, 0x04]], &half), 6.0 + 1.0);
    // movups [rdi],xmm0 ; movups xmm0,[rdi]: vectors are not renamed.
    let wide = [access(0, 0x8000, 16, true), access(1, 0x8000, 16, false)];
    assert_eq!(a_round(&zen4, &[&[0x0f, 0x11, 0x07], &[0x0f, 0x10, 0x07]], &wide), 6.0 + 3.0);
}

#[test]
fn a_load_of_more_than_was_stored_waits_for_the_write_and_then_some() {
    // mov [rdi],eax ; mov rax,[rdi]
    let text: [&[u8]; 2] = [&[0x89, 0x07], RELOAD_RAX];
    let accesses = [access(0, 0x8000, 4, true), access(1, 0x8000, 8, false)];
    let free =
        a_round(&machine("zen4", &[("window.blocked_forward_cycles", "0")]), &text, &accesses);
    assert_eq!(a_round(&machine("zen4", &[]), &text, &accesses), free + 12.0);
}

#[test]
fn stores_of_a_cycle_share_a_line_and_those_across_a_boundary_go_alone() {
    let zen4 = machine("zen4", &[]);
    let round = |addresses: [u64; 2]| {
        let accesses = [0, 1].map(|k| access(k, addresses[usize::from(k)], 8, true));
        a_round(&zen4, &[STORE_RAX, STORE_RAX], &accesses)
    };
    assert_eq!(round([0x8000, 0x8008]), 1.0);
    assert_eq!(round([0x8000, 0x8040]), 2.0);
    assert_eq!(round([0x801c, 0x801c]), 4.0);
}

#[test]
fn a_store_across_a_boundary_is_two_writes_where_a_cycle_writes_any_lines() {
    let zen5 = machine("zen5", &[]);
    let round = |addresses: [u64; 2]| {
        let accesses = [0, 1].map(|k| access(k, addresses[usize::from(k)], 8, true));
        a_round(&zen5, &[STORE_RAX, STORE_RAX], &accesses)
    };
    assert_eq!(round([0x8000, 0x8040]), 1.0);
    assert_eq!(round([0x803c, 0x803c]), 2.0);
    assert_eq!(round([0x8000, 0x803c]), 1.5);
}

#[test]
fn an_indexed_load_takes_the_cycle_more_that_the_machine_says() {
    // mov rax,[rax+rcx*8]
    let indexed: &[u8] = &[0x48, 0x8b, 0x04, 0xc8];
    let per_step = |name: &str, text: &[u8]| {
        let mut core = FastCore::new(&machine(name, &[]), Settings::default());
        translate(&mut core, &[block(0x1000, &[text])]);
        let run = |core: &mut FastCore| {
            (0..1000).for_each(|_| core.executed(BlockId(0), 1, &[load(0, 0x8000)]));
            core.cycles()
        };
        let warm = run(&mut core);
        (run(&mut core) - warm) / 1000
    };
    assert_eq!((per_step("zen4", CHASE), per_step("zen4", indexed)), (4, 5));
    assert_eq!((per_step("icelake-server", CHASE), per_step("icelake-server", indexed)), (5, 5));
}

#[test]
fn jumps_that_crowd_a_line_of_code_cost_their_bubble_on_both_cores() {
    // Sixteen jumps four bytes apart, and one back to the first from the next line.
    let mut blocks: Vec<_> = (0..16).map(|k| block(0x1000 + 4 * k, &[&[0xeb, 2]])).collect();
    blocks.push(block(0x1040, &[&[0xeb, 0xbe]]));
    fn round(core: &mut impl CoreListener) {
        (0..17).for_each(|k| core.executed(BlockId(k), 1, &[]));
    }
    for (most, bubble) in [("0", 0), ("12", 12), ("8", 24)] {
        let zen4 = machine("zen4", &[("branch.line_targets", most)]);
        let mut fast = FastCore::new(&zen4, Settings::default());
        let mut slow = ReferenceCore::new(&zen4, Settings::default());
        let mut cycles = [[0; 2]; 2];
        translate(&mut fast, &blocks);
        translate(&mut slow, &blocks);
        for (k, rounds) in [100, 200].into_iter().enumerate() {
            (0..rounds).for_each(|_| round(&mut fast));
            (0..rounds).for_each(|_| round(&mut slow));
            cycles[k] = [fast.cycles(), slow.cycles()];
        }
        // A cycle each, and what is lost after those that have no room.
        assert_eq!(cycles[1][0] - cycles[0][0], 200 * (17 + bubble), "fast, room for {most}");
        let off = (cycles[1][1] - cycles[0][1]).abs_diff(200 * (17 + bubble));
        assert!(off <= 64, "cycle by cycle, room for {most}: {cycles:?}");
    }
}

#[test]
fn the_odd_jump_of_a_loop_has_a_cycle_to_itself_on_both_cores() {
    fn cycles(core: &mut impl CoreListener, jumps: u32, rounds: u64) {
        // Jumps sixteen bytes apart, the last one back to the first.
        for k in 0..jumps {
            let to = if k + 1 == jumps { 0xfe - 16 * k as u8 } else { 14 };
            core.translated(BlockId(k), &block(0x1000 + 16 * u64::from(k), &[&[0xeb, to]]));
        }
        (0..rounds).for_each(|_| (0..jumps).for_each(|k| core.executed(BlockId(k), 1, &[])));
    }
    let zen5 = machine("zen5", &[]);
    for (jumps, expected) in [(2, 1), (3, 2), (4, 2), (5, 3)] {
        let fast = |rounds| {
            let mut core = FastCore::new(&zen5, Settings::default());
            cycles(&mut core, jumps, rounds);
            core.finish();
            core.cycles()
        };
        let slow = |rounds| {
            let mut core = ReferenceCore::new(&zen5, Settings::default());
            cycles(&mut core, jumps, rounds);
            core.finish();
            core.cycles()
        };
        assert_eq!(fast(2000) - fast(1000), 1000 * expected, "{jumps} jumps");
        let off = (slow(2000) - slow(1000)).abs_diff(1000 * expected);
        assert!(off <= 4, "cycle by cycle, {jumps} jumps: {off} cycles off");
    }
}

#[test]
fn a_random_branch_costs_the_penalty_each_time_it_is_mispredicted() {
    let zen4 = machine("zen4", &[("branch.direction", "bimodal")]);
    let mut core = FastCore::new(&zen4, Settings::default());
    // A jne, whose target and fall-through are both a lone nop followed by the branch again.
    let blocks = [
        block(0x1000, &[JNE]),
        block(0x1002, &[NOP, &[0xeb, 0xfb]]),
        block(0x1012, &[NOP, &[0xeb, 0xeb]]),
    ];
    translate(&mut core, &blocks);
    let mut dice = Dice::new(3);
    let mut warm = None;
    for k in 0..20_000 {
        core.executed(BlockId(0), 1, &[]);
        let taken = dice.next() & 1;
        core.executed(BlockId(1 + taken as u32), 2, &[]);
        if k == 1000 {
            warm = Some((core.cycles(), core.counts()[Event::BranchMisses]));
        }
    }
    let (cycles, misses) = warm.unwrap();
    let per_miss =
        (core.cycles() - cycles) as f64 / (core.counts()[Event::BranchMisses] - misses) as f64;
    // 13 from execution to dispatch, 2 to issue, 1 to execute, and what the nops between cost.
    assert!((16.0..=22.0).contains(&per_miss), "{per_miss}");
    let ideal = Settings { ideal: Ideal::MISPREDICTS, ..Settings::default() };
    let mut perfect = FastCore::new(&zen4, ideal);
    translate(&mut perfect, &blocks);
    for k in 0..20_000 {
        perfect.executed(BlockId(0), 1, &[]);
        perfect.executed(BlockId(1 + k % 2), 2, &[]);
    }
    assert!(perfect.cycles() <= 2 * 20_000 + 1000, "{}", perfect.cycles());
}

/// A mix of everything, seeded.
fn mixed(core: &mut impl CoreListener, rounds: u32) {
    let blocks = [
        block(0x1000, &[ADD_RAX_RAX, LOAD, IMUL_RAX_RAX, STORE_RAX, JNE]),
        block(0x100c, &[MOV_ECX_1, CHASE, ADDSD, NOP, DIV_EBX]),
        block(0x5000, &[RELOAD_RAX, ADDSD, IMUL_ECX_EDX_3, JNE]),
    ];
    translate(core, &blocks);
    let mut dice = Dice::new(11);
    for _ in 0..rounds {
        let (a, b) = (dice.next() % (1 << 22), dice.next() % (1 << 14));
        core.executed(BlockId(0), 5, &[load(1, a), store(3, 0x10_0000 + b)]);
        if dice.next().is_multiple_of(3) {
            core.executed(BlockId(2), 4, &[load(0, 0x10_0000 + b)]);
        } else {
            core.executed(BlockId(1), 5, &[load(1, a ^ 64)]);
        }
    }
}

#[test]
fn the_stack_of_causes_sums_to_the_cycles_on_every_machine_and_mode() {
    for name in crate::machine::machines() {
        for mode in [Mode::Native, Mode::Single, Mode::InOrder, Mode::InOrderSuperscalar] {
            let settings = Settings { mode, ideal: Ideal::NONE };
            let mut core = FastCore::new(&machine(name, &[]), settings);
            mixed(&mut core, 3000);
            core.finish();
            let counts = core.counts();
            let sum = |event: fn(Cause) -> Event| -> u64 {
                Cause::ALL.iter().map(|&cause| counts[event(cause)]).sum()
            };
            assert_eq!(sum(Cause::exact_event), counts[Event::StallCycles], "{name} {mode:?}");
            assert_eq!(sum(Cause::charged_event), counts[Event::StallCycles]);
            assert_eq!(
                counts[Event::Cycles],
                counts[Event::StallCycles] + counts[Event::RetireCycles]
            );
            assert_eq!(core.account().ticks_total(), counts[Event::Cycles] * crate::core::TICKS);
            assert!(counts[Event::Cycles] > 3000, "{name}: {}", counts[Event::Cycles]);
        }
    }
}

#[test]
fn events_by_instruction_sum_to_the_totals() {
    let mut core = FastCore::new(&machine("zen4", &[]), Settings::default());
    mixed(&mut core, 5000);
    core.finish();
    let counts = core.counts();
    let places = core.program().instructions.len();
    for &event in Event::ALL {
        if event.happening().is_some() {
            let sum: u64 =
                (0..places).filter_map(|place| core.account().happenings(place, event)).sum();
            assert_eq!(sum, counts[event], "{}", event.name());
        } else if event.is_static() {
            let runs = core.account().runs();
            let of = |place: usize| runs[place] * core.program().static_count(place, event);
            assert_eq!((0..places).map(of).sum::<u64>(), counts[event], "{}", event.name());
        }
    }
    assert!(counts[Event::BranchMisses] > 0 && counts[Event::L1dLoadMisses] > 0);
    assert_eq!(counts[Event::Instructions], core.account().totals[Event::Instructions]);
}

#[test]
fn an_idealisation_never_costs_time_on_the_mix() {
    let run = |ideal| {
        let settings = Settings { mode: Mode::Native, ideal };
        let mut core = FastCore::new(&machine("icost-table6", &[]), settings);
        mixed(&mut core, 3000);
        core.finish();
        core.cycles()
    };
    let base = run(Ideal::NONE);
    let mut all = Ideal::NONE;
    for (name, ideal) in Ideal::NAMES {
        assert!(run(ideal) <= base, "{name}: {} against {base}", run(ideal));
        all = all.with(ideal);
    }
    assert!(run(all) < base / 10, "{} against {base}", run(all));
}

#[test]
fn stricter_orders_take_longer() {
    let run = |mode| {
        let settings = Settings { mode, ideal: Ideal::NONE };
        let mut core = FastCore::new(&machine("ppc970", &[]), settings);
        mixed(&mut core, 3000);
        core.finish();
        core.cycles()
    };
    let (native, single, in_order) = (run(Mode::Native), run(Mode::Single), run(Mode::InOrder));
    assert!(native < single && native < in_order, "{native} {single} {in_order}");
}

#[test]
fn the_short_paths_count_what_the_long_one_counts() {
    // A core that is listened to takes the long path for everything.
    for name in ["zen4", "icelake-server", "icost-table6"] {
        let mut short = FastCore::new(&machine(name, &[]), Settings::default());
        let mut long = FastCore::watched(&machine(name, &[]), Settings::default(), |_: &Life| {});
        mixed(&mut short, 6000);
        mixed(&mut long, 6000);
        short.finish();
        long.finish();
        for &event in Event::ALL {
            assert_eq!(short.counts()[event], long.counts()[event], "{name} {}", event.name());
        }
        for place in 0..short.program().instructions.len() {
            assert_eq!(short.account().ticks(place), long.account().ticks(place), "{name} {place}");
        }
    }
}

#[test]
fn a_watcher_sees_every_micro_op_once_with_its_stages_in_order() {
    for name in ["zen4", "ppc970", "alpha21164"] {
        let mut seen = Vec::new();
        let watcher = |life: &Life| seen.push(*life);
        let mut core = FastCore::watched(&machine(name, &[]), Settings::default(), watcher);
        mixed(&mut core, 500);
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
        let misses = seen.iter().filter(|l| l.mispredicted).count() as u64;
        assert_eq!(misses, counts[Event::BranchMisses], "{name}");
        let joins = seen.iter().filter(|l| l.class.is_load() && !l.missed_l1d && l.from > l.level);
        assert_eq!(joins.count() as u64, counts[Event::L1dJoins], "{name}");
        assert!(counts[Event::L1dJoins] > 0, "{name}");
    }
}

#[test]
fn accesses_and_blocks_that_make_no_sense_do_no_harm() {
    let mut core = FastCore::new(&machine("zen4", &[]), Settings::default());
    core.executed(BlockId(9), 3, &[]);
    translate(&mut core, &[block(0x1000, &[LOAD, STORE_RAX, NOP])]);
    core.executed(BlockId(0), 900, &[store(2, 5), load(7, u64::MAX), load(0, u64::MAX - 3)]);
    core.executed(BlockId(0), 3, &[load(0, u64::MAX - 2), store(1, u64::MAX)]);
    core.executed(BlockId(0), 0, &[]);
    core.finish();
    assert_eq!(core.counts()[Event::Instructions], 6);
}
