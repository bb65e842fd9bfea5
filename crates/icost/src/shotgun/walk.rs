//! From a signature to the path it must have taken (figure 5a).

use std::fmt;

use model::monitor::{Bits, DetailedSample, SignatureSample};
use model::uop::Flow;

use super::code::{CodeBook, Known};
use super::{Database, Labels};

/// Why a fragment cannot be what happened.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Flaw {
    /// An instruction's bits say what it cannot do.
    Impossible,
    /// The path leads to where there is no code.
    NoCode,
    /// No detailed sample says where an indirect branch went.
    NoTarget,
}

impl Flaw {
    /// One word for it.
    pub fn key(self) -> &'static str {
        match self {
            Flaw::Impossible => "impossible",
            Flaw::NoCode => "no_code",
            Flaw::NoTarget => "no_target",
        }
    }
}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Flaw::Impossible => "bits that its instructions cannot have",
            Flaw::NoCode => "a path that leaves the known code",
            Flaw::NoTarget => "an indirect branch that no detailed sample follows",
        })
    }
}

/// A stretch of the program, put together again.
#[derive(Clone, Debug)]
pub struct Fragment<'a> {
    /// Each instruction's place in the code book.
    pub places: Vec<u32>,
    /// The detailed sample chosen for it, if there is one.
    pub details: Vec<Option<&'a DetailedSample<Labels>>>,
    /// Where the path turned out not to be what happened, if it did.
    pub flaw: Option<Flaw>,
}

/// Calls that are still open at most; older ones are forgotten.
const CALLS_MAX: usize = 1000;

/// Follows a signature through the code.
pub fn walk<'a>(
    signature: &SignatureSample,
    code: &CodeBook,
    database: &mut Database<'a>,
) -> Fragment<'a> {
    let mut fragment = Fragment { places: Vec::new(), details: Vec::new(), flaw: None };
    let mut calls: Vec<u64> = Vec::new();
    let mut pc = signature.start;
    for (k, &bits) in signature.bits.iter().enumerate() {
        let Some(known) = code.find(pc) else {
            fragment.flaw = Some(Flaw::NoCode);
            break;
        };
        if !is_possible(&known, bits) {
            fragment.flaw = Some(Flaw::Impossible);
            break;
        }
        let (around, missing) = signature.around(k);
        let detail = database.closest(pc, around, missing);
        fragment.places.push(known.place);
        fragment.details.push(detail);
        let seen = detail.and_then(|detail| detail.target);
        match next(&known, bits, seen, &mut calls) {
            Some(to) => pc = to,
            None if k + 1 == signature.bits.len() => {}
            None => {
                fragment.flaw = Some(Flaw::NoTarget);
                break;
            }
        }
    }
    fragment
}

/// Whether an instruction can have left these bits.
///
/// ```text
/// bits 1, 2     access             other
/// 1 0, 1 1      yes                a branch that may be taken
/// 0 1           missed far away    not a branch that always is
/// 0 0           no                 not a branch that always is
/// ```
pub(crate) fn is_possible(known: &Known<'_>, bits: Bits) -> bool {
    let flow = known.instruction.flow;
    if known.instruction.has_memory {
        return bits.first() || bits.second();
    }
    match flow {
        Flow::Next => !bits.first(),
        Flow::Conditional => true,
        _ => bits.first(),
    }
}

/// Where it went.
fn next(known: &Known<'_>, bits: Bits, seen: Option<u64>, calls: &mut Vec<u64>) -> Option<u64> {
    let instruction = known.instruction;
    let behind = instruction.next();
    if matches!(instruction.flow, Flow::Call | Flow::IndirectCall) {
        if calls.len() == CALLS_MAX {
            calls.remove(0);
        }
        calls.push(behind);
    }
    match instruction.flow {
        Flow::Next => Some(behind),
        Flow::Conditional if bits.first() => Some(instruction.target),
        Flow::Conditional => Some(behind),
        Flow::Jump | Flow::Call => Some(instruction.target),
        Flow::Return => calls.pop().or(seen),
        Flow::IndirectJump | Flow::IndirectCall => seen,
    }
}
