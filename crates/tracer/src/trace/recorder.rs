//! The listener that records.

use std::sync::PoisonError;
use std::sync::atomic::Ordering::Relaxed;

use model::stream::{Access, BlockId, CoreListener, StaticBlock};

use super::encode::Encoder;
use super::output::CurrentTrace;
use crate::results::Chunk;
use crate::tally::{CurrentResults, current};

/// Records one thread. What is not yet in the trace is in the results file, from where the launcher
/// takes it if the process cannot write it any more.
#[derive(Debug)]
pub struct Recorder {
    trace: CurrentTrace,
    results: CurrentResults,
    thread: u32,
    sequence: u32,
    encoder: Encoder,
    /// How many instructions each block has.
    lengths: Vec<u16>,
    tail: Option<Chunk>,
    event: Vec<u8>,
}

impl Recorder {
    /// A recorder for thread number `thread`.
    pub fn new(trace: CurrentTrace, results: CurrentResults, thread: u32) -> Recorder {
        let tail = current(&results).tail(thread);
        Recorder {
            trace,
            results,
            thread,
            sequence: 0,
            encoder: Encoder::default(),
            lengths: Vec::new(),
            tail,
            event: Vec::new(),
        }
    }

    /// Keeps the event that was just encoded.
    fn keep(&mut self) {
        let Some(tail) = self.tail else { return };
        if !tail.append(&self.event) {
            self.write_tail(tail);
            if !tail.append(&self.event) {
                // The reader expects what we do, so nothing after this can be read.
                current(&self.results).note_trace_lost();
                self.tail = None;
            }
        }
        self.event.clear();
    }

    #[cold]
    fn write_tail(&mut self, tail: Chunk) {
        let bytes = tail.bytes().iter().take(tail.used()).map(|byte| byte.load(Relaxed)).collect();
        let mut trace = self.trace.lock().unwrap_or_else(PoisonError::into_inner);
        trace.thread(self.thread, self.sequence, bytes);
        self.sequence = self.sequence.wrapping_add(1);
        tail.restart(self.sequence);
    }
}

impl CoreListener for Recorder {
    fn translated(&mut self, _: BlockId, block: &StaticBlock) {
        self.lengths.push(block.instructions.len() as u16);
    }

    fn executed(&mut self, id: BlockId, ran: u16, accesses: &[Access]) {
        let is_whole = self.lengths.get(id.0 as usize) == Some(&ran);
        self.encoder.executed(id, ran, is_whole, accesses, &mut self.event);
        self.keep();
    }

    fn continued(&mut self, _: BlockId, accesses: &[Access]) {
        self.encoder.continued(accesses, &mut self.event);
        self.keep();
    }

    fn interrupted(&mut self) {
        self.encoder.interrupted(&mut self.event);
        self.keep();
    }

    fn system_call(&mut self, number: u64) {
        self.encoder.system_call(number, &mut self.event);
        self.keep();
    }

    fn forked(&mut self) {
        self.thread = 0;
        self.sequence = 0;
        self.encoder = Encoder::default();
        self.event.clear();
        self.tail = current(&self.results).tail(0);
    }
}
