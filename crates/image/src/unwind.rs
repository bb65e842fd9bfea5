//! Where procedures begin and end according to the unwind table.
//!
//! A stripped program keeps this table, since exceptions and profilers need it. The sorted index
//! beside it (.eh_frame_hdr) is not used: it may be missing, and a full pass is quick.
//!
//! Unwinders look up the byte before a return address. The code that returns from a signal
//! handler is never called, so the C library lets its range begin one byte early, inside the
//! padding; that byte is given back.

use std::collections::HashMap;

use gimli::{BaseAddresses, CieOrFde, EhFrame, EhFrameOffset, LittleEndian, UnwindSection};
use object::endian::LittleEndian as LE;
use object::read::elf::SectionHeader;

use crate::elf::{Elf, Extent};

/// The ranges of the frame descriptions, in the order of the table. What follows a malformed
/// entry is lost, since entries are found only by the length of those before.
pub(crate) fn read(elf: &Elf<'_>) -> Vec<Extent> {
    let Some(section) = elf.section(".eh_frame") else { return Vec::new() };
    let address_of =
        |name| elf.section(name).map(|section: &crate::elf::Section| section.sh_addr(LE));
    let mut bases = BaseAddresses::default().set_eh_frame(section.sh_addr(LE));
    if let Some(text) = address_of(".text") {
        bases = bases.set_text(text);
    }
    if let Some(got) = address_of(".got") {
        bases = bases.set_got(got);
    }
    ranges(elf.data(section), &bases)
}

fn ranges(data: &[u8], bases: &BaseAddresses) -> Vec<Extent> {
    let mut table = EhFrame::new(data, LittleEndian);
    table.set_address_size(8);
    let mut entries = table.entries(bases);
    // An FDE refers back to a CIE. Only those met on the way count, so that the pass stays linear
    // even if every FDE of a hostile table refers to bytes of its own.
    let mut commons = HashMap::new();
    let mut ranges = Vec::new();
    while let Ok(Some(entry)) = entries.next() {
        let partial = match entry {
            CieOrFde::Cie(common) => {
                commons.insert(common.offset(), common);
                continue;
            }
            CieOrFde::Fde(partial) => partial,
        };
        let parsed = partial.parse(|_, _, at: EhFrameOffset| {
            commons.get(&at.0).cloned().ok_or(gimli::Error::NotCieId(at.0 as u64))
        });
        if let Ok(fde) = parsed {
            let (start, len) = (fde.initial_address(), fde.len());
            let early = u64::from(fde.is_signal_trampoline() && start % 4 == 3);
            let end = start.saturating_add(len);
            ranges.push(Extent { start: start.saturating_add(early), end });
        }
    }
    ranges.retain(|range| range.start < range.end);
    ranges
}
