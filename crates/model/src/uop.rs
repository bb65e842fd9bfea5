//! Micro-ops: what the cores execute. No instruction set is known here.
//!
//! ```text
//! add rax,[rbx+8]   ->   load  t0 <- rbx          slots 1
//!                        alu   rax,flags <- rax,t0 slots 0   (shares the load's slot)
//! ```

use crate::machine::Class;

/// A register as the cores see it: a place in a table of 64.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Reg(pub u8);

impl Reg {
    /// How many there are.
    pub const COUNT: usize = 64;
    /// Never written, so always ready: fills unused sources.
    pub const NONE: Reg = Reg(63);
    /// Never read: fills unused targets.
    pub const SINK: Reg = Reg(62);
    /// The condition flags without the carry.
    pub const FLAGS: Reg = Reg(56);
    /// The carry flag, which machines rename apart.
    pub const CARRY: Reg = Reg(57);
    /// The floating-point stack as one register.
    pub const STACK: Reg = Reg(58);

    /// A general register.
    pub fn general(number: usize) -> Reg {
        Reg((number & 15) as u8)
    }

    /// Whether it is a general register.
    pub fn is_general(self) -> bool {
        self.0 < 16
    }

    /// A vector register.
    pub fn vector(number: usize) -> Reg {
        Reg(16 + (number & 31) as u8)
    }

    /// A mask register.
    pub fn mask(number: usize) -> Reg {
        Reg(48 + (number & 7) as u8)
    }

    /// Carries a value between micro-ops of one instruction.
    pub fn temporary(number: usize) -> Reg {
        Reg(59 + (number % 3) as u8)
    }
}

/// How an instruction may leave the straight line.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(u8)]
pub enum Flow {
    /// It does not.
    #[default]
    Next,
    /// A direct branch that depends on a condition.
    Conditional,
    /// A direct jump.
    Jump,
    /// A direct call.
    Call,
    /// A jump through a register or memory.
    IndirectJump,
    /// A call through a register or memory.
    IndirectCall,
    /// A return.
    Return,
}

impl Flow {
    /// Whether it is a branch at all.
    pub fn is_branch(self) -> bool {
        self != Flow::Next
    }

    /// Whether it left the straight line, seen from where the program went on. A branch that has no
    /// condition always does, even to the instruction behind it.
    pub fn is_taken(self, went_on: u64, behind: u64, target: u64) -> bool {
        // Without a decision in between: which way it went is as hard to guess for the host.
        (self != Flow::Conditional) | (went_on != behind) | (target == went_on)
    }

    /// Whether its target is not in its bytes.
    pub fn is_indirect(self) -> bool {
        matches!(self, Flow::IndirectJump | Flow::IndirectCall | Flow::Return)
    }
}

/// One micro-op.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Uop {
    /// The kind of work.
    pub class: Class,
    /// Slots of the window that it takes: 0 when it shares the one before.
    pub slots: u8,
    /// What it waits for; unused places hold `Reg::NONE`.
    pub sources: [Reg; 4],
    /// What it writes; unused places hold `Reg::SINK`.
    pub targets: [Reg; 4],
}

impl Uop {
    /// A micro-op with as many sources and targets as fit; what does not fit is dropped.
    pub fn new(class: Class, sources: &[Reg], targets: &[Reg]) -> Uop {
        let fill = |regs: &[Reg], empty: Reg| {
            let mut filled = [empty; 4];
            for (place, &reg) in filled.iter_mut().zip(regs) {
                *place = reg;
            }
            filled
        };
        Uop {
            class,
            slots: 1,
            sources: fill(sources, Reg::NONE),
            targets: fill(targets, Reg::SINK),
        }
    }

    /// The same, sharing the slot of the micro-op before it.
    pub fn sharing(self) -> Uop {
        Uop { slots: 0, ..self }
    }
}

/// What is counted about an instruction besides its micro-ops.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Traits {
    /// The decoder did not know it and modelled it generically.
    pub is_unknown: bool,
    /// It was merged with the branch that follows.
    pub is_fused: bool,
    /// Floating-point operations that it makes, multiply-add as two.
    pub flops: u8,
    /// It is a locked or otherwise atomic access.
    pub is_atomic: bool,
    /// It works on vectors.
    pub is_vector: bool,
}

/// One instruction of a decoded block.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Instruction {
    /// Its address.
    pub pc: u64,
    /// Its length.
    pub len: u8,
    /// How it may leave the straight line.
    pub flow: Flow,
    /// Where a direct branch goes; 0 otherwise.
    pub target: u64,
    /// Its micro-ops, at least one.
    pub uops: Vec<Uop>,
    /// What else is counted.
    pub traits: Traits,
}

/// A block as micro-ops.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DecodedBlock {
    /// Its instructions, as many as the block has.
    pub instructions: Vec<Instruction>,
}

/// What of the machine matters when instructions become micro-ops.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Habits {
    /// Whether `xor r,r` and the like need no unit.
    pub zero_idioms: bool,
    /// Whether register copies need no unit.
    pub move_elimination: bool,
    /// Whether compare and branch become one.
    pub branch_fusion: bool,
    /// Whether a load and its operation share a slot.
    pub load_op_fusion: bool,
    /// Whether a no-op shares the slot of the instruction before it.
    pub nop_fusion: bool,
}

impl Habits {
    /// The habits of a machine.
    pub fn of(machine: &crate::machine::Machine) -> Habits {
        let window = &machine.window;
        Habits {
            zero_idioms: window.zero_idioms,
            move_elimination: window.move_elimination,
            branch_fusion: window.branch_fusion,
            load_op_fusion: window.load_op_fusion,
            nop_fusion: window.nop_fusion,
        }
    }
}
