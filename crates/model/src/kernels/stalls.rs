//! Cycles, and who they are charged to.
//!
//! In most of these one instruction retires a round and every round takes as long as the one thing
//! that it waits for: of a latency of n, one cycle retires and n - 1 stall.

use super::{Kernel, jumps};
use crate::cause::Cause;
use crate::event::Event;
use crate::stream::StaticBlock;
use crate::testing::*;

/// lea rax,[rax+rax*2+1]: two cycles of short integer work
const LEA: &[u8] = &[0x48, 0x8d, 0x44, 0x40, 0x01];
const MFENCE: &[u8] = &[0x0f, 0xae, 0xf0];
const JMP_RAX: &[u8] = &[0xff, 0xe0];
/// mov rax,[rsi]: spells its address otherwise than the store to [rdi]
const LOAD_RSI: &[u8] = &[0x48, 0x8b, 0x06];

/// A round of `cycles` of which one retires and the others are charged to `cause`, both ways.
fn charged(cause: Cause, cycles: f64) -> Vec<(Event, f64)> {
    let stall = cycles - 1.0;
    vec![
        (Event::Cycles, cycles),
        (Event::RetireCycles, 1.0),
        (Event::StallCycles, stall),
        (cause.exact_event(), stall),
        (cause.charged_event(), stall),
    ]
}

pub(super) fn kernels() -> Vec<Kernel> {
    let chain = |text: &[u8]| vec![block(0x1000, &[text])];
    let one = |_| vec![(0, vec![])];
    let all = [back_end(chain, one), loads(chain), front_end(), queues(chain, one)];
    all.concat()
}

/// Every target is known, however regular the addresses of the branches.
const KNOWN: &[(&str, &str)] = &[("branch.btb_entries", "131072"), ("branch.btb_ways", "16")];

type Chain = fn(&[u8]) -> Vec<StaticBlock>;
type Round = fn(u64) -> Vec<super::Step>;

fn back_end(chain: Chain, one: Round) -> Vec<Kernel> {
    let with = |name, text, cause, cycles| Kernel {
        name,
        facts: &[],
        blocks: chain(text),
        round: one,
        rounds: 2000,
        counts: charged(cause, cycles),
    };
    vec![
        // One addition a cycle, none of which stalls; six slots a cycle.
        Kernel {
            name: "a chain of additions",
            facts: &[],
            blocks: chain(ADD_RAX_RAX),
            round: one,
            rounds: 2000,
            counts: vec![
                (Event::Cycles, 1.0),
                (Event::ReferenceCycles, 1.0),
                (Event::PipelineSlots, 6.0),
                (Event::RetireCycles, 1.0),
            ],
        },
        with("a chain of address sums", LEA, Cause::Integer, 2.0),
        with("a chain of multiplications", IMUL_RAX_RAX, Cause::LongInteger, 3.0),
        with("a chain of floating-point additions", ADDSD, Cause::Float, 3.0),
        // A fence holds its port for four cycles.
        with("a row of fences", MFENCE, Cause::Other, 4.0),
    ]
}

fn loads(chain: Chain) -> Vec<Kernel> {
    vec![
        Kernel {
            name: "a chase through the first level",
            facts: &[],
            blocks: chain(CHASE),
            round: |_| vec![(0, vec![load(0, 0x8000)])],
            rounds: 2000,
            counts: charged(Cause::L1d, 4.0),
        },
        // 256 lines: beyond the first level, within the second. One miss is always under way.
        Kernel {
            name: "a chase through the second level",
            facts: &[],
            blocks: chain(CHASE),
            round: |k| vec![(0, vec![load(0, k % 256 * 64)])],
            rounds: 1024,
            counts: [charged(Cause::L2, 14.0), vec![(Event::L1dPending, 14.0)]].concat(),
        },
        Kernel {
            name: "a chase through the third level",
            facts: &[("caches.l2.size_kib", "8"), ("caches.l3.latency_cycles", "50")],
            blocks: chain(CHASE),
            round: |k| vec![(0, vec![load(0, k % 256 * 64)])],
            rounds: 1024,
            counts: charged(Cause::L3, 50.0),
        },
        Kernel {
            name: "a chase through memory",
            facts: &[
                ("caches.l2.size_kib", "8"),
                ("caches.l3.size_kib", "8"),
                ("memory.latency_cycles", "380"),
            ],
            blocks: chain(CHASE),
            round: |k| vec![(0, vec![load(0, k % 256 * 64)])],
            rounds: 1024,
            counts: charged(Cause::Memory, 380.0),
        },
        // 128 pages through 72 translations, a line of each in another set: the second level of
        // translation adds seven cycles to the first-level hit.
        Kernel {
            name: "a chase through pages",
            facts: &[("tlbs.page_bytes", "4096"), ("caches.l1d.size_kib", "32")],
            blocks: chain(CHASE),
            round: |k| vec![(0, vec![load(0, k % 128 * (4096 + 64))])],
            rounds: 1024,
            counts: charged(Cause::DataTlb, 4.0 + 7.0),
        },
        // Store data 1, forwarding 7. The load retires a cycle before the next store's data.
        Kernel {
            name: "a value through memory",
            facts: &[("window.store_forward_cycles", "7"), ("window.renamed_forward_cycles", "7")],
            blocks: vec![block(0x1000, &[STORE_RAX, LOAD_RSI])],
            round: |_| vec![(0, vec![store(0, 0x8000), load(1, 0x8000)])],
            rounds: 2000,
            counts: vec![
                (Event::Cycles, 8.0),
                (Event::RetireCycles, 2.0),
                (Event::StallForward, 6.0),
                (Event::SsbForward, 6.0),
            ],
        },
    ]
}

fn front_end() -> Vec<Kernel> {
    vec![
        // A jump through a register that is always wrong, to a jump back that is right and retires
        // with it. From fetch 8 to dispatch, 2 to issue, 1 to execute, 13 - 8 to fetch again.
        Kernel {
            name: "a jump that is always mispredicted",
            facts: &[("branch.indirect_entries", "0")],
            blocks: vec![
                block(0x1000, &[JMP_RAX]),
                block(0x1010, &[JMP_RAX]),
                block(0x1020, &[JMP_RAX]),
            ],
            // Each of the three goes to the other two in turn.
            round: |k| vec![([0, 1, 2, 0, 2, 1][(k % 6) as usize], vec![])],
            rounds: 1200,
            counts: charged(Cause::Mispredict, 8.0 + 2.0 + 1.0 + (13.0 - 8.0)),
        },
        // Jumps that the target buffer has forgotten: the decoder loses eight cycles on each.
        Kernel {
            name: "jumps put right by the decoder",
            facts: &[("branch.btb_entries", "16"), ("branch.btb_ways", "16")],
            blocks: jumps(64, 16),
            round: |k| vec![((k % 64) as u32, vec![])],
            rounds: 1280,
            counts: charged(Cause::Resteer, 8.0),
        },
        // Lines from the second level: 14 cycles less the 4 of the pipeline, and the cycle of the
        // fetch itself.
        Kernel {
            name: "a line of code a round, from the second level",
            facts: KNOWN,
            blocks: jumps(256, 64),
            round: |k| vec![((k % 256) as u32, vec![])],
            rounds: 1024,
            counts: charged(Cause::Code, 14.0 - 4.0 + 1.0),
        },
        // 256 pages through 64 translations, all lines in the first level: the second level of
        // translation takes seven cycles, the fetch one.
        Kernel {
            name: "a page of code a round",
            facts: &[
                ("branch.btb_entries", "131072"),
                ("branch.btb_ways", "16"),
                ("tlbs.page_bytes", "4096"),
                ("caches.l1i.size_kib", "32"),
            ],
            blocks: jumps(256, 4096 + 64),
            round: |k| vec![((k % 256) as u32, vec![])],
            rounds: 1024,
            counts: charged(Cause::CodeTlb, 7.0 + 1.0),
        },
        // Every taken branch costs seven cycles of fetch more than its own, and the window is empty
        // before the next arrives.
        Kernel {
            name: "taken branches with a bubble",
            facts: &[("branch.taken_bubble_cycles", "7")],
            blocks: jumps(16, 16),
            round: |k| vec![((k % 16) as u32, vec![])],
            rounds: 1024,
            counts: charged(Cause::Fetch, 8.0),
        },
    ]
}

fn queues(chain: Chain, one: Round) -> Vec<Kernel> {
    vec![
        // One store at a time, each from memory: dispatch, 2 to issue, 380 to its line. The queue
        // is full all the while, and the window empty but for the store itself.
        Kernel {
            name: "one store at a time",
            facts: &[
                ("window.store_queue", "1"),
                ("caches.l2.size_kib", "8"),
                ("caches.l3.size_kib", "8"),
                ("memory.latency_cycles", "380"),
            ],
            blocks: chain(STORE_RAX),
            round: |k| vec![(0, vec![store(0, k % 256 * 64)])],
            rounds: 600,
            counts: [charged(Cause::Store, 382.0), vec![(Event::StoreQueueFull, 382.0)]].concat(),
        },
        // A chain of three cycles each: once the resource is full, one enters when one leaves, and
        // dispatch waits for it all the time.
        Kernel {
            name: "a chain in a short reorder buffer",
            facts: &[("window.rob", "32")],
            blocks: chain(IMUL_RAX_RAX),
            round: one,
            rounds: 2000,
            counts: vec![(Event::RobFull, 3.0)],
        },
        Kernel {
            name: "a chain in a scheduler of 96",
            facts: &[],
            blocks: chain(IMUL_RAX_RAX),
            round: one,
            rounds: 2000,
            counts: vec![(Event::SchedulerFull, 3.0)],
        },
        Kernel {
            name: "a chase in a short load queue",
            facts: &[("window.load_queue", "16")],
            blocks: chain(CHASE),
            round: |_| vec![(0, vec![load(0, 0x8000)])],
            rounds: 2000,
            counts: vec![(Event::LoadQueueFull, 4.0)],
        },
    ]
}
