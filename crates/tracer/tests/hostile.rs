//! Damaged results and traces never bring the reader down. No engine is needed.

#![allow(clippy::unwrap_used, reason = "a failure here is the test failing")]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use model::stream::{Access, BlockId, Code, CoreListener, StaticBlock};
use tracer::counts::counts;
use tracer::record::{ImageMap, ProcessRecord};
use tracer::results::{RecordLog, ResultsFile, Started, read};
use tracer::stream::{InstructionStream, Recorded};
use tracer::tally::Tally;
use tracer::trace::{Audience, ChunkKind, FILE_HEADER, TraceChunk};

/// A small generator with a fixed seed.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit.max(1)
    }
}

fn rounds() -> usize {
    let asked = std::env::var("WHITHER_FUZZ_ROUNDS").ok().and_then(|text| text.parse().ok());
    asked.unwrap_or(300)
}

fn directory(name: &str) -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&dir);
    fs::create_dir_all(&dir).unwrap();
    dir
}

fn block(pc: u64) -> StaticBlock {
    let code = |pc| Code { pc, bytes: [0x90, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], len: 1 };
    StaticBlock { instructions: [code(pc), code(pc + 1)].into() }
}

fn records() -> Vec<u8> {
    let mut out = Vec::new();
    let map = ImageMap { start: 0, end: 0x9000, file_offset: 0, path: "/x".into() };
    ProcessRecord::Mapped(map).encode(&mut out);
    for number in 0..20 {
        ProcessRecord::Block(block(number * 16)).encode(&mut out);
    }
    out
}

fn thread(numbers: &mut Numbers) -> Vec<u8> {
    let mut encoder = tracer::trace::Encoder::default();
    let mut out = Vec::new();
    for turn in 0..200u64 {
        let touch = |slot| Access {
            address: turn * 8 + slot * 4096,
            instruction: slot as u16,
            size: 8,
            is_store: slot == 1,
        };
        let touched: Vec<_> = (0..numbers.below(3) as u64).map(touch).collect();
        encoder.executed(BlockId(numbers.below(20) as u32), 2, true, &touched, &mut out);
        if numbers.below(30) == 0 {
            encoder.continued(&touched, &mut out);
            encoder.system_call(1, &mut out);
        }
    }
    out
}

/// Checks what every listener may rely on, whatever the trace holds.
#[derive(Default)]
struct Strict {
    known: u32,
}

impl CoreListener for Strict {
    fn translated(&mut self, id: BlockId, block: &StaticBlock) {
        assert_eq!(id.0, self.known, "blocks come in order");
        assert!(!block.instructions.is_empty());
        self.known += 1;
    }

    fn executed(&mut self, id: BlockId, _: u16, _: &[Access]) {
        assert!(id.0 < self.known, "a block is known before it runs");
    }

    fn continued(&mut self, id: BlockId, _: &[Access]) {
        assert!(id.0 < self.known);
    }
}

#[derive(Default)]
struct Everyone(u64);

impl Audience for Everyone {
    type Core = Strict;

    fn thread(&mut self, _: tracer::results::ProcessKey, _: u32) -> Strict {
        Strict::default()
    }

    fn ended(&mut self, _: tracer::results::ProcessKey, _: u32, _: Strict) {
        self.0 += 1;
    }
}

/// A trace with two processes, the second forked from the first.
fn trace(numbers: &mut Numbers, mutate: &mut dyn FnMut(&mut Numbers, &mut Vec<u8>)) -> Vec<u8> {
    let key = |pid| tracer::results::ProcessKey { pid, sequence: 0 };
    let records = records();
    let mut began = Vec::new();
    tracer::varint::put(&mut began, key(1).to_word());
    tracer::varint::put(&mut began, records.len() as u64);
    let chunks = [
        (ChunkKind::Records, 1, 0, records.clone()),
        (ChunkKind::Thread(0), 1, 0, thread(numbers)),
        (ChunkKind::Began, 2, 0, began),
        (ChunkKind::Thread(0), 2, 0, thread(numbers)),
        (ChunkKind::Thread(1), 1, 0, thread(numbers)),
        (ChunkKind::Thread(0), 2, 1, thread(numbers)),
    ];
    let mut bytes = FILE_HEADER.to_vec();
    for (kind, pid, sequence, mut payload) in chunks {
        mutate(numbers, &mut payload);
        bytes.extend(TraceChunk { kind, process: key(pid), sequence, payload }.encode());
    }
    bytes
}

fn damage(numbers: &mut Numbers, bytes: &mut Vec<u8>) {
    for _ in 0..=numbers.below(3) {
        let at = numbers.below(bytes.len());
        match (numbers.below(4), bytes.get_mut(at)) {
            (0, Some(byte)) => *byte ^= 1 << numbers.below(8),
            (1, Some(byte)) => *byte = 0xff,
            (2, _) => bytes.truncate(at),
            (_, Some(_)) => drop(bytes.remove(at)),
            (_, None) => bytes.push(0x80),
        }
    }
}

fn play(path: &Path, bytes: &[u8]) -> (tracer::trace::Replayed, u64) {
    fs::write(path, bytes).unwrap();
    let mut everyone = Everyone::default();
    let (replayed, ()) = Recorded { path: path.into() }.play(&mut everyone).unwrap();
    (replayed, everyone.0)
}

#[test]
fn a_trace_with_sound_checksums_and_senseless_payloads_is_survived() {
    let dir = directory("payloads");
    let path = dir.join("t");
    let mut numbers = Numbers(1);
    let (whole, threads) = play(&path, &trace(&mut numbers, &mut |_, _| {}));
    // The second process's second chunk begins with a fresh encoder, so it may or may not make sense.
    assert_eq!(threads, 3);
    assert!(whole.executed >= 600);
    let mut broken = 0;
    for _ in 0..rounds() {
        let bytes = trace(&mut numbers, &mut |numbers, payload| {
            if numbers.below(2) == 0 {
                damage(numbers, payload);
            }
        });
        broken += play(&path, &bytes).0.broken.len();
    }
    assert!(broken > 0);
    fs::remove_dir_all(dir).unwrap();
}

#[test]
fn a_trace_with_damaged_bytes_is_survived() {
    let dir = directory("bytes");
    let path = dir.join("t");
    let mut numbers = Numbers(2);
    let mut skipped = 0;
    for _ in 0..rounds() {
        let mut bytes = trace(&mut numbers, &mut |_, _| {});
        let mut rest = bytes.split_off(FILE_HEADER.len());
        damage(&mut numbers, &mut rest);
        bytes.extend(rest);
        skipped += play(&path, &bytes).0.skipped_bytes;
    }
    assert!(skipped > 0);
    fs::remove_dir_all(dir).unwrap();
}

#[test]
fn damaged_results_are_survived() {
    let dir = directory("results");
    let file = Arc::new(ResultsFile::create(&dir, 9, Started::default()).unwrap());
    let mut log = RecordLog::default();
    for number in 0..2000 {
        log.append(&file, &ProcessRecord::Block(block(number * 16)));
    }
    let mut tally = Tally::new(Arc::new(Mutex::new(file.clone())), 0);
    for number in 0..2000u32 {
        tally.translated(BlockId(number), &block(u64::from(number) * 16));
        tally.executed(BlockId(number), 2, &[]);
        tally.executed(BlockId(number), 1, &[]);
    }
    let path = dir.join(file.key().file_name());
    let whole = read(&path).unwrap();
    let all = [(whole.key, whole)].into();
    let totals = counts(&all)[0].totals();
    assert_eq!(totals.instructions, 2000 * 3);
    assert_eq!(counts(&all)[0].instructions().len(), 4000);
    // The file is sparse and long; its used part is what damage can hit.
    let used = 600 << 10;
    let mut numbers = Numbers(3);
    let clean = {
        let mut start = vec![0; used];
        use std::os::unix::fs::FileExt;
        fs::File::open(&path).unwrap().read_exact_at(&mut start, 0).unwrap();
        start
    };
    let damaged = dir.join("damaged.results");
    for _ in 0..rounds() / 10 {
        let mut bytes = clean.clone();
        for _ in 0..20 {
            // Half of the damage goes to the header, where the sizes are.
            let limit = if numbers.below(2) == 0 { 80 } else { bytes.len() };
            let at = numbers.below(limit).max(8);
            bytes[at] ^= 1 << numbers.below(8);
        }
        fs::write(&damaged, &bytes).unwrap();
        let found = read(&damaged).unwrap();
        let _ = counts(&[(found.key, found)].into())[0].instructions();
    }
    fs::write(&damaged, b"short").unwrap();
    assert!(read(&damaged).is_err());
    fs::remove_dir_all(dir).unwrap();
}
