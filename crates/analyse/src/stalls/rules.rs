//! Who may have made an instruction wait: one rule a cause.
//!
//! A sample finds the oldest instruction that has not retired. So what it waits for is either its
//! own work, or code that has not come in while the window is empty; what older instructions waited
//! for was charged to them. Each rule below says when its cause cannot have been, or how long it can
//! have lasted at most each time.

use image::{EdgeKind, Flow, FlowGraph};
use model::machine::Machine;

use crate::code::{Pieces, Work};
use crate::report::DynamicCause;

/// What a cause can have cost at most.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Bound {
    pub(crate) cause: DynamicCause,
    /// Cycles each time the instruction ran; infinite where nothing bounds them.
    pub(crate) cycles: f64,
    /// The virtual address of the instruction that is responsible.
    pub(crate) responsible: Option<u64>,
}

/// How often an event happened at each step, by what was sampled; None where it was not sampled.
#[derive(Clone, Debug, Default)]
pub(crate) struct Happened {
    pub(crate) code_misses: Option<Vec<f64>>,
    pub(crate) code_tlb_misses: Option<Vec<f64>>,
    pub(crate) data_misses: Option<Vec<f64>>,
    pub(crate) data_tlb_misses: Option<Vec<f64>>,
    pub(crate) mispredicts: Option<Vec<f64>>,
}

/// Everything that the rules look at.
#[derive(Debug)]
pub(crate) struct Scene<'a> {
    pub(crate) graph: &'a FlowGraph,
    pub(crate) pieces: &'a Pieces,
    pub(crate) machine: &'a Machine,
    /// How often each block ran and each edge was taken.
    pub(crate) blocks: &'a [f64],
    pub(crate) edges: &'a [f64],
    pub(crate) happened: &'a Happened,
    /// The edges that lead to each block.
    pub(crate) into: &'a [Vec<usize>],
}

/// An edge or block that carries less than this share of a block's runs explains nothing there.
const RARE: f64 = 0.02;

/// Where control comes from right before an instruction.
#[derive(Clone, Debug, Default)]
struct Before {
    /// Steps that may run immediately before, in this procedure.
    steps: Vec<usize>,
    /// Another procedure may have run: this is an entry, or follows a call.
    is_foreign: bool,
    /// By which edges; none where it is the step before.
    edges: Vec<usize>,
}

/// Those that cannot be ruled out for the instruction at `step`.
pub(crate) fn candidates(
    scene: &Scene<'_>,
    step: usize,
    block: usize,
    least_cycles: f64,
) -> Vec<Bound> {
    let before = before(scene, step, block);
    let work = scene.pieces.work.get(step).copied().unwrap_or_default();
    let found = [
        code_cache(scene, step, block, &before),
        code_tlb(scene, step, block, &before),
        data_cache(scene, step, block, work),
        data_tlb(scene, step, block, work),
        store_buffer(work),
        forward(scene, work),
        synchronisation(work),
        mispredict(scene, step, block, &before),
        integer_unit(scene, work),
        float_unit(scene, work),
        fetch(scene, &before),
        dependence(scene, work, least_cycles),
    ];
    let address = scene.graph.steps.get(step).map(|step| step.address);
    found
        .into_iter()
        .flatten()
        .filter(|bound| bound.cycles > 0.0)
        .map(|bound| Bound { responsible: bound.responsible.or(address), ..bound })
        .collect()
}

fn before(scene: &Scene<'_>, step: usize, block: usize) -> Before {
    let graph = scene.graph;
    let Some(held) = graph.blocks.get(block) else { return Before::default() };
    if step > held.first {
        let is_call = matches!(graph.steps[step - 1].flow, Flow::Call | Flow::IndirectCall);
        let steps = if is_call { Vec::new() } else { vec![step - 1] };
        return Before { steps, is_foreign: is_call, edges: Vec::new() };
    }
    let runs = scene.blocks.get(block).copied().unwrap_or(0.0);
    let is_frequent = |edge: usize| scene.edges.get(edge).copied().unwrap_or(0.0) >= RARE * runs;
    let into = scene.into.get(block).map_or(&[][..], Vec::as_slice);
    let edges: Vec<usize> = into.iter().copied().filter(|&k| is_frequent(k)).collect();
    let steps = edges.iter().map(|&k| graph.blocks[graph.edges[k].from].end - 1).collect();
    let inside: f64 = into.iter().filter_map(|&k| scene.edges.get(k)).sum();
    let is_entry = graph.entries.contains(&block) || graph.has_missing_edges();
    Before {
        steps,
        is_foreign: is_entry && (1.0 - RARE) * runs >= inside || edges.is_empty(),
        edges,
    }
}

/// What a counted event can have cost each time the instruction ran.
fn bounded(
    scene: &Scene<'_>,
    counts: &Option<Vec<f64>>,
    step: usize,
    block: usize,
    most: f64,
) -> f64 {
    let Some(counts) = counts else { return f64::INFINITY };
    let runs = scene.blocks.get(block).copied().unwrap_or(0.0);
    if runs <= 0.0 { f64::INFINITY } else { counts.get(step).copied().unwrap_or(0.0) * most / runs }
}

/// Code is fetched by lines: who lies in the same line as everything that runs before it was
/// fetched with it. Bound: every miss goes to memory, and empties the pipeline.
fn code_cache(scene: &Scene<'_>, step: usize, block: usize, before: &Before) -> Option<Bound> {
    let line = scene.machine.caches.l1i.line_bytes;
    if !enters_another(scene, step, before, u64::from(line)) {
        return None;
    }
    let most = f64::from(scene.machine.memory.latency_cycles) + refill(scene.machine);
    let cycles = bounded(scene, &scene.happened.code_misses, step, block, most);
    Some(Bound { cause: DynamicCause::CodeCache, cycles, responsible: None })
}

/// As for the cache, by pages. Bound: a walk whose every table comes from memory.
fn code_tlb(scene: &Scene<'_>, step: usize, block: usize, before: &Before) -> Option<Bound> {
    let page = scene.machine.tlbs.page_bytes;
    if !enters_another(scene, step, before, u64::from(page)) {
        return None;
    }
    let most = longest_walk(scene.machine) + refill(scene.machine);
    let cycles = bounded(scene, &scene.happened.code_tlb_misses, step, block, most);
    Some(Bound { cause: DynamicCause::CodeTlb, cycles, responsible: None })
}

/// Whether the instruction touches a line (or page) that the ones before it did not.
fn enters_another(scene: &Scene<'_>, step: usize, before: &Before, bytes: u64) -> bool {
    let part = |address: u64| address / bytes.max(1);
    let steps = &scene.graph.steps;
    let Some(here) = steps.get(step) else { return false };
    let last = here.next_address().wrapping_sub(1);
    let is_same = |&other: &usize| {
        steps
            .get(other)
            .is_some_and(|other| part(other.next_address().wrapping_sub(1)) == part(here.address))
    };
    before.is_foreign || part(last) != part(here.address) || !before.steps.iter().all(is_same)
}

/// Only who reads memory waits for data: an older load has retired with its data. Bound: every miss
/// goes to memory.
fn data_cache(scene: &Scene<'_>, step: usize, block: usize, work: Work) -> Option<Bound> {
    if !work.is_load {
        return None;
    }
    let most = f64::from(scene.machine.memory.latency_cycles);
    let cycles = bounded(scene, &scene.happened.data_misses, step, block, most);
    Some(Bound { cause: DynamicCause::DataCache, cycles, responsible: None })
}

/// Likewise. Bound: a walk whose every table comes from memory.
fn data_tlb(scene: &Scene<'_>, step: usize, block: usize, work: Work) -> Option<Bound> {
    if !work.is_load {
        return None;
    }
    let most = longest_walk(scene.machine);
    let cycles = bounded(scene, &scene.happened.data_tlb_misses, step, block, most);
    Some(Bound { cause: DynamicCause::DataTlb, cycles, responsible: None })
}

/// Only a store is held up by a full store buffer; what follows it is not let in either, but the
/// store is older and pays.
fn store_buffer(work: Work) -> Option<Bound> {
    let cause = DynamicCause::StoreBuffer;
    work.is_store.then_some(Bound { cause, cycles: f64::INFINITY, responsible: None })
}

/// Only a load takes its value from a store. Bound: the store's data is there when the store
/// retires, so what remains is the way through the queue.
fn forward(scene: &Scene<'_>, work: Work) -> Option<Bound> {
    let window = &scene.machine.window;
    let forwarded = window.store_forward_cycles.max(window.renamed_forward_cycles);
    // A load that the store has only part of goes to the cache once that is written.
    let blocked = scene.machine.caches.l1d.latency_cycles + window.blocked_forward_cycles;
    let cycles = f64::from(forwarded.max(blocked)) + own(scene, work);
    let cause = DynamicCause::Forward;
    work.is_load.then_some(Bound { cause, cycles, responsible: None })
}

/// Only fences, locked operations and microcode wait for the rest of the machine.
fn synchronisation(work: Work) -> Option<Bound> {
    let cause = DynamicCause::Synchronisation;
    work.is_serial.then_some(Bound { cause, cycles: f64::INFINITY, responsible: None })
}

/// Only the first instruction behind a branch that could have gone elsewhere. Bound: what a
/// mispredict costs, as often as those branches were mispredicted.
fn mispredict(scene: &Scene<'_>, step: usize, block: usize, before: &Before) -> Option<Bound> {
    let graph = scene.graph;
    let can_miss = |&edge: &usize| {
        let edge = graph.edges[edge];
        let last = graph.steps[graph.blocks[edge.from].end - 1];
        edge.kind == EdgeKind::Switch || last.flow == Flow::Branch
    };
    let branches: Vec<usize> = before.edges.iter().copied().filter(can_miss).collect();
    let is_head = graph.blocks.get(block).is_some_and(|held| held.first == step);
    if branches.is_empty() && !before.is_foreign {
        return None;
    }
    debug_assert!(is_head || before.is_foreign);
    let penalty = f64::from(scene.machine.window.mispredict_cycles) + refill(scene.machine);
    let runs = scene.blocks.get(block).copied().unwrap_or(0.0);
    let mut cycles = penalty;
    let mut responsible = None;
    if let Some(counts) = scene.happened.mispredicts.as_ref().filter(|_| !before.is_foreign) {
        let last = |&edge: &usize| graph.blocks[graph.edges[edge].from].end - 1;
        let misses: f64 = branches.iter().map(last).filter_map(|step| counts.get(step)).sum();
        cycles = if runs > 0.0 { (misses * penalty / runs).min(penalty) } else { penalty };
    }
    if let [edge] = branches[..] {
        responsible = Some(graph.steps[graph.blocks[graph.edges[edge].from].end - 1].address);
    }
    Some(Bound { cause: DynamicCause::Mispredict, cycles, responsible })
}

/// Who multiplies or divides integers waits for its own result, and for the unit that an older one
/// still holds.
fn integer_unit(scene: &Scene<'_>, work: Work) -> Option<Bound> {
    let cycles = own(scene, work) + f64::from(work.busy_cycles);
    let cause = DynamicCause::IntegerUnit;
    work.is_long_integer.then_some(Bound { cause, cycles, responsible: None })
}

/// Likewise for floating-point and vector work.
fn float_unit(scene: &Scene<'_>, work: Work) -> Option<Bound> {
    let cycles = own(scene, work) + f64::from(work.busy_cycles);
    let cause = DynamicCause::FloatUnit;
    work.is_float.then_some(Bound { cause, cycles, responsible: None })
}

/// Straight code is fetched ahead, and what that costs is in the schedule. Only where control comes
/// from elsewhere can a target be found late.
fn fetch(scene: &Scene<'_>, before: &Before) -> Option<Bound> {
    if !before.is_foreign && before.edges.is_empty() {
        return None;
    }
    let branch = &scene.machine.branch;
    let late = branch.resteer_cycles.max(branch.taken_bubble_cycles)
        + branch.call_bubble_cycles.max(branch.indirect_bubble_cycles);
    let cycles = f64::from(late) + refill(scene.machine);
    Some(Bound { cause: DynamicCause::Fetch, cycles, responsible: None })
}

/// Whatever it does takes its time if nothing hides it: its operands were there when the one before
/// it retired, so its own latency is all that is left. The schedule's part of it is no dynamic
/// stall.
fn dependence(scene: &Scene<'_>, work: Work, least_cycles: f64) -> Option<Bound> {
    let cycles = own(scene, work) - least_cycles;
    Some(Bound { cause: DynamicCause::Dependence, cycles, responsible: None })
}

/// Cycles from the retirement of the instruction before to its own, if nothing goes wrong and
/// nothing is hidden.
fn own(scene: &Scene<'_>, work: Work) -> f64 {
    let wakeup = scene.machine.window.wakeup_cycles.saturating_sub(1);
    f64::from(work.latency_cycles + wakeup * u32::from(work.ops.max(1)))
}

/// Cycles that an empty window costs however fast the first instruction is.
fn refill(machine: &Machine) -> f64 {
    let window = &machine.window;
    f64::from(window.dispatch_to_issue_cycles + window.complete_to_retire_cycles + 1)
}

fn longest_walk(machine: &Machine) -> f64 {
    let second = machine.tlbs.l2d.as_ref().map_or(0, |tlb| tlb.latency_cycles);
    f64::from(machine.tlbs.walk_cycles + second + machine.memory.latency_cycles)
}
