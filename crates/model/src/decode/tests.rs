use super::*;
use crate::machine::Class;
use crate::uop::{Flow, Reg, Uop};

const ALL: Habits = Habits {
    zero_idioms: true,
    move_elimination: true,
    branch_fusion: true,
    load_op_fusion: true,
    nop_fusion: true,
};
const PLAIN: Habits = Habits {
    zero_idioms: false,
    move_elimination: false,
    branch_fusion: false,
    load_op_fusion: false,
    nop_fusion: false,
};
const RAX: Reg = Reg(0);
const RBX: Reg = Reg(3);
const RSP: Reg = Reg(4);
const T0: Reg = Reg(59);
const T2: Reg = Reg(61);

fn block(instructions: &[&[u8]]) -> StaticBlock {
    let mut pc = 0x1000;
    let codes = instructions.iter().map(|text| {
        let mut bytes = [0; 15];
        bytes[..text.len()].copy_from_slice(text);
        let code = Code { pc, bytes, len: text.len() as u8 };
        pc += text.len() as u64;
        code
    });
    StaticBlock { instructions: codes.collect() }
}

/// The micro-ops of an instruction.
fn one(bytes: &[u8], habits: Habits) -> Vec<Uop> {
    decode(&block(&[bytes]), habits).instructions.remove(0).uops
}

fn classes(uops: &[Uop]) -> Vec<Class> {
    uops.iter().map(|uop| uop.class).collect()
}

#[test]
fn a_load_feeds_its_operation_and_shares_its_slot() {
    // add rax,[rbx+8]
    let uops = one(&[0x48, 0x03, 0x43, 0x08], ALL);
    assert_eq!(uops[0], Uop::new(Class::Load, &[RBX], &[T0]));
    assert_eq!(classes(&uops), [Class::Load, Class::Alu]);
    assert_eq!(&uops[1].sources[..2], &[RAX, T0]);
    assert_eq!(&uops[1].targets[..3], &[RAX, Reg::FLAGS, Reg::CARRY]);
    assert_eq!((uops[0].slots, uops[1].slots), (1, 0));
    assert_eq!(one(&[0x48, 0x03, 0x43, 0x08], PLAIN)[1].slots, 1);
}

#[test]
fn a_plain_load_or_store_does_no_work_of_its_own() {
    // mov rax,[rbx] ; mov [rbx],rax
    assert_eq!(one(&[0x48, 0x8b, 0x03], ALL), [Uop::new(Class::Load, &[RBX], &[RAX])]);
    assert_eq!(
        one(&[0x48, 0x89, 0x03], ALL),
        [
            Uop::new(Class::StoreAddress, &[RBX], &[]),
            Uop::new(Class::StoreData, &[RAX], &[]).sharing()
        ]
    );
}

#[test]
fn an_index_makes_a_load_another_class() {
    // mov rax,[rbx+rcx*8]
    assert_eq!(classes(&one(&[0x48, 0x8b, 0x04, 0xcb], ALL)), [Class::IndexedLoad]);
}

#[test]
fn a_read_modify_write_passes_its_result_to_the_store() {
    // add [rbx],rax
    let uops = one(&[0x48, 0x01, 0x03], ALL);
    let expected = [Class::Load, Class::Alu, Class::StoreAddress, Class::StoreData];
    assert_eq!(classes(&uops), expected);
    assert_eq!(uops[1].targets[0], T2);
    assert_eq!(uops[3].sources[0], T2);
    assert_eq!(uops.iter().map(|uop| uop.slots).sum::<u8>(), 2);
}

#[test]
fn clearing_a_register_depends_on_nothing_where_the_machine_knows_the_idiom() {
    // xor eax,eax ; pxor xmm0,xmm0 ; vpxor ymm0,ymm1,ymm1
    for bytes in [&[0x31, 0xc0][..], &[0x66, 0x0f, 0xef, 0xc0], &[0xc5, 0xf5, 0xef, 0xc1]] {
        let uops = one(bytes, ALL);
        assert_eq!(classes(&uops), [Class::Nop]);
        assert_eq!(uops[0].sources, [Reg::NONE; 4]);
    }
    assert_eq!(classes(&one(&[0x31, 0xc0], PLAIN)), [Class::Alu]);
    // xor eax,ebx is none
    assert_eq!(classes(&one(&[0x31, 0xd8], ALL)), [Class::Alu]);
}

#[test]
fn register_copies_vanish_where_the_machine_renames_them() {
    // mov rax,rbx ; mov al,bl merges, so it stays
    assert_eq!(one(&[0x48, 0x89, 0xd8], ALL), [Uop::new(Class::Nop, &[RBX], &[RAX])]);
    assert_eq!(classes(&one(&[0x48, 0x89, 0xd8], PLAIN)), [Class::Move]);
    let partial = one(&[0x88, 0xd8], ALL);
    assert_eq!(classes(&partial), [Class::Move]);
    assert!(partial[0].sources.contains(&RAX) && partial[0].sources.contains(&RBX));
}

#[test]
fn compare_and_branch_fuse_into_the_branch() {
    // cmp rax,rbx ; jne +2
    let text: [&[u8]; 2] = [&[0x48, 0x39, 0xd8], &[0x75, 0x02]];
    let fused = decode(&block(&text), ALL).instructions;
    assert_eq!(classes(&fused[0].uops), [Class::Nop]);
    assert_eq!(classes(&fused[1].uops), [Class::Branch]);
    assert_eq!(&fused[1].uops[0].sources[..2], &[RAX, RBX]);
    assert_eq!(fused[0].uops[0].slots + fused[1].uops[0].slots, 1);
    assert!(fused[0].traits.is_fused);
    let apart = decode(&block(&text), PLAIN).instructions;
    assert_eq!(classes(&apart[0].uops), [Class::Alu]);
    assert_eq!(apart[1].uops[0].sources[0], Reg::FLAGS);
    assert_eq!((apart[1].flow, apart[1].target), (Flow::Conditional, 0x1007));
}

#[test]
fn a_fused_branch_that_keeps_a_result_is_another_class() {
    // dec rax ; jne +2
    let text: [&[u8]; 2] = [&[0x48, 0xff, 0xc8], &[0x75, 0x02]];
    let fused = decode(&block(&text), ALL).instructions;
    assert_eq!(classes(&fused[1].uops), [Class::FusedBranch]);
    assert!(fused[1].uops[0].targets.contains(&RAX));
}

#[test]
fn a_no_op_shares_the_slot_before_it_and_a_second_one_does_not() {
    let slots = |text: &[&[u8]], habits| -> Vec<u8> {
        let decoded = decode(&block(text), habits).instructions;
        decoded.iter().map(|one| one.uops.iter().map(|uop| uop.slots).sum()).collect()
    };
    let (nop, long_nop): (&[u8], &[u8]) = (&[0x90], &[0x0f, 0x1f, 0x40, 0x00]);
    // mov eax,[rbx]
    let load: &[u8] = &[0x8b, 0x03];
    assert_eq!(slots(&[nop, long_nop, nop, nop, nop], ALL), [1, 0, 1, 0, 1]);
    assert_eq!(slots(&[load, nop, nop, load], ALL), [1, 0, 1, 1]);
    assert_eq!(slots(&[load, nop, nop, load], PLAIN), [1, 1, 1, 1]);
    // jne +2 ; xor eax,eax is no no-op though it needs no unit
    assert_eq!(slots(&[&[0x75, 0x02], nop, &[0x31, 0xc0]], ALL), [1, 1, 1]);
}

#[test]
fn the_stack_pointer_moves_without_a_unit() {
    // push rax ; pop rbx ; call +0 ; ret
    let push = one(&[0x50], ALL);
    assert_eq!(classes(&push), [Class::StoreAddress, Class::StoreData, Class::Nop]);
    assert_eq!(push[2], Uop::new(Class::Nop, &[RSP], &[RSP]).sharing());
    assert_eq!(push[1].sources[0], RAX);
    let pop = one(&[0x5b], ALL);
    assert_eq!(classes(&pop), [Class::Load, Class::Nop]);
    assert_eq!(pop[0].targets[0], RBX);
    let call = decode(&block(&[&[0xe8, 0, 0, 0, 0]]), ALL).instructions.remove(0);
    assert_eq!(call.flow, Flow::Call);
    let order = [Class::StoreAddress, Class::StoreData, Class::Nop, Class::Branch];
    assert_eq!(classes(&call.uops), order);
    assert_eq!(call.uops[1].sources, [Reg::NONE; 4]);
    let ret = decode(&block(&[&[0xc3]]), ALL).instructions.remove(0);
    assert_eq!(ret.flow, Flow::Return);
    assert_eq!(classes(&ret.uops), [Class::Load, Class::Nop, Class::Branch]);
    assert_eq!(ret.uops[2].sources[0], T0);
}

#[test]
fn arithmetic_falls_into_its_class() {
    let cases: [(&[u8], Class); 18] = [
        (&[0x48, 0x0f, 0xaf, 0xc3], Class::Mul),       // imul rax,rbx
        (&[0xf7, 0xf3], Class::Div32),                 // div ebx
        (&[0x48, 0xf7, 0xf3], Class::Div64),           // div rbx
        (&[0x48, 0xc1, 0xe0, 0x03], Class::Shift),     // shl rax,3
        (&[0x48, 0x11, 0xd8], Class::FlagAlu),         // adc rax,rbx
        (&[0x48, 0x8d, 0x44, 0x4b, 0x01], Class::Lea), // lea rax,[rbx+rcx*2+1]
        (&[0xf2, 0x0f, 0x58, 0xc1], Class::FpAdd),     // addsd
        (&[0xf3, 0x0f, 0x59, 0xc1], Class::FpMul),     // mulss
        (&[0xf2, 0x0f, 0x5e, 0xc1], Class::FpDiv64),   // divsd
        (&[0xf3, 0x0f, 0x51, 0xc1], Class::FpSqrt32),  // sqrtss
        (&[0xc4, 0xe2, 0xf1, 0xb8, 0xc2], Class::Fma), // vfmadd231pd
        (&[0x66, 0x0f, 0x70, 0xc1, 0x1b], Class::Shuffle), // pshufd
        (&[0x66, 0x0f, 0xfe, 0xc1], Class::VecAlu),    // paddd
        (&[0xd8, 0xc1], Class::X87),                   // fadd st,st(1)
        (&[0x66, 0x0f, 0x2f, 0xc1], Class::FpFlags),   // comisd
        (&[0xf2, 0x48, 0x0f, 0x2c, 0xc1], Class::ConvertToInt), // cvttsd2si rax,xmm1
        (&[0xf2, 0x48, 0x0f, 0x2a, 0xc1], Class::ConvertFromInt), // cvtsi2sd xmm0,rcx
        (&[0xf3, 0x0f, 0x5a, 0xc1], Class::Convert),   // cvtss2sd
    ];
    for (bytes, class) in cases {
        assert_eq!(classes(&one(bytes, ALL)), [class], "{bytes:02x?}");
    }
}

#[test]
fn floating_point_operations_are_counted_by_element() {
    let flops = |bytes: &[u8]| decode(&block(&[bytes]), ALL).instructions[0].traits.flops;
    assert_eq!(flops(&[0xf2, 0x0f, 0x58, 0xc1]), 1); // addsd
    assert_eq!(flops(&[0x66, 0x0f, 0x58, 0xc1]), 2); // addpd
    assert_eq!(flops(&[0x0f, 0x58, 0xc1]), 4); // addps
    assert_eq!(flops(&[0xc4, 0xe2, 0xf5, 0xb8, 0xc2]), 8); // vfmadd231pd ymm
}

#[test]
fn the_increment_leaves_the_carry_alone() {
    let uops = one(&[0x48, 0xff, 0xc0], ALL);
    assert!(uops[0].targets.contains(&Reg::FLAGS));
    assert!(!uops[0].targets.contains(&Reg::CARRY));
}

#[test]
fn any_bytes_decode_to_at_least_one_micro_op() {
    let rounds: u32 =
        std::env::var("WHITHER_FUZZ_ROUNDS").ok().and_then(|r| r.parse().ok()).unwrap_or(20_000);
    let mut state = 88_172_645_463_325_252_u64;
    for _ in 0..rounds {
        let mut bytes = [0_u8; 15];
        for byte in &mut bytes {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            *byte = state as u8;
        }
        let code = Code { pc: state, bytes, len: (state >> 40) as u8 % 16 };
        let block = StaticBlock { instructions: [code, code].into() };
        for instruction in decode(&block, ALL).instructions {
            assert!(!instruction.uops.is_empty());
            let in_range = |reg: &Reg| usize::from(reg.0) < Reg::COUNT;
            assert!(instruction.uops.iter().all(|u| u.sources.iter().all(in_range)));
            assert!(instruction.uops.iter().all(|u| !u.targets.contains(&Reg::NONE)));
        }
    }
}
