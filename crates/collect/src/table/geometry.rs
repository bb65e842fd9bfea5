//! How large everything is, and where it lies.

use std::fmt;

/// Bytes of an entry.
pub(super) const ENTRY_BYTES: u32 = 16;
/// From this rate on tables give way to spills.
const FAST_HERTZ: u64 = 10_000;
/// Entries that are worth waking up for.
const LATEST_WAKE: u32 = 8192;
/// Before the tables: one page.
pub(super) const HEAD_BYTES: u32 = 4096;

/// Byte offsets in the head.
pub(super) mod head {
    pub(crate) const BEGUN: i16 = 0;
    pub(crate) const ENDED: i16 = 8;
    /// Bit 0: the table that is counted in; bit 1: the spill.
    pub(crate) const ACTIVE: i16 = 64;
    pub(crate) const TABLES: i32 = 128;
    pub(crate) const SPILLS: i32 = 256;
    pub(crate) const HALF_SHIFT: i32 = 6;
    /// Within a table's counters.
    pub(crate) const ENTRIES: i16 = 0;
    /// Within a spill's.
    pub(crate) const INSERTED: i16 = 0;
    pub(crate) const SPILLED: i16 = 8;
    pub(crate) const SPILLED_SAMPLES: i16 = 16;
    pub(crate) const LOST: i16 = 24;
}

/// The sizes of one CPU's tables.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Geometry {
    /// Entries in a bucket.
    pub ways: u32,
    /// Buckets of a table: two to this power.
    pub bucket_bits: u32,
    /// Entries of a spill.
    pub spill_entries: u32,
}

/// Sizes that make no table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GeometryError;

impl fmt::Display for GeometryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "a sample table has 1 to 16 ways, 1 to 2^20 buckets and a spill of 16 entries or more",
        )
    }
}

impl std::error::Error for GeometryError {}

impl Geometry {
    /// Sizes for a number of samples a second on a CPU. At low rates the spill holds what many
    /// seconds bring, since waking costs more than memory does. At high ones half of all samples
    /// miss, as they do in compilations, and the daemon may wait for a second and more while a
    /// busy disk takes what it appends: the table makes room for as large a spill as a megabyte
    /// allows.
    pub fn for_rate(hertz: u64) -> Geometry {
        let (bucket_bits, spill_entries) =
            if hertz > FAST_HERTZ { (11, 24_000) } else { (12, 8192) };
        Geometry { ways: 4, bucket_bits, spill_entries }
    }

    /// The same, if it makes a table.
    pub fn checked(self) -> Result<Geometry, GeometryError> {
        let sound = (1..=16).contains(&self.ways)
            && (1..=20).contains(&self.bucket_bits)
            && (16..=1 << 22).contains(&self.spill_entries);
        if sound { Ok(self) } else { Err(GeometryError) }
    }

    /// Bytes of one bucket.
    pub fn bucket_bytes(&self) -> u32 {
        self.ways * ENTRY_BYTES
    }

    /// Bytes of one table.
    pub fn table_bytes(&self) -> u32 {
        self.bucket_bytes() << self.bucket_bits
    }

    /// Bytes of one spill.
    pub fn spill_bytes(&self) -> u32 {
        self.spill_entries * ENTRY_BYTES
    }

    /// Bytes of everything that one CPU needs in the kernel.
    pub fn total_bytes(&self) -> u32 {
        HEAD_BYTES + 2 * (self.table_bytes() + self.spill_bytes())
    }

    /// The fill of a spill at which the daemon is woken: half, or less where it is large. The rest
    /// is for the time until it comes.
    pub fn wake_at(&self) -> u32 {
        (self.spill_entries / 2).min(LATEST_WAKE)
    }

    pub(super) fn table_at(&self, half: u32) -> u32 {
        HEAD_BYTES + half * self.table_bytes()
    }

    pub(super) fn spill_at(&self, half: u32) -> u32 {
        self.table_at(2) + half * self.spill_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn areas_lie_one_after_the_other_and_fill_the_whole() {
        let g = Geometry { ways: 6, bucket_bits: 4, spill_entries: 100 };
        assert_eq!(g.table_at(0), 4096);
        assert_eq!(g.table_at(1), 4096 + 6 * 16 * 16);
        assert_eq!(g.spill_at(0), 4096 + 2 * 6 * 16 * 16);
        assert_eq!(g.spill_at(1) + g.spill_bytes(), g.total_bytes());
    }

    /// The paper's driver took 512 KB a processor; a megabyte is the most that we allow.
    #[test]
    fn no_rate_takes_more_than_a_megabyte_a_cpu() {
        for hertz in [1, 997, 4999, 20_011, 100_000, 1 << 40] {
            let g = Geometry::for_rate(hertz).checked().unwrap();
            assert!(g.total_bytes() <= 1 << 20, "{hertz} Hz takes {} bytes", g.total_bytes());
        }
    }
}
