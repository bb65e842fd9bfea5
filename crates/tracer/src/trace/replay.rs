//! Telling listeners what a trace holds. The trace is untrusted.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use model::stream::{BlockId, CoreListener};

use super::chunk::{ChunkKind, TraceChunk};
use super::decode::{Decoder, Event};
use crate::record::ProcessRecord;
use crate::results::{ProcessFile, ProcessKey};
use crate::varint::Input;

/// Who is told about a program: a listener for each of its threads.
pub trait Audience {
    /// The listener of a thread.
    type Core: CoreListener;

    /// A thread begins.
    fn thread(&mut self, process: ProcessKey, thread: u32) -> Self::Core;

    /// Something is said about a process. A fork hears what its parent had heard before the fork.
    fn record(&mut self, _process: ProcessKey, _record: &ProcessRecord) {}

    /// A thread's stream is over.
    fn ended(&mut self, process: ProcessKey, thread: u32, core: Self::Core);
}

/// How much of a stream there was.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Replayed {
    /// How many blocks were executed.
    pub executed: u64,
    /// Threads whose stream broke off: a part is missing or damaged.
    pub broken: BTreeSet<(ProcessKey, u32)>,
    /// Bytes of the trace that belong to nothing: a tail cut short, or damage.
    pub skipped_bytes: u64,
}

/// What is known of a process. A record ends after this many bytes of the process's own.
#[derive(Default)]
struct Process {
    records: Vec<(u64, Arc<ProcessRecord>)>,
    blocks: Vec<Arc<ProcessRecord>>,
    records_bytes: u64,
    /// Records that came before the bytes before them, by their place.
    early: BTreeMap<u64, Vec<u8>>,
}

struct Thread<C> {
    core: C,
    decoder: Decoder,
    known: u32,
    sequence: u64,
    is_broken: bool,
}

/// Tells an audience what chunks hold, in the order in which they come.
pub struct Replay<'a, A: Audience> {
    audience: &'a mut A,
    processes: BTreeMap<ProcessKey, Process>,
    threads: BTreeMap<(ProcessKey, u32), Thread<A::Core>>,
    executed: u64,
}

impl<'a, A: Audience> Replay<'a, A> {
    /// Nothing has been told yet.
    pub fn new(audience: &'a mut A) -> Replay<'a, A> {
        Replay { audience, processes: BTreeMap::new(), threads: BTreeMap::new(), executed: 0 }
    }

    /// Tells what a chunk holds.
    pub fn feed(&mut self, chunk: &TraceChunk) {
        match chunk.kind {
            ChunkKind::Began => self.began(chunk),
            ChunkKind::Records => self.records(chunk),
            ChunkKind::Thread(thread) => self.thread(chunk, thread),
        }
    }

    /// A fork begins with what its parent had said.
    fn began(&mut self, chunk: &TraceChunk) {
        let mut input = Input(&chunk.payload);
        let (Some(parent), Some(bytes)) = (input.varint(), input.varint()) else { return };
        if self.processes.contains_key(&chunk.process) {
            return;
        }
        let Some(parent) = self.processes.get(&ProcessKey::from_word(parent)) else { return };
        // What the parent itself inherited ends at 0 of its own bytes.
        let shared = parent.records.iter().filter(|(end, _)| *end <= bytes);
        let shared: Vec<_> = shared.map(|(_, record)| record.clone()).collect();
        let mut process = Process::default();
        for record in shared {
            self.audience.record(chunk.process, &record);
            process.add(0, record);
        }
        self.processes.insert(chunk.process, process);
    }

    fn records(&mut self, chunk: &TraceChunk) {
        let process = self.processes.entry(chunk.process).or_default();
        process.early.insert(chunk.sequence, chunk.payload.clone());
        // A chunk may come twice, or hold more than one that came before: bytes are counted.
        while let Some((start, payload)) = process.early.pop_first() {
            if start > process.records_bytes {
                process.early.insert(start, payload);
                break;
            }
            let seen = usize::try_from(process.records_bytes - start).unwrap_or(usize::MAX);
            let mut input = Input(payload.get(seen..).unwrap_or_default());
            let all = input.0.len();
            let before = process.records_bytes;
            while let Some(record) = ProcessRecord::decode(&mut input) {
                let record = Arc::new(record);
                self.audience.record(chunk.process, &record);
                process.add(before + (all - input.0.len()) as u64, record);
            }
            process.records_bytes = before + (all - input.0.len()) as u64;
            if !input.is_empty() {
                // Damage: nothing after it can be told apart.
                process.early.clear();
                break;
            }
        }
    }

    fn thread(&mut self, chunk: &TraceChunk, number: u32) {
        let process = self.processes.entry(chunk.process).or_default();
        let audience = &mut *self.audience;
        let thread = self.threads.entry((chunk.process, number)).or_insert_with(|| Thread {
            core: audience.thread(chunk.process, number),
            decoder: Decoder::default(),
            known: 0,
            sequence: 0,
            is_broken: false,
        });
        if thread.is_broken || chunk.sequence < thread.sequence {
            return;
        }
        if chunk.sequence > thread.sequence {
            thread.is_broken = true;
            return;
        }
        thread.sequence += 1;
        let (executed, is_whole) = thread.play(&chunk.payload, &process.blocks);
        self.executed += executed;
        thread.is_broken = !is_whole;
    }

    /// Ends every thread.
    pub fn finish(self) -> Replayed {
        let mut replayed = Replayed { executed: self.executed, ..Replayed::default() };
        for ((process, number), thread) in self.threads {
            if thread.is_broken {
                replayed.broken.insert((process, number));
            }
            self.audience.ended(process, number, thread.core);
        }
        replayed
    }
}

impl Process {
    fn add(&mut self, end: u64, record: Arc<ProcessRecord>) {
        if matches!(*record, ProcessRecord::Block(_)) {
            self.blocks.push(record.clone());
        }
        self.records.push((end, record));
    }
}

impl<C: CoreListener> Thread<C> {
    /// Tells the listener what a chunk holds: how many blocks, and whether all of it made sense.
    fn play(&mut self, payload: &[u8], blocks: &[Arc<ProcessRecord>]) -> (u64, bool) {
        let mut input = Input(payload);
        let mut executed = 0;
        while !input.is_empty() {
            let Some(event) = self.decoder.next(&mut input, blocks.len() as u32) else {
                return (executed, false);
            };
            match event {
                Event::Executed { id, ran, accesses } => {
                    while self.known <= id.0 {
                        introduce(&mut self.core, self.known, blocks);
                        self.known += 1;
                    }
                    let len = block_len(blocks, id);
                    // More instructions than the block has, or accesses by others, are damage.
                    let ran = ran.unwrap_or(len);
                    if ran > len || accesses.iter().any(|access| access.instruction >= len) {
                        return (executed, false);
                    }
                    self.core.executed(id, ran, accesses);
                    executed += 1;
                }
                Event::Continued { id, accesses } => {
                    let len = block_len(blocks, id);
                    if self.known <= id.0 || accesses.iter().any(|access| access.instruction >= len)
                    {
                        return (executed, false);
                    }
                    self.core.continued(id, accesses);
                }
                Event::Interrupted => self.core.interrupted(),
                Event::SystemCall(number) => self.core.system_call(number),
            }
        }
        (executed, true)
    }
}

fn introduce(core: &mut impl CoreListener, number: u32, blocks: &[Arc<ProcessRecord>]) {
    if let Some(ProcessRecord::Block(block)) = blocks.get(number as usize).map(Arc::as_ref) {
        core.translated(BlockId(number), block);
    }
}

fn block_len(blocks: &[Arc<ProcessRecord>], id: BlockId) -> u16 {
    match blocks.get(id.0 as usize).map(Arc::as_ref) {
        Some(ProcessRecord::Block(block)) => block.instructions.len() as u16,
        _ => 0,
    }
}

/// What a process had not written to the trace when it ended, as chunks.
pub fn leftovers(file: &ProcessFile) -> Vec<TraceChunk> {
    let process = file.key;
    let mut chunks = Vec::new();
    if let Some((parent, bytes)) = file.inherited {
        // Again: a child may die before it says whom it was forked from.
        let mut payload = Vec::new();
        crate::varint::put(&mut payload, parent.to_word());
        crate::varint::put(&mut payload, bytes);
        chunks.push(TraceChunk { kind: ChunkKind::Began, process, sequence: 0, payload });
    }
    let written = usize::try_from(file.traced_records_bytes).unwrap_or(usize::MAX);
    if let Some(rest) = file.records.get(written..).filter(|rest| !rest.is_empty()) {
        let sequence = file.traced_records_bytes;
        chunks.push(TraceChunk {
            kind: ChunkKind::Records,
            process,
            sequence,
            payload: rest.into(),
        });
    }
    chunks.extend(file.tails.iter().map(|tail| TraceChunk {
        kind: ChunkKind::Thread(tail.thread),
        process,
        sequence: u64::from(tail.sequence),
        payload: tail.bytes.clone(),
    }));
    chunks
}
