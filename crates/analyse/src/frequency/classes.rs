//! Which blocks and edges must run equally often, whatever the program does.
//!
//! Two edges of a graph in which everything lies on a cycle are *cycle equivalent* if every cycle
//! holds both or neither. Flow is conserved, so their counts are equal. Johnson, Pearson and
//! Pingali ("The program structure tree", 1994) find all classes in one depth-first walk without
//! regard to direction.
//!
//! ```text
//!      start ──► in(0)          A block becomes an edge from its `in` to its `out`, so that
//!        ▲         │ block 0    blocks and edges are classified together. All exits lead to
//!        │       out(0)         `start`, which closes the cycles; so do blocks from which no
//!        │        ╱  ╲          exit can be reached, or an infinite loop would lie on no
//!      exits ◄── …    …         cycle through the entry.
//! ```

use image::FlowGraph;

use super::brackets::{Arena, List};

/// Classes of blocks and edges; equal numbers run equally often.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Classes {
    /// By block.
    pub of_block: Vec<usize>,
    /// By edge of the graph.
    pub of_edge: Vec<usize>,
    /// How many classes there are.
    pub count: usize,
}

/// Classifies a procedure's blocks and edges.
///
/// With missing edges nothing may be deduced from flow: every block and edge is its own class.
pub fn classes(graph: &FlowGraph) -> Classes {
    let (blocks, edges) = (graph.blocks.len(), graph.edges.len());
    if graph.has_missing_edges() {
        let of_block = (0..blocks).collect();
        let of_edge = (blocks..blocks + edges).collect();
        return Classes { of_block, of_edge, count: blocks + edges };
    }
    let found = equivalent(2 * blocks + 1, &closed(graph));
    // Classes of the edges that close the cycles are not ours to report: number anew.
    let mut numbers = std::collections::HashMap::new();
    let mut number = |class: usize| {
        let next = numbers.len();
        *numbers.entry(class).or_insert(next)
    };
    let of_block = found[..blocks].iter().map(|&class| number(class)).collect();
    let of_edge = found[blocks..blocks + edges].iter().map(|&class| number(class)).collect();
    Classes { of_block, of_edge, count: numbers.len() }
}

/// The graph as pairs of nodes: blocks first, then its edges, then what closes the cycles.
pub(super) fn closed(graph: &FlowGraph) -> Vec<(usize, usize)> {
    let start = 2 * graph.blocks.len();
    let (into, out) = (|block: usize| 2 * block, |block: usize| 2 * block + 1);
    let mut pairs: Vec<(usize, usize)> =
        (0..graph.blocks.len()).map(|block| (into(block), out(block))).collect();
    pairs.extend(graph.edges.iter().map(|edge| (out(edge.from), into(edge.to))));
    pairs.extend(graph.entries.iter().map(|&entry| (start, into(entry))));
    // A loop that nothing enters has no entry of its own; it must hang together with the rest.
    pairs.extend(unreached(graph).into_iter().map(|block| (start, into(block))));
    pairs.extend(leaving(graph).into_iter().map(|block| (out(block), start)));
    pairs
}

/// One block of each stretch that no entry leads to.
fn unreached(graph: &FlowGraph) -> Vec<usize> {
    let next = adjacency(graph.blocks.len(), graph.edges.iter().map(|e| (e.from, e.to)));
    let mut seen = vec![false; graph.blocks.len()];
    graph.entries.iter().for_each(|&entry| spread(entry, &next, &mut seen));
    let mut roots = Vec::new();
    for block in 0..graph.blocks.len() {
        if !seen[block] {
            roots.push(block);
            spread(block, &next, &mut seen);
        }
    }
    roots
}

/// Blocks that leave the procedure, and one of each stretch that never does.
fn leaving(graph: &FlowGraph) -> Vec<usize> {
    let before = adjacency(graph.blocks.len(), graph.edges.iter().map(|e| (e.to, e.from)));
    let mut seen = vec![false; graph.blocks.len()];
    let mut roots: Vec<usize> = Vec::new();
    for (block, it) in graph.blocks.iter().enumerate() {
        if it.exit.is_some() {
            roots.push(block);
            spread(block, &before, &mut seen);
        }
    }
    // The last block of a loop is where its back edge is, as a rule.
    for block in (0..graph.blocks.len()).rev() {
        if !seen[block] {
            roots.push(block);
            spread(block, &before, &mut seen);
        }
    }
    roots
}

fn adjacency(nodes: usize, pairs: impl Iterator<Item = (usize, usize)>) -> Vec<Vec<usize>> {
    let mut lists = vec![Vec::new(); nodes];
    pairs.for_each(|(from, to)| lists[from].push(to));
    lists
}

fn spread(from: usize, next: &[Vec<usize>], seen: &mut [bool]) {
    let mut open = vec![from];
    while let Some(node) = open.pop() {
        if !std::mem::replace(&mut seen[node], true) {
            open.extend(next[node].iter().filter(|&&onward| !seen[onward]));
        }
    }
}

/// The class of every edge of a connected graph without bridges.
pub(super) fn equivalent(nodes: usize, pairs: &[(usize, usize)]) -> Vec<usize> {
    let tree = Tree::walk(nodes, pairs);
    let mut state = State::new(nodes, pairs.len());
    // From the leaves up: a node comes after all that were found below it.
    for &node in tree.order.iter().rev() {
        state.visit(node, &tree);
    }
    for &edge in &tree.own {
        state.class_of[edge] = state.new_class();
    }
    state.class_of
}

/// A depth-first walk, directions ignored.
struct Tree {
    /// Nodes as they were found; the root first.
    order: Vec<usize>,
    /// When each node was found.
    number: Vec<usize>,
    /// The edge that a node was found by, and the node at its other end.
    parent: Vec<Option<(usize, usize)>>,
    children: Vec<Vec<usize>>,
    /// Edges from a node to one found before it on the same path.
    up: Vec<Vec<(usize, usize)>>,
    /// The same edges, at their other end.
    down: Vec<Vec<usize>>,
    /// Edges from a node to itself.
    own: Vec<usize>,
}

impl Tree {
    fn walk(nodes: usize, pairs: &[(usize, usize)]) -> Tree {
        let mut around: Vec<Vec<(usize, usize)>> = vec![Vec::new(); nodes];
        let mut tree = Tree {
            order: Vec::new(),
            number: vec![usize::MAX; nodes],
            parent: vec![None; nodes],
            children: vec![Vec::new(); nodes],
            up: vec![Vec::new(); nodes],
            down: vec![Vec::new(); nodes],
            own: Vec::new(),
        };
        for (edge, &(a, b)) in pairs.iter().enumerate() {
            if a == b {
                tree.own.push(edge);
                continue;
            }
            around[a].push((edge, b));
            around[b].push((edge, a));
        }
        let mut used = vec![false; pairs.len()];
        // From the last node, `start`, down; others only if the graph is torn.
        for root in (0..nodes).rev() {
            if tree.number[root] == usize::MAX {
                tree.from(root, &around, &mut used);
            }
        }
        tree
    }

    fn from(&mut self, root: usize, around: &[Vec<(usize, usize)>], used: &mut [bool]) {
        let mut path = vec![(root, 0)];
        self.find(root);
        while let Some((node, at)) = path.last_mut() {
            let node = *node;
            let Some(&(edge, other)) = around[node].get(*at) else {
                path.pop();
                continue;
            };
            *at += 1;
            if std::mem::replace(&mut used[edge], true) {
                continue;
            }
            if self.number[other] == usize::MAX {
                self.parent[other] = Some((edge, node));
                self.children[node].push(other);
                self.find(other);
                path.push((other, 0));
            } else {
                self.up[node].push((edge, other));
                self.down[other].push(edge);
            }
        }
    }

    fn find(&mut self, node: usize) {
        self.number[node] = self.order.len();
        self.order.push(node);
    }
}

struct State {
    arena: Arena,
    lists: Vec<List>,
    /// How far up anything below a node reaches.
    highest: Vec<usize>,
    /// The bracket of a back edge.
    bracket_of: Vec<usize>,
    /// The back edge of a bracket; brackets that only cap have none.
    edge_of: Vec<Option<usize>>,
    /// Brackets that cap here, by node.
    caps: Vec<Vec<usize>>,
    class_of: Vec<usize>,
    next_class: usize,
}

const UNKNOWN: usize = usize::MAX;

impl State {
    fn new(nodes: usize, edges: usize) -> State {
        State {
            arena: Arena::default(),
            lists: vec![List::EMPTY; nodes],
            highest: vec![usize::MAX; nodes],
            bracket_of: vec![UNKNOWN; edges],
            edge_of: Vec::new(),
            caps: vec![Vec::new(); nodes],
            class_of: vec![UNKNOWN; edges],
            next_class: 0,
        }
    }

    fn visit(&mut self, node: usize, tree: &Tree) {
        let own_reach = tree.up[node].iter().map(|&(_, to)| tree.number[to]).min();
        let own_reach = own_reach.unwrap_or(usize::MAX);
        // How far up the two children reach that reach furthest.
        let (mut first, mut second) = (usize::MAX, usize::MAX);
        let mut list = List::EMPTY;
        for &child in &tree.children[node] {
            let reach = self.highest[child];
            (first, second) =
                if reach < first { (reach, first) } else { (first, second.min(reach)) };
            list = self.arena.join(self.lists[child], list);
        }
        self.highest[node] = own_reach.min(first);
        self.close(node, tree, &mut list);
        for &(edge, _) in &tree.up[node] {
            let bracket = self.bracket(Some(edge));
            self.bracket_of[edge] = bracket;
            self.arena.push(&mut list, bracket);
        }
        // Two children reach above this node: a bracket that no edge stands for keeps the
        // classes of their paths apart from each other.
        if second < own_reach && second < tree.number[node] {
            let cap = self.bracket(None);
            self.caps[tree.order[second]].push(cap);
            self.arena.push(&mut list, cap);
        }
        if let Some((edge, _)) = tree.parent[node] {
            self.classify(edge, &list);
        }
        self.lists[node] = list;
    }

    /// Brackets that end here span nothing above.
    fn close(&mut self, node: usize, tree: &Tree, list: &mut List) {
        for cap in std::mem::take(&mut self.caps[node]) {
            self.arena.delete(list, cap);
        }
        for &edge in &tree.down[node] {
            self.arena.delete(list, self.bracket_of[edge]);
            if self.class_of[edge] == UNKNOWN {
                self.class_of[edge] = self.new_class();
            }
        }
    }

    fn classify(&mut self, tree_edge: usize, list: &List) {
        let next = &mut self.next_class;
        let mut new_class = || {
            *next += 1;
            *next - 1
        };
        let class = self.arena.class(list, &mut new_class);
        self.class_of[tree_edge] = class;
        // A single bracket lies on every cycle that the tree edge lies on.
        if list.len() == 1
            && let Some(edge) = list.top().and_then(|top| self.edge_of[top])
        {
            self.class_of[edge] = class;
        }
    }

    fn bracket(&mut self, edge: Option<usize>) -> usize {
        self.edge_of.push(edge);
        self.arena.add()
    }

    fn new_class(&mut self) -> usize {
        self.next_class += 1;
        self.next_class - 1
    }
}
