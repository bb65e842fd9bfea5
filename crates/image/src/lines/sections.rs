//! The DWARF sections, unpacked where they are packed.

use std::borrow::Cow;
use std::io::Read;

use flate2::read::ZlibDecoder;
use gimli::{Dwarf, DwarfSections, EndianSlice, LittleEndian};
use object::elf;
use object::endian::LittleEndian as LE;
use object::read::elf::{CompressionHeader, SectionHeader};

use super::Slice;
use crate::elf::Elf;

/// The most that one packed section may hold: a few bytes can claim to be anything.
const UNPACKED_BYTES_MAX: u64 = 1 << 30;

pub(super) struct Sections<'a>(DwarfSections<Cow<'a, [u8]>>);

impl std::fmt::Debug for Sections<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Sections")
    }
}

impl<'a> Sections<'a> {
    /// None where there is neither a line program nor an entry.
    pub(super) fn read(bytes: &'a [u8]) -> Option<Sections<'a>> {
        let elf = Elf::open(bytes).ok()?;
        elf.section(".debug_info").zip(elf.section(".debug_line"))?;
        let load = |id: gimli::SectionId| -> Result<Cow<'a, [u8]>, ()> {
            Ok(data(&elf, id.name()).unwrap_or_default())
        };
        DwarfSections::load(load).ok().map(Sections)
    }

    pub(super) fn dwarf(&self) -> Dwarf<Slice<'_>> {
        self.0.borrow(|section| EndianSlice::new(section, LittleEndian))
    }
}

fn data<'a>(elf: &Elf<'a>, name: &str) -> Option<Cow<'a, [u8]>> {
    let section = elf.section(name)?;
    match section.compression(LE, elf.bytes).ok()? {
        None => Some(Cow::Borrowed(elf.data(section))),
        Some((header, offset, size)) => {
            let start = usize::try_from(offset).ok()?;
            let end = start.checked_add(usize::try_from(size).ok()?)?;
            unpack(elf.bytes.get(start..end)?, header.ch_type(LE), header.ch_size(LE))
        }
    }
}

fn unpack(packed: &[u8], kind: elf::CompressionType, claimed: u64) -> Option<Cow<'static, [u8]>> {
    if kind != elf::ELFCOMPRESS_ZLIB || claimed > UNPACKED_BYTES_MAX {
        return None;
    }
    let mut unpacked = Vec::new();
    ZlibDecoder::new(packed).take(claimed).read_to_end(&mut unpacked).ok()?;
    Some(Cow::Owned(unpacked))
}
