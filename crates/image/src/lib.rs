//! ELF files: bytes in, names and code out.
//!
//! Constraints: no file access (callers hand in bytes), no unsafe code, no panic and no
//! unbounded work whatever the bytes are.
//!
//! Not for: finding files on disk, placing samples in images (see `collect`), or saying what an
//! instruction costs (see `model` and `analyse`).
//!
//! ```text
//! .symtab  debug file  .dynsym  .plt  .eh_frame      in order of trust
//!     \        |          |       |      /
//!      one owner for every address of the code       layout
//!                       |
//!        virtual address --PT_LOAD--> Offset         segments
//!                       |
//!        Procedures: sorted, disjoint [start, end)   procedure
//! ```
//!
//! Two kinds of address meet here. A [`vocab::Offset`] is a place in the file; the ELF *virtual
//! address* is what the linker wrote into symbols and instructions, and stays a plain number.
//! [`Binary::offset_of`] and [`Binary::address_of`] go between them.
//!
//! From a sampled place in a file to the name and the text of what runs there:
//!
//! ```
//! use image::{Binary, Syntax};
//! use vocab::Offset;
//!
//! # let bytes = include_bytes!("../tests/fixtures/calls");
//! let binary = Binary::parse(bytes)?;
//! let procedure = binary.procedures().find(Offset(0x29d)).expect("code is there");
//! assert_eq!(procedure.name("calls"), "_start");
//! assert_eq!(procedure.len_bytes(), 16);
//!
//! let listing = binary.disassemble(bytes, procedure, Syntax::Intel, "calls")?;
//! let second = &listing.instructions[1];
//! assert_eq!(second.text, "call 0x400290 <near_two@plt>");
//! assert_eq!(binary.offset_of(second.address), Some(Offset(0x29d)));
//! # Ok::<(), image::ImageError>(())
//! ```
//!
//! [`Callees::flow_of`] gives the blocks of a procedure and the ways between them.
//!
//! The kernel and JIT compilers have no file: [`Kernel`] and [`JitMap`] read their lists of
//! symbols into the same [`Procedures`].
#![forbid(unsafe_code)]

mod binary;
mod debug_link;
mod demangle;
mod disassemble;
mod elf;
mod error;
mod flow;
mod jit;
mod kernel;
mod layout;
mod lines;
mod plt;
mod procedure;
mod segments;
mod symbols;
mod unwind;

pub use binary::Binary;
pub use debug_link::DebugLink;
pub use demangle::demangle;
pub use disassemble::{Flow, Instruction, LISTING_BYTES_MAX, Listing, Syntax, disassemble};
pub use error::{Architecture, ImageError};
pub use flow::{Block, Callees, CodePart, Edge, EdgeKind, Exit, FlowGraph, Step, Surroundings};
pub use jit::JitMap;
pub use kernel::{Kernel, KernelError, KernelModule};
pub use lines::{DebugInfo, Declared, Inline, LineRow, Lines};
pub use procedure::{NameSource, Procedure, Procedures};
pub use segments::{Segment, Segments};
