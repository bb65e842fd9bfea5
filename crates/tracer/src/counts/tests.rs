//! Placing, inheriting and adding up.

use super::*;
use crate::record::ImageMap;

fn block(pc: u64) -> ProcessRecord {
    let code = |pc| Code { pc, bytes: [0x90, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], len: 1 };
    ProcessRecord::Block(StaticBlock { instructions: [code(pc), code(pc + 1)].into() })
}

fn mapped(start: u64, end: u64, file_offset: u64, path: &str) -> ProcessRecord {
    ProcessRecord::Mapped(ImageMap { start, end, file_offset, path: path.into() })
}

fn file(pid: u32, inherited: Option<(u32, u64)>, records: &[ProcessRecord]) -> ProcessFile {
    let mut bytes = Vec::new();
    records.iter().for_each(|record| record.encode(&mut bytes));
    ProcessFile {
        key: ProcessKey { pid, sequence: 0 },
        inherited: inherited.map(|(pid, bytes)| (ProcessKey { pid, sequence: 0 }, bytes)),
        records: bytes,
        threads: BTreeMap::new(),
        tails: Vec::new(),
        modelled: BTreeMap::new(),
        published: BTreeMap::new(),
        counts_accesses: true,
        traced_records_bytes: 0,
        trace_chunks_lost: 0,
        refused: 0,
    }
}

#[test]
fn a_block_belongs_to_the_image_that_was_there_when_it_was_recorded() {
    let records = [
        mapped(0x1000, 0x5000, 0x100, "/a"),
        block(0x2000),
        ProcessRecord::Unmapped { start: 0x2000, end: 0x3000 },
        block(0x2000),
        block(0x3000),
        mapped(0x2000, 0x4000, 0, "/b"),
        block(0x3000),
        block(0x1fff),
        block(0x4000),
    ];
    let file = file(1, None, &records);
    let all = BTreeMap::from([(file.key, file)]);
    let counts = &counts(&all)[0];
    let places: Vec<_> = counts
        .blocks
        .iter()
        .map(|block| {
            block.place.map(|place| (counts.images[place.image as usize].as_str(), place.offset))
        })
        .collect();
    assert_eq!(
        places,
        [
            Some(("/a", 0x1100)),
            None,
            Some(("/a", 0x2100)),
            Some(("/b", 0x1000)),
            Some(("/a", 0x10ff)),
            Some(("/a", 0x3100))
        ]
    );
}

#[test]
fn a_fork_shares_the_records_up_to_it_and_a_circle_of_forks_ends() {
    let first = [block(1), block(2)];
    let mut len = Vec::new();
    first[0].encode(&mut len);
    let parent = file(1, None, &first);
    let child = file(2, Some((1, len.len() as u64)), &[block(3)]);
    let grandchild = file(3, Some((2, 0)), &[]);
    let circle = file(4, Some((4, 9)), &[block(4)]);
    let all = BTreeMap::from([parent, child, grandchild, circle].map(|file| (file.key, file)));
    let of = |pid| records(&all, ProcessKey { pid, sequence: 0 });
    assert_eq!(of(1), first);
    assert_eq!(of(2), [block(1), block(3)]);
    assert_eq!(of(3), [block(1)]);
    assert!(of(4).len() <= 5);
}

#[test]
fn overlapping_blocks_and_partial_runs_add_up_per_instruction() {
    use crate::results::Partial;
    let mut file = file(1, None, &[block(0x10), block(0x11)]);
    let run = |runs| BlockTally { runs, taken: 0, not_taken: 0, loads: 2, stores: 1 };
    let partial = Partial { block: 0, ran: 1, times: 5, loads: 1, stores: 0 };
    let tally = ThreadTally { blocks: [(0, run(10)), (1, run(3))].into(), partials: vec![partial] };
    file.threads = BTreeMap::from([(0, tally.clone()), (1, tally)]);
    let all = BTreeMap::from([(file.key, file)]);
    let counts = &counts(&all)[0];
    let by_pc: Vec<_> =
        counts.instructions().iter().map(|(spot, count)| (spot.pc, *count)).collect();
    assert_eq!(by_pc, [(0x10, 30), (0x11, 26), (0x12, 6)]);
    let totals = counts.totals();
    assert_eq!(totals.instructions, 62);
    assert_eq!((totals.loads, totals.stores), (Some(10), Some(4)));
}
