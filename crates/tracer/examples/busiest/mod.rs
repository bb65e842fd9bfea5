//! The busiest thread of a recorded trace, held in memory.

use std::error::Error;
use std::path::PathBuf;

use model::stream::{Access, BlockId, CoreListener, StaticBlock};
use tracer::results::ProcessKey;
use tracer::stream::{InstructionStream, Recorded};
use tracer::trace::Audience;

/// What one thread ran.
#[derive(Default)]
pub(crate) struct Thread {
    pub(crate) blocks: Vec<StaticBlock>,
    /// Block, instructions, and where its accesses end.
    pub(crate) steps: Vec<(BlockId, u16, u32)>,
    pub(crate) accesses: Vec<Access>,
    pub(crate) instructions: u64,
}

impl Thread {
    /// The thread of a trace that ran most.
    pub(crate) fn busiest_of(path: PathBuf) -> Result<Thread, Box<dyn Error>> {
        let mut busiest = Busiest::default();
        Recorded { path }.play(&mut busiest)?;
        Ok(busiest.thread)
    }

    /// Tells a core of all code.
    pub(crate) fn translate(&self, core: &mut impl CoreListener) {
        for (place, block) in self.blocks.iter().enumerate() {
            core.translated(BlockId(place as u32), block);
        }
    }
}

impl CoreListener for Thread {
    fn translated(&mut self, _: BlockId, block: &StaticBlock) {
        self.blocks.push(block.clone());
    }

    fn executed(&mut self, id: BlockId, ran: u16, accesses: &[Access]) {
        self.accesses.extend(accesses);
        self.steps.push((id, ran, self.accesses.len() as u32));
        self.instructions += u64::from(ran);
    }
}

/// Keeps the thread that ran most.
#[derive(Default)]
struct Busiest {
    thread: Thread,
}

impl Audience for Busiest {
    type Core = Thread;

    fn thread(&mut self, _: ProcessKey, _: u32) -> Thread {
        Thread::default()
    }

    fn ended(&mut self, _: ProcessKey, _: u32, core: Thread) {
        if core.instructions > self.thread.instructions {
            self.thread = core;
        }
    }
}
