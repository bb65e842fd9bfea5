use super::*;

/// An image that is nothing but a table at 0x2000.
struct Around {
    table: Vec<u8>,
    never: Vec<u64>,
}

impl Surroundings for Around {
    fn data(&self, address: u64, len: usize) -> Option<&[u8]> {
        let at = usize::try_from(address.checked_sub(0x2000)?).ok()?;
        self.table.get(at..at + len)
    }

    fn returns(&self, address: u64) -> bool {
        !self.never.contains(&address)
    }
}

fn alone() -> Around {
    Around { table: Vec::new(), never: Vec::new() }
}

fn build(code: &[u8], around: &Around) -> FlowGraph {
    FlowGraph::build(&[CodePart { address: 0x1000, code }], around)
}

fn edges(graph: &FlowGraph) -> Vec<(usize, usize, EdgeKind)> {
    graph.edges.iter().map(|edge| (edge.from, edge.to, edge.kind)).collect()
}

#[test]
fn a_loop_with_a_branch_inside_has_four_blocks() {
    let code = [
        0x31, 0xc0, // 1000 xor eax,eax
        0xff, 0xc0, // 1002 inc eax          <- loop
        0xa8, 0x01, // 1004 test al,1
        0x74, 0x02, // 1006 je 100a
        0xff, 0xc3, // 1008 inc ebx
        0x39, 0xf8, // 100a cmp eax,edi
        0x75, 0xf4, // 100c jne 1002
        0xc3, // 100e ret
    ];
    let graph = build(&code, &alone());
    let blocks: Vec<(u64, Option<Exit>)> =
        graph.blocks.iter().map(|b| (graph.steps[b.first].address, b.exit)).collect();
    assert_eq!(
        blocks,
        [
            (0x1000, None),
            (0x1002, None),
            (0x1008, None),
            (0x100a, None),
            (0x100e, Some(Exit::Return))
        ]
    );
    use EdgeKind::{Fall, Taken};
    assert_eq!(
        edges(&graph),
        [(0, 1, Fall), (1, 2, Fall), (1, 3, Taken), (2, 3, Fall), (3, 1, Taken), (3, 4, Fall)]
    );
    assert_eq!(graph.entries, [0]);
    assert!(!graph.has_missing_edges());
}

#[test]
fn calls_that_return_stay_inside_a_block_and_others_end_it() {
    let code = [
        0xe8, 0xfb, 0x0f, 0x00, 0x00, // 1000 call 2000
        0x85, 0xc0, // 1005 test eax,eax
        0x75, 0x05, // 1007 jne 100e
        0xe8, 0xf2, 0x1f, 0x00, 0x00, // 1009 call 3000, never returns
        0xc3, // 100e ret
    ];
    let graph = build(&code, &Around { table: Vec::new(), never: vec![0x3000] });
    let exits: Vec<Option<Exit>> = graph.blocks.iter().map(|block| block.exit).collect();
    assert_eq!(exits, [None, Some(Exit::NoReturn), Some(Exit::Return)]);
    assert_eq!(graph.blocks[0].end, 3);
    assert!(graph.ends_in_call(1) && !graph.ends_in_call(0));
}

/// The relative shape, as gcc and clang write it.
fn switch(bound: u8) -> Vec<u8> {
    let mut code = vec![
        0x83, 0xff, bound, // 1000 cmp edi,bound
        0x77, 0x15, // 1003 ja 101a
        0x48, 0x8d, 0x15, 0xf4, 0x0f, 0x00, 0x00, // 1005 lea rdx,[rip+0xff4] = 2000
        0x48, 0x63, 0x04, 0xba, // 100c movsxd rax,[rdx+rdi*4]
        0x48, 0x01, 0xd0, // 1010 add rax,rdx
        0x3e, 0xff, 0xe0, // 1013 notrack jmp rax
    ];
    // 1016, 1018, 101a: three ways out, two bytes each.
    code.extend([0x90, 0xc3, 0x90, 0xc3, 0x90, 0xc3]);
    code
}

fn relative(targets: &[i64]) -> Vec<u8> {
    targets.iter().flat_map(|target| ((target - 0x2000) as i32).to_le_bytes()).collect()
}

#[test]
fn a_table_of_distances_is_read_up_to_its_bound() {
    // The fourth entry is another table's.
    let around = Around { table: relative(&[0x1016, 0x1018, 0x1016, 0x1001]), never: Vec::new() };
    let graph = build(&switch(2), &around);
    assert!(!graph.has_missing_edges());
    use EdgeKind::{Fall, Switch, Taken};
    assert_eq!(edges(&graph), [(0, 1, Fall), (0, 4, Taken), (1, 2, Switch), (1, 3, Switch)]);
}

#[test]
fn a_table_that_leads_elsewhere_is_not_believed() {
    let around = Around { table: relative(&[0x1016, 0x1017, 0x5000]), never: Vec::new() };
    let graph = build(&switch(2), &around);
    assert!(graph.has_missing_edges());
    assert_eq!(graph.steps[graph.unresolved[0]].address, 0x1013);
    // What the jump may lead to is entered from outside.
    assert_eq!(graph.entries.len(), 3);
}

#[test]
fn a_table_of_addresses_is_read_too() {
    let code = [
        0x83, 0xff, 0x01, // 1000 cmp edi,1
        0x77, 0x07, // 1003 ja 100c
        0xff, 0x24, 0xfd, 0x00, 0x20, 0x00, 0x00, // 1005 jmp [rdi*8+2000]
        0xc3, // 100c ret
        0x90, 0xc3, // 100d nop; ret
    ];
    let table = [0x100c_u64, 0x100d].iter().flat_map(|target| target.to_le_bytes()).collect();
    let graph = build(&code, &Around { table, never: Vec::new() });
    let switched = graph.edges.iter().filter(|edge| edge.kind == EdgeKind::Switch).count();
    assert_eq!((switched, graph.unresolved.len()), (2, 0));
}

#[test]
fn filler_is_no_block_and_a_jump_into_an_instruction_is_noted() {
    let code = [
        0xeb, 0x04, // 1000 jmp 1006
        0x66, 0x90, 0x90, 0xcc, // filler
        0xc3, // 1006 ret
    ];
    let graph = build(&code, &alone());
    assert_eq!(graph.blocks.len(), 2);
    assert_eq!(graph.entries, [0]);
    // je into the immediate of the mov, which reads as ret.
    let code = [0x74, 0x01, 0xb8, 0xc3, 0x00, 0x00, 0x00, 0xc3];
    let graph = build(&code, &alone());
    assert_eq!(graph.overlaps, 1);
    assert!(graph.has_missing_edges() && graph.step_at(0x1003).is_some());
}

#[test]
fn the_entry_is_where_the_first_part_begins_even_if_another_lies_before_it() {
    let cold = CodePart { address: 0x800, code: &[0x0f, 0x0b] }; // ud2
    let hot = [0x85, 0xff, 0x0f, 0x84, 0xf8, 0xf7, 0xff, 0xff, 0xc3]; // test; je 800; ret
    let graph = FlowGraph::build(&[CodePart { address: 0x1000, code: &hot }, cold], &alone());
    assert_eq!(graph.steps[graph.blocks[graph.entries[0]].first].address, 0x1000);
    assert_eq!(graph.entries.len(), 1);
    assert_eq!(graph.blocks[0].exit, Some(Exit::Trap));
}

#[test]
fn any_bytes_give_a_sound_graph() {
    let mut seed = 7_u64;
    let mut byte = || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as u8
    };
    for _ in 0..2000 {
        let code: Vec<u8> = (0..64).map(|_| byte()).collect();
        let around = Around { table: (0..64).map(|_| byte()).collect(), never: Vec::new() };
        let graph = build(&code, &around);
        let mut last = 0;
        for (k, block) in graph.blocks.iter().enumerate() {
            assert!(block.first >= last && block.first < block.end);
            last = block.end;
            let leaves = graph.edges.iter().any(|edge| edge.from == k);
            assert!(leaves || block.exit.is_some());
        }
        assert!(graph.edges.iter().all(|e| e.from.max(e.to) < graph.blocks.len()));
        assert_eq!(
            graph.entries.first().map(|&k| graph.steps[graph.blocks[k].first].address),
            Some(0x1000)
        );
    }
}
