//! A kernel for every event: a small program of which the count is known in closed form.
//!
//! ```text
//! a round     what is repeated: blocks that run, with the memory they touch
//! count       of 2n rounds less that of n, so that a cold start cancels
//! expected    n times the closed form, which stands beside the kernel
//! ```
//!
//! Both cores run every kernel. An event without one fails the test.

mod branches;
mod code;
mod data;
mod stalls;

use crate::core::{Accounting, Settings};
use crate::event::{Counts, Event};
use crate::fast::FastCore;
use crate::machine::Machine;
use crate::reference::ReferenceCore;
use crate::stream::{Access, BlockId, CoreListener, StaticBlock};
use crate::testing::{block, machine, translate};

/// How far a count may be from its closed form.
const TOLERANCE: f64 = 0.01;

/// A block that ran whole, with what it touched.
type Step = (u32, Vec<Access>);

/// A program whose counts are known.
struct Kernel {
    name: &'static str,
    /// Facts of the machine that differ from zen4's, besides `STILL`.
    facts: &'static [(&'static str, &'static str)],
    blocks: Vec<StaticBlock>,
    /// What the k-th round runs.
    round: fn(u64) -> Vec<Step>,
    rounds: u64,
    /// What a round counts.
    counts: Vec<(Event, f64)>,
}

/// No guesses and one page for all: what a kernel does not ask for stays out of its counts. Small
/// caches are soon full: 64 lines of code, 64 of data, 1024 and 4096 of both.
const STILL: [(&str, &str); 12] = [
    ("prefetch.l1_next_line", "false"),
    ("prefetch.code_next_line", "false"),
    ("prefetch.l1_stride", "false"),
    ("prefetch.l2_stream", "false"),
    ("tlbs.page_bytes", "1073741824"),
    ("caches.l1i.size_kib", "4"),
    ("caches.l1d.size_kib", "4"),
    ("caches.l2.size_kib", "64"),
    ("caches.l3.size_kib", "256"),
    ("branch.table_entries", "64"),
    ("branch.base_entries", "64"),
    ("front.uop_cache_uops", "972"),
];

/// Jumps from one place to the next, `apart` bytes each, and from the last to the first.
fn jumps(count: u64, apart: u64) -> Vec<StaticBlock> {
    (0..count)
        .map(|k| {
            let (pc, to) = (0x10000 + apart * k, 0x10000 + apart * ((k + 1) % count));
            let mut text = vec![0xe9];
            text.extend((to.wrapping_sub(pc + 5) as u32).to_le_bytes());
            block(pc, &[&text])
        })
        .collect()
}

fn kernels() -> Vec<Kernel> {
    [code::kernels(), branches::kernels(), data::kernels(), stalls::kernels()].concat()
}

impl Clone for Kernel {
    fn clone(&self) -> Kernel {
        Kernel { blocks: self.blocks.clone(), counts: self.counts.clone(), ..*self }
    }
}

fn drive<C: CoreListener + Accounting>(mut core: C, kernel: &Kernel, rounds: u64) -> Counts {
    translate(&mut core, &kernel.blocks);
    for k in 0..rounds {
        for (id, accesses) in (kernel.round)(k) {
            let count = kernel.blocks[id as usize].instructions.len() as u16;
            core.executed(BlockId(id), count, &accesses);
        }
    }
    core.settle_all();
    core.counts()
}

/// What so many rounds count once everything is warm.
fn counted<C: CoreListener + Accounting>(make: impl Fn() -> C, kernel: &Kernel) -> Counts {
    let half = drive(make(), kernel, kernel.rounds);
    drive(make(), kernel, 2 * kernel.rounds).since(&half)
}

/// The sentences about counts that are off.
fn off(core: &str, kernel: &Kernel, counts: &Counts) -> Vec<String> {
    let judged = kernel.counts.iter().filter_map(|&(event, each)| {
        let expected = each * kernel.rounds as f64;
        let count = counts[event] as f64;
        let is_off = (count - expected).abs() > TOLERANCE * expected;
        is_off.then(|| {
            let (name, event) = (kernel.name, event.name());
            format!("{name}, {core}: {event} is {count}, closed form {expected}")
        })
    });
    judged.collect()
}

#[test]
fn both_cores_count_every_kernel_within_a_hundredth_of_its_closed_form() {
    let mut wrong = Vec::new();
    for kernel in kernels() {
        let facts: Vec<_> = STILL.iter().chain(kernel.facts).copied().collect();
        let machine: Machine = machine("zen4", &facts);
        let fast = counted(|| FastCore::new(&machine, Settings::default()), &kernel);
        let slow = counted(|| ReferenceCore::new(&machine, Settings::default()), &kernel);
        wrong.extend(off("fast", &kernel, &fast));
        wrong.extend(off("reference", &kernel, &slow));
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn every_event_has_a_kernel_that_makes_it_happen() {
    let all = kernels();
    let has_kernel = |event: Event| {
        all.iter().any(|kernel| kernel.counts.iter().any(|&(e, each)| e == event && each > 0.0))
    };
    let without: Vec<&str> =
        Event::ALL.iter().filter(|&&event| !has_kernel(event)).map(|event| event.name()).collect();
    assert!(without.is_empty(), "events without a kernel: {}", without.join(", "));
}
