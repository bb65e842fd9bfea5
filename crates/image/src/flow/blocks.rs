//! From steps to blocks and edges.

use super::step::Full;
use super::table::{Jump, Tables};
use super::{Block, Edge, EdgeKind, Exit, FlowGraph, Step, Surroundings};
use crate::disassemble::Flow;

/// Where control goes after a step.
#[derive(Debug)]
struct Onward {
    to: Vec<(usize, EdgeKind)>,
    exit: Option<Exit>,
    is_unresolved: bool,
}

pub(super) fn assemble(
    full: Vec<Full>,
    tables: Tables,
    overlaps: usize,
    start: u64,
    around: &dyn Surroundings,
) -> FlowGraph {
    let padding: Vec<bool> = full.iter().map(|f| f.decoded.is_invalid() || is_filler(f)).collect();
    let steps: Vec<Step> = full.into_iter().map(|full| full.step).collect();
    let mut graph = FlowGraph { steps, overlaps, ..FlowGraph::default() };
    let onward: Vec<Option<Onward>> =
        (0..graph.steps.len()).map(|k| onward(&graph, k, &tables, around)).collect();
    let leads = leaders(&graph, &onward, start);
    cut(&mut graph, &onward, &leads);
    connect(&mut graph, &onward);
    drop_padding(&mut graph, &padding, start);
    find_entries(&mut graph, start);
    graph
}

/// What compilers put between procedures and before loops.
fn is_filler(full: &Full) -> bool {
    use iced_x86::Mnemonic::{Int3, Nop};
    matches!(full.decoded.mnemonic(), Nop | Int3)
}

/// None for a step that only goes to the next.
fn onward(
    graph: &FlowGraph,
    k: usize,
    tables: &Tables,
    around: &dyn Surroundings,
) -> Option<Onward> {
    let step = graph.steps.get(k)?;
    let next = graph.step_at(step.next_address()).map(|to| (to, EdgeKind::Fall));
    let taken =
        step.target.and_then(|target| graph.step_at(target)).map(|to| (to, EdgeKind::Taken));
    let leave = |exit| Onward { to: Vec::new(), exit: Some(exit), is_unresolved: false };
    let go = |to: Vec<(usize, EdgeKind)>, exit| Some(Onward { to, exit, is_unresolved: false });
    match step.flow {
        Flow::Next if next.is_none_or(|(to, _)| to != k + 1) => {
            go(next.into_iter().collect(), next.is_none().then_some(Exit::Trap))
        }
        Flow::Next => None,
        Flow::Branch => {
            let exit = taken.is_none().then_some(Exit::TailCall);
            go(next.into_iter().chain(taken).collect(), exit)
        }
        Flow::Jump => go(taken.into_iter().collect(), taken.is_none().then_some(Exit::TailCall)),
        Flow::Call if step.target.is_some_and(|target| !around.returns(target)) => {
            Some(leave(Exit::NoReturn))
        }
        // A call at the very end of the code cannot come back to anything.
        Flow::Call | Flow::IndirectCall => {
            go(next.into_iter().collect(), next.is_none().then_some(Exit::NoReturn))
        }
        Flow::IndirectJump => Some(switch(graph, tables.get(&k))),
        Flow::Return => Some(leave(Exit::Return)),
        Flow::Trap => Some(leave(Exit::Trap)),
    }
}

fn switch(graph: &FlowGraph, jump: Option<&Jump>) -> Onward {
    match jump {
        Some(Jump::TailCall) => {
            Onward { to: Vec::new(), exit: Some(Exit::TailCall), is_unresolved: false }
        }
        Some(Jump::Switch(targets)) => {
            let to = targets.iter().filter_map(|&target| graph.step_at(target));
            let to = to.map(|to| (to, EdgeKind::Switch)).collect();
            Onward { to, exit: None, is_unresolved: false }
        }
        None => Onward { to: Vec::new(), exit: Some(Exit::Unknown), is_unresolved: true },
    }
}

/// Which steps begin a block.
fn leaders(graph: &FlowGraph, onward: &[Option<Onward>], start: u64) -> Vec<bool> {
    let mut leads = vec![false; graph.steps.len()];
    graph.step_at(start).into_iter().chain([0]).for_each(|k| leads[k] = true);
    for (k, onward) in onward.iter().enumerate() {
        let Some(onward) = onward else { continue };
        // A call that comes back does not end a block: what follows runs just as often.
        let is_call = matches!(graph.steps[k].flow, Flow::Call | Flow::IndirectCall);
        let ends = !(is_call && onward.to == [(k + 1, EdgeKind::Fall)]);
        if ends && let Some(next) = leads.get_mut(k + 1) {
            *next = true;
        }
        if ends {
            onward.to.iter().for_each(|&(to, _)| leads[to] = true);
        }
    }
    leads
}

fn cut(graph: &mut FlowGraph, onward: &[Option<Onward>], leads: &[bool]) {
    let mut first = 0;
    for end in 1..=leads.len() {
        if end == leads.len() || leads[end] {
            let exit = onward[end - 1].as_ref().and_then(|onward| onward.exit);
            graph.blocks.push(Block { first, end, exit });
            first = end;
        }
    }
}

fn connect(graph: &mut FlowGraph, onward: &[Option<Onward>]) {
    let block_of = |step: usize| graph.blocks.partition_point(|block| block.first <= step) - 1;
    let mut edges = Vec::new();
    for (from, block) in graph.blocks.iter().enumerate() {
        match &onward[block.end - 1] {
            Some(onward) => {
                edges.extend(onward.to.iter().map(|&(to, kind)| Edge {
                    from,
                    to: block_of(to),
                    kind,
                }));
            }
            None => {
                let to = block.end;
                edges.extend((to < graph.steps.len()).then_some(Edge {
                    from,
                    to: from + 1,
                    kind: EdgeKind::Fall,
                }));
            }
        }
    }
    edges.sort_unstable();
    edges.dedup();
    graph.edges = edges;
    let unresolved = |(k, onward): (usize, &Option<Onward>)| {
        onward.as_ref().is_some_and(|onward| onward.is_unresolved).then_some(k)
    };
    graph.unresolved = onward.iter().enumerate().filter_map(unresolved).collect();
}

/// Blocks of nothing but filler that nothing leads to are no code.
fn drop_padding(graph: &mut FlowGraph, padding: &[bool], start: u64) {
    let mut reached = vec![0_usize; graph.blocks.len()];
    graph.edges.iter().for_each(|edge| reached[edge.to] += 1);
    let start = graph.block_at(start);
    let mut kept = vec![true; graph.blocks.len()];
    // In order of address: dropping one may leave the next without a way in, since filler often
    // comes in pieces. Edges are sorted by where they begin.
    let mut edges = graph.edges.iter().peekable();
    for (k, block) in graph.blocks.iter().enumerate() {
        let is_filler = padding[block.first..block.end].iter().all(|&filler| filler);
        kept[k] = reached[k] > 0 || !is_filler || Some(k) == start;
        while let Some(edge) = edges.next_if(|edge| edge.from == k) {
            reached[edge.to] -= usize::from(!kept[k]);
        }
    }
    let mut place = Vec::with_capacity(kept.len());
    let mut next = 0;
    for &kept in &kept {
        place.push(next);
        next += usize::from(kept);
    }
    graph.edges.retain(|edge| kept[edge.from] && kept[edge.to]);
    graph.edges.iter_mut().for_each(|edge| {
        edge.from = place[edge.from];
        edge.to = place[edge.to];
    });
    let mut kept = kept.iter();
    graph.blocks.retain(|_| kept.next().is_some_and(|&kept| kept));
}

fn find_entries(graph: &mut FlowGraph, start: u64) {
    let mut reached = vec![false; graph.blocks.len()];
    graph.edges.iter().for_each(|edge| reached[edge.to] = true);
    let start = graph.block_at(start);
    let others = (0..graph.blocks.len()).filter(|&k| !reached[k] && Some(k) != start);
    graph.entries = start.into_iter().chain(others).collect();
}
