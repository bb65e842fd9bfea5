//! A loop whose every number is known.

use std::collections::BTreeMap;

use image::{CodePart, Surroundings};

use super::*;
use crate::edge_samples::{Doubles, EdgeSamples, Passed, Turns};
use crate::frequency::Confidence;
use crate::report::DynamicCause;

struct Nothing;

impl Surroundings for Nothing {
    fn data(&self, _: u64, _: usize) -> Option<&[u8]> {
        None
    }
    fn returns(&self, _: u64) -> bool {
        true
    }
}

/// ```text
/// 1000: mov rax,[rbx]        a load
/// 1003: imul rcx,rdx
/// 1007: add rsi,1
/// 100b: add rdi,1
/// 100f: add r8,1
/// 1013: add r9,1
/// 1017: dec r10
/// 101a: jne 1000
/// 101c: ret
/// ```
const LOOP: &[u8] = &[
    0x48, 0x8b, 0x03, 0x48, 0x0f, 0xaf, 0xca, 0x48, 0x83, 0xc6, 0x01, 0x48, 0x83, 0xc7, 0x01, 0x49,
    0x83, 0xc0, 0x01, 0x49, 0x83, 0xc1, 0x01, 0x49, 0xff, 0xca, 0x75, 0xe4, 0xc3,
];
const START: u64 = 0x1000;
const ROUNDS: f64 = 1e6;
const PERIOD: f64 = 1000.0;

fn graph() -> FlowGraph {
    FlowGraph::build(&[CodePart { address: START, code: LOOP }], &Nothing)
}

/// The samples that a million rounds leave without noise, with `extra` cycles at one instruction
/// each round.
fn samples(machine: &Machine, extra: (u64, f64)) -> Samples {
    let graph = graph();
    let parts = [CodePart { address: START, code: LOOP }];
    let mut scheduler = Scheduler::new(machine, model::core::Mode::Native);
    let pieces = Pieces::cut(&graph, &parts, machine, &mut scheduler);
    let plan = Plan::new(&graph, &pieces, &mut scheduler);
    let edges: Vec<f64> =
        graph.edges.iter().map(|edge| if edge.to == 0 { 1.0 } else { 0.0 }).collect();
    let least = plan.mixed(&graph, &pieces, Some((&edges, &vec![0.0; graph.blocks.len()])));
    let mut at = BTreeMap::new();
    for (step, least) in graph.steps.iter().zip(&least).take(graph.blocks[0].end) {
        let more = if step.address == extra.0 { extra.1 } else { 0.0 };
        let cycles = least.cycles + more;
        at.insert(step.address, (cycles * ROUNDS / PERIOD).round() as u64);
    }
    Samples { event: Sampled::Cycles, period: PERIOD, is_precise: false, at }
}

fn examined(machine: &Machine, samples: &[Samples]) -> ProcedureReport {
    examined_with(machine, samples, None)
}

fn examined_with(
    machine: &Machine,
    samples: &[Samples],
    edge_samples: Option<&EdgeSamples>,
) -> ProcedureReport {
    let graph = graph();
    let parts = [CodePart { address: START, code: LOOP }];
    examine(&Request {
        graph: &graph,
        parts: &parts,
        machine,
        samples,
        branches: None,
        edge_samples,
        exact: None,
        all_samples: 100_000,
    })
}

#[test]
fn a_loop_in_order_is_counted_and_its_miss_is_the_loads() {
    let machine = Machine::named("alpha21164").unwrap();
    let report = examined(&machine, &[samples(&machine, (START, 12.0))]);
    let body = &report.blocks[0];
    assert!((body.frequency.value / ROUNDS - 1.0).abs() < 0.02, "{:?}", body.frequency);
    let load = report.at(START).unwrap();
    assert!((load.dynamic_stall_cycles - 12.0).abs() < 0.5, "{load:?}");
    let causes: Vec<DynamicCause> = load.culprits.iter().map(|culprit| culprit.cause).collect();
    assert!(causes.contains(&DynamicCause::DataCache));
    assert!(!causes.contains(&DynamicCause::StoreBuffer), "it stores nothing");
    let others = report.instructions.iter().filter(|it| it.address != START);
    assert!(others.into_iter().all(|it| it.culprits.is_empty()));
    // The back edge carries the rounds.
    let back = report.edges.iter().find(|edge| edge.to == 0 && edge.from == 0).unwrap();
    assert!((back.frequency.value / ROUNDS - 1.0).abs() < 0.02, "{back:?}");
}

#[test]
fn the_lines_of_the_summary_add_up() {
    for name in ["alpha21164", "zen4"] {
        let machine = Machine::named(name).unwrap();
        let summary = examined(&machine, &[samples(&machine, (START, 12.0))]).summary;
        assert!((summary.total_tallied - 1.0).abs() < 1e-9, "{name}: {summary:?}");
        let data = summary.dynamic.iter().find(|c| c.cause == DynamicCause::DataCache).unwrap();
        assert!(data.share_max > 0.3 && data.share_min <= data.share_max);
        assert!(summary.best_cpi().unwrap() < summary.actual_cpi().unwrap());
    }
}

#[test]
fn retired_instructions_tell_the_frequency_out_of_order() {
    let machine = Machine::named("zen4").unwrap();
    let at = (0..8).map(|k| graph().steps[k].address).map(|address| (address, 1000)).collect();
    let retired = Samples { event: Sampled::Instructions, period: PERIOD, is_precise: true, at };
    let time = samples(&machine, (START, 3.0));
    let alone = examined(&machine, std::slice::from_ref(&time));
    assert_eq!(alone.blocks[0].confidence, Confidence::Low, "time alone cannot tell");
    let both = examined(&machine, &[time, retired]);
    let body = &both.blocks[0];
    assert!((body.frequency.value / ROUNDS - 1.0).abs() < 0.02, "{:?}", body.frequency);
    assert_eq!(body.confidence, Confidence::High);
}

#[test]
fn nothing_sampled_is_said_and_nothing_breaks() {
    let machine = Machine::named("zen4").unwrap();
    let report = examined(&machine, &[]);
    assert_eq!(report.blocks[0].frequency.value, 0.0);
    assert!(report.notes.iter().any(|note| note.contains("no samples of time")));
    assert_eq!(report.instructions.len(), 9);
}

/// The branch of the loop, and what follows it.
const JNE: u64 = 0x101a;
const RET: u64 = 0x101c;

#[test]
fn double_samples_see_through_stalls_that_all_points_share() {
    let machine = Machine::named("alpha21164").unwrap();
    let mut time = samples(&machine, (START, 12.0));
    time.at.values_mut().for_each(|count| *count *= 2);
    let misled = examined(&machine, std::slice::from_ref(&time));
    assert!(misled.blocks[0].frequency.value > 1.8 * ROUNDS, "stalls look like runs");
    // A passing stands for ten runs; a pair meets five rounds.
    let passed = Passed { count: 100_000, pairs: 20_000, begun: 2_500 };
    let at = (0..8).map(|k| (graph().steps[k].address, passed)).collect();
    let ways = BTreeMap::from([((JNE, START), 100_000)]);
    let doubles = Some(Doubles { period: 10.0, at, ways });
    let seen = EdgeSamples { doubles, ..EdgeSamples::default() };
    let report = examined_with(&machine, &[time], Some(&seen));
    let body = &report.blocks[0];
    assert!((body.frequency.value / ROUNDS - 1.0).abs() < 0.02, "{:?}", body.frequency);
    assert_eq!(body.confidence, Confidence::High);
    let back = report.edges.iter().find(|edge| (edge.from, edge.to) == (0, 0)).unwrap();
    assert!((back.frequency.value / ROUNDS - 1.0).abs() < 0.02, "{back:?}");
}

#[test]
fn directions_of_sampled_branches_share_out_what_their_block_ran() {
    let machine = Machine::named("alpha21164").unwrap();
    let time = samples(&machine, (START, 12.0));
    let turns = BTreeMap::from([(JNE, Turns { taken: 9_000, straight: 1_000 })]);
    // By themselves they are a share of something that nobody counted.
    let alone = EdgeSamples { turns: turns.clone(), ..EdgeSamples::default() };
    let without = examined(&machine, std::slice::from_ref(&time));
    assert_eq!(examined_with(&machine, std::slice::from_ref(&time), Some(&alone)), without);
    // Beside pairs that made too many of one way, by chance, they move it towards their share.
    let passed = |count| Passed { count, pairs: count, begun: 10 };
    let mut at: BTreeMap<u64, Passed> =
        (0..8).map(|k| (graph().steps[k].address, passed(1000))).collect();
    at.insert(RET, passed(150));
    let ways = BTreeMap::from([((JNE, START), 850), ((JNE, RET), 150)]);
    let doubles = Some(Doubles { period: ROUNDS / 1000.0, at, ways });
    let counted = EdgeSamples { doubles, ..EdgeSamples::default() };
    let share = |seen: &EdgeSamples| {
        let report = examined_with(&machine, std::slice::from_ref(&time), Some(seen));
        let out = report.edges.iter().find(|e| (e.from, e.to) == (0, 1)).unwrap();
        out.frequency.value / report.blocks[0].frequency.value
    };
    let (rough, better) = (share(&counted), share(&EdgeSamples { turns, ..counted.clone() }));
    assert!((rough - 0.15).abs() < 0.02, "{rough}");
    assert!(better < rough - 0.01 && better > 0.1, "{better}, {rough} without");
}

#[test]
fn who_cannot_be_ruled_out_is_named_where_noise_may_hide_a_stall() {
    let machine = Machine::named("alpha21164").unwrap();
    let report = examined(&machine, &[samples(&machine, (START, 12.0))]);
    let multiply = report.at(0x1003).unwrap();
    assert_eq!(multiply.dynamic_stall_cycles, 0.0);
    let most = |cause| multiply.suspects.iter().find(|s| s.cause == cause).map(|s| s.cycles_max);
    // Nothing is left over, so what may hide is twice the deviation of its cycles.
    let hides = 2.0 * multiply.cpi.unwrap().standard_uncertainty;
    let cycles = most(DynamicCause::IntegerUnit).unwrap();
    assert!((cycles / hides - 1.0).abs() < 0.01, "{cycles} of {hides}");
    assert_eq!(most(DynamicCause::DataCache), None, "it reads no memory");
    let load = report.at(START).unwrap();
    assert!(load.suspects.is_empty(), "its stall stands out: it has culprits");
}

#[test]
fn static_stalls_that_an_older_stall_hid_cost_nothing_and_execution_is_never_negative() {
    let cell = |least: f64, samples: u64| Cell {
        samples,
        runs: 100.0,
        least_cycles: least,
        static_samples: 100.0 * (least - 1.0).max(0.0),
        ..Cell::default()
    };
    // Ten cycles each time by the schedule, of which one in ten was seen: 900 were not spent.
    let mut cells = [cell(8.0, 60), cell(2.0, 40)];
    forgive(&mut cells, 900.0);
    let summary = crate::summary::summarise(&cells, 100, 100, 1.0);
    // Of 1000 least cycles 800 are static; so are 80 of the 100 that were seen.
    assert!((summary.subtotal_static - 0.8).abs() < 1e-9, "{summary:?}");
    assert!((summary.execution - 0.2).abs() < 1e-9, "{summary:?}");
    assert!((summary.total_tallied - 1.0).abs() < 1e-9);
}

#[test]
fn a_block_that_was_sampled_ran_whatever_the_flow_says() {
    let graph = graph();
    let never = vec![Estimate::exact(0.0); graph.blocks.len()];
    let frequencies = Frequencies { blocks: never, edges: Vec::new(), least: Vec::new() };
    let mut samples = vec![0; graph.steps.len()];
    samples[0] = 3;
    let found = sampled_ran(frequencies, &graph, &samples, PERIOD).blocks;
    assert_eq!((found[0].value, found[0].standard_uncertainty), (0.0, 3.0 * PERIOD));
    assert_eq!(found[1].standard_uncertainty, 0.0);
}
