//! Events that depend on the code alone: one instruction of each kind a round.

use super::Kernel;
use crate::event::Event;
use crate::testing::*;

/// mulsd xmm0,xmm0
const MULSD: &[u8] = &[0xf2, 0x0f, 0x59, 0xc0];
/// vfmadd231pd ymm0,ymm1,ymm2: four elements, two operations each
const FMA: &[u8] = &[0xc4, 0xe2, 0xf5, 0xb8, 0xc2];
/// divsd xmm0,xmm0
const DIVSD: &[u8] = &[0xf2, 0x0f, 0x5e, 0xc0];
/// pshufd xmm0,xmm0,0x1b
const PSHUFD: &[u8] = &[0x66, 0x0f, 0x70, 0xc0, 0x1b];
/// fadd st,st(1)
const FADD: &[u8] = &[0xd8, 0xc1];
/// lock add [rdi],eax: load, locked addition, store
const LOCK_ADD: &[u8] = &[0xf0, 0x01, 0x07];
const MFENCE: &[u8] = &[0x0f, 0xae, 0xf0];
const CPUID: &[u8] = &[0x0f, 0xa2];
/// A byte that is no instruction in 64-bit code.
const UNKNOWN: &[u8] = &[0x06];
/// xor eax,eax
const CLEAR: &[u8] = &[0x31, 0xc0];
/// mov rdx,rbx
const COPY: &[u8] = &[0x48, 0x89, 0xda];
/// cmp rax,rbx
const CMP: &[u8] = &[0x48, 0x39, 0xd8];

pub(super) fn kernels() -> Vec<Kernel> {
    vec![
        // Nine instructions, one of each kind. Flops: 1 + 1 + 4 * 2 + 1 + 1 (x87).
        Kernel {
            name: "one arithmetic instruction of each kind",
            facts: &[],
            blocks: vec![block(
                0x1000,
                &[IMUL_RAX_RAX, DIV_EBX, ADDSD, MULSD, FMA, DIVSD, PSHUFD, FADD, ADD_RAX_RAX],
            )],
            round: |_| vec![(0, vec![])],
            rounds: 500,
            counts: vec![
                (Event::Instructions, 9.0),
                (Event::Multiplies, 1.0),
                (Event::Divides, 1.0),
                (Event::FpAdds, 1.0),
                (Event::FpMultiplies, 1.0),
                (Event::Fmas, 1.0),
                (Event::FpDivides, 1.0),
                (Event::Shuffles, 1.0),
                (Event::X87, 1.0),
                (Event::IntegerIssues, 3.0),
                (Event::VectorIssues, 6.0),
                (Event::VectorInstructions, 5.0),
                (Event::Flops, 12.0),
            ],
        },
        // add: a micro-op in a slot, on a port. Store: two in one slot, both on ports. Load: one.
        // xor and mov of registers: a slot each and no port. cmp with its branch: two micro-ops in
        // one slot, one of them on a port.
        Kernel {
            name: "slots and ports",
            facts: &[],
            blocks: vec![block(0x1000, &[ADD_RAX_RAX, LOAD, STORE_RAX, CLEAR, COPY, CMP, JNE])],
            round: |_| vec![(0, vec![load(1, 0x8000), store(2, 0x9000)])],
            rounds: 500,
            counts: vec![
                (Event::Uops, 8.0),
                (Event::Slots, 6.0),
                (Event::Issues, 5.0),
                (Event::IntegerIssues, 1.0),
                (Event::BranchIssues, 1.0),
                (Event::LoadIssues, 1.0),
                (Event::StoreIssues, 2.0),
                (Event::Eliminated, 3.0),
                (Event::FusedPairs, 1.0),
                (Event::Loads, 1.0),
                (Event::Stores, 1.0),
                (Event::Branches, 1.0),
                (Event::ConditionalBranches, 1.0),
            ],
        },
        Kernel {
            name: "rare instructions",
            facts: &[],
            blocks: vec![block(0x1000, &[LOCK_ADD, MFENCE, CPUID, UNKNOWN])],
            round: |_| vec![(0, vec![load(0, 0x8000), store(0, 0x8000)])],
            rounds: 200,
            counts: vec![
                (Event::Atomics, 1.0),
                (Event::Fences, 2.0),
                (Event::Microcoded, 2.0),
                (Event::Unknown, 1.0),
            ],
        },
    ]
}
