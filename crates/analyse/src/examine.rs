//! One procedure, from samples to reasons.

use std::collections::BTreeMap;

use image::FlowGraph;
use metrology::Estimate;
use model::machine::{Machine, Order};
use model::schedule::Scheduler;

use crate::code::Pieces;
use crate::frequency::{Counted, Evidence, Frequencies, Ways, classes, estimate, trust};
use crate::knots::is_knotted;
use crate::plan::{Least, Plan};
use crate::report::{
    BlockReport, EdgeReport, InstructionReport, ProcedureReport, StaticCause, StaticStall, Suspect,
};
use crate::request::{Branches, Request, Sampled, Samples};
use crate::stalls::{Bound, Happened, Scene, blame, candidates};
use crate::summary::{Cell, summarise};

/// Instructions beyond which a procedure is not looked into: schedules and flows of so much code
/// take longer than a reader waits, and no compiler writes it.
pub const INSTRUCTIONS_MAX: usize = 250_000;

/// What is left after the least cycles is taken for a stall when it exceeds this many standard
/// deviations: one rather than two, because a stall that is not named is worse than one too many.
const STANDS_OUT: f64 = 1.0;
/// Makes the square root of a small count spread as that of a large one does, by one half.
const ANSCOMBE: f64 = 0.375;
/// How many standard deviations chance may add to a count.
const CHANCE: f64 = 2.0;

/// What a branch does where code overlaps.
const OVERLAPS: &str = "into the middle of another instruction";

/// Examines many procedures of one machine: what schedules are made with is made once.
#[derive(Clone, Debug)]
pub struct Examiner {
    machine: Machine,
    scheduler: Scheduler,
}

impl Examiner {
    /// For a machine.
    pub fn new(machine: &Machine) -> Examiner {
        Examiner {
            machine: machine.clone(),
            scheduler: Scheduler::new(machine, model::core::Mode::Native),
        }
    }

    /// Finds out how often everything ran, how long it took and who is to blame.
    pub fn examine(&mut self, request: &Request<'_>) -> ProcedureReport {
        if self.machine != *request.machine {
            *self = Examiner::new(request.machine);
        }
        examine_with(request, &mut self.scheduler)
    }
}

/// Finds out how often everything ran, how long it took and who is to blame.
pub fn examine(request: &Request<'_>) -> ProcedureReport {
    Examiner::new(request.machine).examine(request)
}

fn examine_with(request: &Request<'_>, scheduler: &mut Scheduler) -> ProcedureReport {
    if request.exact.is_none() && !request.graph.has_missing_edges() && is_knotted(request.graph) {
        return examine_apart(request, scheduler);
    }
    let graph = request.graph;
    if graph.steps.len() > INSTRUCTIONS_MAX {
        let note = format!(
            "the procedure has {} instructions, more than the {INSTRUCTIONS_MAX} that are looked \
             into",
            graph.steps.len()
        );
        return ProcedureReport { notes: vec![note], ..ProcedureReport::default() };
    }
    let pieces = Pieces::cut(graph, request.parts, request.machine, scheduler);
    let plan = Plan::new(graph, &pieces, scheduler);
    let frequencies = match request.exact {
        Some(runs) => known(request, runs, &plan, &pieces),
        None => estimated(request, &plan, &pieces),
    };
    let mut report = ProcedureReport { notes: notes(request), ..ProcedureReport::default() };
    let (samples, cycles_each) = match request.time() {
        Some((samples, cycles)) => (by_step(graph, samples), cycles),
        None => (vec![0; graph.steps.len()], 1.0),
    };
    let frequencies = match request.exact {
        Some(_) => frequencies,
        None => sampled_ran(frequencies, graph, &samples, cycles_each),
    };
    let values = |list: &[Estimate]| list.iter().map(|it| it.value).collect::<Vec<f64>>();
    let (blocks, edges) = (values(&frequencies.blocks), values(&frequencies.edges));
    let happened = happened(request);
    let scene = Scene {
        graph,
        pieces: &pieces,
        machine: request.machine,
        blocks: &blocks,
        edges: &edges,
        happened: &happened,
        into: &plan.into,
    };
    let mut cells = Vec::new();
    for (block, held) in graph.blocks.iter().enumerate() {
        let frequency = frequencies.blocks[block];
        let (mut debt, first) = (0.0, cells.len());
        let steps = samples.iter().zip(&frequencies.least).enumerate();
        for (step, (&samples, &least)) in steps.take(held.end).skip(held.first) {
            let spot = Spot { step, block, samples, cycles_each };
            let (instruction, cell) = instruction(&scene, &spot, frequency, least, &mut debt);
            report.instructions.push(instruction);
            cells.push(cell);
        }
        forgive(cells.get_mut(first..).unwrap_or_default(), debt);
        report.blocks.push(block_report(graph, block, &frequencies, &samples, cycles_each));
    }
    report.instructions.sort_by_key(|it| it.address);
    report.edges = graph.edges.iter().zip(&frequencies.edges).map(edge_report).collect();
    let all: u64 = cells.iter().map(|cell| cell.samples).sum();
    report.summary = summarise(&cells, all, request.all_samples, cycles_each);
    report
}

/// Least cycles that a block did not spend, because it ran in the shadow of an older stall: neither
/// execution nor static stalls took them, and nobody knows which of the two. They share the `debt`
/// as they share the least cycles, or static stalls would be told of that never cost anything, and
/// execution would be what is left of less than nothing.
fn forgive(cells: &mut [Cell], debt: f64) {
    let expected: f64 = cells.iter().map(|cell| cell.runs * cell.least_cycles).sum();
    if debt > 0.0 && expected > 0.0 {
        let spent = (1.0 - debt / expected).max(0.0);
        cells.iter_mut().for_each(|cell| cell.static_samples *= spent);
    }
}

/// A block that was sampled ran, whatever the flow makes of it: at most once a cycle of its samples.
fn sampled_ran(
    mut frequencies: Frequencies,
    graph: &FlowGraph,
    samples: &[u64],
    cycles_each: f64,
) -> Frequencies {
    for (held, frequency) in graph.blocks.iter().zip(&mut frequencies.blocks) {
        let sampled: u64 = samples.get(held.first..held.end).unwrap_or_default().iter().sum();
        if sampled > 0 && frequency.value <= 0.0 {
            let most = sampled as f64 * cycles_each;
            let own = frequency.standard_uncertainty;
            *frequency = Estimate::known(0.0, own.max(most));
        }
    }
    frequencies
}

/// The same without a flow that binds blocks together: as if edges were missing.
fn examine_apart(request: &Request<'_>, scheduler: &mut Scheduler) -> ProcedureReport {
    let graph = FlowGraph { overlaps: 1, ..request.graph.clone() };
    let mut report = examine_with(&Request { graph: &graph, ..request.clone() }, scheduler);
    let blocks = graph.blocks.len();
    report.notes.retain(|note| !note.contains(OVERLAPS));
    report.notes.insert(
        0,
        format!(
            "its {blocks} blocks are tied too closely to be solved together: every block is \
             estimated by itself"
        ),
    );
    report
}

/// One instruction's samples.
struct Spot {
    step: usize,
    block: usize,
    samples: u64,
    cycles_each: f64,
}

fn notes(request: &Request<'_>) -> Vec<String> {
    let mut notes = Vec::new();
    if !request.graph.unresolved.is_empty() {
        let jumps =
            counted(request.graph.unresolved.len(), "indirect jump leads", "indirect jumps lead");
        notes.push(format!("{jumps} where no table tells: every block is estimated by itself"));
    }
    if request.graph.overlaps > 0 {
        let branches = counted(request.graph.overlaps, "branch leads", "branches lead");
        notes.push(format!("{branches} {OVERLAPS}: every block is estimated by itself"));
    }
    if request.time().is_none() {
        notes.push("no samples of time: cycles are not known".to_owned());
    }
    notes
}

/// `1 branch leads`, `2 branches lead`.
fn counted(number: usize, one: &str, more: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { more })
}

fn by_step(graph: &FlowGraph, samples: &Samples) -> Vec<u64> {
    let at = |step: &image::Step| samples.at.get(&step.address).copied().unwrap_or(0);
    graph.steps.iter().map(at).collect()
}

fn estimated(request: &Request<'_>, plan: &Plan, pieces: &Pieces) -> Frequencies {
    let graph = request.graph;
    let classes = classes(graph);
    let counted =
        |samples: &Samples, period: f64| Counted { by_step: by_step(graph, samples), period };
    let precise = |event: Sampled| {
        let samples = request.of(event).filter(|samples| samples.is_precise)?;
        Some(counted(samples, samples.period))
    };
    let evidence = Evidence {
        graph,
        classes: &classes,
        time: request.time().map(|(samples, cycles)| counted(samples, cycles)),
        retired: precise(Sampled::Instructions),
        taken: precise(Sampled::TakenBranches),
        branches: request.branches.map(|branches| within(graph, branches)),
        edge_samples: request.edge_samples,
        is_in_order: request.machine.window.order == Order::InOrder,
        longest_stall_cycles: longest_stall(request.machine),
    };
    estimate(&evidence, plan, pieces)
}

/// The branches of a procedure among those of a whole image, by where they come from and go to.
fn within(graph: &FlowGraph, branches: &Branches) -> Ways {
    // Parts that were moved away may lie before the rest.
    let addresses = || graph.steps.iter().map(|step| step.address);
    let (first, last) = (addresses().min().unwrap_or(0), addresses().max().unwrap_or(0));
    let mut seen = BTreeMap::new();
    for it in branches.seen.iter().filter(|it| (first..=last).contains(&it.from)) {
        *seen.entry((it.from, it.to)).or_insert(0) += it.count;
    }
    Ways { period: branches.period, seen }
}

/// A miss to memory behind another, with a walk before each.
fn longest_stall(machine: &Machine) -> f64 {
    2.0 * f64::from(2 * machine.memory.latency_cycles + machine.tlbs.walk_cycles)
}

/// Frequencies that need no estimate.
fn known(
    request: &Request<'_>,
    runs: &BTreeMap<u64, u64>,
    plan: &Plan,
    pieces: &Pieces,
) -> Frequencies {
    let graph = request.graph;
    let run = |block: &image::Block| {
        let first = graph.steps.get(block.first);
        first.and_then(|step| runs.get(&step.address)).copied().unwrap_or(0) as f64
    };
    let blocks: Vec<f64> = graph.blocks.iter().map(run).collect();
    let sure = |&value: &f64| {
        Some(crate::frequency::Seen { value, variance: (value * 1e-3).powi(2) + 1.0 })
    };
    let seen: Vec<_> = blocks.iter().map(sure).collect();
    let flow = crate::frequency::nearest_flow(graph, &seen, &vec![None; graph.edges.len()]);
    let least = plan.mixed(graph, pieces, Some((&flow.edges, &blocks)));
    Frequencies {
        blocks: blocks.into_iter().map(Estimate::exact).collect(),
        edges: flow.edges.into_iter().map(Estimate::exact).collect(),
        least,
    }
}

fn happened(request: &Request<'_>) -> Happened {
    let graph = request.graph;
    let counts = |event: Sampled| {
        let samples = request.of(event).filter(|samples| samples.is_precise)?;
        // As many as may well have been: two standard deviations above what was counted.
        let upper = |count: u64| {
            let count = count as f64;
            (count + CHANCE * count.sqrt() + 1.0) * samples.period
        };
        Some(by_step(graph, samples).into_iter().map(upper).collect())
    };
    Happened {
        code_misses: counts(Sampled::CodeMisses),
        code_tlb_misses: counts(Sampled::CodeTlbMisses),
        data_misses: data_misses(counts(Sampled::DataMisses), counts(Sampled::DataJoins)),
        data_tlb_misses: counts(Sampled::DataTlbMisses),
        mispredicts: counts(Sampled::Mispredicts),
    }
}

/// Loads that waited for a line, as far as that was counted: whoever joins a line that another brings
/// waits for it as well, though it has not missed. Where joins were not counted they are passed over, as
/// a miss counter does.
fn data_misses(misses: Option<Vec<f64>>, joins: Option<Vec<f64>>) -> Option<Vec<f64>> {
    let mut all = misses?;
    for (count, joined) in all.iter_mut().zip(joins.unwrap_or_default()) {
        *count += joined;
    }
    Some(all)
}

/// Divides an instruction's samples into execution, static stalls, dynamic stalls and noise.
///
/// Out of order, what an instruction does in the shadow of an older one's stall takes no time of
/// its own: its least cycles were spent already. That `debt` is made good by what comes later.
fn instruction(
    scene: &Scene<'_>,
    spot: &Spot,
    frequency: Estimate,
    least: Least,
    debt: &mut f64,
) -> (InstructionReport, Cell) {
    let runs = frequency.value / spot.cycles_each;
    let (samples, expected) = (spot.samples as f64, runs * least.cycles);
    let of_runs = frequency.standard_uncertainty / spot.cycles_each * least.cycles;
    let noise = (samples.max(expected).max(1.0) + of_runs * of_runs).sqrt();
    let mut left = samples - expected;
    let is_out_of_order = scene.machine.window.order == Order::OutOfOrder;
    if is_out_of_order && left > 0.0 {
        let repaid = left.min(*debt);
        *debt -= repaid;
        left -= repaid;
    } else if is_out_of_order {
        *debt -= left;
        left = 0.0;
    }
    let static_cycles = (least.cycles - 1.0).max(0.0);
    let mut cell = Cell {
        samples: spot.samples,
        runs,
        least_cycles: least.cycles,
        static_cause: least.cause.unwrap_or(StaticCause::Slotting),
        static_samples: runs * static_cycles,
        left,
        noise,
        ..Cell::default()
    };
    let stands_out = runs > 0.0 && above(expected + left, expected, frequency) > STANDS_OUT;
    let stall_cycles = if stands_out { left / runs } else { 0.0 };
    let (mut culprits, mut suspects) = (Vec::new(), Vec::new());
    let bounds = match runs > 0.0 {
        true => candidates(scene, spot.step, spot.block, least.cycles),
        false => Vec::new(),
    };
    if stands_out {
        let found = blame(stall_cycles, &bounds);
        cell.unexplained = found.unexplained;
        cell.culprits = found.culprits.clone();
        culprits = found.culprits;
    } else {
        // What noise may hide, and who cannot be ruled out for it. Where the schedule asks for more
        // than came, it is wrong here, and all of what came may have been something else.
        let is_disproved = is_out_of_order && samples - expected < -STANDS_OUT * noise;
        let hides = if is_disproved { samples } else { left.max(0.0) };
        let most = hides + CHANCE * noise;
        let hidden = |bound: &Bound| (bound.cause, most.min(bound.cycles * runs));
        cell.hidden = bounds.iter().map(hidden).collect();
        let suspect = |&(cause, most)| Suspect { cause, cycles_max: most / runs };
        suspects = cell.hidden.iter().map(suspect).collect();
    }
    cell.stands_out = stands_out || left < -STANDS_OUT * noise;
    let steps = &scene.graph.steps;
    let static_stall = (static_cycles > 0.0).then(|| StaticStall {
        cycles: static_cycles,
        cause: cell.static_cause,
        responsible: least.maker.and_then(|maker| steps.get(maker)).map(|step| step.address),
    });
    let report = InstructionReport {
        address: steps.get(spot.step).map_or(0, |step| step.address),
        block: spot.block,
        samples: spot.samples,
        frequency,
        confidence: trust(frequency),
        cpi: cycles_each_time(samples, spot.cycles_each, frequency),
        least_cycles: least.cycles,
        static_stall,
        dynamic_stall_cycles: stall_cycles,
        culprits,
        suspects,
    };
    (report, cell)
}

/// How many standard deviations a count lies above the expected one. The deviation is that of what
/// was expected, not of what came: where a hundredth of a sample was expected, one is no chance.
fn above(samples: f64, expected: f64, frequency: Estimate) -> f64 {
    let root = |count: f64| (count.max(0.0) + ANSCOMBE).sqrt();
    let of_runs = frequency.standard_uncertainty / frequency.value;
    2.0 * (root(samples) - root(expected)) / (1.0 + of_runs * of_runs * expected).sqrt()
}

/// Cycles by runs, with the uncertainty of both.
fn cycles_each_time(samples: f64, cycles_each: f64, frequency: Estimate) -> Option<Estimate> {
    if frequency.value <= 0.0 {
        return None;
    }
    let value = samples * cycles_each / frequency.value;
    let of_samples = samples.max(1.0).sqrt() * cycles_each / frequency.value;
    let of_runs = value * frequency.standard_uncertainty / frequency.value;
    Some(Estimate::known(value, of_samples.hypot(of_runs)))
}

fn block_report(
    graph: &FlowGraph,
    block: usize,
    frequencies: &Frequencies,
    samples: &[u64],
    cycles_each: f64,
) -> BlockReport {
    let held = graph.blocks[block];
    let instructions = held.end - held.first;
    let sampled: u64 = samples[held.first..held.end].iter().sum();
    let frequency = frequencies.blocks[block];
    let best: f64 = frequencies.least[held.first..held.end].iter().map(|it| it.cycles).sum();
    let each = |cycles: Estimate| cycles.scaled(1.0 / instructions.max(1) as f64);
    BlockReport {
        address: graph.steps.get(held.first).map_or(0, |step| step.address),
        instructions,
        samples: sampled,
        frequency,
        confidence: trust(frequency),
        best_cpi: best / instructions.max(1) as f64,
        actual_cpi: cycles_each_time(sampled as f64, cycles_each, frequency).map(each),
    }
}

fn edge_report((edge, &frequency): (&image::Edge, &Estimate)) -> EdgeReport {
    EdgeReport { from: edge.from, to: edge.to, frequency, confidence: trust(frequency) }
}

#[cfg(test)]
mod tests;
