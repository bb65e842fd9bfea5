//! Whether a flow can be solved while somebody waits.
//!
//! Control flow that people and compilers write is nearly a tree: taking its places away one by one,
//! each time the one with the fewest neighbours, joins few others. Code made by machines may be one
//! knot, where the last places are all joined to each other and the work grows with the cube of the
//! blocks. So the joins are counted before any is made in earnest.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

use image::FlowGraph;

/// So few blocks are no trouble, however they are tied.
const BLOCKS_MIN: usize = 1_000;
/// Joins of two neighbours. The flow is solved some twenty times over, so that this many already
/// take seconds.
const JOINS_MAX: usize = 500_000;

/// Whether solving the flow would take too long.
pub(crate) fn is_knotted(graph: &FlowGraph) -> bool {
    graph.blocks.len() > BLOCKS_MIN && joins(graph, JOINS_MAX).is_none()
}

/// How many joins taking the graph apart makes; none if more than so many.
fn joins(graph: &FlowGraph, most: usize) -> Option<usize> {
    let mut around: Vec<BTreeSet<usize>> = vec![BTreeSet::new(); graph.blocks.len()];
    for edge in graph.edges.iter().filter(|edge| edge.from != edge.to) {
        around[edge.from].insert(edge.to);
        around[edge.to].insert(edge.from);
    }
    let mut queue: BinaryHeap<Reverse<(usize, usize)>> =
        around.iter().enumerate().map(|(place, near)| Reverse((near.len(), place))).collect();
    let (mut joins, mut is_gone) = (0, vec![false; around.len()]);
    while let Some(Reverse((count, place))) = queue.pop() {
        if is_gone[place] || count != around[place].len() {
            continue;
        }
        is_gone[place] = true;
        joins += count * count / 2;
        if joins > most {
            return None;
        }
        let near: Vec<usize> = std::mem::take(&mut around[place]).into_iter().collect();
        for &a in &near {
            around[a].remove(&place);
            around[a].extend(near.iter().filter(|b| **b != a));
            queue.push(Reverse((around[a].len(), a)));
        }
    }
    Some(joins)
}

#[cfg(test)]
mod tests {
    use super::*;
    use image::{Block, Edge, EdgeKind};

    fn graph(blocks: usize, edges: impl Iterator<Item = (usize, usize)>) -> FlowGraph {
        let edge = |(from, to)| Edge { from, to, kind: EdgeKind::Taken };
        FlowGraph {
            blocks: (0..blocks).map(|k| Block { first: k, end: k + 1, exit: None }).collect(),
            edges: edges.map(edge).collect(),
            ..FlowGraph::default()
        }
    }

    #[test]
    fn a_ladder_of_branches_is_untied_with_a_few_joins_a_block() {
        let steps = (0..20_000).flat_map(|k| [(k, k + 1), (k, k + 2)]);
        let ladder = graph(20_002, steps);
        // Every place that goes has at most two neighbours left.
        assert!(joins(&ladder, JOINS_MAX).is_some_and(|joins| joins <= 2 * 20_002));
        assert!(!is_knotted(&ladder));
    }

    #[test]
    fn branches_to_everywhere_are_a_knot_unless_they_are_few() {
        let far = |blocks: usize| {
            graph(
                blocks,
                (0..blocks).flat_map(move |k| {
                    [(k, (k + 1) % blocks), (k, (k * k + 13) % blocks), (k, (7 * k + 5) % blocks)]
                }),
            )
        };
        assert!(is_knotted(&far(10_007)));
        assert!(!is_knotted(&far(997)));
    }

    #[test]
    fn all_joined_to_all_takes_the_sum_of_squares() {
        let all = graph(5, (0..5).flat_map(|a| (0..a).map(move |b| (a, b))));
        // 16/2 + 9/2 + 4/2 + 1/2, each cut to a whole number.
        assert_eq!(joins(&all, 100), Some(8 + 4 + 2));
        assert_eq!(joins(&all, 13), None);
    }
}
