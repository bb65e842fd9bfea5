use metrology::Draws;

use super::*;
use crate::shotgun::{Link, Stands};
use crate::{DispatchWait, Kind, Wait, Walk};

fn labels(draws: &mut Draws) -> Labels {
    let mut small = |n: usize| draws.below(n) as u32;
    let link = Link {
        pc: u64::from(small(1 << 30)) << 20,
        back: small(900),
        runs: small(7).checked_sub(1),
        op: small(4) as u8,
    };
    Labels {
        code: small(200),
        bubble: small(3),
        stands: Stands(small(256) as u8),
        redirect: (small(2), small(20)),
        operands: small(16) as u8,
        miss: small(1 << 31),
        level: [Kind::Line, Kind::L2, Kind::L3, Kind::Memory][small(4) as usize],
        beyond: small(300),
        wait: (small(2) == 0).then_some(DispatchWait {
            from: Wait::Commit,
            distance: 64,
            label: 1,
        }),
        line: (small(2) == 0).then(|| (link, small(9))),
        forward: (small(2) == 0).then(|| (link, small(9))),
        write: (small(2) == 0).then(|| small(120)),
        walk: (small(2) == 0).then(|| Walk { cycles: small(99), waits: true, holds_up: false }),
        ..Labels::default()
    }
}

fn some() -> SampleFile {
    let mut draws = Draws::new(5);
    let signature = |k: u64, draws: &mut Draws| SignatureSample {
        start: u64::MAX - k,
        before: Surroundings(draws.bits() & Surroundings::MASK),
        bits: (0..997 + k).map(|_| Bits::from_number(draws.below(4) as u8)).collect(),
    };
    let signatures = (0..4).map(|k| signature(k, &mut draws)).collect();
    let detail = |k: u64, draws: &mut Draws| DetailedSample {
        pc: 0x40_0000 + k,
        around: Surroundings(draws.bits() & Surroundings::MASK),
        target: k.is_multiple_of(3).then_some(k << 40),
        ops: (0..k % 4 + 1).map(|_| labels(draws)).collect(),
    };
    let details = (0..40).map(|k| detail(k, &mut draws)).collect();
    let mut bytes = [0; 15];
    bytes[..2].copy_from_slice(&[0x75, 0x10]);
    let code = Code { pc: 0x40_0000, bytes, len: 2 };
    SampleFile {
        machine: "icost-table6".to_owned(),
        samples: Samples { signatures, details, instructions: 1 << 40, cut: 3, paths: Vec::new() },
        code: vec![StaticBlock { instructions: vec![code; 3].into() }],
    }
}

#[test]
fn what_was_written_is_read_back() {
    let file = some();
    assert_eq!(SampleFile::parse(&file.to_bytes()), Ok(file));
}

#[test]
fn other_files_other_versions_and_cut_ones_are_told_apart_in_a_sentence() {
    let bytes = some().to_bytes();
    let said = |bytes: &[u8]| SampleFile::parse(bytes).unwrap_err().to_string();
    assert_eq!(said(b"PERFILE2"), "it does not begin as shotgun samples do");
    let mut newer = bytes.clone();
    newer[8] = 3;
    assert_eq!(said(&newer), "its samples are of version 3, and this program reads 1 to 2");
    let cut = bytes.len() - 1;
    let sentence = said(&bytes[..cut]);
    assert!(sentence.starts_with("its samples are damaged at byte "), "{sentence}");
    let mut longer = bytes;
    longer.push(0);
    assert!(SampleFile::parse(&longer).is_err(), "what follows the end is no part of it");
}

#[test]
fn the_first_version_is_read_too() {
    let mut file = some();
    file.samples.details.iter_mut().for_each(|detail| {
        for op in &mut detail.ops {
            (op.walk, op.line, op.forward) = (None, None, None);
        }
    });
    let mut older = file.to_bytes();
    older[8] = 1;
    assert_eq!(SampleFile::parse(&older), Ok(file));
}

#[test]
fn no_bytes_make_it_panic_or_fill_the_memory() {
    let rounds = std::env::var("WHITHER_FUZZ_ROUNDS").ok().and_then(|n| n.parse().ok());
    let mut draws = Draws::new(11);
    let good = some().to_bytes();
    for _ in 0..rounds.unwrap_or(2000) {
        let mut bytes = good.clone();
        for _ in 0..1 + draws.below(8) {
            let at = draws.below(bytes.len());
            match draws.below(4) {
                0 => bytes[at] = draws.bits() as u8,
                1 => bytes.truncate(at.max(1)),
                2 => bytes.insert(at, 0xff),
                _ => bytes[at] ^= 1 << draws.below(8),
            }
        }
        if let Ok(read) = SampleFile::parse(&bytes) {
            assert_eq!(SampleFile::parse(&read.to_bytes()), Ok(read));
        }
    }
    // A count of more than there could be.
    let mut bytes = MAGIC.to_vec();
    for value in [VERSION, 0, 0, 0, u64::MAX] {
        bytes::number(&mut bytes, value);
    }
    assert_eq!(SampleFile::parse(&bytes), Err(FileError::Damaged(bytes.len())));
}
