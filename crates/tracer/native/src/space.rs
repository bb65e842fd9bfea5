//! Where the program's memory lies.
//!
//! The program gets addresses of its own choosing or ours, never ones that depend on what the engine
//! maps: so that runs repeat, and so that code is near its translation.
//!
//! ```text
//! 0x3f_4000_0000  files, from the top down      within reach of the code cache
//! 0x3f_c000_0000  translated code
//! 0x40_0000_0000  the program, its break above
//! 0x100_0000_0000 .. 0x7ef0_0000_0000  everything else, from the top down: where sanitizers expect it
//! ```
//!
//! A program that insists on low addresses has its files and its translation there too.

use std::collections::BTreeMap;
use std::ops::Range;

pub(crate) const PAGE: u64 = 4096;

/// Where things are put.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    pub(crate) code: u64,
    pub(crate) files: Range<u64>,
    pub(crate) program: u64,
    pub(crate) break_end: u64,
    pub(crate) rest: Range<u64>,
}

impl Layout {
    /// For a program that may lie anywhere, or one that has its own address and ends there.
    pub(crate) fn new(fixed_end: Option<u64>) -> Layout {
        let rest = 0x100_0000_0000..0x7eef_ffff_f000;
        match fixed_end {
            None => Layout {
                code: 0x3f_c000_0000,
                files: 0x3f_6000_0000..0x3f_c000_0000,
                program: 0x40_0000_0000,
                break_end: 0x50_0000_0000,
                rest,
            },
            Some(end) if end <= 0x7000_0000 => Layout {
                code: 0x8000_0000,
                files: 0xc000_0000..0xff00_0000,
                program: 0,
                break_end: 0x7f00_0000,
                rest,
            },
            // One with large arrays of its own, or at an unusual address: all else behind it.
            Some(end) => {
                let code = end.saturating_add(2 << 30) & !((1 << 30) - 1);
                Layout {
                    code,
                    files: code + (1 << 30)..code + (1 << 30) + 0x3f00_0000,
                    program: 0,
                    break_end: code - 0x100_0000,
                    rest,
                }
            }
        }
    }
}

/// From an address up no gap of a window is wider than so many bytes: looking for a wider one begins
/// there. A program may have many thousands of mappings.
#[derive(Clone, Copy, Debug)]
struct Gaps {
    from: u64,
    widest: u64,
}

/// The program's mappings.
#[derive(Debug)]
pub(crate) struct Space {
    pub(crate) layout: Layout,
    /// By first address: the end, and what is allowed.
    areas: BTreeMap<u64, (u64, i32)>,
    /// What is known of the gaps among files, and among the rest.
    known: [Gaps; 2],
    pub(crate) break_start: u64,
    pub(crate) break_now: u64,
}

impl Space {
    pub(crate) fn new(layout: Layout) -> Space {
        let known = [&layout.files, &layout.rest].map(|all| Gaps { from: all.end, widest: 0 });
        Space { layout, areas: BTreeMap::new(), known, break_start: 0, break_now: 0 }
    }

    /// A free range as far up as there is one.
    pub(crate) fn place(&mut self, len: u64, is_file: bool) -> Option<u64> {
        let len = len.checked_next_multiple_of(PAGE)?;
        let near = is_file.then(|| self.place_in(0, len)).flatten();
        near.or_else(|| self.place_in(1, len))
    }

    fn place_in(&mut self, which: usize, len: u64) -> Option<u64> {
        let window = [&self.layout.files, &self.layout.rest][which].clone();
        let Gaps { from, widest } = self.known[which];
        let is_new = len > widest;
        let (mut top, mut widest) = if is_new { (from, widest) } else { (window.end, 0) };
        let mut found = None;
        for (&start, &(end, _)) in self.areas.range(..top).rev() {
            let gap = top.saturating_sub(end);
            if gap >= len && top - len >= window.start {
                found = Some(top - len);
                break;
            }
            widest = widest.max(gap);
            top = top.min(start);
            if top <= window.start {
                break;
            }
        }
        self.known[which] = Gaps { from: top, widest };
        let room = top.checked_sub(window.start)?;
        found.or_else(|| (room >= len).then(|| top - len))
    }

    /// A range has become free.
    fn widen(&mut self, start: u64, end: u64) {
        let before = self.areas.range(..start).next_back().map_or(0, |(_, (end, _))| *end);
        let behind = self.areas.range(end..).next().map_or(u64::MAX, |(start, _)| *start);
        for (known, window) in self.known.iter_mut().zip([&self.layout.files, &self.layout.rest]) {
            let (before, behind) = (before.max(window.start), behind.min(window.end));
            if before < behind && behind > known.from {
                known.widest = known.widest.max(behind - before);
            }
        }
    }

    /// Whether nothing of the program lies in a range.
    pub(crate) fn is_free(&self, start: u64, end: u64) -> bool {
        let before = self.areas.range(..end).next_back();
        start < end && before.is_none_or(|(_, (area_end, _))| *area_end <= start)
    }

    /// A range is mapped, over whatever was there. What lies beside it and is allowed the same becomes
    /// one with it, so that programs with many mappings have few areas.
    pub(crate) fn add(&mut self, start: u64, end: u64, protection: i32) {
        self.remove(start, end);
        if start >= end {
            return;
        }
        let (mut start, mut end) = (start, end);
        if let Some((&before, &(before_end, same))) = self.areas.range(..start).next_back()
            && (before_end, same) == (start, protection)
        {
            start = before;
        }
        if let Some(&(behind_end, same)) = self.areas.get(&end)
            && same == protection
        {
            self.areas.remove(&end);
            end = behind_end;
        }
        self.areas.insert(start, (end, protection));
    }

    /// Nothing is mapped in a range any more.
    pub(crate) fn remove(&mut self, start: u64, end: u64) {
        for (at, (area_end, protection)) in self.taken(start, end) {
            self.areas.remove(&at);
            if at < start {
                self.areas.insert(at, (start, protection));
            }
            if area_end > end {
                self.areas.insert(end, (area_end, protection));
            }
        }
        self.widen(start, end);
    }

    /// A range may be used otherwise.
    pub(crate) fn protect(&mut self, start: u64, end: u64, protection: i32) {
        for (at, (area_end, _)) in self.taken(start, end) {
            self.add(at.max(start), area_end.min(end), protection);
        }
    }

    /// The areas that a range meets.
    fn taken(&self, start: u64, end: u64) -> Vec<(u64, (u64, i32))> {
        let met = self.areas.range(..end).rev().take_while(|(_, (area_end, _))| *area_end > start);
        met.map(|(at, area)| (*at, *area)).collect()
    }

    /// What is allowed at an address, if something is mapped there.
    pub(crate) fn protection(&self, address: u64) -> Option<i32> {
        let (_, (end, protection)) = self.areas.range(..=address).next_back()?;
        (address < *end).then_some(*protection)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_gap_that_is_wide_enough_is_taken_and_what_is_freed_is_used_again() {
        let mut space = Space::new(Layout { rest: 0x10000..0x20000, ..Layout::new(None) });
        let first = space.place(0x3000, false).unwrap();
        assert_eq!(first, 0x1d000);
        space.add(first, 0x20000, 3);
        let second = space.place(0x1000, false).unwrap();
        assert_eq!(second, 0x1c000);
        space.add(second, 0x1d000, 3);
        space.remove(first, 0x20000);
        assert_eq!(space.place(0x3000, false), Some(0x1d000));
        assert_eq!(space.place(0x4000, false), Some(0x18000));
        assert_eq!(space.place(0x10000, false), None);
    }

    #[test]
    fn a_large_program_with_its_own_address_has_everything_behind_it() {
        for end in [0x40_0000u64, 0x7000_0000, 0x7000_1000, 0xc060_0000, 0x3f_c000_1000] {
            let layout = Layout::new(Some(end));
            assert!(end < layout.break_end && layout.break_end < layout.code);
            assert!(layout.code + (1 << 30) <= layout.files.start);
        }
    }

    #[test]
    fn neighbours_that_are_allowed_the_same_are_one_area() {
        let mut space = Space::new(Layout::new(None));
        space.add(0x1000, 0x2000, 3);
        space.add(0x3000, 0x4000, 3);
        space.add(0x4000, 0x5000, 1);
        space.add(0x2000, 0x3000, 3);
        let areas: Vec<_> = space.areas.iter().map(|(start, area)| (*start, *area)).collect();
        assert_eq!(areas, [(0x1000, (0x4000, 3)), (0x4000, (0x5000, 1))]);
    }

    #[test]
    fn a_part_that_is_unmapped_or_protected_leaves_the_rest() {
        let mut space = Space::new(Layout::new(None));
        space.add(0x1000, 0x9000, 7);
        space.remove(0x3000, 0x4000);
        space.protect(0x5000, 0x6000, 1);
        let all: Vec<Option<i32>> =
            [0x2fff, 0x3000, 0x4000, 0x5000, 0x6000, 0x9000].map(|at| space.protection(at)).into();
        assert_eq!(all, [Some(7), None, Some(7), Some(1), Some(7), None]);
        assert!(space.is_free(0x3000, 0x4000) && !space.is_free(0x3000, 0x4001));
    }
}
