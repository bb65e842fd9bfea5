//! Source lines and inlined calls, out of the DWARF sections.
//!
//! Only what is asked for is read: an index of which unit holds which addresses, and then the line
//! program and the entries of the units that a procedure lies in. A few units are remembered, since
//! neighbouring procedures share them.
//!
//! ```text
//! address ─► unit (index of ranges) ─┬─► line program ─► rows: [start, end) file:line discriminator
//!                                    └─► subprogram ─► inlined calls, each with its caller's line
//! ```

mod files;
mod inlines;
mod rows;
mod sections;
#[cfg(test)]
mod tests;
mod unit;

use std::cell::RefCell;
use std::rc::Rc;

use gimli::{DebugInfoOffset, Dwarf, EndianSlice, LittleEndian};

use self::sections::Sections;
use self::unit::UnitFacts;

pub(crate) type Slice<'a> = EndianSlice<'a, LittleEndian>;
pub(crate) type Unit<'a> = gimli::Unit<Slice<'a>>;

/// Units that are remembered.
const REMEMBERED: usize = 8;
/// Ranges of units that are indexed; a hostile file could name the same list from every unit.
const UNIT_RANGES_MAX: usize = 1 << 21;

/// One stretch of code that comes from one line.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct LineRow {
    /// The virtual address of its first byte.
    pub start: u64,
    /// The address behind it.
    pub end: u64,
    /// The file, in [`Lines::files`].
    pub file: u32,
    /// The line, from 1; 0 for code that comes from no line.
    pub line: u32,
    /// Tells apart the paths that share a line.
    pub discriminator: u32,
}

/// A call that the compiler replaced by the body of what was called.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Inline {
    /// The name of what was called, as the linker would write it. Untrusted text.
    pub name: String,
    /// The line on which what was called is declared.
    pub declared_line: Option<u32>,
    /// The file of the call, in [`Lines::files`].
    pub call_file: Option<u32>,
    /// The line of the call.
    pub call_line: u32,
    /// Tells apart the calls that share a line.
    pub call_discriminator: u32,
    /// The inlined call that it is a part of, in [`Lines::inlines`]; none for the procedure itself.
    pub parent: Option<usize>,
}

/// Where a procedure is declared.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Declared {
    /// Its name, as the linker would write it. Untrusted text.
    pub name: String,
    /// The file, in [`Lines::files`].
    pub file: Option<u32>,
    /// The line.
    pub line: Option<u32>,
}

/// What DWARF says about a stretch of code.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Lines {
    /// Paths of source files as the compiler wrote them. Untrusted text.
    pub files: Vec<String>,
    /// By address, without overlap.
    pub rows: Vec<LineRow>,
    /// Callers before what they call.
    pub inlines: Vec<Inline>,
    /// The procedure itself.
    pub declared: Option<Declared>,
    /// Which inlined call holds which addresses: by address, without overlap, the innermost.
    pub(crate) inlined: Vec<(u64, u64, usize)>,
}

impl Lines {
    /// The line that an address comes from.
    pub fn row_at(&self, address: u64) -> Option<&LineRow> {
        let after = self.rows.partition_point(|row| row.start <= address);
        self.rows.get(after.checked_sub(1)?).filter(|row| address < row.end && row.line > 0)
    }

    /// The innermost inlined call that an address belongs to, in [`Lines::inlines`].
    pub fn inline_at(&self, address: u64) -> Option<usize> {
        let after = self.inlined.partition_point(|&(start, _, _)| start <= address);
        let &(_, end, inline) = self.inlined.get(after.checked_sub(1)?)?;
        (address < end).then_some(inline)
    }

    /// An inlined call and those around it, the innermost first.
    pub fn chain(&self, inline: Option<usize>) -> impl Iterator<Item = &Inline> {
        // Parents stand before their children, so that this ends.
        std::iter::successors(inline, |&k| self.inlines.get(k)?.parent.filter(|&p| p < k))
            .filter_map(|k| self.inlines.get(k))
    }

    /// The path of a file.
    pub fn file(&self, file: u32) -> &str {
        self.files.get(file as usize).map_or("?", String::as_str)
    }

    /// Whether nothing is known.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
}

/// The debugging information of an image or of its debug file.
#[derive(Debug)]
pub struct DebugInfo<'a> {
    sections: Sections<'a>,
    /// Offsets of units, rising.
    units: Vec<usize>,
    /// (start, end, unit), by start.
    ranges: Vec<(u64, u64, usize)>,
    remembered: RefCell<Vec<(usize, Rc<UnitFacts>)>>,
}

impl<'a> DebugInfo<'a> {
    /// Reads the index of an ELF file's units; none if the file has no line information.
    pub fn read(bytes: &'a [u8]) -> Option<DebugInfo<'a>> {
        let sections = Sections::read(bytes)?;
        let (mut units, mut ranges) = (Vec::new(), Vec::new());
        index(&sections.dwarf(), &mut units, &mut ranges);
        ranges.sort_unstable();
        (!ranges.is_empty()).then_some(DebugInfo {
            sections,
            units,
            ranges,
            remembered: RefCell::default(),
        })
    }

    /// The lines of some stretches of code, given as virtual addresses `(start, end)`; the first
    /// holds the procedure's entry.
    pub fn lines_of(&self, wanted: &[(u64, u64)]) -> Lines {
        let dwarf = self.sections.dwarf();
        let mut lines = Lines::default();
        for offset in self.units_of(wanted) {
            if let Some(facts) = self.facts(&dwarf, offset) {
                self.add(&dwarf, offset, &facts, wanted, &mut lines);
            }
        }
        lines.rows.sort_unstable();
        rows::cut_overlaps(&mut lines.rows);
        lines
    }

    fn add(
        &self,
        dwarf: &Dwarf<Slice<'_>>,
        offset: usize,
        facts: &UnitFacts,
        wanted: &[(u64, u64)],
        lines: &mut Lines,
    ) {
        let mut numbers = files::Numbers::default();
        for &(start, end) in wanted {
            for row in facts.rows_between(start, end) {
                let file = numbers.number(row.file, &facts.files, &mut lines.files);
                lines.rows.push(LineRow {
                    start: row.start.max(start),
                    end: row.end.min(end),
                    file,
                    ..*row
                });
            }
        }
        let Some(&(entry, _)) = wanted.first() else { return };
        let Some(subprogram) = facts.subprogram_at(entry).filter(|_| lines.declared.is_none())
        else {
            return;
        };
        let names = inlines::Names::new(dwarf, &self.units);
        if let Some(unit) = unit_at(dwarf, offset) {
            inlines::read(&names, (&unit, offset), subprogram, lines, |file, files| {
                numbers.number(file, &facts.files, files)
            });
        }
    }

    /// The units that hold any of these addresses.
    fn units_of(&self, wanted: &[(u64, u64)]) -> Vec<usize> {
        let mut found = Vec::new();
        for &(start, end) in wanted {
            let upto = self.ranges.partition_point(|range| range.0 < end);
            let overlapping = self.ranges[..upto].iter().rev();
            // Ranges of units do not nest in sound files, so that few need be looked at.
            let near = overlapping.take(64).filter(|range| range.1 > start);
            found.extend(near.map(|range| range.2));
        }
        found.sort_unstable();
        found.dedup();
        found
    }

    fn facts(&self, dwarf: &Dwarf<Slice<'_>>, offset: usize) -> Option<Rc<UnitFacts>> {
        let mut remembered = self.remembered.borrow_mut();
        if let Some((_, facts)) = remembered.iter().find(|(held, _)| *held == offset) {
            return Some(Rc::clone(facts));
        }
        let facts = Rc::new(UnitFacts::read(dwarf, &unit_at(dwarf, offset)?));
        if remembered.len() == REMEMBERED {
            remembered.remove(0);
        }
        remembered.push((offset, Rc::clone(&facts)));
        Some(facts)
    }
}

fn unit_at<'a>(dwarf: &Dwarf<Slice<'a>>, offset: usize) -> Option<Unit<'a>> {
    dwarf.unit(dwarf.unit_header(DebugInfoOffset(offset)).ok()?).ok()
}

/// What follows a malformed unit is lost, since units are found only by the length of those before.
fn index(dwarf: &Dwarf<Slice<'_>>, units: &mut Vec<usize>, ranges: &mut Vec<(u64, u64, usize)>) {
    let mut headers = dwarf.units();
    while let Ok(Some(header)) = headers.next() {
        let Some(DebugInfoOffset(offset)) = header.debug_info_offset() else { continue };
        units.push(offset);
        let Ok(unit) = dwarf.unit(header) else { continue };
        let Ok(mut own) = dwarf.unit_ranges(&unit) else { continue };
        while let Ok(Some(range)) = own.next() {
            if ranges.len() >= UNIT_RANGES_MAX {
                return;
            }
            // A procedure that the linker dropped lies at zero.
            if range.begin < range.end && range.begin > 0 {
                ranges.push((range.begin, range.end, offset));
            }
        }
    }
}
