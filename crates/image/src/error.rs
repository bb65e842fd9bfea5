//! Why bytes could not be read as an image: one sentence each.

use std::fmt;

use vocab::BuildId;

/// What is wrong with the bytes, or with what was asked of them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ImageError {
    /// No bytes at all.
    Empty,
    /// Text that starts with `#!`; its interpreter is what runs.
    Script {
        /// The interpreter that the first line names.
        interpreter: String,
    },
    /// Some other kind of file.
    NotElf,
    /// The file ends before its headers do.
    Truncated,
    /// An ELF file for 32-bit processors.
    Bits32,
    /// An ELF file with the most significant byte first.
    BigEndian,
    /// An object file: its code has no addresses until it is linked.
    Relocatable,
    /// A core dump: memory of a process, not a program.
    CoreDump,
    /// The headers contradict themselves.
    Malformed {
        /// Which part.
        what: &'static str,
    },
    /// A debug file that belongs to some other build.
    OtherBuild {
        /// What the image says.
        image: Option<BuildId>,
        /// What the debug file says.
        debug: Option<BuildId>,
    },
    /// A debug file whose checksum is not the one that the image's debug link asks for.
    OtherChecksum,
    /// Code that cannot be disassembled.
    NoDecoder {
        /// The architecture that the code is for.
        architecture: Architecture,
    },
    /// A procedure that does not lie within the bytes given.
    NoCode,
}

/// The kind of processor that the code is for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Architecture {
    /// AMD64 and Intel 64.
    X86_64,
    /// 64-bit ARM.
    Aarch64,
    /// Any other, by the number in the ELF header.
    Other(u16),
}

impl fmt::Display for Architecture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Architecture::X86_64 => f.write_str("x86-64"),
            Architecture::Aarch64 => f.write_str("aarch64"),
            Architecture::Other(machine) => write!(f, "ELF machine {machine}"),
        }
    }
}

impl fmt::Display for ImageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ImageError::Empty => f.write_str("the file is empty"),
            ImageError::Script { interpreter } => {
                write!(f, "this is a script for {interpreter}, whose code is in the interpreter")
            }
            ImageError::NotElf => f.write_str("this is not an ELF file"),
            ImageError::Truncated => f.write_str("the file ends before its ELF headers do"),
            ImageError::Bits32 => f.write_str("this is a 32-bit ELF file; only 64-bit is read"),
            ImageError::BigEndian => {
                f.write_str("this is a big-endian ELF file; only little-endian is read")
            }
            ImageError::Relocatable => {
                f.write_str("this is an object file, whose code has no addresses before linking")
            }
            ImageError::CoreDump => f.write_str("this is a core dump, not a program or library"),
            ImageError::Malformed { what } => write!(f, "the ELF file's {what} cannot be read"),
            ImageError::OtherBuild { image, debug } => write!(
                f,
                "the debug file is of another build ({} where the image has {})",
                OrNone(debug),
                OrNone(image)
            ),
            ImageError::OtherChecksum => {
                f.write_str("the debug file's checksum is not the one that the image names")
            }
            ImageError::NoDecoder { architecture } => {
                write!(f, "there is no decoder for {architecture} code yet")
            }
            ImageError::NoCode => f.write_str("the procedure lies outside the bytes of its image"),
        }
    }
}

impl std::error::Error for ImageError {}

struct OrNone<'a>(&'a Option<BuildId>);

impl fmt::Display for OrNone<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(id) => id.fmt(f),
            None => f.write_str("no build-id"),
        }
    }
}
