//! Branches by kind, and what is predicted wrong.

use super::{Kernel, jumps};
use crate::event::Event;
use crate::testing::*;

/// jmp rax
const JMP_RAX: &[u8] = &[0xff, 0xe0];
const RET: &[u8] = &[0xc3];

/// A jump of two bytes to an address near by.
fn jump(from: u64, to: u64) -> [u8; 2] {
    [0xeb, to.wrapping_sub(from + 2) as u8]
}

pub(super) fn kernels() -> Vec<Kernel> {
    // 0x1000 call 0x1020; 0x1005 jmp 0x1010; 0x1010 jmp rax (to 0x1000); 0x1020 ret
    let kinds = vec![
        block(0x1000, &[&[0xe8, 0x1b, 0, 0, 0]]),
        block(0x1020, &[RET]),
        block(0x1005, &[&jump(0x1005, 0x1010)]),
        block(0x1010, &[JMP_RAX]),
    ];
    // 0x1000 jne 0x1012; 0x1002 jmp 0x1000; 0x1012 jmp 0x1000
    let fork = vec![
        block(0x1000, &[JNE]),
        block(0x1002, &[&jump(0x1002, 0x1000)]),
        block(0x1012, &[&jump(0x1012, 0x1000)]),
    ];
    // 0x1000 jmp rax, to 0x1010 and 0x1020 in turn, each jumping back
    let two_targets = vec![
        block(0x1000, &[JMP_RAX]),
        block(0x1010, &[&jump(0x1010, 0x1000)]),
        block(0x1020, &[&jump(0x1020, 0x1000)]),
    ];
    vec![
        Kernel {
            name: "one branch of each kind",
            facts: &[],
            blocks: kinds,
            round: |_| {
                vec![
                    (0, vec![store(0, 0x8000)]),
                    (1, vec![load(0, 0x8000)]),
                    (2, vec![]),
                    (3, vec![]),
                ]
            },
            rounds: 400,
            counts: vec![
                (Event::Branches, 4.0),
                (Event::Calls, 1.0),
                (Event::Returns, 1.0),
                (Event::DirectJumps, 1.0),
                (Event::IndirectBranches, 1.0),
                (Event::TakenBranches, 4.0),
            ],
        },
        // Two bits a branch, taken twice and then not twice: 0 wrong, 1 wrong, 2 wrong, 1 right.
        Kernel {
            name: "two ways twice each, on a counter of two bits",
            facts: &[("branch.direction", "bimodal")],
            blocks: fork,
            round: |k| vec![(0, vec![]), (if k % 4 < 2 { 2 } else { 1 }, vec![])],
            rounds: 2000,
            counts: vec![(Event::DirectionMisses, 0.75), (Event::BranchMisses, 0.75)],
        },
        // The target buffer holds the last target, and the next is always the other.
        Kernel {
            name: "two targets in turn, on the target buffer alone",
            facts: &[("branch.indirect_entries", "0")],
            blocks: two_targets,
            round: |k| vec![(0, vec![]), (1 + (k % 2) as u32, vec![])],
            rounds: 400,
            counts: vec![(Event::TargetMisses, 1.0), (Event::BranchMisses, 1.0)],
        },
        // Nothing was called, so the return stack has no answer.
        Kernel {
            name: "returns without a call",
            facts: &[],
            blocks: vec![block(0x1000, &[RET])],
            round: |_| vec![(0, vec![load(0, 0x8000)])],
            rounds: 400,
            counts: vec![(Event::ReturnMisses, 1.0), (Event::BranchMisses, 1.0)],
        },
        // 64 jumps in turn through a target buffer of 16: the oldest is forgotten each time.
        Kernel {
            name: "more jumps than targets held",
            facts: &[("branch.btb_entries", "16"), ("branch.btb_ways", "16")],
            blocks: jumps(64, 64),
            round: |k| vec![((k % 64) as u32, vec![])],
            rounds: 1280,
            counts: vec![(Event::Resteers, 1.0)],
        },
        // 256 lines of code in turn: more than the first level's 64 and the 108 lines that are held
        // decoded, less than the second level's 1024. Each is asked of the second level once.
        Kernel {
            name: "code beyond the first level",
            facts: &[],
            blocks: jumps(256, 64),
            round: |k| vec![((k % 256) as u32, vec![])],
            rounds: 1024,
            counts: vec![
                (Event::L1iMisses, 1.0),
                (Event::UopCacheMisses, 1.0),
                (Event::L2Code, 1.0),
            ],
        },
        // The same with caches too small for it: every line comes from memory.
        Kernel {
            name: "code beyond the last level",
            facts: &[("caches.l2.size_kib", "8"), ("caches.l3.size_kib", "8")],
            blocks: jumps(256, 64),
            round: |k| vec![((k % 256) as u32, vec![])],
            rounds: 1024,
            counts: vec![(Event::L2CodeMisses, 1.0), (Event::L3CodeMisses, 1.0)],
        },
        // A jump a page: 256 pages through 64 and 128 translations.
        Kernel {
            name: "code in more pages than are translated",
            facts: &[("tlbs.page_bytes", "4096"), ("tlbs.l2i.entries", "128")],
            blocks: jumps(256, 4096 + 64),
            round: |k| vec![((k % 256) as u32, vec![])],
            rounds: 1024,
            counts: vec![(Event::ItlbMisses, 1.0), (Event::ItlbWalks, 1.0)],
        },
    ]
}
