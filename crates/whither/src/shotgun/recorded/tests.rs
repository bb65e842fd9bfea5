use model::machine::Machine;
use perf::Mapping;
use recording::{Item, Sample};
use vocab::LoadLevel;

use super::*;

/// A program of the image room's tests: `_start` calls through a linkage table.
const PROGRAM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../image/tests/fixtures/calls");

fn item(body: Body) -> Item {
    Item { time_ns: 0, event: 0, body }
}

fn mapped(path: &str, start: u64) -> Item {
    let mapping = Mapping {
        pid: Pid(7),
        start: Pc(start),
        length: 0x10_0000,
        file_offset: 0,
        executable: true,
        path: path.to_owned(),
        build_id: None,
    };
    item(Body::Mapped { mapping, in_kernel: false })
}

fn sample(pc: u64, branches: &[(u64, u64, bool)], load: Option<RawLoad>) -> Item {
    let branch = |&(from, to, mispredicted): &(u64, u64, bool)| RawBranch {
        from: Pc(from),
        to: Pc(to),
        mispredicted,
        cycles: None,
    };
    item(Body::Sample(Box::new(Sample {
        mode: SampleMode::User,
        pid: Pid(7),
        pc: Pc(pc),
        chain: Vec::new(),
        branches: branches.iter().map(branch).collect(),
        load,
        period: None,
    })))
}

fn reader() -> Reader {
    Reader::new(&Machine::named("icost-table6").unwrap())
}

/// Where `_start` begins in the file, its first call, and what that calls.
fn start() -> (u64, u64, u64) {
    let bytes = std::fs::read(PROGRAM).unwrap();
    let binary = image::Binary::parse(&bytes).unwrap();
    let start = binary.procedures().find(vocab::Offset(0x29d)).unwrap();
    let listing = binary.disassemble(&bytes, start, image::Syntax::Intel, "calls").unwrap();
    let offset = |address: u64| binary.offset_of(address).unwrap().0;
    let call = listing.instructions.iter().find(|one| one.flow == image::Flow::Call).unwrap();
    let first = listing.instructions[0].address;
    (offset(first), offset(call.address), offset(call.target.unwrap()))
}

#[test]
fn a_branch_stack_becomes_a_signature_of_its_path() {
    let (first, call, target) = start();
    let base = 0x7000_0000;
    let mut reader = reader();
    reader.take(mapped(PROGRAM, base));
    // It came from somewhere to the start of the procedure, called, and was met right there.
    let stack = [(base + call, base + target, true), (base + 0x111, base + first, false)];
    reader.take(sample(base + target, &stack, None));
    let samples = &reader.stacks.samples;
    assert_eq!((reader.seen, samples.signatures.len()), (1, 1));
    let signature = &samples.signatures[0];
    // The call is taken and pushes; behind it comes the linkage table's jump through memory.
    let bits: Vec<bool> = signature.bits.iter().map(|bits| bits.first()).collect();
    assert_eq!(bits[bits.len() - 2..], [true, true]);
    assert!(signature.bits.iter().all(|bits| !bits.second()));
    // Of what came behind the call it is known that the branch had been mispredicted.
    let last = samples.details.last().unwrap();
    assert_eq!(last.ops[0].redirect, (1, 10));
    let found = reader.stacks.code.find(signature.start).unwrap();
    assert_eq!(found.instruction.pc >> 48, 1, "the first image");
}

#[test]
fn a_load_latency_becomes_a_detailed_sample() {
    let (_, _, target) = start();
    let mut reader = reader();
    reader.take(mapped(PROGRAM, 0x7000_0000));
    let load = RawLoad { level: LoadLevel::Memory, latency_cycles: 300 };
    reader.take(sample(0x7000_0000 + target, &[], Some(load)));
    assert_eq!(reader.loads, 1);
    let detail = &reader.stacks.samples.details[0];
    assert_eq!((detail.ops[0].hit, detail.ops[0].miss), (2, 298));
    assert_eq!(detail.ops[0].level, icost::Kind::Memory);
}

#[test]
fn images_that_are_not_here_and_branches_that_do_not_fit_are_said() {
    let mut gone = reader();
    gone.take(mapped("/no/such/image", 0x1000));
    gone.take(sample(0x1010, &[(0x1004, 0x1010, false)], None));
    assert!(gone.stacks.samples.signatures.is_empty());
    assert!(gone.images.why_not().starts_with("/no/such/image: No such file"));
    let mut wrong = reader();
    wrong.take(mapped(PROGRAM, 0x7000_0000));
    // Backwards without a branch.
    wrong.take(sample(0x7000_0290, &[(0x7000_0100, 0x7000_0299, false)], None));
    assert!(wrong.stacks.samples.signatures.is_empty());
    assert_eq!(wrong.images.why_not(), "their branches do not fit the code");
    let mut nowhere = reader();
    nowhere.take(sample(0x10, &[(0x4, 0x10, false)], None));
    assert_eq!(nowhere.images.why_not(), "2 addresses lie in no mapped image");
}
