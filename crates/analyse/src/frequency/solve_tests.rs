use super::classes_tests::graph;
use super::solve::{FlowSolution, Seen, Settled, nearest_flow};

fn seen(value: f64, sigma: f64) -> Option<Seen> {
    Some(Seen { value, variance: sigma * sigma })
}

/// The largest difference between what enters and what leaves any block.
fn imbalance(graph: &image::FlowGraph, flow: &FlowSolution) -> f64 {
    let mut worst = 0.0_f64;
    for (k, block) in graph.blocks.iter().enumerate() {
        let sum = |pick: &dyn Fn(&image::Edge) -> bool| -> f64 {
            graph.edges.iter().zip(&flow.edges).filter(|(e, _)| pick(e)).map(|(_, x)| x).sum()
        };
        if !graph.entries.contains(&k) {
            worst = worst.max((sum(&|e| e.to == k) - flow.blocks[k]).abs());
        }
        if block.exit.is_none() {
            worst = worst.max((sum(&|e| e.from == k) - flow.blocks[k]).abs());
        }
    }
    worst
}

#[test]
fn sides_of_a_diamond_share_what_does_not_fit() {
    // Ends seen as 100 ± 1 each, sides as 70 and 50, ± 10: with total t the sides shrink equally,
    // and (t − 100)²·2 + (120 − t)²/200 is least at t = 100 + 20/401.
    let graph = graph(4, &[(0, 1), (0, 2), (1, 3), (2, 3)], &[3]);
    let blocks = [seen(100.0, 1.0), seen(70.0, 10.0), seen(50.0, 10.0), seen(100.0, 1.0)];
    let flow = nearest_flow(&graph, &blocks, &[None; 4]);
    let total = 100.0 + 20.0 / 401.0;
    for (x, expected) in
        flow.blocks.iter().zip([total, total / 2.0 + 10.0, total / 2.0 - 10.0, total])
    {
        // What was not seen pulls towards nothing, by a thousandth part of the weight at most.
        assert!((x - expected).abs() < 0.05, "{flow:?}");
    }
    assert!(imbalance(&graph, &flow) < 1e-6);
}

#[test]
fn what_cannot_be_negative_is_nothing() {
    // The loop's body is seen more often than its head, which is impossible by this way in.
    let graph = graph(3, &[(0, 1), (0, 2), (1, 2)], &[2]);
    let blocks = [seen(100.0, 1.0), seen(180.0, 1.0), seen(100.0, 1.0)];
    let flow = nearest_flow(&graph, &blocks, &[None; 3]);
    // All goes through 1; 0 and 1 and 2 are equal: the mean of 100, 180, 100.
    assert!((flow.blocks[1] - 380.0 / 3.0).abs() < 0.1, "{flow:?}");
    assert!(flow.edges[1].abs() < 1e-6);
}

#[test]
fn a_loop_without_an_exit_is_solved_too() {
    let graph = graph(3, &[(0, 1), (1, 2), (2, 1)], &[]);
    let blocks = [seen(1.0, 0.1), seen(1e6, 1e3), seen(1.002e6, 1e3)];
    let flow = nearest_flow(&graph, &blocks, &[None; 3]);
    assert!((flow.blocks[1] - 1.001e6).abs() < 1e3, "{flow:?}");
    // What entered stays in the loop: that once, and no more, does not balance.
    assert!((imbalance(&graph, &flow) - flow.blocks[0]).abs() < 1e-2);
}

#[test]
fn true_flows_come_back_as_they_are_and_random_ones_balance() {
    let mut seed = 11_u64;
    let mut below = |n: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((seed >> 33) as usize) % n
    };
    for _ in 0..25 {
        let blocks = 4 + below(40);
        // Forward edges to the next block, and some jumps anywhere.
        let mut edges: Vec<(usize, usize)> = (1..blocks).map(|k| (k - 1, k)).collect();
        edges.extend((0..below(blocks)).map(|_| (below(blocks - 1), below(blocks))));
        edges.sort_unstable();
        edges.dedup();
        let graph = graph(blocks, &edges, &[blocks - 1]);
        // A random walk from the entry to the exit, many times, is a flow.
        let mut runs = vec![0.0; blocks];
        for _ in 0..300 {
            let (mut at, mut steps) = (0, 0);
            while at + 1 < blocks {
                runs[at] += 1.0;
                steps += 1;
                let ways: Vec<usize> =
                    edges.iter().filter(|(from, _)| *from == at).map(|(_, to)| *to).collect();
                at = if steps > 200 { at + 1 } else { ways[below(ways.len())] };
            }
            runs[at] += 1.0;
        }
        let exact: Vec<Option<Seen>> = runs.iter().map(|&x| seen(x, 0.01 * x + 0.01)).collect();
        let flow = nearest_flow(&graph, &exact, &vec![None; edges.len()]);
        for (found, truth) in flow.blocks.iter().zip(&runs) {
            assert!((found - truth).abs() <= 0.005 * truth + 0.05, "{found} for {truth}");
        }
        assert!(imbalance(&graph, &flow) <= 1e-5 * runs.iter().fold(0.0, |a: f64, &b| a.max(b)));
        let wild: Vec<Option<Seen>> = (0..blocks)
            .map(|_| (below(3) > 0).then(|| seen(below(1000) as f64, 20.0)).flatten())
            .collect();
        let flow = nearest_flow(&graph, &wild, &vec![None; edges.len()]);
        assert!(flow.blocks.iter().chain(&flow.edges).all(|&x| x >= 0.0));
        assert!(imbalance(&graph, &flow) < 1e-2, "{}", flow.imbalance);
    }
}

#[test]
fn views_that_contradict_each_other_everywhere_still_settle() {
    // A ladder in which every block was seen once, however long the way round it: nothing fits, and
    // most ways carry nothing in the end.
    let blocks = 400;
    let mut edges = Vec::new();
    for k in 0..blocks - 1 {
        edges.push((k, k + 1));
        edges.push((k, (k * 7 + 3) % blocks));
        if k % 3 == 0 {
            edges.push((k, (k + 2).min(blocks - 1)));
        }
    }
    let graph = graph(blocks, &edges, &[blocks - 1]);
    let views: Vec<Option<Seen>> = (0..blocks).map(|k| seen(1.0 + (k % 5) as f64, 0.3)).collect();
    let flow = nearest_flow(&graph, &views, &vec![None; edges.len()]);
    assert!(flow.imbalance < 1e-9, "{}", flow.imbalance);
    assert!(imbalance(&graph, &flow) < 1e-6);
    // No flow is nearer: any round trip, however small, would depart further from what was seen.
    let cost = |blocks: &[f64]| -> f64 {
        let off = blocks.iter().zip(&views).map(|(x, seen)| x - seen.map_or(0.0, |s| s.value));
        off.map(|off| off * off).sum()
    };
    let least = cost(&flow.blocks);
    for along in graph.edges.iter().filter(|edge| edge.from > edge.to) {
        let mut moved = flow.blocks.clone();
        moved[along.to..=along.from].iter_mut().for_each(|x| *x += 1e-3);
        assert!(cost(&moved) >= least - 2e-5, "{along:?}");
    }
}

#[test]
fn two_views_of_one_flow_are_as_sure_as_their_weighted_mean() {
    // Deviations of 3 and 4: one over the root of 1/9 + 1/16.
    let graph = graph(2, &[(0, 1)], &[1]);
    let blocks = [seen(1000.0, 3.0), seen(1001.0, 4.0)];
    let settled = Settled::of(&graph, &blocks, &[None], 0.0, None);
    let spread = settled.spread(4000).unwrap();
    for found in spread.blocks.iter().chain(&spread.edges) {
        // A square has a deviation of 5.5 a draw: the mean of 4,000 is within 0.6 always.
        assert!((found * found - 5.76).abs() < 0.6, "{spread:?}");
    }
}
