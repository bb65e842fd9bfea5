//! The hottest procedures, instruction by instruction.

use std::collections::BTreeMap;

use analyse::ProcedureTime;
use image::Instruction;
use vocab::{Count, Offset, Profile};

use super::images::Images;
use crate::cli::RunJob;

/// Instructions shown before and after a sampled one.
const CONTEXT: usize = 2;
/// Lines of code a procedure: enough for a loop, short enough to read.
const LINES: usize = 24;

/// An instruction with less than one part in so many of its procedure is not worth its lines.
const LEAST_PART: u64 = 50;

/// One procedure's code, or why there is none.
#[derive(Clone, Debug)]
pub(crate) struct HotProcedure {
    /// The place of the procedure in the list of procedures.
    pub(crate) row: usize,
    pub(crate) code: Result<Vec<HotLine>, String>,
}

/// One instruction with its samples.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct HotLine {
    pub(crate) offset: Offset,
    pub(crate) text: String,
    pub(crate) count: Count,
    /// Whether the text form shows it.
    pub(crate) shown: bool,
}

/// The code of the first procedures of the list.
pub(crate) fn listings(
    times: &[ProcedureTime],
    images: &Images,
    profile: &Profile,
    job: &RunJob,
) -> Vec<HotProcedure> {
    let hot = |(row, time): (usize, &ProcedureTime)| HotProcedure {
        row,
        code: listing(time, images, profile, job),
    };
    times.iter().enumerate().take(job.hottest).map(hot).collect()
}

fn listing(
    time: &ProcedureTime,
    images: &Images,
    profile: &Profile,
    job: &RunJob,
) -> Result<Vec<HotLine>, String> {
    let procedure = time.procedure.as_ref().ok_or("these samples lie in no known procedure")?;
    let (binary, bytes) = images.code(time.image).ok_or("its code is not in a file")?;
    let name = profile.image(time.image).map_or("", |image| image.short_name());
    let listing = binary
        .disassemble(bytes, procedure, job.syntax, name)
        .map_err(|error| error.to_string())?;
    let offset_of = |i: &Instruction| binary.offset_of(i.address).unwrap_or_default();
    let mut lines: Vec<HotLine> = listing
        .instructions
        .iter()
        .map(|i| HotLine {
            offset: offset_of(i),
            text: i.text.clone(),
            count: samples_of(&time.offsets, offset_of(i), u64::from(i.len_bytes)),
            shown: false,
        })
        .collect();
    choose(&mut lines);
    Ok(lines)
}

/// All samples that fall on the bytes of an instruction.
fn samples_of(offsets: &BTreeMap<Offset, Count>, start: Offset, length: u64) -> Count {
    let end = Offset(start.0.saturating_add(length));
    offsets.range(start..end).map(|(_, &count)| count).sum()
}

/// Marks the hottest instructions and what stands around them, until the lines are used up.
fn choose(lines: &mut [HotLine]) {
    let whole: Count = lines.iter().map(|line| line.count).sum();
    let matters = |line: &HotLine| line.count.0.saturating_mul(LEAST_PART) >= whole.0.max(1);
    let mut hottest: Vec<usize> = (0..lines.len()).filter(|&i| matters(&lines[i])).collect();
    hottest.sort_by_key(|&i| (std::cmp::Reverse(lines[i].count), i));
    let mut left = LINES;
    for at in hottest {
        let last = (at + CONTEXT).min(lines.len() - 1);
        for line in &mut lines[at.saturating_sub(CONTEXT)..=last] {
            if left > 0 && !line.shown {
                line.shown = true;
                left -= 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(counts: &[u64]) -> Vec<HotLine> {
        let line = |(at, &count): (usize, &u64)| HotLine {
            offset: Offset(at as u64),
            text: String::new(),
            count: Count(count),
            shown: false,
        };
        counts.iter().enumerate().map(line).collect()
    }

    fn shown(lines: &[HotLine]) -> Vec<usize> {
        (0..lines.len()).filter(|&i| lines[i].shown).collect()
    }

    #[test]
    fn the_hottest_instruction_and_its_neighbours_are_shown() {
        let mut code = lines(&[0, 0, 0, 0, 9, 0, 0, 0, 0, 0]);
        choose(&mut code);
        assert_eq!(shown(&code), [2, 3, 4, 5, 6]);
    }

    #[test]
    fn no_more_lines_are_shown_than_fit() {
        let mut code = lines(&[1; 45]);
        choose(&mut code);
        assert_eq!(shown(&code).len(), LINES);
        choose(&mut lines(&[]));
    }

    #[test]
    fn a_sample_inside_an_instruction_belongs_to_it() {
        let offsets = BTreeMap::from([
            (Offset(10), Count(2)),
            (Offset(12), Count(3)),
            (Offset(13), Count(5)),
        ]);
        assert_eq!(samples_of(&offsets, Offset(10), 3), Count(5));
        assert_eq!(samples_of(&offsets, Offset(13), 1), Count(5));
    }
}
