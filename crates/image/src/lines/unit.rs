//! What is remembered of a unit.

use gimli::{Dwarf, UnitOffset, constants as dw};

use super::{LineRow, Slice, Unit, rows};

/// Subprograms that are kept of one unit.
const SUBPROGRAMS_MAX: usize = 1 << 20;

/// A unit's rows, files and procedures.
#[derive(Debug, Default)]
pub(super) struct UnitFacts {
    rows: Vec<LineRow>,
    pub(super) files: Vec<String>,
    /// (start, end, where its entry is), by start.
    subprograms: Vec<(u64, u64, UnitOffset)>,
}

impl UnitFacts {
    pub(super) fn read(dwarf: &Dwarf<Slice<'_>>, unit: &Unit<'_>) -> UnitFacts {
        let (rows, files) = rows::read(dwarf, unit);
        let mut subprograms = Vec::new();
        subprograms_of(dwarf, unit, &mut subprograms);
        subprograms.sort_unstable_by_key(|&(start, end, _)| (start, end));
        UnitFacts { rows, files, subprograms }
    }

    /// Rows that overlap these addresses.
    pub(super) fn rows_between(&self, start: u64, end: u64) -> &[LineRow] {
        let first = self.rows.partition_point(|row| row.end <= start);
        let behind = self.rows.partition_point(|row| row.start < end);
        self.rows.get(first..behind).unwrap_or_default()
    }

    pub(super) fn subprogram_at(&self, address: u64) -> Option<UnitOffset> {
        let after = self.subprograms.partition_point(|&(start, _, _)| start <= address);
        let &(_, end, entry) = self.subprograms.get(after.checked_sub(1)?)?;
        (address < end).then_some(entry)
    }
}

fn subprograms_of(
    dwarf: &Dwarf<Slice<'_>>,
    unit: &Unit<'_>,
    found: &mut Vec<(u64, u64, UnitOffset)>,
) {
    let mut entries = unit.entries();
    while let Ok(Some(entry)) = entries.next_dfs() {
        if entry.tag() != dw::DW_TAG_subprogram {
            continue;
        }
        let Ok(mut ranges) = dwarf.die_ranges(unit, entry) else { continue };
        while let Ok(Some(range)) = ranges.next() {
            if found.len() >= SUBPROGRAMS_MAX {
                return;
            }
            if range.begin < range.end && range.begin > 0 {
                found.push((range.begin, range.end, entry.offset()));
            }
        }
    }
}
