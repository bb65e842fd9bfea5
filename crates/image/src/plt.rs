//! Names for the jumps of the procedure linkage table.
//!
//! ```text
//! .rela.plt   slot 0x404018 holds puts      (who is behind a slot of the GOT)
//! .plt        401030: jmp *0x404018         (which slot an entry jumps through)
//! so          401030 is puts@plt
//! ```
//!
//! Entries are recognised by the slot that they jump through, not by their order, so any linker's
//! arrangement will do; only the lazy half of a table with `.plt.sec` goes by relocation number.

use std::collections::HashMap;
use std::sync::Arc;

use object::elf;
use object::endian::LittleEndian as LE;
use object::read::elf::{Rela, SectionHeader, Sym};

use crate::elf::{Elf, Section};
use crate::error::Architecture;
use crate::symbols::{Binding, Names, Symbol, entries};

/// One entry of a linkage table: where it is, and which slot or relocation it jumps through.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Entry {
    address: u64,
    size: u64,
    through: Through,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Through {
    Slot(u64),
    Relocation(u32),
}

/// The entries that could be named; `known` gives the name of a procedure of the image itself.
pub(crate) fn read(elf: &Elf<'_>, known: impl Fn(u64) -> Option<Arc<str>>) -> Vec<Symbol> {
    let slots = Slots::read(elf, known);
    let tables = [".plt", ".plt.sec", ".plt.got", ".plt.bnd", ".iplt"];
    let mut symbols = Vec::new();
    for section in tables.iter().filter_map(|name| elf.section(name)) {
        for entry in find_entries(elf, section) {
            let Some(target) = slots.target(entry.through) else { continue };
            symbols.push(Symbol {
                address: entry.address,
                size: entry.size,
                binding: Binding::Local,
                declared: true,
                name: target,
            });
        }
    }
    symbols
}

/// What the dynamic linker will put into the slots of the GOT.
struct Slots {
    by_address: HashMap<u64, Arc<str>>,
    by_number: Vec<Option<Arc<str>>>,
}

impl Slots {
    fn read(elf: &Elf<'_>, known: impl Fn(u64) -> Option<Arc<str>>) -> Slots {
        let mut slots = Slots { by_address: HashMap::new(), by_number: Vec::new() };
        for (name, numbered) in [(".rela.plt", true), (".rela.iplt", true), (".rela.dyn", false)] {
            let Some(section) = elf.section(name) else { continue };
            slots.add(elf, section, numbered, &known);
        }
        slots
    }

    fn add(
        &mut self,
        elf: &Elf<'_>,
        section: &Section,
        numbered: bool,
        known: &impl Fn(u64) -> Option<Arc<str>>,
    ) {
        let relocations: &[elf::Rela64<LE>] =
            section.data_as_array(LE, elf.bytes).unwrap_or_default();
        let table = elf.sections.section(section.link(LE)).ok();
        let symbols = table.map_or(&[][..], |table| entries(elf, table));
        let mut names = table.map(|table| Names::new(elf, table));
        let mut resolvers: HashMap<u64, Arc<str>> = HashMap::new();
        for relocation in relocations {
            let name: Option<Arc<str>> = match relocation.r_sym(LE, false) {
                0 if resolved_at_start(relocation) => {
                    // Kept by address, so that many slots of one resolver share one name.
                    let at = relocation.r_addend(LE) as u64;
                    let name = || {
                        known(at).map_or_else(
                            || format!("*ABS*+{at:#x}@plt").into(),
                            |name| format!("{name}@plt").into(),
                        )
                    };
                    Some(Arc::clone(resolvers.entry(at).or_insert_with(name)))
                }
                0 => None,
                index => symbols
                    .get(index as usize)
                    .and_then(|symbol| names.as_mut()?.read(symbol.st_name(LE)))
                    .map(|name| format!("{name}@plt").into()),
            };
            if let Some(name) = &name {
                self.by_address.insert(relocation.r_offset(LE), Arc::clone(name));
            }
            if numbered {
                self.by_number.push(name);
            }
        }
    }

    fn target(&self, through: Through) -> Option<Arc<str>> {
        match through {
            Through::Slot(address) => self.by_address.get(&address).cloned(),
            Through::Relocation(number) => self.by_number.get(number as usize).cloned().flatten(),
        }
    }
}

/// Whether the slot is filled by calling a resolver of the image itself.
fn resolved_at_start(relocation: &elf::Rela64<LE>) -> bool {
    let kind = relocation.r_type(LE, false).0;
    kind == elf::R_X86_64_IRELATIVE.0 || kind == elf::R_AARCH64_IRELATIVE.0
}

fn find_entries(elf: &Elf<'_>, section: &Section) -> Vec<Entry> {
    let (data, address) = (elf.data(section), section.sh_addr(LE));
    match elf.architecture() {
        Architecture::X86_64 => x86_entries(data, address, section.sh_entsize(LE)),
        Architecture::Aarch64 => aarch64_entries(data, address),
        Architecture::Other(_) => Vec::new(),
    }
}

/// Entries of 16 bytes, or 8 where the section says so.
fn x86_entries(data: &[u8], address: u64, entry_size: u64) -> Vec<Entry> {
    let size = if entry_size == 8 { 8 } else { 16 };
    let entries = data.chunks_exact(size).enumerate();
    entries
        .filter_map(|(index, code)| {
            let at = address.wrapping_add((index * size) as u64);
            let through = x86_through(code, at)?;
            Some(Entry { address: at, size: size as u64, through })
        })
        .collect()
}

/// `jmp *slot(%rip)`, or `push $number` in the lazy half of a table in two parts, either one with
/// the landing marker or the bound prefix that hardened builds put before it.
fn x86_through(code: &[u8], address: u64) -> Option<Through> {
    let marked = code.strip_prefix(&[0xf3, 0x0f, 0x1e, 0xfa]);
    let rest = marked.unwrap_or(code);
    let plain = rest.strip_prefix(&[0xf2]).unwrap_or(rest);
    if let Some(operand) = plain.strip_prefix(&[0xff, 0x25]) {
        let distance = i32::from_le_bytes(operand.first_chunk().copied()?);
        let next = address.wrapping_add((code.len() - operand.len() + 4) as u64);
        return Some(Through::Slot(next.wrapping_add_signed(i64::from(distance))));
    }
    let number = plain.strip_prefix(&[0x68])?;
    Some(Through::Relocation(u32::from_le_bytes(number.first_chunk().copied()?)))
}

/// `adrp x16, page; ldr x17, [x16, #low]`, with a landing marker before it in hardened builds.
fn aarch64_entries(data: &[u8], address: u64) -> Vec<Entry> {
    const MARKER: u32 = 0xd503_245f;
    let words: Vec<u32> =
        data.as_chunks().0.iter().map(|&bytes: &[u8; 4]| u32::from_le_bytes(bytes)).collect();
    let mut found: Vec<Entry> = Vec::new();
    for (index, pair) in words.windows(2).enumerate() {
        let &[adrp, ldr] = pair else { continue };
        if adrp & 0x9f00_001f != 0x9000_0010 || ldr & 0xffc0_03ff != 0xf940_0211 {
            continue;
        }
        let at = address.wrapping_add(4 * index as u64);
        let pages = i64::from(((adrp >> 5 & 0x7_ffff) << 2 | (adrp >> 29 & 3)) << 11) << 32 >> 43;
        let page = (at & !0xfff).wrapping_add_signed(pages << 12);
        let slot = page.wrapping_add(u64::from(ldr >> 10 & 0xfff) * 8);
        let marked = index.checked_sub(1).and_then(|before| words.get(before)) == Some(&MARKER);
        let start = if marked { at.wrapping_sub(4) } else { at };
        found.push(Entry { address: start, size: 0, through: Through::Slot(slot) });
    }
    size_up(&mut found, address.wrapping_add(data.len() as u64));
    found
}

/// Entries are four words long, six in hardened builds; the next entry tells which.
fn size_up(entries: &mut [Entry], end: u64) {
    let mut next = end;
    for entry in entries.iter_mut().rev() {
        entry.size = next.saturating_sub(entry.address).min(24);
        next = entry.address;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn x86_entries_are_known_by_the_slot_they_jump_through() {
        let slot = 0x40_4018_u64;
        let jump = |at: u64, prefix: &[u8]| {
            let next = at + prefix.len() as u64 + 6;
            let mut code = prefix.to_vec();
            code.extend([0xff, 0x25]);
            code.extend(((slot.wrapping_sub(next)) as u32).to_le_bytes());
            code.resize(16, 0x90);
            code
        };
        for prefix in [&[][..], &[0xf3, 0x0f, 0x1e, 0xfa], &[0xf3, 0x0f, 0x1e, 0xfa, 0xf2]] {
            let found = x86_entries(&jump(0x40_1030, prefix), 0x40_1030, 16);
            let expected = Entry { address: 0x40_1030, size: 16, through: Through::Slot(slot) };
            assert_eq!(found, [expected]);
        }
        let lazy = [0xf3, 0x0f, 0x1e, 0xfa, 0x68, 7, 0, 0, 0, 0xe9, 0, 0, 0, 0, 0x66, 0x90];
        assert_eq!(x86_through(&lazy, 0), Some(Through::Relocation(7)));
        assert_eq!(x86_through(&[0xc3; 16], 0), None);
    }

    #[test]
    fn aarch64_entries_are_known_by_page_and_low_bits() {
        // adrp x16, 0x20000 from 0x10000; ldr x17, [x16, #0x18]; add x16, x16, #0x18; br x17
        let words = [0x9000_0090_u32, 0xf940_0e11, 0x9100_6210, 0xd61f_0220];
        let data: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let expected = Entry { address: 0x1_0000, size: 16, through: Through::Slot(0x2_0018) };
        assert_eq!(aarch64_entries(&data, 0x1_0000), [expected]);
        // adrp x16 one page back, after a landing marker.
        let words = [0xd503_245f_u32, 0xf0ff_fff0, 0xf940_0211, 0, 0, 0, 0, 0];
        let data: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let expected = Entry { address: 0x1_0000, size: 24, through: Through::Slot(0xf000) };
        assert_eq!(aarch64_entries(&data, 0x1_0000), [expected]);
    }
}
