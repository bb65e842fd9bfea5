//! Inlined calls of one procedure.

use std::cell::RefCell;
use std::collections::{BinaryHeap, HashMap};

use gimli::{
    AttributeValue, DebugInfoOffset, DebuggingInformationEntry, Dwarf, UnitOffset,
    UnitSectionOffset, constants as dw,
};

use super::{Declared, Inline, Lines, Slice, Unit, unit_at};

type Entry<'a> = DebuggingInformationEntry<Slice<'a>>;

/// Inlined calls that are kept of one procedure, and ranges of all of them.
const INLINES_MAX: usize = 1 << 16;
const RANGES_MAX: usize = 1 << 18;
/// How many entries may stand behind each other for one name.
const ORIGINS_MAX: usize = 8;
/// Units whose abbreviations are kept at hand for names.
const UNITS_HELD: usize = 64;

/// The name and the line of a declaration.
#[derive(Clone, Debug, Default)]
pub(super) struct Origin {
    name: Option<String>,
    linkage: Option<String>,
    file: Option<u32>,
    line: Option<u32>,
}

impl Origin {
    fn best_name(&self) -> Option<&String> {
        self.linkage.as_ref().or(self.name.as_ref())
    }
}

/// Follows entries to their names.
pub(super) struct Names<'a, 'd> {
    dwarf: &'d Dwarf<Slice<'a>>,
    units: &'d [usize],
    held: RefCell<HashMap<usize, Unit<'a>>>,
    known: RefCell<HashMap<usize, Origin>>,
}

impl<'a, 'd> Names<'a, 'd> {
    pub(super) fn new(dwarf: &'d Dwarf<Slice<'a>>, units: &'d [usize]) -> Names<'a, 'd> {
        Names { dwarf, units, held: RefCell::default(), known: RefCell::default() }
    }

    /// What an entry says of itself, and then what the entries behind it say.
    fn origin(&self, unit: (&Unit<'a>, usize), entry: &Entry<'a>, depth: usize) -> Origin {
        let mut origin = self.own(unit.0, entry);
        let behind = [dw::DW_AT_abstract_origin, dw::DW_AT_specification]
            .into_iter()
            .find_map(|name| entry.attr_value(name));
        if let Some(value) = behind.filter(|_| depth < ORIGINS_MAX) {
            let other = self.behind(unit, &value, depth + 1).unwrap_or_default();
            origin.name = origin.name.or(other.name);
            origin.linkage = origin.linkage.or(other.linkage);
            if origin.line.is_none() {
                (origin.line, origin.file) = (other.line, other.file);
            }
        }
        origin
    }

    fn own(&self, unit: &Unit<'a>, entry: &Entry<'a>) -> Origin {
        let text = |name| {
            let text = self.dwarf.attr_string(unit, entry.attr_value(name)?).ok()?;
            Some(text.to_string_lossy().into_owned())
        };
        let linkage = text(dw::DW_AT_linkage_name).or_else(|| text(dw::DW_AT_MIPS_linkage_name));
        Origin {
            name: text(dw::DW_AT_name),
            linkage,
            file: number(entry, dw::DW_AT_decl_file),
            line: number(entry, dw::DW_AT_decl_line),
        }
    }

    fn behind(
        &self,
        unit: (&Unit<'a>, usize),
        value: &AttributeValue<Slice<'a>>,
        depth: usize,
    ) -> Option<Origin> {
        let at = match *value {
            AttributeValue::UnitRef(offset) => {
                let UnitSectionOffset(whole) = offset.to_unit_section_offset(unit.0);
                whole
            }
            AttributeValue::DebugInfoRef(DebugInfoOffset(whole)) => whole,
            _ => return None,
        };
        if let Some(known) = self.known.borrow().get(&at) {
            return Some(known.clone());
        }
        let origin = match *value {
            AttributeValue::UnitRef(offset) => {
                self.origin(unit, &unit.0.entry(offset).ok()?, depth)
            }
            _ => self.elsewhere(at, depth)?,
        };
        self.known.borrow_mut().insert(at, origin.clone());
        Some(origin)
    }

    /// An entry of another unit: its file numbers are not ours.
    fn elsewhere(&self, at: usize, depth: usize) -> Option<Origin> {
        let place = self.units.partition_point(|&unit| unit <= at).checked_sub(1)?;
        let start = *self.units.get(place)?;
        let unit = self.held.borrow_mut().remove(&start).or_else(|| unit_at(self.dwarf, start))?;
        let entry = unit.entry(UnitOffset(at - start));
        let origin = entry.ok().map(|entry| self.origin((&unit, start), &entry, depth));
        let mut held = self.held.borrow_mut();
        if held.len() < UNITS_HELD {
            held.insert(start, unit);
        }
        origin.map(|origin| Origin { file: None, ..origin })
    }
}

fn number(entry: &Entry<'_>, name: gimli::DwAt) -> Option<u32> {
    let value = entry.attr_value(name)?;
    let number = match value {
        AttributeValue::FileIndex(index) => index,
        ref other => other.udata_value()?,
    };
    u32::try_from(number).ok()
}

/// Fills in where the procedure is declared and what was inlined into it. `file` turns the unit's
/// number of a file into a place in the list.
pub(super) fn read<'a>(
    names: &Names<'a, '_>,
    unit: (&Unit<'a>, usize),
    subprogram: UnitOffset,
    lines: &mut Lines,
    mut file: impl FnMut(u32, &mut Vec<String>) -> u32,
) {
    let Ok(mut entries) = unit.0.entries_at_offset(subprogram) else { return };
    let mut ranges: Vec<(u64, u64, usize)> = Vec::new();
    // Inlined calls around the entry, with their depth in the tree.
    let mut around: Vec<(isize, usize)> = Vec::new();
    let mut root = None;
    while let Ok(Some(entry)) = entries.next_dfs() {
        let root_depth = *root.get_or_insert(entry.depth());
        if entry.offset() == subprogram {
            let origin = names.origin(unit, entry, 0);
            lines.declared = origin.best_name().cloned().map(|name| Declared {
                name,
                file: origin.file.map(|number| file(number, &mut lines.files)),
                line: origin.line,
            });
            continue;
        }
        if entry.depth() <= root_depth || lines.inlines.len() >= INLINES_MAX {
            break;
        }
        around.retain(|&(depth, _)| depth < entry.depth());
        if entry.tag() != dw::DW_TAG_inlined_subroutine {
            continue;
        }
        let origin = names.origin(unit, entry, 0);
        let place = lines.inlines.len();
        lines.inlines.push(Inline {
            name: origin.best_name().cloned().unwrap_or_else(|| "?".into()),
            declared_line: origin.line,
            call_file: number(entry, dw::DW_AT_call_file)
                .map(|number| file(number, &mut lines.files)),
            call_line: number(entry, dw::DW_AT_call_line).unwrap_or(0),
            call_discriminator: number(entry, dw::DW_AT_GNU_discriminator).unwrap_or(0),
            parent: around.last().map(|&(_, place)| place),
        });
        around.push((entry.depth(), place));
        let Ok(mut own) = names.dwarf.die_ranges(unit.0, entry) else { continue };
        while let Ok(Some(range)) = own.next() {
            if range.begin < range.end && ranges.len() < RANGES_MAX {
                ranges.push((range.begin, range.end, place));
            }
        }
    }
    lines.inlined = innermost(ranges);
}

/// From ranges that nest to ranges that do not: each address belongs to the innermost, which is the
/// one that stands last in the tree.
pub(super) fn innermost(mut ranges: Vec<(u64, u64, usize)>) -> Vec<(u64, u64, usize)> {
    ranges.sort_unstable();
    let mut cuts: Vec<u64> = ranges.iter().flat_map(|&(start, end, _)| [start, end]).collect();
    cuts.sort_unstable();
    cuts.dedup();
    let mut open: BinaryHeap<(usize, u64)> = BinaryHeap::new();
    let mut next = ranges.iter().peekable();
    let mut found: Vec<(u64, u64, usize)> = Vec::new();
    for pair in cuts.windows(2) {
        let &[start, end] = pair else { continue };
        while let Some(&(_, until, place)) = next.next_if(|range| range.0 <= start) {
            open.push((place, until));
        }
        while open.peek().is_some_and(|&(_, until)| until <= start) {
            open.pop();
        }
        let Some(&(place, _)) = open.peek() else { continue };
        match found.last_mut() {
            Some(last) if last.1 == start && last.2 == place => last.1 = end,
            _ => found.push((start, end, place)),
        }
    }
    found
}
