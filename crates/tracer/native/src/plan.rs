//! A block of the program, read once: what it touches, and what must be recorded to know where.
//!
//! Most addresses follow from a register that the block does not change, or changes by a constant:
//! that register is recorded once, when the block begins, and the rest is arithmetic later.
//!
//! ```text
//! push rbx              slot 0 = rsp at the beginning;  store at slot 0 - 8
//! mov  rax, [rdi+16]    slot 1 = rdi at the beginning;  load at slot 1 + 16
//! mov  rcx, [rax+r8*4]  slot 2 = rax + r8*4, recorded here;  load at slot 2
//! mov  [rsp+8], rcx     store at slot 0 - 8 + 8
//! ```

use iced_x86::{
    Code as Opcode, Decoder, DecoderOptions, EncodingKind, FlowControl, Instruction,
    InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register, UsedMemory,
};
use model::stream::Code;

use crate::context::SLOTS_MAX;
use crate::emit::Gpr;
use crate::live::Liveness;
use crate::segment;
use crate::special::Special;
use crate::template::{FIXED, FS, Odd, Step, Template, Touch};

/// Instructions of a block, at most. Long enough for loops of numeric programs; what counts down to
/// a window must allow for the longest.
pub(crate) const INSTRUCTIONS_MAX: usize = 128;

/// How a block ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum End {
    /// At the instruction after it.
    Falls,
    /// With a branch whose bytes say where to, or a call.
    Jumps(u64),
    Calls(u64),
    /// With a branch that may fall through.
    Branches(u64),
    /// With a branch through a register or memory.
    JumpsThrough,
    CallsThrough,
    Returns,
    /// With an instruction that the engine carries out.
    Special(Special),
}

/// Something to record.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Value {
    Register(Gpr),
    /// The address of an instruction's memory operand without its displacement.
    Address,
    /// A vector register, in four slots.
    Vector(Register),
}

/// What goes where, and when: before or after an instruction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Record {
    pub(crate) instruction: u16,
    pub(crate) is_after: bool,
    pub(crate) slot: u8,
    pub(crate) value: Value,
}

/// A block, read.
pub(crate) struct Plan {
    pub(crate) codes: Vec<Code>,
    pub(crate) instructions: Vec<Instruction>,
    pub(crate) end: End,
    /// Recorded when the block begins: registers only.
    pub(crate) first: Vec<(u8, Gpr)>,
    pub(crate) records: Vec<Record>,
    pub(crate) template: Template,
    pub(crate) live: Liveness,
}

impl Plan {
    /// The first address after the block.
    pub(crate) fn after(&self) -> u64 {
        self.instructions.last().map_or(0, Instruction::next_ip)
    }
}

/// Reads the block that begins with these bytes; `None` if they hold not one instruction.
pub(crate) fn read(pc: u64, bytes: &[u8]) -> Option<Plan> {
    read_some(pc, bytes, INSTRUCTIONS_MAX)
}

/// Reads no more than so many instructions.
pub(crate) fn read_some(pc: u64, bytes: &[u8], most: usize) -> Option<Plan> {
    let mut factory = InstructionInfoFactory::new();
    let mut reader = Reader::default();
    let mut decoder = Decoder::with_ip(64, bytes, pc, DecoderOptions::NONE);
    let mut end = End::Falls;
    while reader.instructions.len() < most && reader.slots < SLOTS_MAX - 12 {
        if !decoder.can_decode() {
            break;
        }
        let start = decoder.position();
        let instruction = decoder.decode();
        let is_cut = instruction.is_invalid() && bytes.len() - start < 15;
        if is_cut && !reader.instructions.is_empty() {
            break;
        }
        let mut code = Code { pc: instruction.ip(), bytes: [0; 15], len: 0 };
        let found = bytes.get(start..decoder.position())?;
        code.len = found.len() as u8;
        code.bytes.get_mut(..found.len())?.copy_from_slice(found);
        reader.add(&instruction, &mut factory);
        reader.codes.push(code);
        match end_of(&instruction) {
            Some(found) => {
                end = found;
                break;
            }
            None if is_repeated(&instruction) => break,
            None => {}
        }
    }
    (!reader.instructions.is_empty()).then(|| reader.finish(end))
}

/// How an instruction ends its block, if it does.
fn end_of(instruction: &Instruction) -> Option<End> {
    if let Some(special) = Special::of(instruction) {
        return Some(End::Special(special));
    }
    if segment::is_beyond(instruction) {
        return Some(End::Falls);
    }
    let is_near = instruction.op0_kind() == OpKind::NearBranch64;
    match instruction.flow_control() {
        FlowControl::Next => None,
        FlowControl::ConditionalBranch => Some(End::Branches(instruction.near_branch_target())),
        FlowControl::UnconditionalBranch if is_near => {
            Some(End::Jumps(instruction.near_branch_target()))
        }
        FlowControl::Call if is_near => Some(End::Calls(instruction.near_branch_target())),
        FlowControl::IndirectBranch if !is_far(instruction) => Some(End::JumpsThrough),
        FlowControl::IndirectCall if !is_far(instruction) => Some(End::CallsThrough),
        FlowControl::Return if instruction.mnemonic() == Mnemonic::Ret => Some(End::Returns),
        // Interrupts, far branches, undefined ones: they fault where they stand.
        _ => Some(End::Falls),
    }
}

/// Whether an instruction goes where the engine would not follow: into another segment, or into the kernel
/// and back elsewhere.
fn is_far(instruction: &Instruction) -> bool {
    use Mnemonic as M;
    use Opcode as O;
    matches!(
        instruction.code(),
        O::Jmp_m1616 | O::Jmp_m1632 | O::Jmp_m1664 | O::Call_m1616 | O::Call_m1632 | O::Call_m1664
    ) || matches!(
        instruction.mnemonic(),
        M::Retf | M::Iret | M::Iretd | M::Iretq | M::Sysenter | M::Sysexit | M::Sysexitq
    )
}

/// Whether the program gets none of this instruction, whatever the host has: what modelled machines
/// lack, and what would change the engine's own registers.
pub(crate) fn is_withheld(instruction: &Instruction) -> bool {
    instruction.encoding() == EncodingKind::EVEX
        || is_far(instruction)
        || instruction.mnemonic() == Mnemonic::Xbegin
        || segment::is_beyond(instruction)
}

/// Whether it runs a string operation as often as RCX says.
pub(crate) fn is_repeated(instruction: &Instruction) -> bool {
    instruction.is_string_instruction()
        && (instruction.has_rep_prefix() || instruction.has_repne_prefix())
}

/// A general register by number, and whether all of it is meant when it is written.
pub(crate) fn gpr(register: Register) -> Option<Gpr> {
    let full = register.full_register();
    full.is_gpr64().then(|| Gpr(full.number() as u8))
}

/// A value that has a slot: registers with how often each was changed before.
#[derive(PartialEq, Eq)]
struct Key {
    base: Option<(Gpr, u32)>,
    index: Option<(Gpr, u32, u32)>,
    is_narrow: bool,
}

#[derive(Default)]
struct Reader {
    codes: Vec<Code>,
    instructions: Vec<Instruction>,
    /// How often each register was changed.
    changes: [u32; 16],
    /// What was added to RSP since.
    rsp_moved: i64,
    keys: Vec<(Key, u8)>,
    slots: usize,
    first: Vec<(u8, Gpr)>,
    records: Vec<Record>,
    steps: Vec<Step>,
    live: Liveness,
}

const STACK: Gpr = Gpr(4);

impl Reader {
    fn add(&mut self, instruction: &Instruction, factory: &mut InstructionInfoFactory) {
        let info = factory.info(instruction);
        if !is_withheld(instruction) {
            let mut used: Vec<UsedMemory> = info.used_memory().to_vec();
            // What is read is read first.
            used.sort_by_key(|memory| !reads(memory.access()));
            match is_repeated(instruction) {
                true => self.repeat(instruction),
                false => used.iter().for_each(|memory| self.touch(instruction, memory)),
            }
        }
        self.live.add(instruction, info.used_registers());
        for register in info.used_registers() {
            if let Some(gpr) = gpr(register.register()).filter(|_| writes(register.access())) {
                self.change(gpr, instruction);
            }
        }
        self.instructions.push(*instruction);
    }

    /// A register is changed; by a constant, if it is RSP and the instruction says so.
    fn change(&mut self, register: Gpr, instruction: &Instruction) {
        let by = (register == STACK).then(|| stack_step(instruction)).flatten();
        match by {
            Some(by) => self.rsp_moved += by,
            None => {
                self.changes[usize::from(register.0)] += 1;
                if register == STACK {
                    self.rsp_moved = 0;
                }
            }
        }
    }

    fn new_slots(&mut self, count: usize) -> u8 {
        let slot = self.slots as u8;
        self.slots += count;
        slot
    }

    fn record(&mut self, is_after: bool, count: usize, value: Value) -> u8 {
        let slot = self.new_slots(count);
        let instruction = self.instructions.len() as u16;
        self.records.push(Record { instruction, is_after, slot, value });
        slot
    }

    /// The slot that holds a register as it is now, and what to add.
    fn register_slot(&mut self, register: Gpr) -> (u8, u64) {
        let known = self.known_slot(register);
        let is_stack = register == STACK;
        let changes = &mut self.changes[usize::from(register.0)];
        if known.is_none() && is_stack && *changes > 0 {
            // Recorded as it is here, which is a new value to count from.
            *changes += u32::from(self.rsp_moved != 0);
            self.rsp_moved = 0;
        }
        let changes = *changes;
        let slot = known.unwrap_or_else(|| self.record_register(register, changes));
        (slot, if is_stack { self.rsp_moved as u64 } else { 0 })
    }

    fn known_slot(&self, register: Gpr) -> Option<u8> {
        let changes = self.changes[usize::from(register.0)];
        let key = Key { base: Some((register, changes)), index: None, is_narrow: false };
        self.keys.iter().find(|(known, _)| *known == key).map(|(_, slot)| *slot)
    }

    /// Records a register when the block begins if it is still as it was then, or just now.
    fn record_register(&mut self, register: Gpr, changes: u32) -> u8 {
        let slot = match changes {
            0 => {
                let slot = self.new_slots(1);
                self.first.push((slot, register));
                slot
            }
            _ => self.record(false, 1, Value::Register(register)),
        };
        let key = Key { base: Some((register, changes)), index: None, is_narrow: false };
        self.keys.push((key, slot));
        slot
    }

    /// Where the address of a memory operand comes from, its displacement left out.
    fn source(&mut self, memory: &UsedMemory) -> (u8, u64) {
        let is_narrow = [memory.base(), memory.index()].iter().any(|register| register.is_gpr32());
        let base = gpr(memory.base());
        let index = gpr(memory.index());
        let is_fs = memory.segment() == Register::FS;
        match (base, index) {
            // The program may change it between two blocks that are told at once.
            _ if memory.segment() == Register::GS => (self.record(false, 1, Value::Address), 0),
            (None, None) => (if is_fs { FS } else { FIXED }, 0),
            (Some(base), None) if !is_narrow && !is_fs => self.register_slot(base),
            _ => {
                let of = |register: Gpr| (register, self.changes[usize::from(register.0)]);
                let key = Key {
                    base: base.map(of),
                    index: index.map(|index| {
                        let (index, changes) = of(index);
                        (index, changes, memory.scale())
                    }),
                    is_narrow,
                };
                let moves = base == Some(STACK) && self.rsp_moved != 0;
                if let Some((_, slot)) = self.keys.iter().find(|(known, _)| *known == key && !moves)
                {
                    return (*slot, 0);
                }
                let slot = self.record(false, 1, Value::Address);
                if !moves {
                    self.keys.push((key, slot));
                }
                (slot, 0)
            }
        }
    }

    fn touch(&mut self, instruction: &Instruction, memory: &UsedMemory) {
        let access = memory.access();
        if matches!(access, OpAccess::None | OpAccess::NoMemAccess) {
            return;
        }
        if memory.index().is_vector_register() {
            return self.gather(instruction, memory);
        }
        let (slot, moved) = self.source(memory);
        let is_fs = memory.segment() == Register::FS && slot != FS;
        let displacement = memory.displacement().wrapping_add(moved);
        let index = self.instructions.len() as u16;
        let bytes = match memory.memory_size().size() {
            0 => unsized_bytes(instruction),
            bytes => bytes,
        };
        let one = |displacement: u64, size: u8, is_store: bool| Touch {
            slot,
            displacement,
            instruction: index,
            size,
            is_store,
        };
        for is_store in [false, true] {
            if !(if is_store { writes(access) } else { reads(access) }) {
                continue;
            }
            if is_fs {
                self.steps.push(Step::Odd(Odd::InThread(one(displacement, bytes as u8, is_store))));
                continue;
            }
            // What saves or loads state moves it line by line.
            for start in (0..bytes).step_by(64) {
                let size = (bytes - start).min(64) as u8;
                let displacement = displacement.wrapping_add(start as u64);
                self.steps.push(Step::Touch(one(displacement, size, is_store)));
            }
        }
    }

    /// A load whose addresses are in a vector register.
    fn gather(&mut self, instruction: &Instruction, memory: &UsedMemory) {
        let base = gpr(memory.base()).map(|base| self.register_slot(base));
        let (base, moved) = base.unwrap_or((FIXED, 0));
        let mask = instruction.op_register(2);
        let indices = self.record(false, 4, Value::Vector(memory.index().full_register()));
        let mask = self.record(false, 4, Value::Vector(mask.full_register()));
        let is_wide_index = matches!(
            instruction.mnemonic(),
            Mnemonic::Vgatherqpd
                | Mnemonic::Vgatherqps
                | Mnemonic::Vpgatherqq
                | Mnemonic::Vpgatherqd
        );
        let element = memory.memory_size().element_size().max(memory.memory_size().size().min(8));
        let width = instruction.op0_register().size().max(memory.index().size());
        let lanes = width / if is_wide_index { 8 } else { element.max(4) };
        self.steps.push(Step::Odd(Odd::Gather {
            base,
            displacement: memory.displacement().wrapping_add(moved),
            indices,
            mask,
            scale: memory.scale() as u8,
            is_wide_index,
            size: element as u8,
            lanes: lanes.min(8) as u8,
            instruction: self.instructions.len() as u16,
        }));
    }

    /// A string instruction that repeats: where its pointers were before, and where one is after.
    fn repeat(&mut self, instruction: &Instruction) {
        use Mnemonic as M;
        const RSI: Gpr = Gpr(6);
        const RDI: Gpr = Gpr(7);
        let (size, loads_si, di) = match instruction.mnemonic() {
            M::Movsb => (1, true, Some(true)),
            M::Movsw => (2, true, Some(true)),
            M::Movsd => (4, true, Some(true)),
            M::Movsq => (8, true, Some(true)),
            M::Stosb => (1, false, Some(true)),
            M::Stosw => (2, false, Some(true)),
            M::Stosd => (4, false, Some(true)),
            M::Stosq => (8, false, Some(true)),
            M::Lodsb => (1, true, None),
            M::Lodsw => (2, true, None),
            M::Lodsd => (4, true, None),
            M::Lodsq => (8, true, None),
            M::Cmpsb => (1, true, Some(false)),
            M::Cmpsw => (2, true, Some(false)),
            M::Cmpsd => (4, true, Some(false)),
            M::Cmpsq => (8, true, Some(false)),
            M::Scasb => (1, false, Some(false)),
            M::Scasw => (2, false, Some(false)),
            M::Scasd => (4, false, Some(false)),
            M::Scasq => (8, false, Some(false)),
            _ => return,
        };
        let before_si = loads_si.then(|| self.record(false, 1, Value::Register(RSI)));
        let before_di = di.map(|is_store| (self.record(false, 1, Value::Register(RDI)), is_store));
        let (moved, pointer) = match before_di {
            Some((slot, _)) => (slot, RDI),
            None => (before_si.unwrap_or(0), RSI),
        };
        let after = self.record(true, 1, Value::Register(pointer));
        let instruction = self.instructions.len() as u16;
        let repeat =
            Odd::Repeat { from: before_si, to: before_di, moved, after, size, instruction };
        self.steps.push(Step::Odd(repeat));
    }

    fn finish(self, end: End) -> Plan {
        Plan {
            codes: self.codes,
            instructions: self.instructions,
            end,
            first: self.first,
            records: self.records,
            template: Template::new(self.steps, self.slots as u16),
            live: self.live,
        }
    }
}

/// By how much an instruction moves RSP, if its bytes say so.
fn stack_step(instruction: &Instruction) -> Option<i64> {
    let is_simple = matches!(
        instruction.mnemonic(),
        Mnemonic::Push
            | Mnemonic::Pop
            | Mnemonic::Call
            | Mnemonic::Ret
            | Mnemonic::Pushfq
            | Mnemonic::Popfq
    );
    let pops_rsp =
        instruction.mnemonic() == Mnemonic::Pop && instruction.op0_register() == Register::RSP;
    if is_simple && !pops_rsp {
        return Some(i64::from(instruction.stack_pointer_increment()));
    }
    let is_immediate =
        matches!(instruction.op1_kind(), OpKind::Immediate8to64 | OpKind::Immediate32to64);
    if instruction.op0_register() != Register::RSP || !is_immediate {
        return None;
    }
    match instruction.mnemonic() {
        Mnemonic::Add => Some(instruction.immediate(1) as i64),
        Mnemonic::Sub => Some((instruction.immediate(1) as i64).wrapping_neg()),
        _ => None,
    }
}

/// How much state an instruction moves whose size its bytes do not tell.
fn unsized_bytes(instruction: &Instruction) -> usize {
    match instruction.mnemonic() {
        Mnemonic::Fxsave | Mnemonic::Fxsave64 | Mnemonic::Fxrstor | Mnemonic::Fxrstor64 => 512,
        Mnemonic::Xsave | Mnemonic::Xsave64 | Mnemonic::Xsavec | Mnemonic::Xsavec64 => 832,
        Mnemonic::Xsaveopt | Mnemonic::Xsaveopt64 | Mnemonic::Xrstor | Mnemonic::Xrstor64 => 832,
        _ => 8,
    }
}

fn reads(access: OpAccess) -> bool {
    use OpAccess as A;
    matches!(access, A::Read | A::CondRead | A::ReadWrite | A::ReadCondWrite)
}

pub(crate) fn writes(access: OpAccess) -> bool {
    use OpAccess as A;
    matches!(access, A::Write | A::CondWrite | A::ReadWrite | A::ReadCondWrite)
}
