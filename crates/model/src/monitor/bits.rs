//! The two signature bits of an instruction (the paper's table 5).
//!
//! ```text
//! 1  a taken branch, a load or a store; 0 again if its data missed the second level
//! 2  a miss of code or data in the first or second level, or of a TLB
//! ```

use crate::core::Life;
use crate::machine::Class;

/// How many instructions before and after a detailed sample leave their bits in it.
pub const AROUND: usize = 10;
/// As many places as surroundings have.
const PLACES: usize = 2 * AROUND + 1;
/// Bits of an instruction.
const WIDTH: usize = 2;

/// The two bits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Bits {
    /// Bits 1 and 2 as the lowest two; the third notes a second-level data miss until the
    /// instruction is over.
    raw: u8,
}

const FIRST: u8 = 1;
const SECOND: u8 = 2;
const RESET: u8 = 4;

impl Bits {
    /// With these values.
    pub fn new(first: bool, second: bool) -> Bits {
        Bits { raw: (u8::from(first) * FIRST) | (u8::from(second) * SECOND) }
    }

    /// From the lowest two bits of a number.
    pub fn from_number(number: u8) -> Bits {
        Bits { raw: number & (FIRST | SECOND) }
    }

    /// As a number from 0 to 3, bit 1 the lowest.
    pub fn number(self) -> u8 {
        self.raw & (FIRST | SECOND)
    }

    /// Bit 1.
    pub fn first(self) -> bool {
        self.raw & FIRST != 0
    }

    /// Bit 2.
    pub fn second(self) -> bool {
        self.raw & SECOND != 0
    }

    /// What a further micro-op of the same instruction makes of them.
    pub(super) fn add(&mut self, life: &Life) {
        let is_access = life.class.is_load() || life.class == Class::StoreAddress;
        if life.missed_l2d {
            self.raw |= RESET;
        }
        if life.taken || is_access {
            self.raw |= FIRST;
        }
        let missed = life.missed_l1i || life.missed_l2i || life.missed_l1d || life.missed_tlb;
        if missed || life.missed_l2d {
            self.raw |= SECOND;
        }
        // Once reset, whatever else the instruction does leaves it so.
        if self.raw & RESET != 0 {
            self.raw &= !FIRST;
        }
    }
}

/// The bits of up to 21 instructions in a row, as one number, to be compared at once.
///
/// The newest instruction has the lowest bits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Surroundings(pub u64);

impl Surroundings {
    /// The bits that count.
    pub const MASK: u64 = (1 << (WIDTH * PLACES)) - 1;

    /// Of these instructions, the oldest first.
    pub fn of(bits: impl IntoIterator<Item = Bits>) -> Surroundings {
        let mut all = Surroundings::default();
        bits.into_iter().for_each(|bits| all.push(bits));
        all
    }

    /// Adds the next instruction; what is older than 21 falls out.
    pub fn push(&mut self, bits: Bits) {
        self.0 = (self.0 << WIDTH | u64::from(bits.number())) & Surroundings::MASK;
    }

    /// Of the instruction so many before the newest.
    pub fn back(self, places: usize) -> Bits {
        Bits::from_number((self.0 >> (WIDTH * places)) as u8)
    }

    /// How many bits are the same, the newest `missing` instructions left out.
    pub fn same(self, other: Surroundings, missing: usize) -> u32 {
        let counted = Surroundings::MASK >> (WIDTH * missing) << (WIDTH * missing);
        (!(self.0 ^ other.0) & counted).count_ones()
    }
}
