//! From a signature to the path it must have taken (figure 5a).

use std::fmt;

use model::monitor::{Bits, SignatureSample, Surroundings};
use model::uop::Flow;

use super::Database;
use super::align::{FEWEST, align, fits};
use super::code::{CodeBook, Known};
use super::database::Chosen;

/// Why a fragment cannot be what happened.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
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
#[derive(Clone, Debug, Default)]
pub struct Fragment<'a> {
    /// Each instruction's place in the code book.
    pub places: Vec<u32>,
    /// The detailed sample chosen for it, if there is one.
    pub details: Vec<Option<Chosen<'a>>>,
    /// Why it is not as long as its signature, if it is not.
    pub flaw: Option<Flaw>,
    /// How many paths turned out not to be what happened.
    pub retries: usize,
}

impl Fragment<'_> {
    /// Whether it may be what happened. A path that merely cannot be followed further is right as
    /// far as it goes.
    pub fn is_consistent(&self) -> bool {
        matches!(self.flaw, None | Some(Flaw::NoTarget))
    }
}

/// Calls that are still open at most; older ones are forgotten.
const CALLS_MAX: usize = 1000;
/// How often another target is tried before a fragment is given up.
const RETRIES_MAX: usize = 1000;

/// An indirect branch that could have gone elsewhere too.
struct Choice {
    /// Instructions up to it, itself included.
    len: usize,
    /// Where it was seen to go and has not been tried, the likeliest last.
    targets: Vec<u64>,
    calls: Vec<u64>,
    /// Where the bits say that it went has not been tried.
    has_bits: bool,
}

/// Follows a signature through the code.
///
/// Where an indirect branch leads to bits that cannot be, the next likely target of the last such
/// branch is tried: as far as detailed samples know any, and then what the bits say.
pub fn walk<'a>(
    signature: &SignatureSample,
    code: &CodeBook,
    database: &mut Database<'a>,
) -> Fragment<'a> {
    let mut walker = Walker { calls: Vec::new(), choices: Vec::new(), pc: signature.start };
    let mut fragment = Fragment::default();
    while fragment.places.len() < signature.bits.len() {
        let Err(flaw) = walker.step(signature, code, database, &mut fragment) else { continue };
        fragment.flaw.get_or_insert(flaw);
        if flaw == Flaw::NoTarget {
            fragment.flaw = Some(flaw);
            break;
        }
        fragment.retries += 1;
        if fragment.retries > RETRIES_MAX || !walker.back(signature, code, &mut fragment) {
            return fragment;
        }
    }
    if fragment.places.len() == signature.bits.len() {
        fragment.flaw = None;
    }
    fragment.details = details(signature, code, database, &fragment.places);
    fragment
}

/// The sample that speaks for each instruction of a path.
fn details<'a>(
    signature: &SignatureSample,
    code: &CodeBook,
    database: &mut Database<'a>,
    places: &[u32],
) -> Vec<Option<Chosen<'a>>> {
    let chosen = |(k, &place): (usize, &u32)| {
        let (around, missing) = signature.around(k);
        database.closest(&code.at(place)?, around, missing)
    };
    places.iter().enumerate().map(chosen).collect()
}

/// Where an indirect branch is thought to have gone.
struct Guess {
    target: u64,
    /// The closest detailed sample went elsewhere, which cannot be.
    is_second: bool,
}

struct Walker {
    pc: u64,
    calls: Vec<u64>,
    choices: Vec<Choice>,
}

impl Walker {
    /// Takes the next instruction.
    fn step(
        &mut self,
        signature: &SignatureSample,
        code: &CodeBook,
        database: &mut Database<'_>,
        fragment: &mut Fragment<'_>,
    ) -> Result<(), Flaw> {
        let k = fragment.places.len();
        let bits = signature.bits.get(k).copied().unwrap_or_default();
        let known = code.find(self.pc).ok_or(Flaw::NoCode)?;
        let before = fragment.places.last().and_then(|&place| code.at(place));
        let is_in_line = before.is_some_and(|before| code.is_in_line(&before, &known));
        let has_missed = bits.second() && !known.instruction.has_memory;
        if !is_possible(&known, bits) || (is_in_line && has_missed) {
            return Err(Flaw::Impossible);
        }
        let (around, missing) = signature.around(k);
        fragment.places.push(known.place);
        if k + 1 == signature.bits.len() {
            return Ok(());
        }
        let instruction = known.instruction;
        let calls = matches!(instruction.flow, Flow::Call | Flow::IndirectCall);
        if calls {
            if self.calls.len() == CALLS_MAX {
                self.calls.remove(0);
            }
            self.calls.push(instruction.next());
        }
        self.pc = match said(&known, bits) {
            Some(to) => to,
            None if instruction.flow == Flow::Return && !self.calls.is_empty() => {
                self.calls.pop().unwrap_or_default()
            }
            None => {
                let guess = self.guess(&known, (k, around, missing), signature, code, database)?;
                fragment.retries += usize::from(guess.is_second);
                guess.target
            }
        };
        Ok(())
    }

    /// Where an indirect branch went: as the closest detailed sample says, if the bits that follow
    /// can be there; if there is none, as those bits say. Where samples went to several places that
    /// all can be, none is more alike, and the signature is as good as over, it is not known: what
    /// is given up is short, and a wrong turn would not show any more.
    fn guess(
        &mut self,
        known: &Known<'_>,
        (k, around, missing): (usize, Surroundings, usize),
        signature: &SignatureSample,
        code: &CodeBook,
        database: &mut Database<'_>,
    ) -> Result<Guess, Flaw> {
        let rest = signature.bits.get(k + 1..).unwrap_or_default();
        let seen = database.targets(known.instruction.pc, around, missing);
        let closest = seen.first().map(|&(target, _)| target);
        let (next, next_missing) = signature.around(k + 1);
        let mut targets: Vec<(u32, u64)> = seen
            .into_iter()
            .filter(|&(target, _)| fits(code, target, &self.calls, rest))
            .map(|(target, same)| {
                let there = database.alike(target, next, next_missing).unwrap_or(0);
                (same + there, target)
            })
            .collect();
        // The likeliest last; the order in which they were told decides between equals.
        targets.reverse();
        targets.sort_by_key(|&(same, _)| same);
        if let [.., (second, _), (first, _)] = targets.as_slice()
            && first == second
            && rest.len() < FEWEST
        {
            return Err(Flaw::NoTarget);
        }
        let mut targets: Vec<u64> = targets.into_iter().map(|(_, target)| target).collect();
        let calls = self.calls.clone();
        if let Some(target) = targets.pop() {
            self.choices.push(Choice { len: k + 1, targets, calls, has_bits: true });
            return Ok(Guess { target, is_second: closest != Some(target) });
        }
        let target = said_by_bits(known, &self.calls, rest, code).ok_or(Flaw::NoTarget)?;
        Ok(Guess { target, is_second: closest.is_some() })
    }

    /// Goes back to the last branch that could have gone elsewhere; no if there is none.
    fn back(
        &mut self,
        signature: &SignatureSample,
        code: &CodeBook,
        fragment: &mut Fragment<'_>,
    ) -> bool {
        while let Some(choice) = self.choices.last_mut() {
            let branch = fragment.places.get(choice.len - 1).and_then(|&place| code.at(place));
            let rest = signature.bits.get(choice.len..).unwrap_or_default();
            let by_bits = |choice: &mut Choice| {
                let is_new = std::mem::take(&mut choice.has_bits);
                branch.filter(|_| is_new).and_then(|b| said_by_bits(&b, &choice.calls, rest, code))
            };
            if let Some(target) = choice.targets.pop().or_else(|| by_bits(choice)) {
                self.pc = target;
                self.calls.clone_from(&choice.calls);
                fragment.places.truncate(choice.len);
                return true;
            }
            self.choices.pop();
        }
        false
    }
}

/// Where an indirect branch must have gone by the bits that follow.
fn said_by_bits(branch: &Known<'_>, calls: &[u64], bits: &[Bits], code: &CodeBook) -> Option<u64> {
    let candidates = match branch.instruction.flow {
        Flow::Return => code.behind_calls(),
        _ => code.entries(),
    };
    align(code, candidates, calls, bits)
}

/// Whether an instruction can have left these bits.
///
/// ```text
/// bits 1, 2     access             other
/// 1 0, 1 1      yes                a branch that may be taken
/// 0 1           missed far away    not a branch that always is
/// 0 0           no                 not a branch that always is
/// ```
///
/// A jump to what stands right behind it leaves the straight line for nobody to see.
pub(super) fn is_possible(known: &Known<'_>, bits: Bits) -> bool {
    let flow = known.instruction.flow;
    if known.instruction.has_memory {
        return bits.first() || bits.second();
    }
    match flow {
        Flow::Next => !bits.first(),
        Flow::Conditional | Flow::IndirectJump => true,
        _ => bits.first() || known.instruction.target == known.instruction.next(),
    }
}

/// Where the code and its bits say that it went; none if they do not.
pub(super) fn said(known: &Known<'_>, bits: Bits) -> Option<u64> {
    let instruction = known.instruction;
    match instruction.flow {
        Flow::Conditional if bits.first() => Some(instruction.target),
        Flow::Next | Flow::Conditional => Some(instruction.next()),
        Flow::Jump | Flow::Call => Some(instruction.target),
        Flow::IndirectJump if !instruction.has_memory && !bits.first() => Some(instruction.next()),
        Flow::Return | Flow::IndirectJump | Flow::IndirectCall => None,
    }
}
