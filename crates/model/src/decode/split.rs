//! One instruction into loads, work and stores.

use iced_x86::{
    FlowControl, Instruction as Raw, InstructionInfo, InstructionInfoFactory, Mnemonic, OpAccess,
    OpKind, Register, UsedMemory,
};

use super::classify::{self, Work};
use super::registers::{self, Set};
use crate::machine::Class;
use crate::stream::Code;
use crate::uop::{Flow, Habits, Instruction, Reg, Traits, Uop};

/// The address of a memory operand.
#[derive(Clone, Debug)]
struct Address {
    registers: Set,
    has_index: bool,
}

/// What an instruction reads and writes, sorted by where it is needed.
struct Parts {
    /// Every memory read.
    loads: Vec<Address>,
    /// Every memory write.
    stores: Vec<Address>,
    /// Registers that the work needs.
    sources: Set,
    /// Registers that it leaves.
    targets: Set,
    /// Whether the stack pointer moves along.
    moves_stack: bool,
}

pub(super) fn split(
    code: &Code,
    raw: &Raw,
    factory: &mut InstructionInfoFactory,
    habits: Habits,
) -> Instruction {
    let parts = parts(raw, factory.info(raw));
    let work = classify::work(raw);
    let class = match work {
        Work::Compute(class) | Work::Copy(class) => class,
        Work::Idle => Class::Nop,
        Work::Unknown => Class::Microcode,
    };
    let traits = Traits {
        is_unknown: work == Work::Unknown,
        is_fused: false,
        flops: classify::flops(raw, class),
        is_atomic: raw.has_lock_prefix() || is_exchange(raw),
        is_vector: classify::is_vector(raw),
    };
    let flow = flow(raw);
    let target = match flow {
        Flow::Conditional | Flow::Jump | Flow::Call => raw.near_branch_target(),
        _ => 0,
    };
    let uops = uops(raw, work, class, parts, traits, habits);
    Instruction { pc: code.pc, len: code.len, flow, target, uops, traits }
}

fn is_exchange(raw: &Raw) -> bool {
    raw.mnemonic() == Mnemonic::Xchg && raw.op0_kind() == OpKind::Memory
}

fn flow(raw: &Raw) -> Flow {
    match raw.flow_control() {
        FlowControl::ConditionalBranch => Flow::Conditional,
        FlowControl::UnconditionalBranch => Flow::Jump,
        FlowControl::IndirectBranch => Flow::IndirectJump,
        FlowControl::IndirectCall => Flow::IndirectCall,
        FlowControl::Return => Flow::Return,
        FlowControl::Call if raw.is_call_near() => Flow::Call,
        _ => Flow::Next,
    }
}

fn parts(raw: &Raw, info: &InstructionInfo) -> Parts {
    let mut parts = Parts {
        loads: Vec::new(),
        stores: Vec::new(),
        sources: Set::default(),
        targets: Set::default(),
        moves_stack: raw.is_stack_instruction(),
    };
    let mut addresses = Set::default();
    for memory in info.used_memory() {
        let address = address(memory);
        address.registers.0.iter().for_each(|&reg| addresses.add(reg));
        let (reads, writes) = directions(memory.access());
        if reads {
            parts.loads.push(address.clone());
        }
        if writes {
            parts.stores.push(address);
        }
    }
    if raw.mnemonic() == Mnemonic::Lea {
        addresses = Set::default();
    }
    let values = operand_reads(raw, info);
    for used in info.used_registers() {
        let Some(reg) = registers::reg(used.register()) else { continue };
        let is_stack_pointer = parts.moves_stack && reg == Reg::general(Register::RSP.number());
        if is_stack_pointer && !values.has(reg) {
            continue;
        }
        if registers::reads(used) && (!addresses.has(reg) || values.has(reg)) {
            parts.sources.add(reg);
        }
        if registers::writes(used) {
            parts.targets.add(reg);
        }
    }
    registers::flags(raw, &mut parts.sources, &mut parts.targets);
    parts
}

fn address(memory: &UsedMemory) -> Address {
    let mut registers = Set::default();
    for register in [memory.base(), memory.index()] {
        if let Some(reg) = registers::reg(register) {
            registers.add(reg);
        }
    }
    let has_index = memory.index() != Register::None;
    Address { registers, has_index }
}

fn directions(access: OpAccess) -> (bool, bool) {
    match access {
        OpAccess::Read | OpAccess::CondRead => (true, false),
        OpAccess::Write | OpAccess::CondWrite => (false, true),
        OpAccess::ReadWrite | OpAccess::ReadCondWrite => (true, true),
        _ => (false, false),
    }
}

/// Registers read as values, whether or not they also form an address.
fn operand_reads(raw: &Raw, info: &InstructionInfo) -> Set {
    let mut set = Set::default();
    for place in 0..raw.op_count() {
        let is_read = directions(info.op_access(place)).0;
        let register = raw.op_register(place);
        if raw.op_kind(place) == OpKind::Register && is_read {
            registers::reg(register).into_iter().for_each(|reg| set.add(reg));
        }
    }
    set
}

fn uops(
    raw: &Raw,
    work: Work,
    class: Class,
    parts: Parts,
    traits: Traits,
    habits: Habits,
) -> Vec<Uop> {
    let mut uops = Vec::with_capacity(4);
    let is_copy = matches!(work, Work::Copy(_));
    let has_memory = !parts.loads.is_empty() || !parts.stores.is_empty();
    let mut sources = parts.sources.0.clone();
    if is_copy && !parts.loads.is_empty() && parts.stores.is_empty() {
        // A plain load writes its register itself. What else it reads (a merge) comes first.
        let load = &parts.loads[0];
        let mut needed = load.registers.0.clone();
        needed.extend(&sources);
        let class = load_class(traits, load);
        uops.push(Uop::new(class, &needed, &parts.targets.0));
    } else {
        for (place, address) in parts.loads.iter().enumerate() {
            let value = Reg::temporary(place);
            let class = load_class(traits, address);
            uops.push(Uop::new(class, &address.registers.0, &[value]));
            sources.push(value);
        }
        let after_load = !uops.is_empty();
        // A branch comes last, since it is what decides; a call stores an address known before.
        let is_branch = class == Class::Branch;
        let is_plain_store = is_copy && !parts.stores.is_empty();
        let mut result = None;
        if !is_branch && !is_plain_store {
            result = compute(raw, work, class, &sources, &parts, habits, after_load, &mut uops);
        }
        let data = if traits.is_vector { Class::VecStoreData } else { Class::StoreData };
        for address in &parts.stores {
            uops.push(Uop::new(Class::StoreAddress, &address.registers.0, &[]));
            let value = match result {
                Some(reg) => vec![reg],
                None if is_branch => Vec::new(),
                None => sources.clone(),
            };
            uops.push(Uop::new(data, &value, &[]).sharing());
        }
        move_stack(&parts, has_memory, &mut uops);
        if is_branch {
            let branch = Uop::new(class, &sources, &parts.targets.0);
            let shares = after_load && parts.stores.is_empty() && habits.load_op_fusion;
            uops.push(if shares { branch.sharing() } else { branch });
        }
    }
    if is_copy && !parts.loads.is_empty() && parts.stores.is_empty() {
        move_stack(&parts, has_memory, &mut uops);
    }
    if uops.is_empty() {
        uops.push(Uop::new(Class::Nop, &[], &parts.targets.0));
    }
    uops
}

fn load_class(traits: Traits, address: &Address) -> Class {
    match (traits.is_vector, address.has_index) {
        (true, _) => Class::VecLoad,
        (false, true) => Class::IndexedLoad,
        (false, false) => Class::Load,
    }
}

/// A stack engine ahead of rename keeps the stack pointer: no unit, no latency.
fn move_stack(parts: &Parts, has_memory: bool, uops: &mut Vec<Uop>) {
    if parts.moves_stack && has_memory {
        let rsp = Reg::general(Register::RSP.number());
        uops.push(Uop::new(Class::Nop, &[rsp], &[rsp]).sharing());
    }
}

/// The work between loads and stores. Returns where a store finds its data.
#[allow(clippy::too_many_arguments)]
fn compute(
    raw: &Raw,
    work: Work,
    class: Class,
    sources: &[Reg],
    parts: &Parts,
    habits: Habits,
    after_load: bool,
    uops: &mut Vec<Uop>,
) -> Option<Reg> {
    if work == Work::Idle {
        return None;
    }
    let stores = !parts.stores.is_empty();
    let result = Reg::temporary(2);
    let mut targets = Vec::with_capacity(4);
    if stores {
        targets.push(result);
    }
    targets.extend(&parts.targets.0);
    let uop = if habits.zero_idioms && !after_load && is_zero_idiom(raw) {
        Uop::new(Class::Nop, &[], &targets)
    } else if habits.move_elimination && !after_load && is_eliminable(raw, class) {
        Uop::new(Class::Nop, sources, &targets)
    } else {
        Uop::new(class, sources, &targets)
    };
    let shares = after_load && habits.load_op_fusion;
    uops.push(if shares { uop.sharing() } else { uop });
    stores.then_some(result)
}

/// The result does not depend on the operands: `xor r,r`, `sub r,r`, `pxor x,x`.
fn is_zero_idiom(raw: &Raw) -> bool {
    let name = classify::name(raw);
    let clears = ["xor", "sub", "pxor", "pxord", "pxorq", "xorps", "xorpd"];
    let is_difference = name.starts_with("psub") || name.starts_with("pcmpgt");
    if !clears.contains(&name.as_str()) && !is_difference {
        return false;
    }
    let count = raw.op_count();
    count >= 2
        && (0..count).all(|place| raw.op_kind(place) == OpKind::Register)
        && raw.op_register(count - 1) == raw.op_register(count - 2)
}

fn is_eliminable(raw: &Raw, class: Class) -> bool {
    let both_registers = raw.op_count() == 2
        && raw.op0_kind() == OpKind::Register
        && raw.op1_kind() == OpKind::Register;
    let whole = |r: Register| r.is_gpr32() || r.is_gpr64() || r.is_vector_register();
    let name = classify::name(raw);
    let is_scalar_merge = name == "movss" || name == "movsd";
    both_registers
        && matches!(class, Class::Move | Class::VecMove)
        && !is_scalar_merge
        && whole(raw.op0_register())
        && whole(raw.op1_register())
}

/// Whether a machine that fuses would fuse these two.
pub(super) fn can_fuse(first: &Raw, second: &Raw) -> bool {
    let compares = matches!(
        first.mnemonic(),
        Mnemonic::Cmp
            | Mnemonic::Test
            | Mnemonic::Add
            | Mnemonic::Sub
            | Mnemonic::And
            | Mnemonic::Inc
            | Mnemonic::Dec
    );
    let writes_memory = first.op0_kind() == OpKind::Memory
        && !matches!(first.mnemonic(), Mnemonic::Cmp | Mnemonic::Test);
    let has_memory = (0..first.op_count()).any(|p| first.op_kind(p) == OpKind::Memory);
    let has_immediate =
        first.op_count() == 2 && !matches!(first.op1_kind(), OpKind::Register | OpKind::Memory);
    compares
        && !writes_memory
        && !(has_memory && has_immediate)
        && second.is_jcc_short_or_near()
        && first.next_ip() == second.ip()
}

/// Moves the comparison into the branch.
pub(super) fn fuse(first: &mut Instruction, second: &mut Instruction) {
    let Some(compare) = first.uops.pop() else { return };
    let mut left = Uop::new(Class::Nop, &[], &[]).sharing();
    // The slot stays with whichever of the pair executes.
    left.slots = 0;
    first.uops.push(left);
    first.traits.is_fused = true;
    if let Some(branch) = second.uops.first_mut() {
        branch.sources = compare.sources;
        branch.targets = compare.targets;
        branch.slots = compare.slots;
        if compare.targets.iter().any(|target| target.is_general()) {
            branch.class = Class::FusedBranch;
        }
    }
}

/// Lets a no-op share the slot of the instruction before it, unless that is a branch or shares one
/// already.
pub(super) fn join_nops(raw: &[Raw], instructions: &mut [Instruction]) {
    let mut is_free = false;
    for (raw, instruction) in raw.iter().zip(instructions) {
        let is_nop = raw.mnemonic() == Mnemonic::Nop;
        if is_nop && is_free {
            instruction.uops.iter_mut().for_each(|uop| uop.slots = 0);
        }
        let joined = is_nop && is_free;
        is_free = !joined && !instruction.traits.is_fused && !instruction.flow.is_branch();
    }
}
