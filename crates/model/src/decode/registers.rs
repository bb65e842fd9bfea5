//! Which registers of the cores stand for those of x86.

use iced_x86::{Instruction, OpAccess, Register, RflagsBits, UsedRegister};

use crate::uop::Reg;

/// The core's register for an x86 one, if the cores track it.
pub(super) fn reg(register: Register) -> Option<Reg> {
    let full = register.full_register();
    if full.is_gpr() {
        Some(Reg::general(full.number()))
    } else if full.is_vector_register() {
        Some(Reg::vector(full.number()))
    } else if full.is_k() {
        Some(Reg::mask(full.number()))
    } else if full.is_st() || full.is_mm() {
        Some(Reg::STACK)
    } else {
        None
    }
}

/// A small set of registers in order of arrival.
#[derive(Clone, Debug, Default)]
pub(super) struct Set(pub(super) Vec<Reg>);

impl Set {
    pub(super) fn add(&mut self, reg: Reg) {
        if !self.0.contains(&reg) {
            self.0.push(reg);
        }
    }

    pub(super) fn has(&self, reg: Reg) -> bool {
        self.0.contains(&reg)
    }
}

/// Whether an access needs the old value: a partial or conditional write merges with it.
pub(super) fn reads(used: &UsedRegister) -> bool {
    let register = used.register();
    let is_partial = register.is_gpr8() || register.is_gpr16();
    match used.access() {
        OpAccess::Read | OpAccess::CondRead | OpAccess::ReadWrite | OpAccess::ReadCondWrite => true,
        OpAccess::CondWrite => true,
        OpAccess::Write => is_partial,
        _ => false,
    }
}

/// Whether an access leaves a new value.
pub(super) fn writes(used: &UsedRegister) -> bool {
    matches!(
        used.access(),
        OpAccess::Write | OpAccess::CondWrite | OpAccess::ReadWrite | OpAccess::ReadCondWrite
    )
}

/// Adds the flags that an instruction consumes and leaves.
pub(super) fn flags(raw: &Instruction, sources: &mut Set, targets: &mut Set) {
    let (read, modified) = (raw.rflags_read(), raw.rflags_modified());
    if read & !RflagsBits::CF & !RflagsBits::DF != 0 {
        sources.add(Reg::FLAGS);
    }
    if read & RflagsBits::CF != 0 {
        sources.add(Reg::CARRY);
    }
    if modified & !RflagsBits::CF != 0 {
        targets.add(Reg::FLAGS);
    }
    if modified & RflagsBits::CF != 0 {
        targets.add(Reg::CARRY);
    }
}
