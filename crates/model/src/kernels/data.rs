//! What loads and stores meet.

use super::Kernel;
use crate::event::Event;
use crate::stream::Access;
use crate::testing::*;

/// An arena that no cache of these kernels holds: walked in turn, every line has left before it is
/// asked for again.
const LINES: u64 = 256;

fn line(k: u64) -> u64 {
    k % LINES * 64
}

/// mov [rdi],eax
const STORE_EAX: &[u8] = &[0x89, 0x07];

/// imul rdi,rdi,1
const IMUL_RDI: &[u8] = &[0x48, 0x6b, 0xff, 1];
/// mov [rdi],rdx
const STORE_RDX: &[u8] = &[0x48, 0x89, 0x17];
/// mov ecx,[rbx+4]
const RELOAD_HALF: &[u8] = &[0x8b, 0x4b, 4];
/// imul rax,rax,1
const IMUL_RAX: &[u8] = &[0x48, 0x6b, 0xc0, 1];
/// A store's address nine cycles behind rax, a load's four, and the next rax another thirty behind.
const ROUND: [&[u8]; 16] = [
    &[0x48, 0x6b, 0xf8, 1], // imul rdi,rax,1
    &[0x48, 0x6b, 0xd8, 1], // imul rbx,rax,1, a cycle later: there is one multiplier
    IMUL_RDI,
    IMUL_RDI,
    STORE_RDX,
    RELOAD_HALF,
    &[0x48, 0x6b, 0xc7, 1], // imul rax,rdi,1
    IMUL_RAX,
    IMUL_RAX,
    IMUL_RAX,
    IMUL_RAX,
    IMUL_RAX,
    IMUL_RAX,
    IMUL_RAX,
    IMUL_RAX,
    IMUL_RAX,
];
/// Loads learn whom they depend on.
const LEARNS: &[(&str, &str)] =
    &[("window.disambiguation_entries", "256"), ("window.disambiguation_trust", "15")];

fn half(instruction: u16, address: u64) -> Access {
    Access { address, instruction, size: 4, is_store: false }
}

fn part(instruction: u16, address: u64) -> Access {
    Access { address, instruction, size: 4, is_store: true }
}

pub(super) fn kernels() -> Vec<Kernel> {
    let small = &[("caches.l2.size_kib", "8"), ("caches.l3.size_kib", "8")];
    vec![
        // Every load misses the first level (64 lines) and is found in the second (1024). In
        // steady state a line leaves for every one that comes.
        Kernel {
            name: "a load a line, from the second level",
            facts: &[],
            blocks: vec![block(0x1000, &[CHASE])],
            round: |k| vec![(0, vec![load(0, line(k))])],
            rounds: 2 * LINES,
            counts: vec![
                (Event::L1dLoadMisses, 1.0),
                (Event::L2Data, 1.0),
                (Event::EvictionsL1, 1.0),
            ],
        },
        // The same with 128 lines in the levels behind it: each comes from memory, and is asked for once
        // at every level.
        Kernel {
            name: "a load a line, from memory",
            facts: small,
            blocks: vec![block(0x1000, &[CHASE])],
            round: |k| vec![(0, vec![load(0, line(k))])],
            rounds: 2 * LINES,
            counts: vec![
                (Event::L2LoadMisses, 1.0),
                (Event::L3LoadMisses, 1.0),
                (Event::L2Misses, 1.0),
                (Event::L3Requests, 1.0),
                (Event::L3Misses, 1.0),
                (Event::MemoryReads, 1.0),
            ],
        },
        // Stores instead: every line comes from memory, is written, and leaves every level dirty.
        Kernel {
            name: "a store a line, from memory",
            facts: small,
            blocks: vec![block(0x1000, &[STORE_RAX])],
            round: |k| vec![(0, vec![store(0, line(k))])],
            rounds: 2 * LINES,
            counts: vec![
                (Event::L1dStoreMisses, 1.0),
                (Event::L2StoreMisses, 1.0),
                (Event::L3StoreMisses, 1.0),
                (Event::WritebacksL1, 1.0),
                (Event::WritebacksMemory, 1.0),
            ],
        },
        // Two loads of one line: the first misses, the second finds it on its way.
        Kernel {
            name: "two loads a line",
            facts: &[],
            blocks: vec![block(0x1000, &[LOAD, LOAD])],
            round: |k| vec![(0, vec![load(0, line(k)), load(1, line(k) + 8)])],
            rounds: 2 * LINES,
            counts: vec![(Event::L1dLoadMisses, 1.0), (Event::L1dJoins, 1.0)],
        },
        // A load and a store a page, 192 pages of each: more than both levels of translation hold.
        Kernel {
            name: "a page a round",
            facts: &[("tlbs.page_bytes", "4096"), ("tlbs.l2d.entries", "96")],
            blocks: vec![block(0x1000, &[LOAD, STORE_RAX])],
            round: |k| {
                let page = |n: u64| (n % 192) * 4096;
                vec![(0, vec![load(0, page(k)), store(1, (1 << 40) + page(k))])]
            },
            rounds: 768,
            counts: vec![
                (Event::DtlbLoadMisses, 1.0),
                (Event::DtlbLoadWalks, 1.0),
                (Event::DtlbStoreMisses, 1.0),
                (Event::DtlbStoreWalks, 1.0),
            ],
        },
        // Eight bytes from the last four of a line.
        Kernel {
            name: "accesses across a line's end",
            facts: &[],
            blocks: vec![block(0x1000, &[LOAD, STORE_RAX])],
            round: |_| vec![(0, vec![load(0, 0x803c), store(1, 0x903c)])],
            rounds: 1000,
            counts: vec![
                (Event::SplitLoads, 1.0),
                (Event::SplitStores, 1.0),
                (Event::Replays, 1.0),
            ],
        },
        // A load of what was just stored, and one of twice as much.
        Kernel {
            name: "a load after the store it needs",
            facts: &[],
            blocks: vec![block(0x1000, &[STORE_RAX, RELOAD_RAX])],
            round: |_| vec![(0, vec![store(0, 0x8000), load(1, 0x8000)])],
            rounds: 2000,
            counts: vec![(Event::Forwards, 1.0)],
        },
        Kernel {
            name: "a load after a store of half of it",
            facts: &[],
            blocks: vec![block(0x1000, &[STORE_EAX, RELOAD_RAX])],
            round: |_| vec![(0, vec![part(0, 0x8000), load(1, 0x8000)])],
            rounds: 1000,
            counts: vec![(Event::BlockedForwards, 1.0), (Event::Replays, 1.0)],
        },
        // Whether it may go ahead is learned, and here it never may: the store that it needs has its
        // address late, round after round.
        Kernel {
            name: "a load held back for the store it needs",
            facts: LEARNS,
            blocks: vec![block(0x1000, &[IMUL_RDI, STORE_RDX, RELOAD_HALF])],
            round: |_| vec![(0, vec![store(1, 0x8000), half(2, 0x8004)])],
            rounds: 2000,
            counts: vec![(Event::HeldLoads, 1.0), (Event::Forwards, 1.0), (Event::Cycles, 3.0)],
        },
        // Fifteen times it comes to no harm, is trusted, and the sixteenth time it needs the store that it
        // has overtaken. A chain from round to round, 39 cycles long, lets one retire before the next
        // may issue. What follows on that chain is dispatched again 20 cycles after the address is
        // there, one after it could have issued, and issues two later.
        Kernel {
            name: "a load trusted once too often",
            facts: LEARNS,
            blocks: vec![block(0x1000, &ROUND)],
            round: |k| {
                let to = if k % 16 == 15 { 0x8004 } else { 0x9004 };
                vec![(0, vec![store(4, 0x8000), half(5, to)])]
            },
            rounds: 1600,
            counts: vec![
                (Event::OrderingRestarts, 1.0 / 16.0),
                (Event::HeldLoads, 15.0 / 16.0),
                (Event::Replays, 1.0 / 16.0),
                (Event::Cycles, 39.0 + (20.0 + 1.0 + 2.0) / 16.0),
            ],
        },
        // Line after line, the next one guessed at every miss: the even lines miss, the odd ones
        // were guessed. A chase, so that each is there before the next is asked for.
        Kernel {
            name: "the next line guessed and used",
            facts: &[("prefetch.l1_next_line", "true")],
            blocks: vec![block(0x1000, &[CHASE])],
            round: |k| vec![(0, vec![load(0, line(k))])],
            rounds: 2 * LINES,
            counts: vec![
                (Event::PrefetchL1, 0.5),
                (Event::PrefetchHits, 0.5),
                (Event::PrefetchUseful, 0.5),
                (Event::L1dLoadMisses, 0.5),
            ],
        },
        // Every other line: what is guessed is never asked for, and leaves.
        Kernel {
            name: "the next line guessed and not used",
            facts: &[("prefetch.l1_next_line", "true")],
            blocks: vec![block(0x1000, &[CHASE])],
            round: |k| vec![(0, vec![load(0, 2 * line(k))])],
            rounds: 2 * LINES,
            counts: vec![(Event::PrefetchL1, 1.0), (Event::PrefetchUseless, 1.0)],
        },
        // Line after line of pages of 64: the third in a page shows the stream, and the 61 after
        // it are guessed, each once.
        Kernel {
            name: "a stream of lines",
            facts: &[
                ("prefetch.l2_stream", "true"),
                ("prefetch.l2_stream_crosses_pages", "false"),
                ("tlbs.page_bytes", "4096"),
                ("caches.l2.size_kib", "8"),
                ("caches.l3.size_kib", "8"),
            ],
            blocks: vec![block(0x1000, &[CHASE])],
            round: |k| vec![(0, vec![load(0, line(k))])],
            rounds: 2 * LINES,
            counts: vec![(Event::PrefetchL2, 61.0 / 64.0)],
        },
        // The same where a stream goes on in the next page: of each pass all lines but the first
        // three are guessed, and as many beyond the last as it runs ahead.
        Kernel {
            name: "a stream of lines across pages",
            facts: &[
                ("prefetch.l2_stream", "true"),
                ("prefetch.l2_stream_crosses_pages", "true"),
                ("prefetch.l2_stream_lines_max", "48"),
                ("tlbs.page_bytes", "4096"),
                ("caches.l2.size_kib", "8"),
                ("caches.l3.size_kib", "8"),
            ],
            blocks: vec![block(0x1000, &[CHASE])],
            round: |k| vec![(0, vec![load(0, line(k))])],
            rounds: 2 * LINES,
            counts: vec![(Event::PrefetchL2, (LINES as f64 - 3.0 + 48.0) / LINES as f64)],
        },
        // Two chases and one miss register: each load waits for the other's miss, 16 cycles, and
        // then takes its own 16.
        Kernel {
            name: "two chases with one miss at a time",
            facts: &[("caches.l1d.misses", "1"), ("caches.l2.latency_cycles", "16")],
            // mov rax,[rax] ; mov rcx,[rcx]
            blocks: vec![block(0x1000, &[CHASE, &[0x48, 0x8b, 0x09]])],
            round: |k| vec![(0, vec![load(0, line(2 * k)), load(1, line(2 * k + 1))])],
            rounds: 2 * LINES,
            counts: vec![(Event::MissWait, 32.0), (Event::Cycles, 32.0)],
        },
        // Four of them: three wait at any time, which is one cycle of waiting a cycle.
        Kernel {
            name: "four chases with one miss at a time",
            facts: &[("caches.l1d.misses", "1"), ("caches.l2.latency_cycles", "16")],
            // mov rax,[rax] ; mov rcx,[rcx] ; mov rdx,[rdx] ; mov rbx,[rbx]
            blocks: vec![block(
                0x1000,
                &[CHASE, &[0x48, 0x8b, 0x09], &[0x48, 0x8b, 0x12], &[0x48, 0x8b, 0x1b]],
            )],
            round: |k| vec![(0, (0..4).map(|i| load(i, line(4 * k + u64::from(i)))).collect())],
            rounds: 2 * LINES,
            counts: vec![(Event::MissWait, 64.0), (Event::Cycles, 64.0)],
        },
    ]
}
