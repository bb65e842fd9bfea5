//! Symbols that may name code, and which of several at one address to believe.

use std::cmp::Reverse;
use std::sync::Arc;

use object::elf;
use object::endian::LittleEndian as LE;
use object::read::elf::{SectionHeader, Sym};

use crate::elf::{Elf, Section};

/// A symbol that is, or may be, the beginning of a procedure.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Symbol {
    pub(crate) address: u64,
    pub(crate) size: u64,
    pub(crate) binding: Binding,
    /// Declared as a procedure; otherwise a bare label of assembly code.
    pub(crate) declared: bool,
    pub(crate) name: Arc<str>,
}

/// Who may refer to a symbol.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Binding {
    Local,
    Global,
    Weak,
}

impl Symbol {
    /// perf's preference among names of one address, the greatest being the best: a size, a
    /// declaration, not weak, global, few leading underscores, a long name. The name itself comes
    /// last so that the choice does not depend on the order in the table.
    pub(crate) fn merit(&self) -> impl Ord + '_ {
        (
            self.size > 0,
            self.declared,
            self.binding != Binding::Weak,
            self.binding == Binding::Global,
            Reverse(self.name.bytes().take_while(|&byte| byte == b'_').count()),
            self.name.len(),
            Reverse(&*self.name),
        )
    }
}

/// Keeps the best symbol of every address, by address.
pub(crate) fn best_of_aliases(mut symbols: Vec<Symbol>) -> Vec<Symbol> {
    symbols.sort_by(|a, b| a.address.cmp(&b.address).then_with(|| b.merit().cmp(&a.merit())));
    symbols.dedup_by_key(|symbol| symbol.address);
    symbols
}

/// The symbols of a table that may name code; those of other sections are left out.
pub(crate) fn read(elf: &Elf<'_>, kind: elf::SectionType) -> Vec<Symbol> {
    let Some(section) = elf.section_of_type(kind) else { return Vec::new() };
    let mut names = Names::new(elf, section);
    let entries = entries(elf, section).iter();
    entries.filter_map(|entry| symbol(elf, entry, &mut names)).collect()
}

/// The raw entries of a symbol table.
pub(crate) fn entries<'a>(elf: &Elf<'a>, section: &'a Section) -> &'a [elf::Sym64<LE>] {
    section.data_as_array(LE, elf.bytes).unwrap_or(&[])
}

fn symbol(elf: &Elf<'_>, entry: &elf::Sym64<LE>, names: &mut Names<'_>) -> Option<Symbol> {
    let declared = match entry.st_type() {
        elf::STT_FUNC | elf::STT_GNU_IFUNC => true,
        elf::STT_NOTYPE => false,
        _ => return None,
    };
    // Only a section can say that an undeclared label is code; reserved indices are no section.
    if entry.is_undefined(LE) || (!declared && !in_code(elf, entry)) {
        return None;
    }
    let name = names.read(entry.st_name(LE))?;
    // "$x" and "$d" say where ARM code and data begin; ".L" is a compiler's own label.
    if !declared && (name.starts_with('$') || name.starts_with(".L")) {
        return None;
    }
    let binding = match entry.st_bind() {
        elf::STB_LOCAL => Binding::Local,
        elf::STB_WEAK => Binding::Weak,
        _ => Binding::Global,
    };
    let (address, size) = (entry.st_value(LE), entry.st_size(LE));
    Some(Symbol { address, size, binding, declared, name })
}

fn in_code(elf: &Elf<'_>, entry: &elf::Sym64<LE>) -> bool {
    let index = object::SectionIndex(usize::from(entry.st_shndx(LE).0));
    let section = elf.sections.section(index);
    section.is_ok_and(|section| section.sh_flags(LE).0 & elf::SHF_EXECINSTR.0 != 0)
}

/// Reads names out of a string table without letting a hostile one cost more than the file's size
/// justifies: many symbols may point at one long string.
pub(crate) struct Names<'a> {
    strings: &'a [u8],
    budget_bytes: usize,
}

impl<'a> Names<'a> {
    /// Longer names are cut.
    const NAME_BYTES_MAX: usize = 16 << 10;
    /// A linker shares equal names and the tails of names, so names may sum to more than their
    /// table; this much per byte of either table is beyond any real one.
    const SHARING_MAX: usize = 8;

    /// The names that a symbol table refers to.
    pub(crate) fn new(elf: &Elf<'a>, symbols: &'a Section) -> Names<'a> {
        let strings = elf.linked(symbols);
        let tables_bytes = strings.len() + elf.data(symbols).len();
        Names { strings, budget_bytes: tables_bytes.saturating_mul(Self::SHARING_MAX) }
    }

    /// The name at an offset of the table; `None` if it is empty, absent, or the budget is spent.
    pub(crate) fn read(&mut self, at: u32) -> Option<Arc<str>> {
        let rest = self.strings.get(at as usize..)?;
        // What is left of the budget bounds the search as well, not only what is kept.
        let window = rest.get(..Self::NAME_BYTES_MAX.min(self.budget_bytes)).unwrap_or(rest);
        let len = window.iter().position(|&byte| byte == 0).unwrap_or(window.len());
        self.budget_bytes -= len;
        let name = window.get(..len).filter(|name| !name.is_empty())?;
        Some(Arc::from(String::from_utf8_lossy(name)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn symbol(name: &str, size: u64, binding: Binding, declared: bool) -> Symbol {
        Symbol { address: 16, size, binding, declared, name: Arc::from(name) }
    }

    #[test]
    fn aliases_are_chosen_as_perf_chooses_them() {
        use Binding::{Global, Local, Weak};
        let better_first = [
            [symbol("sized", 1, Local, false), symbol("unsized_", 0, Global, true)],
            [symbol("declared", 1, Weak, true), symbol("label", 1, Global, false)],
            [symbol("local", 1, Local, true), symbol("weak_one", 1, Weak, true)],
            [symbol("global", 1, Global, true), symbol("local_one", 1, Local, true)],
            [symbol("write", 1, Global, true), symbol("__write_it", 1, Global, true)],
            [symbol("memcpy_long", 1, Global, true), symbol("memcpy", 1, Global, true)],
            [symbol("abc", 1, Global, true), symbol("abd", 1, Global, true)],
        ];
        for pair in better_first {
            let reversed = vec![pair[1].clone(), pair[0].clone()];
            assert_eq!(best_of_aliases(reversed), vec![pair[0].clone()]);
            assert_eq!(best_of_aliases(pair.to_vec()), vec![pair[0].clone()]);
        }
    }

    #[test]
    fn many_symbols_with_one_long_name_cannot_cost_more_than_the_table_justifies() {
        let strings = vec![b'a'; 100_000];
        let mut names = Names { strings: &strings, budget_bytes: strings.len() * 8 };
        let read: usize = (0..50_000).filter_map(|_| names.read(5)).map(|name| name.len()).sum();
        assert!(read <= strings.len() * 8);
        assert!(read > strings.len() * 7);
    }
}
