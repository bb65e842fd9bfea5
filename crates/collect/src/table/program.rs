//! The handler: what runs in the interrupt.

use perf::{Alu, Assembler, CURRENT_PID_TGID, FORCE_WAKEUP, If, Label, RING_THE_BELL, Reg, Width};
use vocab::EventId;

use super::entry::{ANY_PID, COUNT_SHIFT, PID_BITS};
use super::geometry::{ENTRY_BYTES, Geometry, head};
use super::plain::{KEY_FACTOR, PC_FACTOR};

/// Where the program counter is in the registers that the kernel saved.
#[cfg(target_arch = "x86_64")]
const PC_AT: i16 = 128;
#[cfg(target_arch = "aarch64")]
const PC_AT: i16 = 256;

/// What a handler is made for.
#[derive(Clone, Copy, Debug)]
pub struct Handler {
    /// The sizes.
    pub geometry: Geometry,
    /// The CPU's shared array.
    pub table: i32,
    /// The bell to ring when a spill is half full.
    pub bell: Option<i32>,
    /// The event.
    pub event: EventId,
    /// Whether places in the kernel are counted process by process.
    pub kernel_by_process: bool,
}

/// Registers through the whole program.
const CONTEXT: Reg = Reg::R6;
const BASE: Reg = Reg::R7;
const PC: Reg = Reg::R8;
const KEY: Reg = Reg::R9;
/// Until the end or the bell.
const BUCKET: Reg = Reg::R3;
const COUNTERS: Reg = Reg::R4;
const HALF: Reg = Reg::R5;

/// The program's instructions; none only if it grew too long for its jumps.
pub fn handler(made_for: &Handler) -> Option<Vec<u64>> {
    let mut code = Assembler::default();
    let (miss, end) = (code.label(), code.label());
    begin(&mut code, made_for);
    find_bucket(&mut code, &made_for.geometry);
    hits(&mut code, &made_for.geometry, miss, end);
    code.bind(miss);
    evict(&mut code, made_for);
    insert_first(&mut code, &made_for.geometry);
    code.bind(end);
    // Stores are seen in order on x86-64; elsewhere the last one must be told to come last.
    code.alu(Alu::Move, Reg::R1, 1);
    if cfg!(target_arch = "x86_64") {
        bump(&mut code, BASE, head::ENDED);
    } else {
        code.atomic_add(BASE, head::ENDED, Reg::R1, true);
    }
    code.alu(Alu::Move, Reg::R0, 0);
    code.exit();
    code.finish()
}

/// `*(base + offset) += 1`, by the only CPU that ever writes it.
fn bump(code: &mut Assembler, base: Reg, offset: i16) {
    code.load(Width::Double, Reg::R1, base, offset);
    code.alu(Alu::Add, Reg::R1, 1);
    code.store(Width::Double, base, offset, Reg::R1);
}

/// Registers, the pid, the half to work on; the entry is counted.
fn begin(code: &mut Assembler, made_for: &Handler) {
    code.alu_reg(Alu::Move, CONTEXT, Reg::R1);
    code.map_value(BASE, made_for.table, 0);
    code.alu(Alu::Move, Reg::R1, 1);
    // A full barrier: that a handler has begun is seen before it looks which half is active.
    code.atomic_add(BASE, head::BEGUN, Reg::R1, cfg!(not(target_arch = "x86_64")));
    code.call(CURRENT_PID_TGID);
    code.alu(Alu::ShiftRight, Reg::R0, 32);
    code.alu_reg(Alu::Move, KEY, Reg::R0);
    code.load(Width::Double, PC, CONTEXT, PC_AT);
    if !made_for.kernel_by_process {
        // Kernel addresses are those with the highest bit; the idle task stays apart.
        let keep = code.label();
        code.alu_reg(Alu::Move, Reg::R1, PC);
        code.alu(Alu::ShiftRight, Reg::R1, 63);
        code.jump_if(If::Equal, Reg::R1, 0, keep);
        code.jump_if(If::Equal, KEY, 0, keep);
        code.alu(Alu::Move, KEY, ANY_PID.0 as i32);
        code.bind(keep);
    }
    if made_for.event.0 > 0 {
        code.constant(Reg::R1, u64::from(made_for.event.0) << PID_BITS);
        code.alu_reg(Alu::Or, KEY, Reg::R1);
    }
    code.load(Width::Double, HALF, BASE, head::ACTIVE);
    code.alu(Alu::And, HALF, 1);
    code.alu_reg(Alu::Move, COUNTERS, HALF);
    code.alu(Alu::ShiftLeft, COUNTERS, head::HALF_SHIFT);
    code.alu_reg(Alu::Add, COUNTERS, BASE);
    code.alu(Alu::Add, COUNTERS, head::TABLES);
    bump(code, COUNTERS, head::ENTRIES);
}

/// `BUCKET = table(half) + hash × bytes`; the shift bounds the hash for the verifier.
fn find_bucket(code: &mut Assembler, geometry: &Geometry) {
    code.constant(Reg::R1, KEY_FACTOR);
    code.alu_reg(Alu::Mul, Reg::R1, KEY);
    code.alu_reg(Alu::Add, Reg::R1, PC);
    code.constant(Reg::R2, PC_FACTOR);
    code.alu_reg(Alu::Mul, Reg::R1, Reg::R2);
    code.alu(Alu::ShiftRight, Reg::R1, 64 - geometry.bucket_bits as i32);
    code.alu(Alu::Mul, Reg::R1, geometry.bucket_bytes() as i32);
    code.alu_reg(Alu::Move, Reg::R2, HALF);
    code.alu(Alu::Mul, Reg::R2, geometry.table_bytes() as i32);
    code.alu_reg(Alu::Move, BUCKET, BASE);
    code.alu_reg(Alu::Add, BUCKET, Reg::R1);
    code.alu_reg(Alu::Add, BUCKET, Reg::R2);
    code.alu(Alu::Add, BUCKET, geometry.table_at(0) as i32);
}

/// The first word of a way.
fn at(way: u32) -> i16 {
    (way * ENTRY_BYTES) as i16
}

/// Looks at each way in turn; a hit is counted and swaps with the first.
fn hits(code: &mut Assembler, geometry: &Geometry, miss: Label, end: Label) {
    for way in 0..geometry.ways {
        let next = code.label();
        code.load(Width::Double, Reg::R1, BUCKET, at(way));
        code.jump_if_reg(If::NotEqual, Reg::R1, PC, next);
        code.load(Width::Word, Reg::R2, BUCKET, at(way) + 8);
        code.jump_if_reg(If::NotEqual, Reg::R2, KEY, next);
        if way == 0 {
            code.load(Width::Word, Reg::R1, BUCKET, 12);
            code.alu(Alu::Add, Reg::R1, 1);
            code.store(Width::Word, BUCKET, 12, Reg::R1);
        } else {
            swap_with_first(code, way);
        }
        code.jump(end);
        code.bind(next);
    }
    code.jump(miss);
}

fn swap_with_first(code: &mut Assembler, way: u32) {
    code.load(Width::Double, Reg::R1, BUCKET, at(way) + 8);
    code.constant(Reg::R2, 1 << COUNT_SHIFT);
    code.alu_reg(Alu::Add, Reg::R1, Reg::R2);
    code.load(Width::Double, Reg::R2, BUCKET, 0);
    code.store(Width::Double, BUCKET, at(way), Reg::R2);
    code.load(Width::Double, Reg::R2, BUCKET, 8);
    code.store(Width::Double, BUCKET, at(way) + 8, Reg::R2);
    code.store(Width::Double, BUCKET, 0, PC);
    code.store(Width::Double, BUCKET, 8, Reg::R1);
}

/// The last entry goes into the spill, or is lost and counted as such. `BUCKET` survives.
fn evict(code: &mut Assembler, made_for: &Handler) {
    let geometry = &made_for.geometry;
    let last = at(geometry.ways - 1);
    let (full, done) = (code.label(), code.label());
    // The spill is asked for only now: a flip between then and now does no harm, since the daemon
    // waits for every handler that may have seen the old one.
    code.load(Width::Double, HALF, BASE, head::ACTIVE);
    code.alu(Alu::ShiftRight, HALF, 1);
    code.alu(Alu::And, HALF, 1);
    code.alu_reg(Alu::Move, COUNTERS, HALF);
    code.alu(Alu::ShiftLeft, COUNTERS, head::HALF_SHIFT);
    code.alu_reg(Alu::Add, COUNTERS, BASE);
    code.alu(Alu::Add, COUNTERS, head::SPILLS);
    bump(code, COUNTERS, head::INSERTED);
    code.load(Width::Double, Reg::R1, BUCKET, last + 8);
    code.alu_reg(Alu::Move, Reg::R2, Reg::R1);
    code.alu(Alu::ShiftRight, Reg::R2, COUNT_SHIFT as i32);
    code.jump_if(If::Equal, Reg::R2, 0, done);
    code.load(Width::Double, Reg::R0, COUNTERS, head::SPILLED);
    code.jump_if(If::AtLeast, Reg::R0, geometry.spill_entries as i32, full);
    // The registers of the interrupted program are not needed any more.
    code.load(Width::Double, CONTEXT, COUNTERS, head::SPILLED_SAMPLES);
    code.alu_reg(Alu::Add, CONTEXT, Reg::R2);
    code.store(Width::Double, COUNTERS, head::SPILLED_SAMPLES, CONTEXT);
    // The place in the spill.
    code.alu(Alu::Mul, HALF, geometry.spill_bytes() as i32);
    code.alu_reg(Alu::Add, HALF, BASE);
    code.alu_reg(Alu::Move, Reg::R2, Reg::R0);
    code.alu(Alu::ShiftLeft, Reg::R2, ENTRY_BYTES.trailing_zeros() as i32);
    code.alu_reg(Alu::Add, HALF, Reg::R2);
    code.alu(Alu::Add, HALF, geometry.spill_at(0) as i32);
    code.store(Width::Double, HALF, 8, Reg::R1);
    code.load(Width::Double, Reg::R1, BUCKET, last);
    code.store(Width::Double, HALF, 0, Reg::R1);
    code.alu(Alu::Add, Reg::R0, 1);
    code.store(Width::Double, COUNTERS, head::SPILLED, Reg::R0);
    if let Some(bell) = made_for.bell {
        code.jump_if(If::NotEqual, Reg::R0, geometry.wake_at() as i32, done);
        ring_the_bell(code, bell);
    }
    code.jump(done);
    code.bind(full);
    code.load(Width::Double, Reg::R0, COUNTERS, head::LOST);
    code.alu_reg(Alu::Add, Reg::R0, Reg::R2);
    code.store(Width::Double, COUNTERS, head::LOST, Reg::R0);
    code.bind(done);
}

/// `BUCKET` is kept on the frame, since a call takes the registers.
fn ring_the_bell(code: &mut Assembler, bell: i32) {
    code.store(Width::Double, Reg::R10, -16, BUCKET);
    code.store(Width::Double, Reg::R10, -8, PC);
    code.map(Reg::R1, bell);
    code.alu_reg(Alu::Move, Reg::R2, Reg::R10);
    code.alu(Alu::Add, Reg::R2, -8);
    code.alu(Alu::Move, Reg::R3, 8);
    code.alu(Alu::Move, Reg::R4, FORCE_WAKEUP);
    code.call(RING_THE_BELL);
    code.load(Width::Double, BUCKET, Reg::R10, -16);
}

/// The others move back by one, and the new entry goes first.
fn insert_first(code: &mut Assembler, geometry: &Geometry) {
    for way in (1..geometry.ways).rev() {
        for word in [0, 8] {
            code.load(Width::Double, Reg::R1, BUCKET, at(way - 1) + word);
            code.store(Width::Double, BUCKET, at(way) + word, Reg::R1);
        }
    }
    code.constant(Reg::R1, 1 << COUNT_SHIFT);
    code.alu_reg(Alu::Or, Reg::R1, KEY);
    code.store(Width::Double, BUCKET, 0, PC);
    code.store(Width::Double, BUCKET, 8, Reg::R1);
}
