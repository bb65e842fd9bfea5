//! The class of an instruction's own work, by the family that its name belongs to.
//!
//! Names are grouped by prefix, because x86 names its thousands of vector instructions regularly;
//! this runs once per static instruction.

use iced_x86::{FlowControl, Instruction, Mnemonic, OpKind, Register};

use crate::machine::Class;

/// What an instruction does besides moving data to and from memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Work {
    /// A micro-op of this class.
    Compute(Class),
    /// Nothing: with a memory operand it is a plain load or store.
    Copy(Class),
    /// Nothing at all.
    Idle,
    /// The decoder does not know it.
    Unknown,
}

/// The lower-case name without the `v` of the newer encodings.
pub(super) fn name(raw: &Instruction) -> String {
    let name = format!("{:?}", raw.mnemonic()).to_lowercase();
    let keeps_v = ["verr", "verw", "vmcall", "vmmcall", "vmfunc", "vmxoff"];
    match name.strip_prefix('v') {
        Some(rest) if !keeps_v.contains(&name.as_str()) => rest.to_string(),
        _ => name,
    }
}

/// The registers named by the operands.
fn operand_registers(raw: &Instruction) -> impl Iterator<Item = Register> + '_ {
    (0..raw.op_count())
        .filter(|&place| raw.op_kind(place) == OpKind::Register)
        .map(|place| raw.op_register(place))
}

/// Whether it works on vector registers.
pub(super) fn is_vector(raw: &Instruction) -> bool {
    operand_registers(raw).any(|r| r.is_vector_register() || r.is_mm() || r.is_k())
}

fn has_general(raw: &Instruction) -> bool {
    operand_registers(raw).any(Register::is_gpr)
}

fn writes_general(raw: &Instruction) -> bool {
    raw.op0_kind() == OpKind::Register && raw.op0_register().is_gpr()
}

/// The work of an instruction.
pub(super) fn work(raw: &Instruction) -> Work {
    if raw.is_invalid() {
        return Work::Unknown;
    }
    let name = name(raw);
    if raw.has_lock_prefix() || raw.is_string_instruction() {
        let class = if raw.has_lock_prefix() { Class::Fence } else { Class::Alu };
        return Work::Compute(class);
    }
    if is_branch(raw) {
        return Work::Compute(Class::Branch);
    }
    if is_vector(raw) { vector(raw, &name) } else { scalar(raw, &name) }
}

fn is_branch(raw: &Instruction) -> bool {
    matches!(
        raw.flow_control(),
        FlowControl::UnconditionalBranch
            | FlowControl::IndirectBranch
            | FlowControl::ConditionalBranch
            | FlowControl::Return
            | FlowControl::Call
            | FlowControl::IndirectCall
    ) && !matches!(raw.mnemonic(), Mnemonic::Syscall | Mnemonic::Sysenter | Mnemonic::Vmcall)
}

fn starts(name: &str, prefixes: &[&str]) -> bool {
    prefixes.iter().any(|prefix| name.starts_with(prefix))
}

fn scalar(raw: &Instruction, name: &str) -> Work {
    let class = match name {
        "mov" | "movabs" | "movbe" | "push" | "pop" | "leave" | "enter" => {
            return Work::Copy(Class::Move);
        }
        // Widening loads are loads; between registers they are arithmetic.
        "movzx" | "movsx" | "movsxd" => return Work::Copy(Class::Alu),
        "add" | "sub" | "and" | "or" | "xor" | "cmp" | "test" | "inc" | "dec" | "neg" | "not"
        | "bswap" | "cbw" | "cwde" | "cdqe" | "cwd" | "cdq" | "cqo" | "andn" | "blsr" | "blsi"
        | "blsmsk" | "bzhi" | "xchg" | "xadd" | "lahf" | "sahf" | "clc" | "stc" | "cmc" | "cld"
        | "std" | "rdfsbase" | "rdgsbase" | "wrfsbase" | "wrgsbase" => Class::Alu,
        "adc" | "sbb" | "adcx" | "adox" | "salc" => Class::FlagAlu,
        "lea" => lea(raw),
        "mul" | "imul" | "mulx" => Class::Mul,
        "div" | "idiv" => division(raw),
        "popcnt" | "lzcnt" | "tzcnt" | "bsf" | "bsr" | "pdep" | "pext" | "crc32" => Class::BitCount,
        "bt" | "btr" | "bts" | "btc" | "bextr" => Class::Shift,
        "cmpxchg" | "cmpxchg8b" | "cmpxchg16b" => Class::Microcode,
        "nop" | "endbr64" | "endbr32" | "zeroupper" | "zeroall" | "emms" | "ud2" | "hlt"
        | "clflush" | "clflushopt" | "clwb" | "cldemote" => return Work::Idle,
        "mfence" | "lfence" | "sfence" | "pause" | "serialize" => Class::Fence,
        "cpuid" | "rdtsc" | "rdtscp" | "rdpid" | "syscall" | "sysenter" | "xgetbv" | "rdrand"
        | "rdseed" | "ldmxcsr" | "stmxcsr" | "pushfq" | "popfq" | "pushf" | "popf" | "int"
        | "int3" | "int1" | "iretq" | "rdpmc" | "xlatb" | "xtest" | "rdsspq" | "incsspq" => {
            Class::Microcode
        }
        _ if starts(name, &["cmov", "set"]) => Class::FlagAlu,
        _ if starts(name, &["prefetch"]) => return Work::Idle,
        _ if starts(name, &["sh", "sa", "ro", "rc"]) => Class::Shift,
        _ if starts(name, &["xsave", "xrstor", "fxsave", "fxrstor", "fsave", "frstor"]) => {
            Class::Microcode
        }
        _ if starts(name, &["f"]) => Class::X87,
        _ => return Work::Unknown,
    };
    Work::Compute(class)
}

/// Machines are slow on three parts or a scale.
fn lea(raw: &Instruction) -> Class {
    let has_index = raw.memory_index() != Register::None;
    let has_displacement = raw.memory_displ_size() != 0;
    let is_slow = has_index && (has_displacement || raw.memory_index_scale() > 1);
    if is_slow { Class::Lea } else { Class::Alu }
}

fn division(raw: &Instruction) -> Class {
    let is_wide = match raw.op0_kind() {
        OpKind::Register => raw.op0_register().is_gpr64(),
        _ => raw.memory_size().size() == 8,
    };
    if is_wide { Class::Div64 } else { Class::Div32 }
}

/// Whether the elements are double precision, by the last letter of the name.
fn is_double(name: &str) -> bool {
    name.ends_with('d')
}

fn vector(raw: &Instruction, name: &str) -> Work {
    let class = match name {
        "movd" | "movq" if has_general(raw) => {
            if writes_general(raw) {
                Class::VecToInt
            } else {
                Class::IntToVec
            }
        }
        "movd" | "movq" => return Work::Copy(Class::VecMove),
        _ if starts(name, &["movmsk", "pmovmsk", "ptest", "test", "pextr", "extractps"]) => {
            Class::VecToInt
        }
        _ if starts(name, &["pinsr"]) => Class::IntToVec,
        _ if starts(name, &["cvt"]) && has_general(raw) => {
            if writes_general(raw) {
                Class::ConvertToInt
            } else {
                Class::ConvertFromInt
            }
        }
        _ if starts(name, &["broadcast", "movddup", "movshdup", "movsldup"])
            && !has_general(raw) =>
        {
            // From memory the load unit replicates; the same holds for the plain widths.
            return Work::Copy(Class::Shuffle);
        }
        _ if is_plain_move(name) => return Work::Copy(Class::VecMove),
        _ if starts(name, &["kmov"]) => return Work::Copy(Class::VecToInt),
        _ => return vector_arithmetic(name),
    };
    Work::Compute(class)
}

fn is_plain_move(name: &str) -> bool {
    starts(
        name,
        &[
            "movaps", "movups", "movapd", "movupd", "movdq", "movss", "movsd", "movnt", "lddqu",
            "movsh",
        ],
    )
}

fn vector_arithmetic(name: &str) -> Work {
    let is = |prefixes: &[&str]| starts(name, prefixes);
    let class = if is(&["pcmpistr", "pcmpestr", "maskmov"]) {
        Class::Microcode
    } else if is(&["aes", "sha", "pclmul", "gf2p8", "sm3", "sm4"]) {
        Class::Crypto
    } else if is(&["fmadd", "fmsub", "fnmadd", "fnmsub"]) {
        Class::Fma
    } else if is(&["ucomis", "comis"]) {
        Class::FpFlags
    } else if is(&["cmp", "min", "max"]) {
        Class::FpCompare
    } else if is(&["cvt", "round", "rndscale", "getexp", "getmant", "scalef"]) {
        Class::Convert
    } else if is(&["add", "sub", "hadd", "hsub", "dpp"]) {
        Class::FpAdd
    } else if is(&["mul", "rcp", "rsqrt", "dbpsad", "pdpb", "pdpw"]) {
        Class::FpMul
    } else if is(&["div"]) {
        if is_double(name) { Class::FpDiv64 } else { Class::FpDiv32 }
    } else if is(&["sqrt"]) {
        if is_double(name) { Class::FpSqrt64 } else { Class::FpSqrt32 }
    } else if is(&["pmul", "pmadd", "psadbw", "mpsad", "phmin"]) {
        Class::VecMul
    } else if is(&["pslldq", "psrldq"]) || is_shuffle(name) {
        Class::Shuffle
    } else if is(&["psll", "psrl", "psra", "prol", "pror", "psh", "kshift"]) {
        Class::VecShift
    } else if is(&["and", "or", "xor", "blend", "p", "tern", "k"]) {
        Class::VecAlu
    } else {
        return Work::Unknown;
    };
    Work::Compute(class)
}

fn is_shuffle(name: &str) -> bool {
    starts(
        name,
        &[
            "pshuf",
            "shuf",
            "unpck",
            "punpck",
            "pack",
            "perm",
            "insert",
            "extract",
            "palignr",
            "align",
            "pmovz",
            "pmovsx",
            "pmovs",
            "movhl",
            "movlh",
            "movhp",
            "movlp",
            "pbroadcast",
            "broadcast",
            "movddup",
            "movs",
            "gather",
            "pgather",
            "compress",
            "expand",
            "pcompress",
            "pexpand",
            "punpk",
            "kunpck",
            "scatter",
            "pscatter",
            "movq2dq",
            "movdq2q",
            "phadd",
            "phsub",
        ],
    )
}

/// Floating-point operations made, a multiply-add counting as two.
pub(super) fn flops(raw: &Instruction, class: Class) -> u8 {
    let per_element = match class {
        Class::Fma => 2,
        Class::FpAdd
        | Class::FpMul
        | Class::FpDiv32
        | Class::FpDiv64
        | Class::FpSqrt32
        | Class::FpSqrt64 => 1,
        Class::X87 => return 1,
        _ => return 0,
    };
    let name = name(raw);
    let bytes = operand_registers(raw).map(Register::size).max().unwrap_or(16);
    let elements = match name.as_bytes() {
        [.., b's', _] => 1,
        [.., b'd'] => bytes / 8,
        _ => bytes / 4,
    };
    (per_element * elements) as u8
}
