//! The addresses that an entry claims.
//!
//! gimli adds a low address and a length without looking; a damaged file makes that overflow, so
//! the sum is looked at here first.

use gimli::{AttributeValue, DebuggingInformationEntry, Dwarf, constants as dw};

use super::{Slice, Unit};

/// Calls with every range that is not empty and that the linker did not drop to address zero, until
/// told to stop.
pub(super) fn each<'a>(
    dwarf: &Dwarf<Slice<'a>>,
    unit: &Unit<'a>,
    entry: &DebuggingInformationEntry<Slice<'a>>,
    mut take: impl FnMut(u64, u64) -> bool,
) {
    if !is_sound(dwarf, unit, entry) {
        return;
    }
    let Ok(mut ranges) = dwarf.die_ranges(unit, entry) else { return };
    while let Ok(Some(range)) = ranges.next() {
        if range.begin > 0 && range.begin < range.end && !take(range.begin, range.end) {
            return;
        }
    }
}

/// Whether a length behind the low address leads to an address; either may stand there twice.
fn is_sound<'a>(
    dwarf: &Dwarf<Slice<'a>>,
    unit: &Unit<'a>,
    entry: &DebuggingInformationEntry<Slice<'a>>,
) -> bool {
    let (mut low, mut length) = (0, 0);
    for attribute in entry.attrs() {
        match (attribute.name(), attribute.value()) {
            (dw::DW_AT_low_pc, value) => {
                low = dwarf.attr_address(unit, value).ok().flatten().unwrap_or(0).max(low);
            }
            (dw::DW_AT_high_pc, AttributeValue::Udata(found)) => length = found.max(length),
            _ => {}
        }
    }
    low.checked_add(length).is_some()
}
