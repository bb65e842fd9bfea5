//! From branch stacks and load latencies to the samples of a monitor.

use icost::Kind;
use icost::shotgun::{CodeBook, Defaults, Known, Labels};
use model::monitor::{
    AROUND, Bits, DetailedSample, LENGTH, Samples, SignatureSample, Surroundings,
};
use model::program::Kind as OpKind;
use model::stream::StaticBlock;
use recording::RawLoad;
use vocab::LoadLevel;

/// Samples, and the code that they speak of.
#[derive(Debug)]
pub(super) struct Stacks {
    pub(super) samples: Samples<Labels>,
    pub(super) code: CodeBook,
    defaults: Defaults,
    /// From the execution of a mispredicted branch to dispatch behind it.
    redirect_cycles: u32,
}

/// One instruction of a path.
struct Walked {
    pc: u64,
    bits: Bits,
    /// It comes behind a branch that was taken; and whether that was mispredicted.
    behind: Option<bool>,
}

impl Stacks {
    pub(super) fn new(code: CodeBook, defaults: Defaults, redirect_cycles: u32) -> Stacks {
        Stacks { samples: Samples::default(), code, defaults, redirect_cycles }
    }

    /// Takes straight lines, oldest first, each with whether the branch before it had been
    /// mispredicted.
    pub(super) fn take(&mut self, lines: &[(StaticBlock, bool)]) {
        let path = self.path(lines);
        let Some(first) = path.first() else { return };
        let bits: Vec<Bits> = path.iter().map(|one| one.bits).take(LENGTH).collect();
        self.samples.instructions += bits.len() as u64;
        for k in 0..bits.len() {
            self.detail(&path, k);
        }
        let before = Surroundings::default();
        self.samples.signatures.push(SignatureSample { start: first.pc, before, bits });
    }

    fn path(&mut self, lines: &[(StaticBlock, bool)]) -> Vec<Walked> {
        let mut path = Vec::new();
        for (number, (line, mispredicted)) in lines.iter().enumerate() {
            self.code.add(line);
            let last = line.instructions.len() - 1;
            for (k, code) in line.instructions.iter().enumerate() {
                let known = self.code.find(code.pc);
                let accesses = known.is_some_and(|known| known.instruction.has_memory);
                let is_taken = k == last && number + 1 < lines.len();
                let behind = (k == 0 && number > 0).then_some(*mispredicted);
                let bits = Bits::new(accesses || is_taken, false);
                path.push(Walked { pc: code.pc, bits, behind });
            }
        }
        path
    }

    /// Of an instruction behind a branch it is known whether that was mispredicted; of an indirect
    /// branch, where it went.
    fn detail(&mut self, path: &[Walked], k: usize) {
        let Some(one) = path.get(k) else { return };
        let Some(known) = self.code.find(one.pc) else { return };
        let target = known.instruction.flow.is_indirect().then(|| path.get(k + 1)).flatten();
        if one.behind.is_none() && target.is_none() {
            return;
        }
        let mut ops = self.labels(&known, one.bits);
        if let Some(first) = ops.first_mut().filter(|_| one.behind == Some(true)) {
            first.redirect = (1, self.redirect_cycles);
        }
        let from = k.saturating_sub(AROUND);
        let held = path.get(from..path.len().min(k + AROUND + 1)).unwrap_or_default();
        let mut around = Surroundings::of(held.iter().map(|one| one.bits));
        let missing = (k + AROUND + 1).saturating_sub(path.len());
        (0..missing).for_each(|_| around.push(Bits::default()));
        let target = target.map(|next| next.pc);
        self.samples.details.push(DetailedSample { pc: one.pc, around, target, ops });
    }

    fn labels(&self, known: &Known<'_>, bits: Bits) -> Vec<Labels> {
        let touches = known.instruction.has_memory;
        let ops = known.ops.iter().enumerate();
        ops.map(|(k, op)| self.defaults.labels(op, k == 0, touches, bits)).collect()
    }

    /// Takes a load that was sampled with its latency.
    pub(super) fn take_load(&mut self, pc: u64, block: &StaticBlock, load: RawLoad) {
        self.code.add(block);
        let Some(known) = self.code.find(pc) else { return };
        let bits = Bits::new(true, false);
        let mut ops = self.labels(&known, bits);
        let loads = known.ops.iter().position(|op| op.kind == OpKind::Load);
        let Some(labels) = loads.and_then(|k| ops.get_mut(k)) else { return };
        let latency = u32::try_from(load.latency_cycles).unwrap_or(u32::MAX);
        labels.miss = latency.saturating_sub(labels.hit);
        labels.beyond = labels.miss;
        labels.level = level(load.level);
        let mut around = Surroundings::of([bits]);
        (0..AROUND).for_each(|_| around.push(Bits::default()));
        self.samples.details.push(DetailedSample { pc, around, target: None, ops });
    }
}

fn level(level: LoadLevel) -> Kind {
    match level {
        LoadLevel::L1 | LoadLevel::FillBuffer => Kind::Line,
        LoadLevel::L2 => Kind::L2,
        LoadLevel::L3 | LoadLevel::L4 => Kind::L3,
        _ => Kind::Memory,
    }
}
