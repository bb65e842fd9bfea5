//! The sampled cores of one thread, made when it proves worth them.
//!
//! Each core holds the tables of a last-level cache twice, and there are dozens of them a thread. A
//! launcher starts a dozen processes that run a few million instructions each, and only the busiest
//! thread is judged: what a thread does is kept until it has run for so long.
//!
//! ```text
//! calls:  translated 0, executed 0 (accesses), executed 0 (..), translated 1, ..  | executed 7 ..
//!         └──────────────── kept, then told in the same order ──────────────────┘   told at once
//! ```

use std::fmt;

use model::sampled::SampledCore;
use model::stream::{Access, BlockId, CoreListener, StaticBlock};

/// Instructions that are kept: a hundred megabytes at most.
const KEPT_INSTRUCTIONS: u64 = 4_000_000;

/// A call, its accesses apart.
#[derive(Debug)]
enum Call {
    Translated(BlockId, StaticBlock),
    /// With where its accesses end.
    Executed(BlockId, u16, usize),
    Continued(BlockId, usize),
    Interrupted,
}

/// Cores that hear what a thread runs, from its beginning, once there are any.
pub(super) struct Sampling {
    make: Box<dyn Fn() -> Vec<SampledCore> + Send>,
    kept: Vec<Call>,
    accesses: Vec<Access>,
    instructions: u64,
    limit: u64,
    cores: Option<Vec<SampledCore>>,
}

impl fmt::Debug for Sampling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sampling").field("instructions", &self.instructions).finish_non_exhaustive()
    }
}

impl Sampling {
    /// No core yet.
    pub(super) fn new(make: impl Fn() -> Vec<SampledCore> + Send + 'static) -> Sampling {
        Sampling {
            make: Box::new(make),
            kept: Vec::new(),
            accesses: Vec::new(),
            instructions: 0,
            limit: KEPT_INSTRUCTIONS,
            cores: None,
        }
    }

    /// The cores, which have heard everything.
    pub(super) fn into_cores(mut self) -> Vec<SampledCore> {
        self.make_cores();
        self.cores.unwrap_or_default()
    }

    fn make_cores(&mut self) {
        if self.cores.is_some() {
            return;
        }
        let mut cores = (self.make)();
        for core in &mut cores {
            let mut from = 0;
            for call in &self.kept {
                match *call {
                    Call::Translated(id, ref block) => core.translated(id, block),
                    Call::Executed(id, ran, to) => {
                        core.executed(id, ran, &self.accesses[from..to]);
                        from = to;
                    }
                    Call::Continued(id, to) => {
                        core.continued(id, &self.accesses[from..to]);
                        from = to;
                    }
                    Call::Interrupted => core.interrupted(),
                }
            }
        }
        (self.kept, self.accesses) = (Vec::new(), Vec::new());
        self.cores = Some(cores);
    }

    fn keep(&mut self, accesses: &[Access], call: impl FnOnce(usize) -> Call) {
        self.accesses.extend(accesses);
        self.kept.push(call(self.accesses.len()));
        if self.instructions >= self.limit {
            self.make_cores();
        }
    }
}

impl CoreListener for Sampling {
    fn translated(&mut self, id: BlockId, block: &StaticBlock) {
        match &mut self.cores {
            Some(cores) => cores.iter_mut().for_each(|core| core.translated(id, block)),
            None => self.keep(&[], |_| Call::Translated(id, block.clone())),
        }
    }

    fn executed(&mut self, id: BlockId, ran: u16, accesses: &[Access]) {
        self.instructions += u64::from(ran);
        match &mut self.cores {
            Some(cores) => cores.iter_mut().for_each(|core| core.executed(id, ran, accesses)),
            None => self.keep(accesses, |to| Call::Executed(id, ran, to)),
        }
    }

    fn continued(&mut self, id: BlockId, accesses: &[Access]) {
        match &mut self.cores {
            Some(cores) => cores.iter_mut().for_each(|core| core.continued(id, accesses)),
            None => self.keep(accesses, |to| Call::Continued(id, to)),
        }
    }

    fn interrupted(&mut self) {
        match &mut self.cores {
            Some(cores) => cores.iter_mut().for_each(CoreListener::interrupted),
            None => self.keep(&[], |_| Call::Interrupted),
        }
    }
}

#[cfg(test)]
mod tests {
    use model::core::{Accounting, Settings};
    use model::event::Event;
    use model::machine::Machine;
    use model::sampled::Plan;
    use model::stream::Code;

    use super::*;

    /// mov rcx,[rbx]; add rax,rax
    fn block(pc: u64) -> StaticBlock {
        let texts: [&[u8]; 2] = [&[0x48, 0x8b, 0x0b], &[0x48, 0x01, 0xc0]];
        let code = |(k, text): (usize, &&[u8])| {
            let mut bytes = [0; 15];
            bytes[..text.len()].copy_from_slice(text);
            Code { pc: pc + 3 * k as u64, bytes, len: text.len() as u8 }
        };
        StaticBlock { instructions: texts.iter().enumerate().map(code).collect() }
    }

    fn heard(limit: u64) -> Vec<(u64, f64)> {
        let machine = Machine::named("zen4").unwrap();
        let make = move || {
            let plan = |seed| Plan { seed, ..Plan::default() };
            let core = |seed| SampledCore::new(&machine, Settings::default(), plan(seed));
            vec![core(1), core(2)]
        };
        let mut sampling = Sampling { limit, ..Sampling::new(make) };
        for k in 0..600_000_u64 {
            if k % 100_000 == 0 {
                sampling.translated(BlockId((k / 100_000) as u32), &block(0x1000 + k));
                sampling.interrupted();
            }
            let address = 0x10_0000 + k * k % 1_000_003 * 64;
            let access = Access { address, instruction: 0, size: 8, is_store: false };
            sampling.executed(BlockId((k / 100_000) as u32), 2, &[access]);
            if k % 1000 == 0 {
                sampling.continued(BlockId((k / 100_000) as u32), &[access]);
            }
        }
        let tell = |mut core: SampledCore| {
            core.settle_all();
            (core.windows(), core.estimate(Event::Cycles).unwrap().value)
        };
        sampling.into_cores().into_iter().map(tell).collect()
    }

    #[test]
    fn cores_that_are_made_late_have_heard_everything() {
        let at_once = heard(0);
        assert!(at_once.iter().all(|&(windows, cycles)| windows > 1 && cycles > 1e6));
        assert_eq!(heard(500_001), at_once);
        assert_eq!(heard(u64::MAX), at_once);
    }
}
