//! Samples of the cycle-by-cycle core, put together again.
#![allow(clippy::unwrap_used)]

use icost::shotgun::{
    CodeBook, Database, Defaults, Flaw, LabelRecorder, Labels, Question, Shotgun, analyse, walk,
};
use icost::{Arbitration, Categories, Category, Fixed, Labeller, Lanes, Lattice, subsets_up_to};
use model::core::{Life, Settings, Watcher};
use model::machine::{Machine, text_of};
use model::monitor::{Bits, LENGTH, Monitor, Rates, Samples, SignatureSample};
use model::reference::ReferenceCore;
use model::stream::{Access, BlockId, Code, CoreListener, StaticBlock};

struct Watched {
    labeller: Labeller,
    lanes: Lanes<40>,
    monitor: Monitor<LabelRecorder>,
}

impl Watcher for Watched {
    fn lived(&mut self, life: &Life) {
        self.lanes.step(&self.labeller.label(life));
        self.monitor.lived(life);
    }
}

fn machine() -> Machine {
    let facts = [("caches.l1d.latency_cycles", "4")];
    Machine::load("icost-table6", text_of("icost-table6").unwrap(), &facts).unwrap()
}

fn block(pc: u64, texts: &[&[u8]]) -> StaticBlock {
    let mut pc = pc;
    let code = |text: &&[u8]| {
        let mut bytes = [0; 15];
        bytes[..text.len()].copy_from_slice(text);
        let code = Code { pc, bytes, len: text.len() as u8 };
        pc += u64::from(code.len);
        code
    };
    StaticBlock { instructions: texts.iter().map(code).collect() }
}

const IMUL: &[u8] = &[0x48, 0x0f, 0xaf, 0xc0];
const ADD: &[u8] = &[0x48, 0x01, 0xc1];
const LOAD: &[u8] = &[0x48, 0x8b, 0x0b];
const STORE: &[u8] = &[0x48, 0x89, 0x0f];
const JUMP_RDX: &[u8] = &[0xff, 0xe2];

/// A core that ran blocks in an order, each with the addresses that it loads and stores.
fn run(blocks: &[StaticBlock], order: &[(u32, Vec<Access>)], rates: Rates) -> (CodeBook, Watched) {
    let machine = machine();
    let fixed = Fixed::of(&machine);
    let watched = Watched {
        labeller: Labeller::new(fixed),
        lanes: Lanes::new(fixed, &subsets_up_to(2), Arbitration::Anew),
        monitor: Monitor::new(LabelRecorder::new(fixed), rates).with_truth(),
    };
    let mut core = ReferenceCore::watched(&machine, Settings::default(), watched);
    let mut code = CodeBook::new(&machine);
    for (k, block) in blocks.iter().enumerate() {
        core.translated(BlockId(k as u32), block);
        code.add(block);
    }
    for (id, accesses) in order {
        let count = blocks[*id as usize].instructions.len() as u16;
        core.executed(BlockId(*id), count, accesses);
    }
    core.finish();
    let watcher = core.watcher();
    let watched = Watched {
        labeller: watcher.labeller.clone(),
        lanes: watcher.lanes.clone(),
        monitor: watcher.monitor.clone(),
    };
    (code, watched)
}

fn analysed(samples: &Samples<Labels>, code: &CodeBook) -> Shotgun {
    let (machine, sets) = (machine(), subsets_up_to(2));
    let question = Question {
        fixed: Fixed::of(&machine),
        defaults: Defaults::of(&machine),
        sets: &sets,
        arbitration: Arbitration::Anew,
        seed: 1,
    };
    analyse::<40>(samples, code, &question)
}

/// Ten dependent multiplications and a jump back.
fn chain() -> StaticBlock {
    let mut texts = vec![IMUL; 10];
    texts.push(&[0xeb, 0xd6]);
    block(0x40_0000, &texts)
}

#[test]
fn a_loop_of_known_length_is_put_together_exactly() {
    let rates = Rates { signature_every: 1050, detail_every: 25, seed: 7 };
    let (code, watched) = run(&[chain()], &vec![(0, Vec::new()); 1200], rates);
    let found = analysed(watched.monitor.samples(), &code);
    assert!(found.tally.signatures > 10 && found.tally.details > 500);
    assert_eq!(found.tally.consistent, found.tally.signatures);
    assert_eq!((found.tally.inferred, found.tally.cut, found.tally.discarded_count()), (0, 0, 0));
    assert_eq!(found.tally.truth.unwrap().errant, 0);
    assert_eq!(found.tally.instructions, LENGTH as u64 * found.tally.signatures);
    // Thirty cycles for eleven instructions, all of it multiplication.
    let cpi = found.cycles_per_instruction().unwrap();
    assert!((cpi - 30.0 / 11.0).abs() < 0.01, "{cpi}");
    let full = Lattice::new(watched.lanes.times());
    let share = |lattice: &Lattice, set: Categories| {
        lattice.cost(set).unwrap() / lattice.time(Categories::NONE).unwrap()
    };
    let costs = found.costs();
    for set in subsets_up_to(2) {
        let (graph, shotgun) = (share(&full, set), share(costs.whole(), set));
        assert!((graph - shotgun).abs() < 0.01, "{}: {graph} and {shotgun}", set.name());
    }
    // What is left is ten multiplications on two multipliers.
    let long = costs.cost(Categories::of(&[Category::Lgalu])).unwrap();
    let expected = 1.0 - 5.0 / 30.0;
    assert!((long.value - expected).abs() < 0.01, "{} is not {expected}", long.value);
}

/// Two ways through a loop, told apart by an indirect jump: one loads, the other adds.
fn two_ways() -> [StaticBlock; 3] {
    let then_jump = |first: &[&'static [u8]], adds: usize| {
        let mut texts = first.to_vec();
        texts.resize(first.len() + adds, ADD);
        texts.push(JUMP_RDX);
        texts
    };
    let head = block(0x40_0000, &then_jump(&[ADD], 30));
    let loads = block(0x40_1000, &then_jump(&[LOAD, ADD, STORE], 25));
    let adds = block(0x40_2000, &then_jump(&[], 40));
    [head, loads, adds]
}

fn wander(runs: usize) -> Vec<(u32, Vec<Access>)> {
    let mut seed = 3_u64;
    let mut order = Vec::new();
    for _ in 0..runs {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let at = 0x10_0000 + 64 * (seed >> 40 & 0xffff);
        let load = Access { address: at, instruction: 0, size: 8, is_store: false };
        let store = Access { address: at + 8, instruction: 2, size: 8, is_store: true };
        order.push((0, Vec::new()));
        order.push(if seed >> 62 & 1 == 0 { (1, vec![load, store]) } else { (2, Vec::new()) });
    }
    order
}

#[test]
fn indirect_branches_are_followed_by_samples_and_bits() {
    let rates = Rates { signature_every: 1100, detail_every: 25, seed: 2 };
    let (code, watched) = run(&two_ways(), &wander(400), rates);
    let samples = watched.monitor.samples();
    let found = analysed(samples, &code);
    let truth = found.tally.truth.unwrap();
    assert_eq!(found.tally.consistent, found.tally.signatures);
    assert_eq!(truth.errant, truth.errant_discarded, "no wrong path is left");
    // Without a single detailed sample the bits alone tell which way it went.
    let mut none = Database::new(&[], &code, 1);
    for (signature, path) in samples.signatures.iter().zip(&samples.paths).take(20) {
        let fragment = walk(signature, &code, &mut none);
        let pcs = fragment.places.iter().map(|&place| code.at(place).unwrap().instruction.pc);
        assert!(pcs.zip(path).all(|(walked, &real)| walked == real));
        assert!(fragment.places.len() > LENGTH - 45, "{}", fragment.places.len());
    }
    let full = Lattice::new(watched.lanes.times());
    for &category in Category::ALL {
        let set = Categories::of(&[category]);
        let graph = full.cost(set).unwrap() / full.time(Categories::NONE).unwrap();
        let shotgun = found.costs().cost(set).unwrap();
        let bound = (4.0 * shotgun.standard_uncertainty).max(0.01);
        let off = (graph - shotgun.value).abs();
        assert!(off < bound, "{}: {graph} and {shotgun:?}", category.name());
    }
}

#[test]
fn planted_errant_fragments_are_discarded() {
    let rates = Rates { signature_every: 2000, detail_every: 30, seed: 2 };
    let (code, watched) = run(&[chain()], &vec![(0, Vec::new()); 500], rates);
    let samples = watched.monitor.samples();
    let good = &samples.signatures[0];
    let planted = |place: usize, bits: Bits| {
        let mut signature: SignatureSample = good.clone();
        signature.bits[place] = bits;
        walk(&signature, &code, &mut Database::new(&samples.details, &code, 1))
    };
    let jump = good.bits.iter().skip(100).position(|bits| bits.first()).unwrap() + 100;
    // A multiplication that accesses memory, a jump that is not taken, and a code miss amid a line.
    for (place, bits) in [
        (jump + 3, Bits::new(true, false)),
        (jump, Bits::new(false, false)),
        (jump + 3, Bits::new(false, true)),
    ] {
        let fragment = planted(place, bits);
        assert_eq!(fragment.flaw, Some(Flaw::Impossible));
        assert!(!fragment.is_consistent());
        assert_eq!(fragment.places.len(), place);
    }
    // Behind a jump a code miss is possible.
    assert_eq!(planted(jump + 1, Bits::new(false, true)).flaw, None);
    // A start where there is no code, and one in the middle of the loop with other bits.
    let strange = SignatureSample { start: 0x1234, ..good.clone() };
    let mut database = Database::new(&samples.details, &code, 1);
    assert_eq!(walk(&strange, &code, &mut database).flaw, Some(Flaw::NoCode));
    let mut all = samples.clone();
    all.signatures.push(strange);
    all.paths.push(samples.paths[0].clone());
    let tally = analysed(&all, &code).tally;
    assert_eq!(tally.discarded.get(&Flaw::NoCode), Some(&1));
    let truth = tally.truth.unwrap();
    assert_eq!((truth.errant, truth.errant_discarded), (1, 1));
}

#[test]
fn what_no_sample_speaks_of_is_inferred_and_counted() {
    let rates = Rates { signature_every: 1050, detail_every: 25, seed: 7 };
    let (code, watched) = run(&[chain()], &vec![(0, Vec::new()); 1200], rates);
    let mut samples = watched.monitor.samples().clone();
    samples.details.clear();
    let found = analysed(&samples, &code);
    assert_eq!(found.tally.inferred, found.tally.instructions);
    // The code and the machine's latencies are all it takes here.
    let cpi = found.cycles_per_instruction().unwrap();
    assert!((cpi - 30.0 / 11.0).abs() < 0.01, "{cpi}");
}
