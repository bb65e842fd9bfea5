//! A minimum-cost-flow network in DIMACS form.

use super::rng::Rng;

/// A network of `nodes` nodes that always has a solution: a ring with room for the whole flow
/// carries what the random arcs, five a node and cheaper, do not.
pub(super) fn dimacs(seed: u64, nodes: u64) -> Vec<u8> {
    let mut rng = Rng::new(seed);
    let nodes = nodes.max(4);
    let pairs = nodes / 4;
    let mut supply = vec![0_i64; nodes as usize + 1];
    let mut total = 0_i64;
    for _ in 0..pairs {
        let amount = rng.between(1, 40) as i64;
        for (node, signed) in [(rng.between(1, nodes), amount), (rng.between(1, nodes), -amount)] {
            if let Some(slot) = supply.get_mut(node as usize) {
                *slot += signed;
            }
        }
        total += amount;
    }
    let mut arcs = String::new();
    let mut count = 0_u64;
    for node in 1..=nodes {
        let next = node % nodes + 1;
        arcs.push_str(&format!("a {node} {next} 0 {total} {}\n", rng.between(500, 1000)));
        for _ in 0..5 {
            let to = rng.between(1, nodes);
            if to != node {
                let room = rng.between(5, 60);
                arcs.push_str(&format!("a {node} {to} 0 {room} {}\n", rng.between(1, 400)));
                count += 1;
            }
        }
        count += 1;
    }
    let mut out = format!("p min {nodes} {count}\n");
    for (node, amount) in supply.iter().enumerate().filter(|(_, amount)| **amount != 0) {
        out.push_str(&format!("n {node} {amount}\n"));
    }
    out.push_str(&arcs);
    out.into_bytes()
}
