//! From callbacks to blocks, in words.

use super::*;
use crate::block::BlockTable;
use model::stream::{BlockId, Code, StaticBlock};
use std::sync::{Arc, Mutex};

/// What a listener was told, in words.
#[derive(Clone, Default)]
struct Told(Arc<Mutex<Vec<String>>>);

impl Told {
    fn say(&self, what: String) {
        self.0.lock().unwrap().push(what);
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

fn words(accesses: &[Access]) -> String {
    let word = |access: &Access| {
        let kind = if access.is_store { "store" } else { "load" };
        format!(" {kind}@{} {:#x}+{}", access.instruction, access.address, access.size)
    };
    accesses.iter().map(word).collect()
}

impl CoreListener for Told {
    fn translated(&mut self, id: BlockId, _: &StaticBlock) {
        self.say(format!("know {}", id.0));
    }

    fn executed(&mut self, id: BlockId, ran: u16, accesses: &[Access]) {
        self.say(format!("run {} {ran}{}", id.0, words(accesses)));
    }

    fn continued(&mut self, id: BlockId, accesses: &[Access]) {
        self.say(format!("more {} {}", id.0, accesses.len()));
    }

    fn interrupted(&mut self) {
        self.say("signal".into());
    }
}

/// Three blocks, leaked as in a process: their numbers are their places.
fn blocks() -> Vec<&'static LiveBlock> {
    let mut table = BlockTable::new(true);
    let all: [(u64, &[&[u8]]); 5] = [
        // mov rax,[rdi]; vmovdqu ymm0,[rsi]; jne +0x10
        (0x1000, &[&[0x48, 0x8b, 0x07], &[0xc5, 0xfe, 0x6f, 0x06], &[0x75, 0x10]]),
        // lock inc qword [rdi]; ret
        (0x1009, &[&[0xf0, 0x48, 0xff, 0x07], &[0xc3]]),
        // nop; rep movsb
        (0x2000, &[&[0x90], &[0xf3, 0xa4]]),
        // rep movsb alone
        (0x2001, &[&[0xf3, 0xa4]]),
        (0x2003, &[&[0x90], &[0xc3]]),
    ];
    for (start, instructions) in all {
        let mut pc = start;
        let codes = instructions.iter().map(|found| {
            let mut bytes = [0; 15];
            bytes[..found.len()].copy_from_slice(found);
            pc += found.len() as u64;
            Code { pc: pc - found.len() as u64, bytes, len: found.len() as u8 }
        });
        table.intern(codes.collect());
    }
    table.since(0).to_vec()
}

fn since(known: u32) -> Vec<&'static LiveBlock> {
    blocks().split_off(known as usize)
}

fn load(instruction: u16, address: u64, size: u8) -> Piece {
    Piece { instruction, address, size, is_store: false, is_atomic: false }
}

fn store(instruction: u16, address: u64, size: u8) -> Piece {
    Piece { is_store: true, ..load(instruction, address, size) }
}

fn start() -> (Assembler, Told, Vec<&'static LiveBlock>) {
    let told = Told::default();
    (Assembler::new(Box::new(told.clone()), since), told, blocks())
}

#[test]
fn pieces_of_a_wide_access_are_one_access() {
    let (mut assembler, told, blocks) = start();
    assembler.begin(blocks[0]);
    assembler.touch(load(0, 0x8, 8));
    (0..4).for_each(|piece| assembler.touch(load(1, 0x10 + piece * 8, 8)));
    assembler.begin(blocks[1]);
    assert_eq!(told.take(), ["know 0", "run 0 3 load@0 0x8+8 load@1 0x10+32"]);
}

#[test]
fn an_atomic_instruction_reads_and_writes_however_it_is_reported() {
    let expected = ["know 0", "know 1", "run 1 2 load@0 0x40+8 store@0 0x40+8 load@1 0x80+8"];
    let atomic = |piece: Piece| Piece { is_atomic: true, ..piece };
    for is_single in [true, false] {
        let (mut assembler, told, blocks) = start();
        assembler.begin(blocks[1]);
        if !is_single {
            assembler.touch(atomic(load(0, 0x40, 8)));
        }
        assembler.touch(atomic(store(0, 0x40, 8)));
        assembler.touch(load(1, 0x80, 8));
        assembler.begin(blocks[0]);
        assert_eq!(told.take(), expected);
    }
}

#[test]
fn turns_of_a_string_instruction_are_one_instruction_within_lines() {
    let (mut assembler, told, blocks) = start();
    let turn = |assembler: &mut Assembler, index, at: u64| {
        assembler.touch(load(index, 0x103c + at, 1));
        assembler.touch(store(index, 0x2000 + at, 1));
    };
    assembler.begin(blocks[2]);
    turn(&mut assembler, 1, 0);
    for at in 1..6 {
        assembler.begin(blocks[3]);
        turn(&mut assembler, 0, at);
    }
    assembler.begin(blocks[3]);
    assembler.begin(blocks[4]);
    let run = told.take().pop().unwrap();
    // The read crosses a line after four bytes; the write does not.
    assert_eq!(run, "run 2 2 load@1 0x103c+4 store@1 0x2000+6 load@1 0x1040+2");
}

#[test]
fn what_does_not_fit_follows() {
    let (mut assembler, told, blocks) = start();
    assembler.begin(blocks[3]);
    for line in 0..5000 {
        assembler.touch(store(0, line * 64, 64));
    }
    assembler.begin(blocks[4]);
    let told = told.take();
    assert!(told.iter().any(|what| what.starts_with("run 3 1 store@0 0x0+64")));
    assert_eq!(told[told.len() - 2..], ["more 3 2047", "more 3 906"]);
}

#[test]
fn a_fault_ends_a_block_before_the_access_that_failed() {
    let (mut assembler, told, blocks) = start();
    assembler.begin(blocks[0]);
    assembler.touch(load(0, 0x8, 8));
    assembler.begin(blocks[4]);
    assert_eq!(told.take(), ["know 0", "run 0 1 load@0 0x8+8", "signal"]);
    // A fault at the first instruction runs nothing.
    assembler.begin(blocks[0]);
    assembler.begin(blocks[4]);
    let told = told.take();
    assert_eq!(told.last().unwrap(), "signal");
    assert!(!told.iter().any(|what| what.starts_with("run 0")));
}

#[test]
fn what_the_engine_writes_to_deliver_a_signal_is_no_access_of_the_program() {
    // Under the index of an earlier instruction, of the last, or of one that touches nothing.
    for stale in 0..3 {
        let (mut assembler, told, blocks) = start();
        assembler.begin(blocks[0]);
        assembler.touch(load(0, 0x8, 8));
        (0..4).for_each(|piece| assembler.touch(load(1, 0x10 + piece * 8, 8)));
        (0..30).for_each(|piece| assembler.touch(store(stale, 0x7000 + piece * 16, 8)));
        assembler.begin(blocks[4]);
        let expected = ["know 0", "run 0 3 load@0 0x8+8 load@1 0x10+32", "signal"];
        assert_eq!(told.take(), expected, "stale {stale}");
    }
}

/// A listener that idles for as long as it is told to, and may hear lines or order meanwhile.
struct Sleepy(Told, Arc<Mutex<u64>>, Hears);

#[derive(Clone, Copy, Default)]
struct Hears {
    lines: bool,
    order: bool,
}

impl CoreListener for Sleepy {
    fn translated(&mut self, id: BlockId, block: &StaticBlock) {
        self.0.translated(id, block);
    }

    fn executed(&mut self, id: BlockId, ran: u16, accesses: &[Access]) {
        self.0.executed(id, ran, accesses);
    }

    fn interrupted(&mut self) {
        self.0.interrupted();
    }

    fn idles_for(&self) -> u64 {
        std::mem::take(&mut *self.1.lock().unwrap())
    }

    fn hears_lines(&self) -> bool {
        self.2.lines
    }

    fn hears_order(&self) -> bool {
        self.2.order
    }

    fn passed(&mut self, blocks: &[BlockId]) {
        let blocks: Vec<u32> = blocks.iter().map(|id| id.0).collect();
        self.0.say(format!("passed {blocks:?}"));
    }

    fn touched(&mut self, addresses: &[u64]) {
        self.0.say(format!("touched {addresses:x?}"));
    }

    fn ran(&mut self, runs: &[(BlockId, u32)], instructions: u64) {
        let runs: Vec<(u32, u32)> = runs.iter().map(|(id, times)| (id.0, *times)).collect();
        self.0.say(format!("ran {runs:?} {instructions}"));
    }
}

/// An assembler whose listener knows all blocks and idles for so long after the next.
fn idling(instructions: u64) -> (Assembler, Told, Vec<&'static LiveBlock>) {
    sleeping(instructions, Hears { lines: true, order: false })
}

fn sleeping(instructions: u64, hears: Hears) -> (Assembler, Told, Vec<&'static LiveBlock>) {
    let (told, blocks) = (Told::default(), blocks());
    let idles = Arc::new(Mutex::new(0));
    let listener = Sleepy(told.clone(), idles.clone(), hears);
    let mut assembler = Assembler::new(Box::new(listener), since);
    assembler.begin(blocks[4]);
    assembler.touch(load(1, 0x80, 8));
    assembler.system_call(0);
    *idles.lock().unwrap() = instructions;
    assembler.begin(blocks[4]);
    assembler.touch(load(1, 0x80, 8));
    (assembler, told, blocks)
}

#[test]
fn an_idle_listener_hears_how_often_blocks_ran_and_lines_but_no_accesses() {
    let (mut assembler, told, blocks) = idling(7);
    assembler.begin(blocks[1]);
    assert_eq!(told.take().last().unwrap(), "run 4 2 load@1 0x80+8");
    let touch = |assembler: &mut Assembler, instruction, address| {
        assert!(assembler.idles_past(instruction, address));
    };
    touch(&mut assembler, 0, 0x40);
    touch(&mut assembler, 1, 0x80);
    assembler.begin(blocks[0]);
    touch(&mut assembler, 0, 0x48);
    touch(&mut assembler, 1, 0x1000);
    assembler.begin(blocks[1]);
    touch(&mut assembler, 0, 0x40);
    touch(&mut assembler, 1, 0x80);
    assert!(told.take().is_empty());
    assembler.begin(blocks[0]);
    assert_eq!(told.take(), ["touched [40, 80, 1000]", "ran [(1, 2), (0, 1)] 7"]);
    assert!(!assembler.idles_past(0, 0x40), "awake");
}

#[test]
fn an_idle_listener_still_hears_of_faults_and_of_what_ran_before_a_system_call() {
    let (mut assembler, told, blocks) = idling(1000);
    assembler.begin(blocks[0]);
    told.take();
    // The second instruction should have touched memory and did not.
    assert!(assembler.idles_past(0, 0x40));
    assembler.begin(blocks[4]);
    assert_eq!(told.take(), ["run 0 1", "signal"]);
    assert!(assembler.idles_past(1, 0x80));
    assembler.begin(blocks[4]);
    assembler.system_call(1);
    assert_eq!(told.take(), ["run 4 2", "touched [40, 80]", "ran [(4, 1)] 2"]);
}

#[test]
fn a_listener_that_wants_no_lines_hears_only_how_often_blocks_ran() {
    let (mut assembler, told, blocks) = sleeping(1000, Hears::default());
    assembler.begin(blocks[0]);
    told.take();
    // Turns of a string instruction are one, whether its block has more or not.
    let order = [1, 0, 1, 2, 3, 3, 3, 4, 0];
    for place in order {
        assert!(assembler.is_noting(), "memory is not looked at");
        assembler.begin(blocks[place]);
    }
    assert!(told.take().is_empty());
    // What began last is told by itself, since it is the system call's.
    assembler.system_call(1);
    assert_eq!(told.take(), ["run 0 3", "ran [(0, 2), (1, 2), (2, 1), (4, 1)] 14"]);
    assert!(!assembler.is_noting() && !assembler.idles_past(0, 0x40), "awake");
}

#[test]
fn a_listener_that_wants_the_order_hears_it_before_anything_that_came_later() {
    for lines in [false, true] {
        let (mut assembler, told, blocks) = sleeping(1000, Hears { lines, order: true });
        assembler.begin(blocks[1]);
        told.take();
        let touch = |assembler: &mut Assembler, instruction| {
            if lines {
                assert!(assembler.idles_past(instruction, 0x40));
            }
        };
        for place in [0, 1, 0, 4] {
            touch(&mut assembler, 0);
            touch(&mut assembler, 1);
            assembler.begin(blocks[place]);
        }
        // The third of them did not lead to the fourth, so a handler ran.
        let said = told.take();
        let heard = said.join(", ");
        if lines {
            assert_eq!(heard, "passed [1, 0, 1], run 0 3, signal");
        } else {
            assert_eq!(heard, "", "none is looked at yet");
        }
        touch(&mut assembler, 1);
        assembler.system_call(1);
        let heard = told.take().join(", ");
        let ran = "ran [(1, 2), (0, 1)] 7";
        match lines {
            true => assert_eq!(heard, format!("run 4 2, touched [40], {ran}")),
            false => {
                assert_eq!(heard, format!("passed [1, 0, 1], run 0 3, signal, run 4 2, {ran}"));
            }
        }
    }
}

#[test]
fn noted_blocks_end_with_what_may_run_unseen_and_signals_are_heard_of() {
    let (mut assembler, told, blocks) = sleeping(6, Hears::default());
    assembler.begin(blocks[0]);
    told.take();
    assembler.begin(blocks[4]);
    // A conditional branch goes to one of two places: elsewhere is where a handler is. Memory was
    // not looked at, so the block counts as whole.
    assert_eq!(told.take(), ["run 0 3", "signal"]);
    assembler.begin(blocks[4]);
    assert!(told.take().is_empty());
    assembler.begin(blocks[4]);
    assert_eq!(told.take(), ["ran [(4, 2)] 4"]);
    assert!(!assembler.is_noting() && !assembler.idles_past(1, 0x80), "awake");
}

#[test]
fn blocks_seen_for_the_first_time_while_noting_are_introduced() {
    let (told, blocks) = (Told::default(), blocks());
    let idles = Arc::new(Mutex::new(0));
    let listener = Sleepy(told.clone(), idles.clone(), Hears::default());
    let mut assembler = Assembler::new(Box::new(listener), since);
    assembler.begin(blocks[0]);
    assembler.system_call(0);
    *idles.lock().unwrap() = 100;
    assembler.begin(blocks[0]);
    assembler.touch(load(0, 0x8, 8));
    assembler.begin(blocks[1]);
    told.take();
    assembler.begin(blocks[0]);
    assembler.begin(blocks[1]);
    assembler.system_call(0);
    let expected = ["know 1", "run 1 2", "run 1 2", "ran [(0, 1)] 3"];
    assert_eq!(told.take(), expected);
}
