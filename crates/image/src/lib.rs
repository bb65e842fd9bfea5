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
#![forbid(unsafe_code)]

mod binary;
mod debug_link;
mod demangle;
mod disassemble;
mod elf;
mod error;
mod jit;
mod kernel;
mod layout;
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
pub use jit::JitMap;
pub use kernel::{Kernel, KernelError, KernelModule};
pub use procedure::{NameSource, Procedure, Procedures};
pub use segments::{Segment, Segments};
