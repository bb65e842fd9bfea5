//! The kinds of work a micro-op can be, as far as a machine tells them apart.

use serde::Deserialize;

macro_rules! classes {
    ($($(#[doc = $doc:literal])+ $class:ident = $name:literal,)+) => {
        /// The kind of work of a micro-op. A machine file gives each its latency and ports.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Deserialize)]
        #[serde(rename_all = "kebab-case")]
        #[repr(u8)]
        pub enum Class {
            $($(#[doc = $doc])+ #[serde(rename = $name)] $class,)+
        }

        impl Class {
            /// Every class, in order of its number.
            pub const ALL: &[Class] = &[$(Class::$class,)+];

            /// The name in machine files.
            pub fn name(self) -> &'static str {
                match self { $(Class::$class => $name,)+ }
            }
        }
    };
}

classes! {
    /// Takes a slot and does nothing; zero idioms and eliminated moves end up here.
    Nop = "nop",
    /// A copy between general registers.
    Move = "move",
    /// Simple integer arithmetic and logic.
    Alu = "alu",
    /// Integer arithmetic that consumes flags: add with carry, conditional move and set.
    FlagAlu = "flag-alu",
    /// Shifts, rotates and single-bit operations.
    Shift = "shift",
    /// An address computation with three parts or a scale.
    Lea = "lea",
    /// Counts of bits, scans, bit deposits.
    BitCount = "bit-count",
    /// Integer multiplication.
    Mul = "mul",
    /// Integer division of at most 32 bits.
    Div32 = "div32",
    /// Integer division of 64 bits.
    Div64 = "div64",
    /// Anything that may change the pc.
    Branch = "branch",
    /// A branch merged with arithmetic whose result is kept.
    FusedBranch = "fused-branch",
    /// A load into a general register. Its latency in the file is on top of the cache's.
    Load = "load",
    /// A load into a general register from an address with an index. Its latency in the file is on
    /// top of the cache's.
    IndexedLoad = "indexed-load",
    /// A load into a vector register. Its latency in the file is on top of the cache's.
    VecLoad = "vec-load",
    /// The address half of a store.
    StoreAddress = "store-address",
    /// The data half of a store from a general register.
    StoreData = "store-data",
    /// The data half of a store from a vector register.
    VecStoreData = "vec-store-data",
    /// A copy between vector registers.
    VecMove = "vec-move",
    /// Simple integer arithmetic and logic on vectors, blends.
    VecAlu = "vec-alu",
    /// Shifts of vectors.
    VecShift = "vec-shift",
    /// Integer multiplication of vectors.
    VecMul = "vec-mul",
    /// Data movement within and between vectors.
    Shuffle = "shuffle",
    /// Floating-point addition, subtraction.
    FpAdd = "fp-add",
    /// Floating-point multiplication.
    FpMul = "fp-mul",
    /// Fused multiplication and addition.
    Fma = "fma",
    /// Floating-point comparison, minimum, maximum.
    FpCompare = "fp-compare",
    /// Floating-point comparison into the flags.
    FpFlags = "fp-flags",
    /// Division of single precision.
    FpDiv32 = "fp-div32",
    /// Division of double precision.
    FpDiv64 = "fp-div64",
    /// Square root of single precision.
    FpSqrt32 = "fp-sqrt32",
    /// Square root of double precision.
    FpSqrt64 = "fp-sqrt64",
    /// Conversion between number formats of vector registers.
    Convert = "convert",
    /// Conversion into a general register.
    ConvertToInt = "convert-to-int",
    /// Conversion from a general register.
    ConvertFromInt = "convert-from-int",
    /// From a vector register to a general register or the flags.
    VecToInt = "vec-to-int",
    /// From a general register to a vector register.
    IntToVec = "int-to-vec",
    /// Encryption, hashing, carry-less multiplication.
    Crypto = "crypto",
    /// The old floating-point stack.
    X87 = "x87",
    /// Waits for memory: fences and locked operations.
    Fence = "fence",
    /// Anything that is implemented in microcode or that the decoder does not know.
    Microcode = "microcode",
}

impl Class {
    /// How many there are.
    pub const COUNT: usize = Class::ALL.len();

    /// Whether it reads memory.
    pub fn is_load(self) -> bool {
        matches!(self, Class::Load | Class::IndexedLoad | Class::VecLoad)
    }

    /// Whether it carries a store's data.
    pub fn is_store_data(self) -> bool {
        matches!(self, Class::StoreData | Class::VecStoreData)
    }
}
