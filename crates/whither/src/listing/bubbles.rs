//! Bubbles: what stands before an instruction that stalled, one letter a possible cause.
//!
//! ```text
//! dwD   (d = D-cache miss)
//! dwD ... 18.0 cy
//! dwD   (w = Write buffer)
//! ```

use std::collections::BTreeSet;

use analyse::InstructionReport;
use metrology::{Coverage, Interval};
use show::{Cell, Unit};

use crate::examined::{is_vague, least_of};

/// Stalls shorter than this leave no bubble.
const LEAST_CYCLES: f64 = 0.05;
/// Lines of the longest bubble.
const LINES_MAX: usize = 3;

/// The bubbles before an instruction; letters that were `explained` already are not again.
pub(crate) fn before(
    instruction: &InstructionReport,
    explained: &mut BTreeSet<char>,
) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(stall) = instruction.static_stall.filter(|stall| stall.cycles >= LEAST_CYCLES) {
        let causes = [(stall.cause.letter(), stall.cause.title())];
        lines.extend(bubble(&causes, (stall.cycles, stall.cycles), explained));
    }
    let cycles = instruction.dynamic_stall_cycles;
    if cycles >= LEAST_CYCLES {
        let mut causes: Vec<(char, &str)> = instruction
            .culprits
            .iter()
            .map(|culprit| (culprit.cause.letter(), culprit.cause.title()))
            .collect();
        if causes.is_empty() {
            causes.push(('?', "unexplained"));
        }
        lines.extend(bubble(&causes, (least_stall(instruction), cycles), explained));
    }
    lines
}

/// The stall, or the least that it may be where nobody knows how often the instruction ran.
fn least_stall(it: &InstructionReport) -> f64 {
    match it.cpi {
        Some(cpi) if is_vague(it.frequency) => {
            (least_of(cpi.value, it.frequency) - it.least_cycles).max(0.0)
        }
        _ => it.dynamic_stall_cycles,
    }
}

/// A dynamic stall as JSON has it.
pub(super) fn stall_cell(it: &InstructionReport) -> Cell {
    let (least, cycles) = (least_stall(it), it.dynamic_stall_cycles);
    match least == cycles {
        true => Cell::Number(cycles, Unit::Number),
        false => {
            let interval = Interval { low: least, high: f64::INFINITY, coverage: Coverage::P95 };
            Cell::AtLeast(cycles, interval, Unit::Number)
        }
    }
}

/// As high as the stall is long, up to a limit; higher where letters are yet to be explained. How
/// long it is comes twice: at least, and as estimated.
fn bubble(
    causes: &[(char, &str)],
    (least, cycles): (f64, f64),
    explained: &mut BTreeSet<char>,
) -> Vec<String> {
    let letters: String = causes.iter().map(|(letter, _)| *letter).collect();
    let new: Vec<&(char, &str)> =
        causes.iter().filter(|(letter, _)| explained.insert(*letter)).collect();
    // Each line is half a cycle, as in the paper, as long as there are lines.
    let height = ((2.0 * cycles).round() as usize).clamp(1, LINES_MAX);
    let height = height.max(new.len() + usize::from(cycles >= 1.0));
    let told = height / 2;
    let mut new = new.into_iter();
    (0..height)
        .map(|line| {
            if cycles >= 1.0 && line == told {
                return match least {
                    least if least == cycles => format!("{letters} ... {cycles:.1} cy"),
                    least if least >= LEAST_CYCLES => format!("{letters} ... ≥ {least:.1} cy"),
                    _ => format!("{letters} ... of unknown length"),
                };
            }
            match new.next() {
                Some((letter, title)) => format!("{letters}   ({letter} = {title})"),
                None => letters.clone(),
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_stall_names_its_causes_once_and_its_length_in_the_middle() {
        let mut explained = BTreeSet::new();
        let causes = [('d', "D-cache miss"), ('w', "Write buffer"), ('D', "DTB miss")];
        let first = bubble(&causes, (18.0, 18.0), &mut explained);
        assert_eq!(
            first,
            [
                "dwD   (d = D-cache miss)",
                "dwD   (w = Write buffer)",
                "dwD ... 18.0 cy",
                "dwD   (D = DTB miss)"
            ]
        );
        let second = bubble(&causes, (114.5, 114.5), &mut explained);
        assert_eq!(second, ["dwD", "dwD ... 114.5 cy", "dwD"]);
    }

    #[test]
    fn half_a_cycle_is_one_line() {
        let mut explained = BTreeSet::from(['s']);
        assert_eq!(bubble(&[('s', "Slotting")], (0.5, 0.5), &mut explained), ["s"]);
    }

    #[test]
    fn a_stall_of_code_that_may_never_have_run_has_no_length_of_its_own() {
        let length = |least| {
            let mut explained = BTreeSet::from(['d']);
            bubble(&[('d', "D-cache miss")], (least, 9.0), &mut explained)
        };
        assert_eq!(length(2.5)[1], "d ... ≥ 2.5 cy");
        assert_eq!(length(0.0)[1], "d ... of unknown length");
    }
}
