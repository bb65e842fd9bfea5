//! Schedules in closed form, and against cores that are new.

use super::*;
use crate::core::Settings;
use crate::testing::*;

/// The schedule of one block, by a scheduler of its own.
fn schedule(machine: &Machine, mode: Mode, blocks: &[&StaticBlock], before: Before) -> Schedule {
    let mut scheduler = Scheduler::new(machine, mode);
    scheduler.take(blocks.iter().copied());
    scheduler.behind(0, before)
}

/// The same on a core that was made for it.
fn afresh(machine: &Machine, blocks: &[&StaticBlock], before: Before) -> Schedule {
    let ideal = Ideal::DATA_MISSES.with(Ideal::CODE_MISSES).with(Ideal::MISPREDICTS);
    let settings = Settings { mode: Mode::Native, ideal };
    let mut core = FastCore::watched(machine, settings, Lives::default());
    let (path, times, rounds) = match before {
        Before::Unknown => (vec![blocks[0]], 2, 1),
        Before::Block(before) => (vec![blocks[before], blocks[0]], 2, 1),
        Before::Itself => (vec![blocks[0]], 1, SETTLING + AVERAGED),
    };
    let entry = path[0].instructions[0].pc;
    let filler = filler(filler_before(entry), entry);
    core.translated(BlockId(0), &filler);
    for (place, block) in path.iter().enumerate() {
        core.translated(BlockId(1 + place as u32), block);
    }
    for _ in 0..times {
        core.executed(BlockId(0), filler.instructions.len() as u16, &[]);
        for _ in 0..rounds {
            for (place, block) in path.iter().enumerate() {
                let count = block.instructions.len() as u16;
                core.executed(BlockId(1 + place as u32), count, &[]);
            }
        }
    }
    core.finish();
    let averaged = if rounds > 1 { AVERAGED } else { 1 };
    read(&core.watcher().lives, blocks[0].instructions.len(), averaged, machine)
}

/// Instructions of every kind, some that end a block among them.
const BODIES: [&[u8]; 14] = [
    NOP,
    IMUL_RAX_RAX,
    ADD_RAX_RAX,
    DIV_EBX,
    MOV_ECX_1,
    &[0x48, 0x8b, 0x04, 0x25, 0, 0x10, 0, 0], // mov rax, [0x1000]
    &[0x48, 0x8b, 0x40, 0x08],                // mov rax, [rax+8]
    &[0x48, 0x89, 0x47, 0x10],                // mov [rdi+16], rax
    &[0xf2, 0x0f, 0x5e, 0xc1],                // divsd xmm0, xmm1
    &[0x0f, 0xae, 0xf0],                      // mfence
    &[0x48, 0x85, 0xc0],                      // test rax, rax
    &[0xf0, 0x48, 0x01, 0x07],                // lock add [rdi], rax
    &[0x66, 0x0f, 0xef, 0xc0],                // pxor xmm0, xmm0
    &[0x48, 0x0f, 0xa2],                      // cpuid
];
const ENDS: [&[u8]; 6] = [
    &[0x75, 0xf0],             // jne back
    &[0xff, 0xe0],             // jmp rax
    &[0xff, 0xd0],             // call rax
    &[0xe8, 0, 1, 0, 0],       // call
    &[0xc3],                   // ret
    &[0x0f, 0x84, 0, 2, 0, 0], // je far
];

#[test]
fn a_core_that_is_used_again_schedules_like_a_new_one() {
    for name in ["zen4", "alpha21164", "ppc970", "goldencove"] {
        let machine = machine(name, &[]);
        let mut scheduler = Scheduler::new(&machine, Mode::Native);
        // A schedule has no addresses for loads to wait for.
        let mut knowing = machine.clone();
        knowing.window.disambiguation_entries = 0;
        let mut dice = Dice::new(7);
        let mut die = |sides: usize| (dice.next() % sides as u64) as usize;
        for round in 0..150 {
            let mut made = Vec::new();
            let mut at = 0x40_0000 + die(10_000) as u64;
            for _ in 0..3 {
                let length = 1 + die(if round % 40 == 0 { 900 } else { 14 });
                let mut body: Vec<&[u8]> = (0..length).map(|_| BODIES[die(BODIES.len())]).collect();
                if die(4) > 0 {
                    body.push(ENDS[die(ENDS.len())]);
                }
                made.push(block(at, &body));
                // Some lie one behind the other, some far away.
                let bytes: usize = body.iter().map(|code| code.len()).sum();
                at += bytes as u64 + [0, 0, 5, 70_000][die(4)];
            }
            let blocks: Vec<&StaticBlock> = made.iter().collect();
            scheduler.take(blocks.iter().copied());
            for before in [Before::Block(1), Before::Unknown, Before::Itself, Before::Block(2)] {
                let again = scheduler.behind(0, before);
                assert_eq!(again, afresh(&knowing, &blocks, before), "{name} {round} {before:?}");
            }
        }
    }
}

#[test]
fn a_chain_takes_its_latency_and_names_its_maker() {
    let machine = machine("zen4", &[]);
    // Three multiplications of three cycles each, one after the other, in a loop.
    let block = block(0x40_0000, &[IMUL_RAX_RAX, IMUL_RAX_RAX, IMUL_RAX_RAX]);
    let found = schedule(&machine, Mode::Native, &[&block], Before::Itself);
    assert_eq!(found.head_cycles, [3.0, 3.0, 3.0]);
    let value = |maker| StaticWait::Value { maker, operand: 0 };
    assert_eq!(found.waits[1..], [value(0), value(1)]);
    assert_eq!(found.waits[0], StaticWait::Earlier { operand: 0 });
}

#[test]
fn independent_work_goes_by_width() {
    let machine = machine("zen4", &[("window.nop_fusion", "false")]);
    let width = f64::from(machine.window.dispatch_width);
    let body: Vec<&[u8]> = vec![NOP; 24];
    let found = schedule(&machine, Mode::Native, &[&block(0x40_0000, &body)], Before::Itself);
    assert!((found.cycles() - 24.0 / width).abs() < 0.5, "{}", found.cycles());
}

#[test]
fn what_came_before_matters() {
    let machine = machine("zen4", &[]);
    let before = block(0x40_0000, &[DIV_EBX]);
    let after = block(0x40_0002, &[ADD_RAX_RAX]);
    let alone = schedule(&machine, Mode::Native, &[&after], Before::Unknown);
    let behind = schedule(&machine, Mode::Native, &[&after, &before], Before::Block(1));
    assert!(behind.cycles() <= alone.cycles() + 1.0, "the wait is the division's own");
    assert!(matches!(behind.waits[..], [StaticWait::Earlier { .. }]), "{:?}", behind.waits);
    assert_eq!(alone.waits, [StaticWait::Turn]);
}

#[test]
fn an_in_order_core_issues_two_at_a_time() {
    let machine = machine("alpha21164", &[]);
    // Independent one-cycle work: at most two integer instructions a cycle.
    let body: Vec<&[u8]> = vec![MOV_ECX_1; 8];
    let found = schedule(&machine, Mode::Native, &[&block(0x40_0000, &body)], Before::Itself);
    assert!((found.cycles() - 4.0).abs() < 1e-9, "{:?}", found.head_cycles);
}
