//! What every instruction takes when nothing goes wrong, from wherever its block is come by.
//!
//! A block's first instructions fare differently behind different predecessors: a taken branch
//! costs a bubble, a value may still be on its way. So a block is scheduled behind each of them,
//! and the schedules are mixed by how often each way is taken, as far as that is known.

use image::FlowGraph;
use model::schedule::{Before, Schedule, Scheduler, StaticWait};

use crate::code::Pieces;
use crate::report::StaticCause;

/// Predecessors that a block is scheduled behind; beyond so many they are too rare to matter.
const BEFORE_MAX: usize = 6;

/// What an instruction takes.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(crate) struct Least {
    /// Cycles at the head of the queue.
    pub(crate) cycles: f64,
    /// How much of them depends on where control came from.
    pub(crate) spread: f64,
    /// What it waits for.
    pub(crate) cause: Option<StaticCause>,
    /// The step that it waits for.
    pub(crate) maker: Option<usize>,
}

/// A block's first piece behind one predecessor.
#[derive(Clone, Debug)]
struct Behind {
    /// The edge by which it is come by; none for whoever calls.
    edge: Option<usize>,
    schedule: Schedule,
}

/// The schedules of a procedure.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    firsts: Vec<Vec<Behind>>,
    /// Of pieces that are not the first of their block, by piece.
    rest: Vec<Option<Schedule>>,
    /// The edges that lead to each block.
    pub(crate) into: Vec<Vec<usize>>,
}

impl Plan {
    /// Of pieces that the scheduler has taken.
    pub(crate) fn new(graph: &FlowGraph, pieces: &Pieces, scheduler: &mut Scheduler) -> Plan {
        let mut into: Vec<Vec<usize>> = vec![Vec::new(); graph.blocks.len()];
        for (edge, it) in graph.edges.iter().enumerate() {
            into[it.to].push(edge);
        }
        let mut is_entry = vec![false; graph.blocks.len()];
        for &entry in &graph.entries {
            is_entry[entry] = true;
        }
        let first = |(block, into): (usize, &Vec<usize>)| {
            let pieces_of = pieces.of(block);
            let Some(piece) = pieces_of.first().and(pieces.first_of.get(block).copied()) else {
                return Vec::new();
            };
            let is_whole = pieces_of.len() == 1;
            let behind = |&edge: &usize| {
                let from = graph.edges.get(edge)?.from;
                let before = match pieces.last_of(from) {
                    Some(_) if from == block && is_whole => Before::Itself,
                    Some(before) => Before::Block(before),
                    None => Before::Unknown,
                };
                Some(Behind { edge: Some(edge), schedule: scheduler.behind(piece, before) })
            };
            let mut found: Vec<Behind> = into.iter().take(BEFORE_MAX).filter_map(behind).collect();
            if found.is_empty() || is_entry.get(block) == Some(&true) {
                let schedule = scheduler.behind(piece, Before::Unknown);
                found.push(Behind { edge: None, schedule });
            }
            found
        };
        let firsts = into.iter().enumerate().map(first).collect();
        let rest = pieces.pieces.iter().enumerate().map(|(k, piece)| {
            let is_first = pieces.first_of.get(piece.block) == Some(&k);
            (!is_first).then(|| scheduler.behind(k, Before::Unknown))
        });
        let rest = rest.collect();
        Plan { firsts, rest, into }
    }

    /// The least cycles of every step, given how often each edge is taken and each block entered
    /// from outside; without, all ways count alike.
    pub(crate) fn mixed(
        &self,
        graph: &FlowGraph,
        pieces: &Pieces,
        edges: Option<(&[f64], &[f64])>,
    ) -> Vec<Least> {
        let mut least = vec![Least::default(); graph.steps.len()];
        for (k, piece) in pieces.pieces.iter().enumerate() {
            match self.rest.get(k).and_then(Option::as_ref) {
                Some(schedule) => add(&mut least, piece.steps.start, schedule, 1.0),
                None => {
                    let Some(firsts) = self.firsts.get(piece.block) else { continue };
                    let weights = weights(firsts, piece.block, edges);
                    for (behind, weight) in firsts.iter().zip(weights) {
                        add(&mut least, piece.steps.start, &behind.schedule, weight);
                    }
                    spread(&mut least, piece.steps.start, firsts);
                }
            }
        }
        least
    }
}

fn weights(firsts: &[Behind], block: usize, edges: Option<(&[f64], &[f64])>) -> Vec<f64> {
    let flow = |behind: &Behind| match (edges, behind.edge) {
        (Some((taken, _)), Some(edge)) => taken.get(edge).copied().unwrap_or(0.0),
        (Some((_, entered)), None) => entered.get(block).copied().unwrap_or(0.0),
        (None, _) => 1.0,
    };
    let flows: Vec<f64> = firsts.iter().map(flow).collect();
    let sum: f64 = flows.iter().sum();
    if sum > 0.0 {
        flows.iter().map(|flow| flow / sum).collect()
    } else {
        vec![1.0 / firsts.len().max(1) as f64; firsts.len()]
    }
}

fn add(least: &mut [Least], start: usize, schedule: &Schedule, weight: f64) {
    for (k, (&cycles, &wait)) in schedule.head_cycles.iter().zip(&schedule.waits).enumerate() {
        let Some(held) = least.get_mut(start + k) else { return };
        held.cycles += weight * cycles;
        let (cause, maker) = cause(wait, start);
        if held.cause.is_none() {
            (held.cause, held.maker) = (cause, maker);
        }
    }
}

fn spread(least: &mut [Least], start: usize, firsts: &[Behind]) {
    let length = firsts.first().map_or(0, |behind| behind.schedule.head_cycles.len());
    for k in 0..length {
        let cycles = || firsts.iter().filter_map(|b| b.schedule.head_cycles.get(k).copied());
        let (low, high) =
            cycles().fold((f64::INFINITY, 0.0_f64), |(low, high), c| (low.min(c), high.max(c)));
        if let Some(held) = least.get_mut(start + k) {
            held.spread = (high - low).max(0.0);
        }
    }
}

fn cause(wait: StaticWait, start: usize) -> (Option<StaticCause>, Option<usize>) {
    let operand = |operand: usize| match operand {
        0 => StaticCause::FirstOperand,
        1 => StaticCause::SecondOperand,
        _ => StaticCause::FurtherOperand,
    };
    match wait {
        StaticWait::Turn => (None, None),
        StaticWait::Value { maker, operand: which } => (Some(operand(which)), Some(start + maker)),
        StaticWait::Earlier { operand: which } => (Some(operand(which)), None),
        StaticWait::Port => (Some(StaticCause::Slotting), None),
        StaticWait::Unit => (Some(StaticCause::Unit), None),
    }
}
