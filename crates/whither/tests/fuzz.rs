//! Bytes from outside, bent in every way: no parser panics, and none invents what is not there.
//!
//! Seeded, so that a failure repeats; WHITHER_FUZZ_ROUNDS raises the number of rounds.
#![allow(clippy::unwrap_used, reason = "a test may end here")]

use collect::KernelLayout;
use perf::parse_record;
use pmu::{EventTable, parse_events};
use vocab::Pc;

fn rounds() -> u64 {
    std::env::var("WHITHER_FUZZ_ROUNDS").ok().and_then(|n| n.parse().ok()).unwrap_or(2000)
}

/// A small generator of our own: the same bytes on every machine, for ever.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound.max(1) as u64) as usize
    }

    /// Flips, cuts, repeats or inserts, a few times over.
    fn bend(&mut self, seed: &[u8]) -> Vec<u8> {
        let mut bytes = seed.to_vec();
        for _ in 0..1 + self.below(6) {
            let at = self.below(bytes.len());
            match self.below(4) {
                0 if !bytes.is_empty() => bytes[at] = self.next() as u8,
                1 => bytes.truncate(at),
                2 => bytes.insert(at, self.next() as u8),
                _ => {
                    let from = self.below(bytes.len());
                    let piece =
                        bytes.get(from..(from + 9).min(bytes.len())).unwrap_or(&[]).to_vec();
                    bytes.splice(at..at, piece);
                }
            }
        }
        bytes
    }
}

#[test]
fn ring_records() {
    let mut random = Random(1);
    // An MMAP2 record with a build-id, and a sample.
    let mut mmap = vec![10, 0, 0, 0, 2, 64, 104, 0];
    mmap.extend([7; 96]);
    let mut sample = vec![9, 0, 0, 0, 2, 0, 40, 0];
    sample.extend([3; 32]);
    for round in 0..rounds() * 10 {
        let bent = random.bend(if round % 2 == 0 { &mmap } else { &sample });
        if parse_record(&bent).is_some() {
            // A record is never read beyond what was given.
            let claimed = u16::from_ne_bytes([bent[6], bent[7]]);
            assert!(usize::from(claimed) <= bent.len());
        }
    }
}

#[test]
fn the_kernels_lists() {
    let mut random = Random(2);
    let kallsyms = b"ffffffff81000000 T _text\nffffffff81000040 t x\nffffffff82000000 B _end\n";
    let modules =
        b"ext4 4096 1 - Live 0xffffffffc0000000\nxfs 81920 2 ext4, Live 0xffffffffc0100000\n";
    for _ in 0..rounds() {
        let (symbols, modules) = (random.bend(kallsyms), random.bend(modules));
        let layout = KernelLayout::parse(
            &String::from_utf8_lossy(&symbols),
            &String::from_utf8_lossy(&modules),
        );
        for pc in [0, 0xffff_ffff_8100_0010, 0xffff_ffff_c000_0010, u64::MAX, random.next()] {
            if let Some((image, offset)) = layout.find(Pc(pc)) {
                assert!(offset.0 <= pc && !image.path.is_empty());
            }
        }
    }
}

#[test]
fn event_tables_and_spellings() {
    let mut random = Random(3);
    let table = EventTable::embedded().unwrap();
    let text = b"source = 'x'\n[[event]]\nname = 'a'\nkind = 'software'\ncode = 1\ncounts = 'c'\n";
    for _ in 0..rounds() {
        let bent = random.bend(text);
        let bent = String::from_utf8_lossy(&bent);
        if let Err(error) = EventTable::parse("bent.toml", &bent) {
            assert!(error.to_string().starts_with("bent.toml: "));
        }
        let spelling = random.bend(b"cycles:u,instructions,r01c2:k,LLC-loads");
        let _ = parse_events(&table, &String::from_utf8_lossy(&spelling));
    }
}
