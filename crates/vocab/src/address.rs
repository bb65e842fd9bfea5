//! Two kinds of address that must never be mixed.

use std::fmt;

/// An address in a process (or in the kernel) at the moment it was sampled.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Pc(pub u64);

/// A position in an image, the same in every process that maps it.
///
/// For a file it is the offset in the file, since that is what a mapping gives without opening the
/// file; for the kernel it is the distance from its text, so that KASLR does not split a profile.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Offset(pub u64);

impl fmt::Display for Pc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

impl fmt::Display for Offset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "+{:#x}", self.0)
    }
}
