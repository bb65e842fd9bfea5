//! Where the loader puts which part of the file.
//!
//! ```text
//! file   |headers|rodata|  text  | data |
//!            \       \       \       \         each PT_LOAD shifts by an amount of its own
//! memory  0x400000  0x401000  0x403000  0x407d00
//! ```

use vocab::Offset;

/// One PT_LOAD, cut to the bytes that the file really has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Segment {
    /// Where it begins in the file.
    pub offset: Offset,
    /// The virtual address that the linker gave it.
    pub address: u64,
    /// How many bytes of the file it maps.
    pub len: u64,
    /// Whether it may be executed.
    pub executable: bool,
}

impl Segment {
    /// Cuts a program header so that neither range wraps nor leaves the file; `None` if nothing
    /// of it is left.
    pub(crate) fn cut(
        offset: u64,
        address: u64,
        len: u64,
        executable: bool,
        file_len: u64,
    ) -> Option<Segment> {
        let len = len.min(file_len.checked_sub(offset)?).min(u64::MAX - address);
        (len > 0).then_some(Segment { offset: Offset(offset), address, len, executable })
    }

    /// The address just past it.
    pub fn address_end(&self) -> u64 {
        self.address + self.len
    }

    fn offset_of(&self, address: u64) -> Option<Offset> {
        let distance = address.checked_sub(self.address)?;
        (distance < self.len).then(|| Offset(self.offset.0 + distance))
    }

    fn address_of(&self, offset: Offset) -> Option<u64> {
        let distance = offset.0.checked_sub(self.offset.0)?;
        (distance < self.len).then(|| self.address + distance)
    }
}

/// The PT_LOADs of a file.
///
/// Where several contain the same byte, the executable one is meant, since what is looked up is
/// code; among equals the first.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Segments {
    // Executable ones first, otherwise in file order.
    list: Vec<Segment>,
}

impl Segments {
    /// Orders segments for looking up.
    pub(crate) fn new(mut list: Vec<Segment>) -> Segments {
        list.sort_by_key(|segment| !segment.executable);
        Segments { list }
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &Segment> {
        self.list.iter()
    }

    /// The place in the file of an ELF virtual address.
    pub fn offset_of(&self, address: u64) -> Option<Offset> {
        self.list.iter().find_map(|segment| segment.offset_of(address))
    }

    /// The ELF virtual address of a place in the file.
    pub fn address_of(&self, offset: Offset) -> Option<u64> {
        self.list.iter().find_map(|segment| segment.address_of(offset))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segments() -> Segments {
        let cut = |offset, address, len, executable| {
            Segment::cut(offset, address, len, executable, 0x5000).unwrap()
        };
        Segments::new(vec![
            cut(0, 0x40_0000, 0x1000, false),
            cut(0x1000, 0x40_1000, 0x800, true),
            cut(0x1800, 0x60_2800, 0x400, true),
            cut(0x1c00, 0x70_3c00, 0x9999, false),
        ])
    }

    #[test]
    fn every_segment_shifts_by_an_amount_of_its_own() {
        let pairs = [(0x10, 0x40_0010), (0x17ff, 0x40_17ff), (0x1800, 0x60_2800)];
        for (offset, address) in pairs {
            assert_eq!(segments().address_of(Offset(offset)), Some(address));
            assert_eq!(segments().offset_of(address), Some(Offset(offset)));
        }
        assert_eq!(segments().offset_of(0x40_1800), None);
        assert_eq!(segments().address_of(Offset(0x5000)), None, "cut at the end of the file");
    }

    #[test]
    fn a_byte_that_two_segments_map_belongs_to_the_executable_one() {
        let data = Segment::cut(0, 0x1000, 0x200, false, 0x1000).unwrap();
        let text = Segment::cut(0x100, 0x9100, 0x200, true, 0x1000).unwrap();
        let segments = Segments::new(vec![data, text]);
        assert_eq!(segments.address_of(Offset(0x180)), Some(0x9180));
        assert_eq!(segments.address_of(Offset(0x80)), Some(0x1080));
    }

    #[test]
    fn hostile_headers_neither_wrap_nor_leave_the_file() {
        assert_eq!(Segment::cut(0x2000, 0, 1, true, 0x1000), None);
        let last = Segment::cut(0, u64::MAX - 4, u64::MAX, true, 0x1000).unwrap();
        assert_eq!(last.address_end(), u64::MAX);
        let whole = Segment::cut(0x10, 0, u64::MAX, true, 0x1000).unwrap();
        assert_eq!(whole.len, 0xff0);
        assert_eq!(whole.offset_of(u64::MAX), None);
        assert_eq!(last.address_of(Offset(u64::MAX)), None);
    }
}
