//! Where an indirect branch went that no detailed sample follows, read from the bits behind it.
//!
//! Code can be told by its bits: which instructions access memory or branch is written in it. Of
//! all places where the branch could have gone, usually one alone fits the next few dozen bits.
//!
//! ```text
//! bits        1 0 0 1 0 1 0 0 …
//! entry A     mov   add          bit 1 of an access must be 1: no
//! entry B     push  lea  test jne(taken) …                     fits
//! ```

use model::monitor::Bits;
use model::uop::Flow;

use super::code::CodeBook;
use super::walk::{is_possible, said};

/// Bits of so many instructions must fit.
const FEWEST: usize = 24;
/// No more are asked for.
const MOST: usize = 100;

/// The one place that fits the bits, if there is just one.
pub(super) fn align(
    code: &CodeBook,
    candidates: &[u64],
    calls: &[u64],
    bits: &[Bits],
) -> Option<u64> {
    let bits = bits.get(..bits.len().min(MOST)).unwrap_or(bits);
    let mut best: Option<(usize, u64)> = None;
    let mut is_alone = false;
    for &start in candidates {
        let fits = fitting(code, start, calls, bits);
        let most = best.map_or(FEWEST - 1, |(most, _)| most);
        if fits > most {
            (best, is_alone) = (Some((fits, start)), true);
        } else if fits == most && best.is_some() {
            is_alone = false;
        }
    }
    best.filter(|_| is_alone).map(|(_, start)| start)
}

/// Whether nothing speaks against a place by the bits that follow.
pub(super) fn fits(code: &CodeBook, start: u64, calls: &[u64], bits: &[Bits]) -> bool {
    let bits = bits.get(..bits.len().min(MOST)).unwrap_or(bits);
    bits.is_empty() || fitting(code, start, calls, bits) > 0
}

/// How many instructions from a place on fit, up to where the path cannot be followed; 0 if one
/// does not.
fn fitting(code: &CodeBook, start: u64, calls: &[u64], bits: &[Bits]) -> usize {
    let mut pc = start;
    // Calls made here, above those that were open before.
    let mut made: Vec<u64> = Vec::new();
    let mut open = calls;
    for (k, &bits) in bits.iter().enumerate() {
        let Some(known) = code.find(pc) else { return 0 };
        if !is_possible(&known, bits) {
            return 0;
        }
        let instruction = known.instruction;
        if matches!(instruction.flow, Flow::Call | Flow::IndirectCall) {
            made.push(instruction.next());
        }
        let mut returned = || {
            made.pop().or_else(|| {
                let (&last, rest) = open.split_last()?;
                open = rest;
                Some(last)
            })
        };
        let next = match instruction.flow {
            Flow::Return => returned(),
            _ => said(&known, bits),
        };
        match next {
            Some(to) => pc = to,
            None => return k + 1,
        }
    }
    bits.len()
}
