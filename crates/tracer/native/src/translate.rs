//! A block of the program as code for the host: its own instructions, with what is recorded between.
//!
//! ```text
//! full:   leave                      no blocks left
//! entry:  if left is 0 go to full
//!         ids[left] = number; left moves on
//!         slots[..] = registers       if addresses are told
//!         the program's instructions, each as it was but for addresses relative to itself
//! ends:   jmp next block, or a look into the table for where a branch goes
//! stubs:  leave with the link's number, until the jump above is made to lead elsewhere
//! ```

use iced_x86::{
    Code as Opcode, Encoder, Instruction, InstructionInfoFactory, MemoryOperand, Mnemonic, Register,
};

use crate::context::{Mode, at, leave};
use crate::emit::{Emitter, Gpr, RAX, RCX, RSP};
use crate::held::Held;
use crate::live::{Liveness, sets_flags_first};
use crate::plan::{End, Plan, Record, Value, gpr, is_withheld};
use crate::segment::is_in_gs;

/// A way out of a block that may be made to lead to another.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Exit {
    /// Where the distance of the jump is.
    pub(crate) place: u64,
    /// Where it leads until it is linked.
    pub(crate) stub: u64,
    /// The program's address that it means.
    pub(crate) to: u64,
}

/// A translated block.
pub(crate) struct Translated {
    pub(crate) bytes: Vec<u8>,
    /// Where to enter.
    pub(crate) entry: u64,
    pub(crate) exits: Vec<Exit>,
    /// Where each of the program's instructions is, from the first byte on.
    pub(crate) offsets: Box<[u16]>,
    pub(crate) displaced: Box<[Displaced]>,
}

/// A register that the program does not read for a while: the engine uses it, and what the program had in
/// it is put aside for the case that an instruction faults before it is written or brought back. Somebody
/// who handles the fault may look.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Displaced {
    pub(crate) register: Gpr,
    /// The instructions that find it displaced: from this one to before that one.
    pub(crate) from: u16,
    pub(crate) until: u16,
}

/// What translating depends on beside the block.
#[derive(Clone, Copy)]
pub(crate) struct Setting {
    /// Where the code will lie.
    pub(crate) base: u64,
    /// Where code goes to be left.
    pub(crate) leave: u64,
    /// Where a branch goes whose address is not the first of its set, by mode.
    pub(crate) second: [u64; 2],
    /// The number of the first exit.
    pub(crate) first_exit: u32,
    /// Whether the host saves more of its vectors than the program knows of.
    pub(crate) has_wider_vectors: bool,
}

/// Translates a block.
pub(crate) fn translate(plan: &Plan, id: u32, mode: Mode, setting: Setting) -> Translated {
    let mut writer = Writer {
        emitter: Emitter::new(setting.base),
        encoder: Encoder::new(64),
        setting,
        mode,
        exits: Vec::new(),
        dead: plan.live.dead(),
        displaced: Vec::new(),
        held: None,
        slots: i32::from(plan.template.slots),
    };
    let entry = writer.begin(plan, id);
    let offsets = writer.body(plan);
    writer.end(plan, id);
    writer.stubs();
    writer.emitter.finish();
    let displaced = writer.displaced.into();
    Translated { bytes: writer.emitter.bytes, entry, exits: writer.exits, offsets, displaced }
}

pub(crate) struct Writer {
    pub(crate) emitter: Emitter,
    encoder: Encoder,
    pub(crate) setting: Setting,
    pub(crate) mode: Mode,
    pub(crate) exits: Vec<Exit>,
    dead: Vec<u16>,
    pub(crate) displaced: Vec<Displaced>,
    pub(crate) held: Option<Held>,
    slots: i32,
}

impl Writer {
    pub(crate) fn is_dead(&self, index: usize, register: Gpr) -> bool {
        self.dead.get(index).is_some_and(|dead| dead >> register.0 & 1 == 1)
    }

    fn is_displaced(&self, index: usize, register: Gpr) -> bool {
        let covers = |one: &Displaced| (one.from..one.until).contains(&(index as u16));
        self.displaced.iter().any(|one| one.register == register && covers(one))
    }

    /// Everything before the first instruction. Says where to enter.
    fn begin(&mut self, plan: &Plan, id: u32) -> u64 {
        let is_free = sets_flags_first(&plan.instructions);
        let held = self.to_hold(plan, !is_free);
        let work = match (is_free, held) {
            (true, Some(held)) => held.slots,
            (true, None) => self.scratch::<1>(0, 0, &plan.live)[0],
            (false, _) => RCX,
        };
        let emitter = &mut self.emitter;
        emitter.load(work, at::spill(work));
        emitter.leave(leave::FULL, id, self.setting.leave);
        let entry = emitter.here();
        let is_live = self.put_aside(0, work, &plan.live);
        let emitter = &mut self.emitter;
        emitter.load(work, at::LEFT);
        let jump = if is_free { 0x74 } else { 0xe3 };
        if is_free {
            emitter.test(work);
        }
        let back = emitter.bytes.len() as u8 + 2;
        emitter.put(&[jump, back.wrapping_neg()]);
        emitter.note(work, id);
        if self.mode == Mode::Told && self.slots > 0 {
            self.record_first(plan, work);
        }
        match held {
            Some(held) => self.hold(held, work, is_live, plan),
            None if is_live => self.emitter.load(work, at::spill(work)),
            None => {}
        }
        entry
    }

    /// Puts aside what the program has in a register, unless that was done before. Whether it must be
    /// brought back: if not, the register stays displaced until the program writes it.
    pub(crate) fn put_aside(&mut self, index: usize, register: Gpr, live: &Liveness) -> bool {
        if self.is_displaced(index, register) {
            return false;
        }
        self.emitter.store(at::spill(register), register);
        let is_dead = self.is_dead(index, register);
        if is_dead {
            let until = index + live.rests_for(index, register) + 1;
            self.displaced.push(Displaced { register, from: index as u16, until: until as u16 });
        }
        !is_dead
    }

    /// Puts aside what the program has in a register, for one instruction that may fault. What is brought
    /// back behind it is the program's in any case: of a register that was displaced already, what was
    /// put aside.
    pub(crate) fn displace(&mut self, index: usize, register: Gpr) {
        self.release_for(index, 1 << register.0);
        if !self.is_displaced(index, register) {
            self.emitter.store(at::spill(register), register);
            let index = index as u16;
            self.displaced.push(Displaced { register, from: index, until: index + 1 });
        }
    }

    /// Records what is recorded when the block begins, and moves on.
    fn record_first(&mut self, plan: &Plan, work: Gpr) {
        let emitter = &mut self.emitter;
        emitter.load(work, at::SLOTS);
        for (slot, register) in &plan.first {
            let offset = i32::from(*slot) * 8;
            if *register == work {
                let other = if work == RAX { RCX } else { RAX };
                emitter.store(at::spill(other), other);
                emitter.load(other, at::spill(work));
                emitter.store_at(work, offset, other);
                emitter.load(other, at::spill(other));
            } else {
                emitter.store_at(work, offset, *register);
            }
        }
        emitter.add(work, work, self.slots * 8);
        emitter.store(at::SLOTS, work);
    }

    /// The instructions, but for what the last does if it is a branch.
    fn body(&mut self, plan: &Plan) -> Box<[u16]> {
        let is_told = self.mode == Mode::Told;
        let mut records = plan.records.iter().filter(|_| is_told).copied().peekable();
        let last = plan.instructions.len() - 1;
        let mut offsets = Vec::with_capacity(plan.instructions.len());
        for (index, instruction) in plan.instructions.iter().enumerate() {
            let is_due = |record: &Record| usize::from(record.instruction) == index;
            if self.held.is_some_and(|held| held.until <= index) {
                self.release(index);
            }
            while let Some(record) = records.next_if(|record| is_due(record) && !record.is_after) {
                self.record(record, instruction, index, &plan.live);
            }
            if self.held.is_some() && records.peek().is_none() {
                self.release(index);
            }
            offsets.push(self.emitter.bytes.len() as u16);
            if index == last && plan.end != End::Falls {
                break;
            }
            let bytes = plan.codes[index].bytes.get(..usize::from(plan.codes[index].len));
            self.copy(index, instruction, bytes.unwrap_or_default());
            while let Some(record) = records.next_if(is_due) {
                self.record(record, instruction, index + 1, &plan.live);
            }
        }
        if self.held.is_some() {
            self.release(plan.instructions.len());
        }
        offsets.into()
    }

    /// Registers to work with before an instruction, none of those to be avoided: those that nobody
    /// reads again first, then those that are not needed for longest.
    fn scratch<const COUNT: usize>(
        &self,
        index: usize,
        avoid: u16,
        live: &Liveness,
    ) -> [Gpr; COUNT] {
        let avoid = avoid | self.held.map_or(0, |held| held.bits());
        let may = |register: &u8| *register != RSP.0 && avoid >> register & 1 == 0;
        let mut all: Vec<Gpr> = (0..16).filter(may).map(Gpr).collect();
        all.sort_by_key(|register| {
            let rests = live.rests_for(index, *register);
            (!self.is_dead(index, *register), usize::MAX - rests, register.0)
        });
        std::array::from_fn(|place| all[place])
    }

    fn record(&mut self, record: Record, instruction: &Instruction, index: usize, live: &Liveness) {
        let offset = (i32::from(record.slot) - self.slots) * 8;
        match record.value {
            Value::Register(register) => {
                self.release_for(index, 1 << register.0);
                self.with_slots(index, 1 << register.0, live, |writer, slots| {
                    writer.emitter.store_at(slots, offset, register);
                });
            }
            Value::Address => self.record_address(offset, instruction, index, live),
            Value::Vector(vector) => self.with_slots(index, 0, live, |writer, slots| {
                let vector = Register::YMM0 + vector.number() as u32;
                let memory = MemoryOperand::with_base_displ(wide(slots), i64::from(offset));
                let opcode = Opcode::VEX_Vmovdqu_ymmm256_ymm;
                writer.encode(Instruction::with2(opcode, memory, vector));
            }),
        }
    }

    /// Does something with a register that says where slots are, none of those to be avoided.
    fn with_slots(
        &mut self,
        index: usize,
        avoid: u16,
        live: &Liveness,
        write: impl FnOnce(&mut Writer, Gpr),
    ) {
        if let Some(held) = self.held {
            return write(self, held.slots);
        }
        let [slots] = self.scratch(index, avoid, live);
        self.keeping(index, &[slots], live, |writer| {
            writer.emitter.load(slots, at::SLOTS);
            write(writer, slots);
        });
    }

    fn record_address(
        &mut self,
        offset: i32,
        instruction: &Instruction,
        index: usize,
        live: &Liveness,
    ) {
        let (base, in_dex) = (instruction.memory_base(), instruction.memory_index());
        let bit = |register| gpr(register).map_or(0, |gpr| 1u16 << gpr.0);
        let named = bit(base) | bit(in_dex);
        self.release_for(index, if is_in_gs(instruction) { u16::MAX } else { named });
        let lea = |address: Gpr| {
            let scale = instruction.memory_index_scale();
            let bytes = if base == Register::None { 4 } else { 0 };
            let memory = MemoryOperand::new(base, in_dex, scale, 0, bytes, false, Register::None);
            Instruction::with2(Opcode::Lea_r64_m, wide(address), memory)
        };
        if let Some(Held { slots, address: Some(address), .. }) = self.held {
            self.encode(lea(address));
            return self.emitter.store_at(slots, offset, address);
        }
        self.release(index);
        let [address, slots] = self.scratch(index, named, live);
        self.keeping(index, &[address, slots], live, |writer| {
            match is_in_gs(instruction) {
                true => writer.address_in_gs(instruction, address, slots),
                false => writer.encode(lea(address)),
            }
            writer.emitter.load(slots, at::SLOTS);
            writer.emitter.store_at(slots, offset, address);
        });
    }

    /// Does something with registers that have their values again afterwards, as far as the program
    /// needs them.
    fn keeping(
        &mut self,
        index: usize,
        registers: &[Gpr],
        live: &Liveness,
        write: impl FnOnce(&mut Writer),
    ) {
        let mut kept = registers.to_vec();
        kept.retain(|register| self.put_aside(index, *register, live));
        write(self);
        kept.iter().for_each(|register| self.emitter.load(*register, at::spill(*register)));
    }

    /// Writes an instruction of ours; those are always encodable.
    pub(crate) fn encode(&mut self, instruction: Result<Instruction, iced_x86::IcedError>) {
        let Ok(instruction) = instruction else { return self.emitter.put(&UNDEFINED) };
        match self.encoder.encode(&instruction, self.emitter.here()) {
            Ok(_) => {
                let bytes = self.encoder.take_buffer();
                self.emitter.put(&bytes);
            }
            Err(_) => {
                drop(self.encoder.take_buffer());
                self.emitter.put(&UNDEFINED);
            }
        }
    }

    /// One instruction of the program.
    fn copy(&mut self, index: usize, instruction: &Instruction, bytes: &[u8]) {
        if is_withheld(instruction) {
            return self.emitter.put(&UNDEFINED);
        }
        match instruction.mnemonic() {
            // mov eax, 7; mov edx, 0: what the program is told that there is.
            Mnemonic::Xgetbv => self.emitter.put(&[0xb8, 7, 0, 0, 0, 0xba, 0, 0, 0, 0]),
            Mnemonic::Rdgsbase | Mnemonic::Wrgsbase => self.exchange_gs(instruction),
            _ if is_in_gs(instruction) => self.move_from_gs(index, instruction),
            mnemonic
                if self.setting.has_wider_vectors
                    && saves_vectors(mnemonic)
                    && !names_rax(instruction) =>
            {
                self.save_vectors(index, bytes);
            }
            _ if instruction.is_ip_rel_memory_operand() => self.move_relative(index, instruction),
            _ => self.emitter.put(bytes),
        }
    }

    /// State is saved and loaded as far as the program knows of it; the rest would run over its buffer.
    fn save_vectors(&mut self, index: usize, bytes: &[u8]) {
        self.displace(index, RAX);
        // pext eax, eax, 7: keeps the three lowest bits.
        self.emitter.constant(&[0xc4, 0xe2, 0x7a, 0xf5], 0, 7);
        self.emitter.put(bytes);
        self.emitter.load(RAX, at::spill(RAX));
    }

    /// An instruction that names memory by its distance to itself, which is another here; through a
    /// register if that is too far.
    fn move_relative(&mut self, index: usize, instruction: &Instruction) {
        if self.encoder.encode(instruction, self.emitter.here()).is_ok() {
            let bytes = self.encoder.take_buffer();
            return self.emitter.put(&bytes);
        }
        drop(self.encoder.take_buffer());
        let far = free_register(instruction);
        self.displace(index, far);
        self.emitter.set(far, instruction.ip_rel_memory_address());
        self.encode(Ok(through(instruction, far)));
        self.emitter.load(far, at::spill(far));
    }
}

/// `ud2`
const UNDEFINED: [u8; 2] = [0x0f, 0x0b];

pub(crate) fn saves_vectors(mnemonic: Mnemonic) -> bool {
    use Mnemonic as M;
    matches!(
        mnemonic,
        M::Xsave | M::Xsave64 | M::Xsavec | M::Xsavec64 | M::Xsaveopt | M::Xsaveopt64
    ) || matches!(mnemonic, M::Xrstor | M::Xrstor64)
}

/// Whether an instruction finds its memory by RAX.
fn names_rax(instruction: &Instruction) -> bool {
    [instruction.memory_base(), instruction.memory_index()].map(gpr).contains(&Some(RAX))
}

pub(crate) fn wide(register: Gpr) -> Register {
    Register::RAX + u32::from(register.0)
}

/// A register that an instruction does not use.
pub(crate) fn free_register(instruction: &Instruction) -> Gpr {
    let mut factory = InstructionInfoFactory::new();
    let used = factory.info(instruction).used_registers();
    let is_free =
        |register: &u8| !used.iter().any(|one| gpr(one.register()) == Some(Gpr(*register)));
    (0..16).filter(|register| *register != RSP.0).find(is_free).map_or(RAX, Gpr)
}

/// The instruction with its memory operand at a register.
fn through(instruction: &Instruction, register: Gpr) -> Instruction {
    let mut moved = *instruction;
    moved.set_memory_base(wide(register));
    moved.set_memory_displacement64(0);
    moved.set_memory_displ_size(0);
    moved
}
