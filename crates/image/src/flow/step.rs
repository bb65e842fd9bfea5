//! Instructions, as far as control flow needs them.

use iced_x86::{Decoder, DecoderOptions, Instruction as Decoded, OpKind};

use super::CodePart;
use crate::disassemble::{Flow, flow};

/// One instruction of a procedure.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Step {
    /// Its virtual address.
    pub address: u64,
    /// Its length.
    pub len_bytes: u8,
    /// How control leaves it.
    pub flow: Flow,
    /// Where a direct branch or call goes.
    pub target: Option<u64>,
}

impl Step {
    fn of(decoded: &Decoded) -> Step {
        let direct = decoded.op0_kind() == OpKind::NearBranch64;
        Step {
            address: decoded.ip(),
            len_bytes: decoded.len() as u8,
            flow: flow(decoded.flow_control()),
            target: direct.then(|| decoded.near_branch_target()),
        }
    }

    /// The address behind it.
    pub fn next_address(&self) -> u64 {
        self.address.wrapping_add(u64::from(self.len_bytes))
    }

    /// Whether it goes to its target inside a procedure, rather than calling it.
    pub(super) fn jumps(&self) -> bool {
        matches!(self.flow, Flow::Branch | Flow::Jump)
    }
}

/// A step with what the decoder knows beyond it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Full {
    pub(super) step: Step,
    pub(super) decoded: Decoded,
}

/// Decodes every part from its first byte on. Where a branch lands between instructions, the code
/// there is decoded too, up to where both readings meet; such branches are counted.
pub(super) fn decode(parts: &[CodePart<'_>]) -> (Vec<Full>, usize) {
    let mut steps: Vec<Full> = Vec::new();
    for part in parts {
        sweep(part, part.address, &mut steps, |_| false);
    }
    steps.sort_by_key(|full| full.step.address);
    steps.dedup_by_key(|full| full.step.address);
    let begins = |steps: &[Full], address: u64| {
        steps.binary_search_by_key(&address, |full| full.step.address).is_ok()
    };
    let mut overlaps = 0;
    let targets: Vec<u64> =
        steps.iter().filter(|f| f.step.jumps()).filter_map(|f| f.step.target).collect();
    let mut extra = Vec::new();
    for target in targets {
        let part = parts.iter().find(|part| part.holds(target));
        let Some(part) = part.filter(|_| !begins(&steps, target)) else { continue };
        overlaps += 1;
        sweep(part, target, &mut extra, |address| begins(&steps, address));
        // One byte can be read in fifteen ways at most; more than that is an attack.
        if extra.len() > steps.len() {
            break;
        }
    }
    steps.extend(extra);
    steps.sort_by_key(|full| full.step.address);
    steps.dedup_by_key(|full| full.step.address);
    (steps, overlaps)
}

impl CodePart<'_> {
    pub(super) fn holds(&self, address: u64) -> bool {
        address.checked_sub(self.address).is_some_and(|at| at < self.code.len() as u64)
    }
}

/// Decodes from an address to the end of the part, or to the first address that `stops`.
fn sweep(part: &CodePart<'_>, from: u64, steps: &mut Vec<Full>, stops: impl Fn(u64) -> bool) {
    let skipped = from.wrapping_sub(part.address) as usize;
    let Some(code) = part.code.get(skipped..) else { return };
    let mut decoder = Decoder::with_ip(64, code, from, DecoderOptions::NONE);
    let mut decoded = Decoded::default();
    while decoder.can_decode() {
        let (position, at) = (decoder.position(), decoder.ip());
        if stops(at) {
            return;
        }
        decoder.decode_out(&mut decoded);
        if decoded.is_invalid() {
            let step = Step { address: at, len_bytes: 1, flow: Flow::Trap, target: None };
            steps.push(Full { step, decoded: Decoded::default() });
            if decoder.set_position(position + 1).is_err() {
                return;
            }
            decoder.set_ip(at.wrapping_add(1));
            continue;
        }
        steps.push(Full { step: Step::of(&decoded), decoded });
    }
}
