//! The truth on disk: every event of every slice, small.
//!
//! ```text
//! magic | slice's boundary and length | blocks: slices, bytes, lz4 of
//!         event 0: value, differences ... | event 1: ... ...
//! ```
//!
//! Neighbouring slices are alike, so their differences are short, and repeat.

use std::io::{Read, Write};

use model::event::{Counts, Event};
use tracer::varint::{Input, put, put_signed};

const MAGIC: &[u8; 8] = b"WHSLICE1";
/// Slices that are packed together.
const BLOCK: usize = 1024;

/// Every event's counts, a column an event.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Columns(pub Vec<Vec<u32>>);

impl Columns {
    /// No slice yet.
    pub fn new() -> Columns {
        Columns(vec![Vec::new(); Event::COUNT])
    }

    /// How many slices there are.
    pub fn len(&self) -> usize {
        self.0.first().map_or(0, Vec::len)
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// An event's counts.
    pub fn of(&self, event: Event) -> &[u32] {
        self.0.get(event as usize).map_or(&[], Vec::as_slice)
    }

    /// An event's total.
    pub fn total(&self, event: Event) -> u64 {
        self.of(event).iter().map(|&count| u64::from(count)).sum()
    }

    /// Appends a slice. A slice of four thousand million of anything is beyond any run.
    pub fn push(&mut self, counts: &Counts) {
        for (column, &count) in self.0.iter_mut().zip(&counts.0) {
            column.push(u32::try_from(count).unwrap_or(u32::MAX));
        }
    }
}

/// Writes slices as they come.
#[derive(Debug)]
pub struct Writer<W: Write> {
    out: W,
    block: Columns,
}

impl<W: Write> Writer<W> {
    /// Begins a file.
    ///
    /// # Errors
    ///
    /// It cannot be written.
    pub fn new(mut out: W) -> std::io::Result<Writer<W>> {
        out.write_all(MAGIC)?;
        Ok(Writer { out, block: Columns::new() })
    }

    /// Writes a slice.
    ///
    /// # Errors
    ///
    /// It cannot be written.
    pub fn push(&mut self, counts: &Counts) -> std::io::Result<()> {
        self.block.push(counts);
        if self.block.len() >= BLOCK { self.flush() } else { Ok(()) }
    }

    /// Writes what is held back.
    ///
    /// # Errors
    ///
    /// It cannot be written.
    pub fn flush(&mut self) -> std::io::Result<()> {
        let block = std::mem::replace(&mut self.block, Columns::new());
        if block.is_empty() {
            return Ok(());
        }
        let mut bytes = Vec::new();
        put(&mut bytes, block.len() as u64);
        for column in &block.0 {
            let mut before = 0;
            for &count in column {
                put_signed(&mut bytes, i64::from(count) - before);
                before = i64::from(count);
            }
        }
        let packed = lz4_flex::compress_prepend_size(&bytes);
        self.out.write_all(&(packed.len() as u32).to_le_bytes())?;
        self.out.write_all(&packed)?;
        self.out.flush()
    }
}

/// Reads a whole file; `None` if it is none or damaged.
pub fn read(mut file: impl Read) -> Option<Columns> {
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).ok()?;
    let mut rest = bytes.strip_prefix(MAGIC)?;
    let mut all = Columns::new();
    while !rest.is_empty() {
        let (length, after) = rest.split_at_checked(4)?;
        let length = u32::from_le_bytes(length.try_into().ok()?) as usize;
        let (packed, after) = after.split_at_checked(length)?;
        rest = after;
        let block = lz4_flex::decompress_size_prepended(packed).ok()?;
        let mut input = Input(&block);
        let slices: usize = input.small()?;
        for column in &mut all.0 {
            let mut before = 0_i64;
            for _ in 0..slices {
                before = before.checked_add(input.signed()?)?;
                column.push(u32::try_from(before).ok()?);
            }
        }
        if !input.is_empty() {
            return None;
        }
    }
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_come_back_and_a_cut_file_does_not() {
        let mut file = Vec::new();
        let mut expected = Columns::new();
        let mut writer = Writer::new(&mut file).unwrap();
        for k in 0..3000_u64 {
            let mut counts = Counts::default();
            for (place, count) in counts.0.iter_mut().enumerate() {
                *count = (k * k * (place as u64 + 1)) % 5003;
            }
            expected.push(&counts);
            writer.push(&counts).unwrap();
        }
        writer.flush().unwrap();
        assert_eq!(read(file.as_slice()), Some(expected));
        assert_eq!(read(&file[..file.len() - 1]), None);
        assert_eq!(read(&b"something else"[..]), None);
    }
}
