//! Bubbles: what stands before an instruction that stalled, one letter a possible cause.
//!
//! ```text
//! dwD   (d = D-cache miss)
//! dwD ... 18.0 cy
//! dwD   (w = Write buffer)
//! ```

use std::collections::BTreeSet;

use analyse::InstructionReport;

/// Stalls shorter than this leave no bubble.
const LEAST_CYCLES: f64 = 0.05;
/// Lines of the longest bubble.
const LINES_MAX: usize = 3;

/// The bubbles before an instruction; letters that were `explained` already are not again.
pub(super) fn before(
    instruction: &InstructionReport,
    explained: &mut BTreeSet<char>,
) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(stall) = instruction.static_stall.filter(|stall| stall.cycles >= LEAST_CYCLES) {
        let causes = [(stall.cause.letter(), stall.cause.title())];
        lines.extend(bubble(&causes, stall.cycles, explained));
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
        lines.extend(bubble(&causes, cycles, explained));
    }
    lines
}

/// As high as the stall is long, up to a limit; higher where letters are yet to be explained.
fn bubble(causes: &[(char, &str)], cycles: f64, explained: &mut BTreeSet<char>) -> Vec<String> {
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
                return format!("{letters} ... {cycles:.1} cy");
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
        let first = bubble(&causes, 18.0, &mut explained);
        assert_eq!(
            first,
            [
                "dwD   (d = D-cache miss)",
                "dwD   (w = Write buffer)",
                "dwD ... 18.0 cy",
                "dwD   (D = DTB miss)"
            ]
        );
        let second = bubble(&causes, 114.5, &mut explained);
        assert_eq!(second, ["dwD", "dwD ... 114.5 cy", "dwD"]);
    }

    #[test]
    fn half_a_cycle_is_one_line() {
        let mut explained = BTreeSet::from(['s']);
        assert_eq!(bubble(&[('s', "Slotting")], 0.5, &mut explained), ["s"]);
    }
}
