//! A program or library: what its headers say, and its procedures.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use object::elf;
use object::endian::LittleEndian as LE;
use object::read::elf::FileHeader;
use vocab::{BuildId, Offset};

use crate::debug_link::DebugLink;
use crate::disassemble::{Listing, Syntax, disassemble};
use crate::elf::{Elf, Extent};
use crate::error::{Architecture, ImageError};
use crate::layout::lay_out;
use crate::procedure::{NameSource, Procedure, Procedures};
use crate::segments::Segments;
use crate::symbols::{self, Symbol};
use crate::{plt, unwind};

/// What is known of an ELF file. It keeps names and extents, not the bytes.
#[derive(Clone, Debug)]
pub struct Binary {
    architecture: Architecture,
    build_id: Option<BuildId>,
    debug_link: Option<DebugLink>,
    entry_address: u64,
    segments: Segments,
    claims: Claims,
    procedures: Procedures,
}

/// What each source says, by virtual address, kept so that a debug file can be laid over it.
#[derive(Clone, Debug, Default)]
struct Claims {
    code: Vec<Extent>,
    symtab: Vec<Symbol>,
    debug: Vec<Symbol>,
    dynsym: Vec<Symbol>,
    plt: Vec<Symbol>,
    unwind: Vec<Extent>,
}

impl Binary {
    /// Reads the bytes of a file.
    pub fn parse(bytes: &[u8]) -> Result<Binary, ImageError> {
        let elf = Elf::open(bytes)?;
        let claims = Claims::read(&elf);
        let procedures = claims.lay_out(&elf.segments);
        Ok(Binary {
            architecture: elf.architecture(),
            build_id: elf.build_id(),
            debug_link: DebugLink::read(&elf),
            entry_address: elf.header.e_entry(LE),
            segments: elf.segments,
            claims,
            procedures,
        })
    }

    /// The same image with the names of its debug file, whose build-id must be the same.
    pub fn with_debug(&self, debug: &Binary) -> Result<Binary, ImageError> {
        if self.build_id.is_none() || self.build_id != debug.build_id {
            return Err(ImageError::OtherBuild { image: self.build_id, debug: debug.build_id });
        }
        Ok(self.overlaid(debug))
    }

    /// The same image with the names of the debug file that its debug link asks for; the
    /// checksum stands in for the build-id that older programs lack.
    pub fn with_linked_debug(&self, debug_bytes: &[u8]) -> Result<Binary, ImageError> {
        match &self.debug_link {
            Some(link) if link.matches(debug_bytes) => {
                Ok(self.overlaid(&Binary::parse(debug_bytes)?))
            }
            _ => Err(ImageError::OtherChecksum),
        }
    }

    fn overlaid(&self, debug: &Binary) -> Binary {
        // The debug file's segments point nowhere, but its addresses are those of the image.
        let debug = debug.claims.symtab.clone();
        let claims = Claims { debug, ..self.claims.clone() };
        let procedures = claims.lay_out(&self.segments);
        Binary { claims, procedures, ..self.clone() }
    }

    /// The kind of processor.
    pub fn architecture(&self) -> Architecture {
        self.architecture
    }

    /// The identity that the linker gave it.
    pub fn build_id(&self) -> Option<BuildId> {
        self.build_id
    }

    /// The name of the file that holds what was stripped.
    pub fn debug_link(&self) -> Option<&DebugLink> {
        self.debug_link.as_ref()
    }

    /// The virtual address at which it begins to run; zero for most libraries.
    pub fn entry_address(&self) -> u64 {
        self.entry_address
    }

    /// The place at which it begins to run, if the file holds it.
    pub fn entry(&self) -> Option<Offset> {
        self.segments.offset_of(self.entry_address)
    }

    /// Whether its symbol table names code, which stripping takes away.
    pub fn has_symtab(&self) -> bool {
        !self.claims.symtab.is_empty()
    }

    /// Whether its dynamic symbol table names code of its own.
    pub fn has_dynsym(&self) -> bool {
        !self.claims.dynsym.is_empty()
    }

    /// Where the loader puts which part of it.
    pub fn segments(&self) -> &Segments {
        &self.segments
    }

    /// The ELF virtual address of a place in the file.
    pub fn address_of(&self, offset: Offset) -> Option<u64> {
        self.segments.address_of(offset)
    }

    /// The place in the file of an ELF virtual address.
    pub fn offset_of(&self, address: u64) -> Option<Offset> {
        self.segments.offset_of(address)
    }

    /// Its procedures.
    pub fn procedures(&self) -> &Procedures {
        &self.procedures
    }

    /// The code of a procedure, out of the bytes that were parsed.
    pub fn code<'a>(&self, bytes: &'a [u8], procedure: &Procedure) -> Result<&'a [u8], ImageError> {
        let range =
            usize::try_from(procedure.start.0).ok().zip(usize::try_from(procedure.end.0).ok());
        range.and_then(|(start, end)| bytes.get(start..end)).ok_or(ImageError::NoCode)
    }

    /// The instructions of a procedure, their targets named; `image` stands before the places
    /// that have no name.
    pub fn disassemble(
        &self,
        bytes: &[u8],
        procedure: &Procedure,
        syntax: Syntax,
        image: &str,
    ) -> Result<Listing, ImageError> {
        let code = self.code(bytes, procedure)?;
        let address = self.address_of(procedure.start).ok_or(ImageError::NoCode)?;
        // A loop names the same procedure again and again, and demangling is not free.
        let names = RefCell::new(HashMap::new());
        disassemble(self.architecture, code, address, syntax, &|target| {
            let offset = self.offset_of(target)?;
            let procedure = self.procedures.find(offset)?;
            let mut names = names.borrow_mut();
            let name = names.entry(procedure.start).or_insert_with(|| procedure.name(image));
            Some(place_in(procedure, offset, name, image))
        })
    }

    /// `puts@plt`, or `main+0x12` within a procedure, for an ELF virtual address.
    pub fn describe(&self, address: u64, image: &str) -> Option<String> {
        let offset = self.offset_of(address)?;
        let procedure = self.procedures.find(offset)?;
        Some(place_in(procedure, offset, &procedure.name(image), image))
    }
}

fn place_in(procedure: &Procedure, offset: Offset, name: &str, image: &str) -> String {
    match offset.0 - procedure.start.0 {
        0 => name.to_owned(),
        // A nameless procedure is a place already; one sum says more than two.
        _ if procedure.raw_name.is_none() => format!("{image}{offset}"),
        distance => format!("{name}+{distance:#x}"),
    }
}

impl Claims {
    fn read(elf: &Elf<'_>) -> Claims {
        let symtab = symbols::read(elf, elf::SHT_SYMTAB);
        let dynsym = symbols::read(elf, elf::SHT_DYNSYM);
        let resolvers = by_address(&symtab, &dynsym);
        let known = |address| resolvers.get(&address).map(|symbol| Arc::clone(&symbol.name));
        let plt = plt::read(elf, known);
        let unwind = unwind::read(elf);
        Claims { code: elf.code(), symtab, debug: Vec::new(), dynsym, plt, unwind }
    }

    fn lay_out(&self, segments: &Segments) -> Procedures {
        let layers = [
            (NameSource::Symtab, &self.symtab[..]),
            (NameSource::DebugFile, &self.debug[..]),
            (NameSource::Dynsym, &self.dynsym[..]),
            (NameSource::Plt, &self.plt[..]),
        ];
        let pieces = lay_out(&layers, &self.unwind, &self.code).into_iter();
        let mut list: Vec<Procedure> = pieces
            .filter_map(|piece| {
                let (start, last) = (piece.extent.start, piece.extent.end - 1);
                let end = Offset(segments.offset_of(last)?.0 + 1);
                let start = segments.offset_of(start)?;
                // Segments that overlap may tear a piece apart; then it has no place in the file.
                let whole = end.0.checked_sub(start.0)? == piece.extent.end - piece.extent.start;
                whole.then_some(Procedure {
                    start,
                    end,
                    raw_name: piece.name,
                    source: piece.source,
                })
            })
            .collect();
        // Segments need not lie in the file in the order of their addresses.
        list.sort_by_key(|procedure| procedure.start);
        Procedures::from_sorted(list)
    }
}

/// The best symbol of every address; the symbol table's goes before the dynamic one's.
fn by_address<'a>(symtab: &'a [Symbol], dynsym: &'a [Symbol]) -> HashMap<u64, &'a Symbol> {
    let mut best: HashMap<u64, &Symbol> = HashMap::with_capacity(symtab.len());
    for table in [dynsym, symtab] {
        let mut of_table: HashMap<u64, &Symbol> = HashMap::new();
        for symbol in table {
            let held = of_table.entry(symbol.address).or_insert(symbol);
            if symbol.merit() > held.merit() {
                *held = symbol;
            }
        }
        best.extend(of_table);
    }
    best
}
