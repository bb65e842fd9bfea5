//! How fast the cores are on a synthetic stream, alone: no engine, no program.
//!
//! `cargo run --release -p model --example speed [MILLIONS OF INSTRUCTIONS] [MACHINE]`
//!
//! The stream is 200 blocks of a few instructions each, entered in a seeded order with loops, one
//! load in four instructions over 64 KiB with a tail over 16 MiB, one store in ten.

use model::core::Settings;
use model::event::Event;
use model::fast::FastCore;
use model::machine::Machine;
use model::reference::ReferenceCore;
use model::stream::{Access, BlockId, Code, CoreListener, StaticBlock};
use model::warm::Warmer;

/// Instructions without memory: add, sub, imul, lea, mov, addsd, shl, cmp.
const WORK: [&[u8]; 8] = [
    &[0x48, 0x01, 0xd8],
    &[0x48, 0x29, 0xca],
    &[0x48, 0x0f, 0xaf, 0xf7],
    &[0x48, 0x8d, 0x04, 0x4b],
    &[0x48, 0x89, 0xc3],
    &[0xf2, 0x0f, 0x58, 0xc1],
    &[0x48, 0xc1, 0xe2, 0x03],
    &[0x48, 0x39, 0xd8],
];
const LOAD: &[u8] = &[0x48, 0x8b, 0x0b];
const STORE: &[u8] = &[0x48, 0x89, 0x07];
const JNE: &[u8] = &[0x75, 0x10];

struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }
}

struct Stream {
    blocks: Vec<(StaticBlock, Vec<(u16, bool)>)>,
    /// Block of each step, and where its accesses end.
    steps: Vec<(u32, u32)>,
    accesses: Vec<Access>,
}

fn stream() -> Stream {
    let mut dice = Dice(1);
    let mut blocks = Vec::new();
    for number in 0..200_u64 {
        let mut pc = 0x40_0000 + number * 48;
        let mut codes = Vec::new();
        let mut touches = Vec::new();
        for place in 0..4 + dice.next() % 4 {
            let text = match dice.next() % 20 {
                0..5 => {
                    touches.push((place as u16, false));
                    LOAD
                }
                5..7 => {
                    touches.push((place as u16, true));
                    STORE
                }
                _ => WORK[(dice.next() % 8) as usize],
            };
            push(&mut codes, &mut pc, text);
        }
        push(&mut codes, &mut pc, JNE);
        blocks.push((StaticBlock { instructions: codes.into() }, touches));
    }
    let mut steps = Vec::new();
    let mut accesses = Vec::new();
    let mut at = 0;
    for step in 0..200_000_u64 {
        // Inner loops of eight, otherwise the next block, sometimes a far one.
        at = match dice.next() % 100 {
            0 => dice.next() % 200,
            _ if step % 8 != 0 => at,
            _ => (at + 1) % 200,
        };
        accesses.extend(blocks[at as usize].1.iter().map(|&(instruction, is_store)| {
            let far = dice.next().is_multiple_of(64);
            let span = if far { 1 << 24 } else { 1 << 14 };
            let address = (dice.next() % span) & !7;
            Access { address: 0x10_0000 + address, instruction, size: 8, is_store }
        }));
        steps.push((at as u32, accesses.len() as u32));
    }
    Stream { blocks, steps, accesses }
}

fn push(codes: &mut Vec<Code>, pc: &mut u64, text: &[u8]) {
    let mut bytes = [0; 15];
    bytes[..text.len()].copy_from_slice(text);
    codes.push(Code { pc: *pc, bytes, len: text.len() as u8 });
    *pc += text.len() as u64;
}

fn drive(core: &mut impl CoreListener, stream: &Stream, millions: u64) -> (u64, f64) {
    for (id, (block, _)) in stream.blocks.iter().enumerate() {
        core.translated(BlockId(id as u32), block);
    }
    let mut ran = 0;
    let start = cpu_seconds();
    while ran < millions * 1_000_000 {
        let mut from = 0;
        for &(id, to) in &stream.steps {
            let count = stream.blocks[id as usize].0.instructions.len() as u16;
            core.executed(BlockId(id), count, &stream.accesses[from..to as usize]);
            from = to as usize;
            ran += u64::from(count);
        }
    }
    (ran, cpu_seconds() - start)
}

/// CPU time, so that other work on the machine does not count.
fn cpu_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    let nanoseconds = text.split(' ').next().and_then(|first| first.parse::<f64>().ok());
    nanoseconds.unwrap_or(f64::NAN) / 1e9
}

fn report(name: &str, (ran, seconds): (u64, f64)) {
    println!(
        "{name:10} {:8.1} MIPS  {:6.2} ns/instruction",
        ran as f64 / seconds / 1e6,
        seconds * 1e9 / ran as f64
    );
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let millions = arguments.next().map_or(Ok(20), |text| text.parse())?;
    let machine = Machine::named(arguments.next().as_deref().unwrap_or("zen4"))?;
    let stream = stream();
    let mut warmer = Warmer::new(&machine);
    report("warming", drive(&mut warmer, &stream, millions));
    let mut fast = FastCore::new(&machine, Settings::default());
    report("fast", drive(&mut fast, &stream, millions));
    fast.finish();
    let mut reference = ReferenceCore::new(&machine, Settings::default());
    report("reference", drive(&mut reference, &stream, millions.div_ceil(20)));
    let counts = fast.counts();
    let cpi = counts[Event::Cycles] as f64 / counts[Event::Instructions] as f64;
    let per_mille =
        |event: Event| 1000.0 * counts[event] as f64 / counts[Event::Instructions] as f64;
    println!(
        "cpi {cpi:.3}; per 1000 instructions: {:.2} branch misses, {:.2} l1d load misses",
        per_mille(Event::BranchMisses),
        per_mille(Event::L1dLoadMisses)
    );
    Ok(())
}
