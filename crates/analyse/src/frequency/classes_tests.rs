use image::{Block, Edge, EdgeKind, Exit, FlowGraph};

use super::classes::{classes, closed, equivalent};

/// A graph of blocks of one step each.
pub(crate) fn graph(blocks: usize, edges: &[(usize, usize)], exits: &[usize]) -> FlowGraph {
    let block =
        |k: usize| Block { first: k, end: k + 1, exit: exits.contains(&k).then_some(Exit::Return) };
    let edge = |&(from, to): &(usize, usize)| Edge { from, to, kind: EdgeKind::Taken };
    FlowGraph {
        blocks: (0..blocks).map(block).collect(),
        edges: edges.iter().map(edge).collect(),
        entries: vec![0],
        ..FlowGraph::default()
    }
}

#[test]
fn both_ends_of_a_diamond_run_equally_often_and_its_sides_do_not() {
    let graph = graph(4, &[(0, 1), (0, 2), (1, 3), (2, 3)], &[3]);
    let found = classes(&graph);
    let block = &found.of_block;
    assert_eq!(block[0], block[3]);
    assert!(block[1] != block[2] && block[1] != block[0] && block[2] != block[0]);
    // A side's edges run as often as the side.
    assert_eq!((found.of_edge[0], found.of_edge[2]), (block[1], block[1]));
    assert_eq!((found.of_edge[1], found.of_edge[3]), (block[2], block[2]));
    assert_eq!(found.count, 3);
}

#[test]
fn a_loop_runs_apart_from_what_surrounds_it() {
    // 0 → 1 ⇄ 2, 1 → 3.
    let found = classes(&graph(4, &[(0, 1), (1, 2), (2, 1), (1, 3)], &[3]));
    let block = &found.of_block;
    assert_eq!(block[0], block[3]);
    assert!(block[1] != block[0] && block[2] != block[1]);
    assert_eq!((found.of_edge[1], found.of_edge[2]), (block[2], block[2]));
}

#[test]
fn a_loop_without_an_exit_is_classified_too() {
    // 0 branches to 1, which returns, and to 2, which loops for ever with 3.
    let found = classes(&graph(4, &[(0, 1), (0, 2), (2, 3), (3, 2)], &[1]));
    let block = &found.of_block;
    assert_eq!(block.len(), 4);
    // 2 and 3 lie on every turn of the loop.
    assert_eq!(block[2], block[3]);
    assert!(block[0] != block[1] && block[0] != block[2]);
}

#[test]
fn missing_edges_put_every_block_into_a_class_of_its_own() {
    let mut graph = graph(4, &[(0, 1), (0, 2), (1, 3), (2, 3)], &[3]);
    graph.unresolved.push(0);
    let found = classes(&graph);
    assert_eq!(found.count, 8);
}

fn components(nodes: usize, pairs: &[(usize, usize)], without: &[usize]) -> usize {
    let mut root: Vec<usize> = (0..nodes).collect();
    fn find(root: &mut [usize], node: usize) -> usize {
        let mut at = node;
        while root[at] != at {
            at = root[at];
        }
        root[node] = at;
        at
    }
    for (edge, &(a, b)) in pairs.iter().enumerate() {
        if !without.contains(&edge) {
            let (a, b) = (find(&mut root, a), find(&mut root, b));
            root[a] = b;
        }
    }
    (0..nodes).filter(|&node| find(&mut root, node) == node).count()
}

/// The slow way: two edges lie on the same cycles if taking both away tears the graph.
fn slowly(nodes: usize, pairs: &[(usize, usize)]) -> Vec<Vec<bool>> {
    let whole = components(nodes, pairs, &[]);
    let torn = |a: usize, b: usize| a == b || components(nodes, pairs, &[a, b]) > whole;
    (0..pairs.len()).map(|a| (0..pairs.len()).map(|b| torn(a, b)).collect()).collect()
}

#[test]
fn random_graphs_are_classified_as_the_slow_way_does() {
    let mut seed = 3_u64;
    let mut below = |n: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((seed >> 33) as usize) % n
    };
    for _ in 0..400 {
        let blocks = 1 + below(9);
        let mut edges: Vec<(usize, usize)> =
            (0..below(2 * blocks + 1)).map(|_| (below(blocks), below(blocks))).collect();
        edges.sort_unstable();
        edges.dedup();
        let exits: Vec<usize> = (0..blocks).filter(|_| below(3) == 0).collect();
        let graph = graph(blocks, &edges, &exits);
        let (nodes, pairs) = (2 * blocks + 1, closed(&graph));
        let found = equivalent(nodes, &pairs);
        let expected = slowly(nodes, &pairs);
        for a in 0..pairs.len() {
            for b in 0..pairs.len() {
                assert_eq!(found[a] == found[b], expected[a][b], "{pairs:?}: {a} and {b}");
            }
        }
    }
}
