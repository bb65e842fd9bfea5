//! The graph on lives of the cycle-by-cycle core: its longest path is the observed time, and
//! idealising answers as it must.
#![allow(clippy::unwrap_used)]

use icost::{Arbitration, Categories, Category, Fixed, Labeller, Lanes, subsets_up_to};
use model::core::{Life, Settings, Watcher};
use model::event::Event;
use model::machine::{Machine, text_of};
use model::reference::ReferenceCore;
use model::stream::{Access, BlockId, Code, CoreListener, StaticBlock};

struct Graph {
    labeller: Labeller,
    frozen: Lanes<256>,
    anew: Lanes<40>,
    first: Option<u64>,
    last: u64,
}

impl Graph {
    fn new(machine: &Machine) -> Graph {
        let fixed = Fixed::of(machine);
        Graph {
            labeller: Labeller::new(fixed),
            frozen: Lanes::new(fixed, &subsets_up_to(8), Arbitration::Frozen),
            anew: Lanes::new(fixed, &subsets_up_to(2), Arbitration::Anew),
            first: None,
            last: 0,
        }
    }

    fn observed(&self) -> f64 {
        (self.last - self.first.unwrap()) as f64
    }
}

impl Watcher for Graph {
    fn lived(&mut self, life: &Life) {
        self.first.get_or_insert(life.dispatched);
        self.last = life.committed;
        let step = self.labeller.label(life);
        self.frozen.step(&step);
        self.anew.step(&step);
    }
}

/// imul rax,rax; mov rcx,[rbx]; add rcx,rax; mov [rdi],rcx; addsd; div ebx; jne, at most so many.
const TEXTS: [&[u8]; 7] = [
    &[0x48, 0x0f, 0xaf, 0xc0],
    &[0x48, 0x8b, 0x0b],
    &[0x48, 0x01, 0xc1],
    &[0x48, 0x89, 0x0f],
    &[0xf2, 0x0f, 0x58, 0xc0],
    &[0xf7, 0xf3],
    &[0x75, 0x10],
];

fn machine(name: &str) -> Machine {
    Machine::load(name, text_of(name).unwrap(), &[]).unwrap()
}

/// The same with imul rdi,rdi in place of the first: addresses of stores come late.
const LATE: [&[u8]; 7] =
    [&[0x48, 0x0f, 0xaf, 0xff], TEXTS[1], TEXTS[2], TEXTS[3], TEXTS[4], TEXTS[5], TEXTS[6]];

/// Blocks of random instructions in random order, with loads and stores all over.
fn run(machine: &Machine, seed: u64, blocks: usize, runs: usize) -> ReferenceCore<Graph> {
    run_of(&TEXTS, 1 << 14, machine, seed, (blocks, runs))
}

/// The same of these instructions, over so many words of memory.
fn run_of(
    texts: &[&[u8]; 7],
    words: u64,
    machine: &Machine,
    seed: u64,
    (blocks, runs): (usize, usize),
) -> ReferenceCore<Graph> {
    let mut seed = seed;
    let mut below = |n: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % n
    };
    let mut core = ReferenceCore::watched(machine, Settings::default(), Graph::new(machine));
    let mut kinds: Vec<Vec<usize>> = Vec::new();
    for id in 0..blocks {
        let mut body: Vec<usize> = (0..2 + below(9)).map(|_| below(6) as usize).collect();
        body.push(6);
        let mut pc = 0x40_0000 + 0x100 * id as u64;
        let code = |&kind: &usize| {
            let mut bytes = [0; 15];
            bytes[..texts[kind].len()].copy_from_slice(texts[kind]);
            let code = Code { pc, bytes, len: texts[kind].len() as u8 };
            pc += u64::from(code.len);
            code
        };
        let instructions = body.iter().map(code).collect();
        core.translated(BlockId(id as u32), &StaticBlock { instructions });
        kinds.push(body);
    }
    for _ in 0..runs {
        let id = below(blocks as u64) as usize;
        let touches = kinds[id].iter().enumerate().filter(|(_, kind)| matches!(**kind, 1 | 3));
        let accesses: Vec<Access> = touches
            .map(|(k, &kind)| Access {
                address: 0x10_0000 + 8 * below(words),
                instruction: k as u16,
                size: 8,
                is_store: kind == 3,
            })
            .collect();
        core.executed(BlockId(id as u32), kinds[id].len() as u16, &accesses);
    }
    core.finish();
    core
}

#[test]
fn the_longest_path_is_the_observed_time() {
    for name in ["icost-table6", "zen4", "icelake-server"] {
        let machine = machine(name);
        for seed in 1..4 {
            let core = run(&machine, seed, 40, 1500);
            let graph = core.watcher();
            let times = graph.frozen.times();
            assert_eq!(times[0], (Categories::NONE, graph.observed()), "{name}");
            // With ports given out anew the order of the program decides, not that of time.
            let anew = graph.anew.times()[0].1;
            assert!((anew / graph.observed() - 1.0).abs() < 0.01, "{name}: {anew}");
        }
    }
}

#[test]
fn the_longest_path_holds_loads_that_wait_for_addresses_or_are_done_again() {
    for name in ["icelake-server", "goldencove"] {
        let machine = machine(name);
        for seed in 1..4 {
            let core = run_of(&LATE, 60, &machine, seed, (40, 6000));
            let counts = core.counts();
            assert!(counts[Event::HeldLoads] > 300, "{}", counts[Event::HeldLoads]);
            assert!(counts[Event::OrderingRestarts] > 10, "{}", counts[Event::OrderingRestarts]);
            let graph = core.watcher();
            assert_eq!(graph.frozen.times()[0], (Categories::NONE, graph.observed()), "{name}");
            let anew = graph.anew.times()[0].1;
            assert!((anew / graph.observed() - 1.0).abs() < 0.01, "{name}: {anew}");
        }
    }
}

#[test]
fn idealising_more_never_takes_longer_with_ports_frozen() {
    let core = run(&machine("icost-table6"), 9, 40, 3000);
    let times = core.watcher().frozen.times();
    let time = |set: Categories| times.iter().find(|(other, _)| *other == set).unwrap().1;
    for &(set, cycles) in &times {
        for &category in Category::ALL {
            assert!(time(set.with(category)) <= cycles, "{} and {}", set.name(), category.name());
        }
    }
}

#[test]
fn with_everything_idealised_only_the_pipeline_is_left() {
    let core = run(&machine("icost-table6"), 5, 40, 3000);
    let times = core.watcher().frozen.times();
    let &(_, left) = times.iter().find(|(set, _)| *set == Categories::ALL).unwrap();
    // Stores and what reads them back still take a cycle each, in a row at worst.
    assert!(left < 0.5 * core.watcher().observed(), "{left}");
    assert!(left > 0.0);
}

#[test]
fn chains_of_one_kind_cost_what_they_take() {
    // A thousand dependent multiplications of three cycles: all of their time is long work.
    let machine = machine("icost-table6");
    let mut core = ReferenceCore::watched(&machine, Settings::default(), Graph::new(&machine));
    let mut bytes = [0; 15];
    bytes[..4].copy_from_slice(TEXTS[0]);
    let code = |k: u64| Code { pc: 0x40_0000 + 4 * k, bytes, len: 4 };
    core.translated(BlockId(0), &StaticBlock { instructions: (0..1000).map(code).collect() });
    core.executed(BlockId(0), 1000, &[]);
    core.finish();
    let times = core.watcher().frozen.times();
    let time = |set: Categories| times.iter().find(|(other, _)| *other == set).unwrap().1;
    let base = time(Categories::NONE);
    let long = base - time(Categories::of(&[Category::Lgalu]));
    let short = base - time(Categories::of(&[Category::Shalu]));
    // Behind it, fetching the code is what takes the time.
    let code = time(Categories::of(&[Category::Lgalu]));
    assert_eq!(short, 0.0);
    assert!(long > 0.0 && (long + code - base).abs() < 1e-9);
    let both = time(Categories::of(&[Category::Lgalu, Category::Imiss]));
    assert!((both - 1000.0 / 6.0).abs() < 12.0, "a thousand at six a cycle: {both}");
}
