//! Machine code as text, one instruction after the other.
//!
//! The sweep is linear: it begins at the first byte and never follows a branch. Bytes that are no
//! instruction are shown one by one as `(bad)` and counted, so that nothing is silently skipped.

use iced_x86::{
    Decoder, DecoderOptions, FlowControl, Formatter, FormatterOptions, GasFormatter,
    Instruction as Decoded, IntelFormatter, OpKind,
};

use crate::error::{Architecture, ImageError};

/// How operands are written.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Syntax {
    /// Destination first, as in the manuals of the makers.
    Intel,
    /// Source first, with `%` before registers.
    Att,
}

/// Where control may go after an instruction.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Flow {
    /// To the next instruction.
    Next,
    /// To the target or to the next instruction.
    Branch,
    /// To the target.
    Jump,
    /// To an address that is computed.
    IndirectJump,
    /// Away and, usually, back to the next instruction.
    Call,
    /// As a call, to an address that is computed.
    IndirectCall,
    /// Back to the caller.
    Return,
    /// Nowhere that the code says: a trap, or bytes that are no instruction.
    Trap,
}

/// One instruction.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Instruction {
    /// Its virtual address.
    pub address: u64,
    /// Its size.
    pub len_bytes: u8,
    /// What it says, such as `call 0x401020 <puts@plt>`.
    pub text: String,
    /// The address that a direct branch or call names.
    pub target: Option<u64>,
    /// Where control may go next.
    pub flow: Flow,
}

/// The instructions of a stretch of code.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Listing {
    /// In order of address, without gaps.
    pub instructions: Vec<Instruction>,
    /// How many bytes were no instruction.
    pub bad_bytes: u64,
    /// How many bytes at the end were left out because the code is too long to list.
    pub left_out_bytes: u64,
}

/// The longest stretch that is listed. Real procedures stay far below; a hostile one must not
/// fill the memory with text.
pub const LISTING_BYTES_MAX: usize = 1 << 20;

/// Lists the code that begins at a virtual address. `name_of` is asked for the name of every
/// address that an instruction mentions: targets, and data addressed relative to the instruction.
pub fn disassemble(
    architecture: Architecture,
    code: &[u8],
    address: u64,
    syntax: Syntax,
    name_of: &dyn Fn(u64) -> Option<String>,
) -> Result<Listing, ImageError> {
    if architecture != Architecture::X86_64 {
        return Err(ImageError::NoDecoder { architecture });
    }
    let listed = code.get(..LISTING_BYTES_MAX).unwrap_or(code);
    let mut listing = x86(listed, address, formatter(syntax).as_mut(), name_of);
    listing.left_out_bytes = (code.len() - listed.len()) as u64;
    Ok(listing)
}

fn x86(
    code: &[u8],
    address: u64,
    formatter: &mut dyn Formatter,
    name_of: &dyn Fn(u64) -> Option<String>,
) -> Listing {
    let mut decoder = Decoder::with_ip(64, code, address, DecoderOptions::NONE);
    let (mut decoded, mut listing) = (Decoded::default(), Listing::default());
    while decoder.can_decode() {
        let (position, at) = (decoder.position(), decoder.ip());
        decoder.decode_out(&mut decoded);
        if decoded.is_invalid() {
            listing.instructions.push(bad(at));
            listing.bad_bytes += 1;
            // One byte further on may be an instruction again.
            if decoder.set_position(position + 1).is_err() {
                break;
            }
            decoder.set_ip(at.wrapping_add(1));
            continue;
        }
        listing.instructions.push(instruction(&decoded, formatter, name_of));
    }
    listing
}

fn bad(address: u64) -> Instruction {
    Instruction { address, len_bytes: 1, text: "(bad)".into(), target: None, flow: Flow::Trap }
}

fn instruction(
    decoded: &Decoded,
    formatter: &mut dyn Formatter,
    name_of: &dyn Fn(u64) -> Option<String>,
) -> Instruction {
    let mut text = String::new();
    formatter.format(decoded, &mut text);
    let target = (decoded.op0_kind() == OpKind::NearBranch64).then(|| decoded.near_branch_target());
    text.push_str(&target.map_or_else(String::new, |target| mention(name_of(target))));
    if decoded.is_ip_rel_memory_operand() {
        let data = decoded.ip_rel_memory_address();
        text.push_str(&format!(" # {data:#x}{}", mention(name_of(data))));
    }
    Instruction {
        address: decoded.ip(),
        len_bytes: decoded.len() as u8,
        text,
        target,
        flow: flow(decoded.flow_control()),
    }
}

/// A name in angle brackets, cut if it is so long that a listing full of it would fill memory.
fn mention(name: Option<String>) -> String {
    const NAME_CHARACTERS_MAX: usize = 1000;
    match name {
        Some(name) if name.len() > NAME_CHARACTERS_MAX => {
            format!(" <{}...>", name.chars().take(NAME_CHARACTERS_MAX).collect::<String>())
        }
        Some(name) => format!(" <{name}>"),
        None => String::new(),
    }
}

pub(crate) fn flow(control: FlowControl) -> Flow {
    match control {
        FlowControl::Next | FlowControl::XbeginXabortXend => Flow::Next,
        FlowControl::ConditionalBranch => Flow::Branch,
        FlowControl::UnconditionalBranch => Flow::Jump,
        FlowControl::IndirectBranch => Flow::IndirectJump,
        FlowControl::Call => Flow::Call,
        FlowControl::IndirectCall => Flow::IndirectCall,
        FlowControl::Return => Flow::Return,
        // A system call or breakpoint comes back; an undefined instruction does not.
        FlowControl::Interrupt => Flow::Next,
        FlowControl::Exception => Flow::Trap,
    }
}

fn formatter(syntax: Syntax) -> Box<dyn Formatter> {
    let mut formatter: Box<dyn Formatter> = match syntax {
        Syntax::Intel => Box::new(IntelFormatter::new()),
        Syntax::Att => Box::new(GasFormatter::new()),
    };
    like_objdump(formatter.options_mut());
    formatter
}

fn like_objdump(options: &mut FormatterOptions) {
    options.set_hex_prefix("0x");
    options.set_hex_suffix("");
    options.set_uppercase_hex(false);
    options.set_small_hex_numbers_in_decimal(false);
    options.set_branch_leading_zeros(false);
    options.set_leading_zeros(false);
    options.set_space_after_operand_separator(false);
    options.set_rip_relative_addresses(true);
    options.set_show_branch_size(false);
    options.set_signed_immediate_operands(false);
}

#[cfg(test)]
mod tests {
    use super::*;

    const CODE: [u8; 16] = [
        0x55, // push rbp
        0xe8, 0x1a, 0, 0, 0, // call 0x1020
        0x48, 0x8b, 0x05, 0x10, 0, 0, 0, // mov rax,[rip+0x10] = 0x101d
        0x74, 0xfe, // je itself
        0xc3, // ret
    ];

    fn names(address: u64) -> Option<String> {
        (address == 0x1020).then(|| "puts@plt".to_owned())
    }

    fn texts(syntax: Syntax) -> Vec<String> {
        let listing = disassemble(Architecture::X86_64, &CODE, 0x1000, syntax, &names).unwrap();
        assert_eq!(listing.bad_bytes, 0);
        listing.instructions.into_iter().map(|instruction| instruction.text).collect()
    }

    #[test]
    fn instructions_are_written_in_either_syntax_with_names_for_targets() {
        assert_eq!(
            texts(Syntax::Intel),
            [
                "push rbp",
                "call 0x1020 <puts@plt>",
                "mov rax,[rip+0x10] # 0x101d",
                "je 0x100d",
                "ret"
            ]
        );
        assert_eq!(
            texts(Syntax::Att),
            [
                "push %rbp",
                "call 0x1020 <puts@plt>",
                "mov 0x10(%rip),%rax # 0x101d",
                "je 0x100d",
                "ret"
            ]
        );
    }

    #[test]
    fn targets_and_flow_are_numbers_and_kinds() {
        let listing =
            disassemble(Architecture::X86_64, &CODE, 0x1000, Syntax::Intel, &names).unwrap();
        let targets: Vec<_> = listing.instructions.iter().map(|i| (i.flow, i.target)).collect();
        assert_eq!(
            targets,
            [
                (Flow::Next, None),
                (Flow::Call, Some(0x1020)),
                (Flow::Next, None),
                (Flow::Branch, Some(0x100d)),
                (Flow::Return, None)
            ]
        );
    }

    #[test]
    fn bytes_that_are_no_instruction_are_shown_singly_and_counted() {
        // 0x06 has no meaning in 64-bit code; a call cut short is bad from its first byte.
        let code = [0x06, 0x90, 0xe8, 0x00];
        let listing =
            disassemble(Architecture::X86_64, &code, 0, Syntax::Intel, &|_| None).unwrap();
        let texts: Vec<&str> = listing.instructions.iter().map(|i| i.text.as_str()).collect();
        assert_eq!(texts, ["(bad)", "nop", "(bad)", "(bad)"]);
        assert_eq!(listing.bad_bytes, 3);
    }

    #[test]
    fn a_huge_stretch_is_listed_up_to_the_limit_and_says_what_is_missing() {
        let code = vec![0x90; LISTING_BYTES_MAX + 5];
        let listing =
            disassemble(Architecture::X86_64, &code, u64::MAX - 8, Syntax::Att, &|_| None).unwrap();
        assert_eq!(listing.instructions.len(), LISTING_BYTES_MAX);
        assert_eq!(listing.left_out_bytes, 5);
    }

    #[test]
    fn other_architectures_are_refused_in_a_sentence() {
        let refused = disassemble(Architecture::Aarch64, &[], 0, Syntax::Intel, &|_| None);
        assert_eq!(refused.unwrap_err().to_string(), "there is no decoder for aarch64 code yet");
    }
}
