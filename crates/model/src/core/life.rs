//! The life of every micro-op, for those who listen.

use crate::cause::Cause;
use crate::machine::Class;
use crate::units::Level;
use crate::uop::Flow;

/// No micro-op: a source that nobody in sight produced.
pub const NOBODY: u64 = u64::MAX;

/// When a micro-op passed each stage, and what it depended on.
///
/// ```text
/// fetched <= dispatched <= ready <= issued <= completed <= committed
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Life {
    /// Its number in program order, from 0.
    pub sequence: u64,
    /// The static instruction, as a place in the program.
    pub instruction: u32,
    /// Its address.
    pub pc: u64,
    /// Its kind of work.
    pub class: Class,
    /// Slots of the window that it takes.
    pub slots: u8,
    /// Slots of its whole instruction, which is fetched at once.
    pub instruction_slots: u8,
    /// Whether it is the last micro-op of its instruction.
    pub is_last: bool,
    /// How its instruction may leave the straight line; set on the last micro-op.
    pub flow: Flow,
    /// The micro-ops that produced its sources.
    pub producers: [u64; 4],
    /// The store that it took its value from.
    pub store: u64,
    /// When its instruction was fetched.
    pub fetched: u64,
    /// Cycles for which its fetch waited for code or its translation.
    pub code_cycles: u32,
    /// Of them, those for the translation.
    pub code_translation_cycles: u32,
    /// When it entered the window.
    pub dispatched: u64,
    /// When its operands were there.
    pub ready: u64,
    /// When it was sent to a port.
    pub issued: u64,
    /// When its result was there.
    pub completed: u64,
    /// When it retired.
    pub committed: u64,
    /// Of a load, cycles beyond a first-level hit; of a store's address, cycles until its line may
    /// be written.
    pub miss_cycles: u32,
    /// Of them, those for the translation.
    pub translation_cycles: u32,
    /// Where it found its line.
    pub level: Level,
    /// Of a load, whence what it waited for came: beyond where it found its line, if that was still on
    /// its way there.
    pub from: Level,
    /// The address that it touched, if any.
    pub address: Option<u64>,
    /// How many bytes from there on, at least.
    pub bytes: u8,
    /// It is a mispredicted branch.
    pub mispredicted: bool,
    /// It is a branch that the front end had to set right by itself.
    pub resteered: bool,
    /// It is a branch that left the straight line.
    pub taken: bool,
    /// A load or store that missed the first level.
    pub missed_l1d: bool,
    /// A load or store that missed the second level.
    pub missed_l2d: bool,
    /// Its fetch missed the first level.
    pub missed_l1i: bool,
    /// Its fetch missed the second level.
    pub missed_l2i: bool,
    /// Its fetch or access missed a TLB.
    pub missed_tlb: bool,
}

/// A row of cycles in which nothing retired, and what is to blame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stalled {
    /// The static instruction whose retirement ended it: the oldest meanwhile.
    pub instruction: u32,
    /// The cycle of that retirement.
    pub ended: u64,
    /// Its cycles.
    pub cycles: u64,
    /// How many of them the window was empty, refilling included.
    pub front_cycles: u64,
    /// What held the front up.
    pub front: Cause,
    /// The static instruction whose fault that was.
    pub blame: u32,
    /// What the oldest micro-op was busy with during the rest.
    pub work: Cause,
}

/// Is told of every micro-op in program order, once its branch outcome is known.
pub trait Watcher: Send {
    /// Whether anyone listens; when not, nothing is put together.
    const LISTENS: bool = true;

    /// Whether it wants to hear of what comes now. What it does not hear of makes no value that it
    /// will be told of.
    #[inline]
    fn is_listening(&self) -> bool {
        true
    }

    /// A micro-op has lived.
    fn lived(&mut self, life: &Life);

    /// Nothing retired for a while. This comes before the life of the micro-op that ended it.
    fn stalled(&mut self, _stall: &Stalled) {}
}

/// Nobody listens.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Watcher for Silent {
    const LISTENS: bool = false;
    fn lived(&mut self, _: &Life) {}
}

impl<F: FnMut(&Life) + Send> Watcher for F {
    fn lived(&mut self, life: &Life) {
        self(life);
    }
}
