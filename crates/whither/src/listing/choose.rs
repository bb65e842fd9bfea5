//! Which lines of a long procedure are worth reading.

use super::CodeLine;

/// Instructions shown before and after a sampled one.
const CONTEXT: usize = 2;
/// An instruction with less than one part in so many of its procedure is not worth its lines.
const LEAST_PART: u64 = 50;

/// Marks the hottest instructions and what stands around them, until so many lines are used up; all
/// of them where there is room.
pub(crate) fn choose(lines: &mut [CodeLine], mut left: usize) {
    let whole: u64 = lines.iter().map(|line| line.count.0).sum();
    let matters = |line: &CodeLine| line.count.0.saturating_mul(LEAST_PART) >= whole.max(1);
    let mut hottest: Vec<usize> = (0..lines.len()).filter(|&i| matters(&lines[i])).collect();
    hottest.sort_by_key(|&i| (std::cmp::Reverse(lines[i].count), i));
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
    use vocab::{Count, Offset};

    fn lines(counts: &[u64]) -> Vec<CodeLine> {
        let line = |(at, &count): (usize, &u64)| CodeLine {
            offset: Offset(at as u64),
            address: at as u64,
            text: String::new(),
            count: Count(count),
            shown: false,
            from: None,
        };
        counts.iter().enumerate().map(line).collect()
    }

    fn shown(lines: &[CodeLine]) -> Vec<usize> {
        (0..lines.len()).filter(|&i| lines[i].shown).collect()
    }

    #[test]
    fn the_hottest_instruction_and_its_neighbours_are_shown() {
        let mut code = lines(&[0, 0, 0, 0, 9, 0, 0, 0, 0, 0]);
        choose(&mut code, 24);
        assert_eq!(shown(&code), [2, 3, 4, 5, 6]);
    }

    #[test]
    fn no_more_lines_are_shown_than_fit() {
        let mut code = lines(&[1; 45]);
        choose(&mut code, 24);
        assert_eq!(shown(&code).len(), 24);
        choose(&mut lines(&[]), 24);
    }
}
