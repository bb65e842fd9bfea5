//! A stretch of code with a name, and the ordered list of them that an image has.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use vocab::Offset;

use crate::demangle::demangle;

/// Who says that there is a procedure, the most trusted first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum NameSource {
    /// The symbol table.
    Symtab,
    /// The symbol table of a separate debug file.
    DebugFile,
    /// The table that the dynamic linker uses.
    Dynsym,
    /// A jump through the procedure linkage table, named after its target.
    Plt,
    /// The kernel's own list.
    Kallsyms,
    /// A list that a just-in-time compiler left.
    JitMap,
    /// The unwind table: it knows where a procedure begins and ends, not what it is called.
    Unwind,
}

impl fmt::Display for NameSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            NameSource::Symtab => "symbol table",
            NameSource::DebugFile => "debug file",
            NameSource::Dynsym => "dynamic symbol table",
            NameSource::Plt => "linkage table",
            NameSource::Kallsyms => "kallsyms",
            NameSource::JitMap => "JIT map",
            NameSource::Unwind => "unwind table",
        })
    }
}

/// The code from `start` up to, but not including, `end`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Procedure {
    /// Its first byte.
    pub start: Offset,
    /// The byte after its last.
    pub end: Offset,
    /// The name as the linker wrote it; `None` where only the extent is known.
    pub raw_name: Option<Arc<str>>,
    /// Who says so.
    pub source: NameSource,
}

impl Procedure {
    /// Its size; never zero.
    pub fn len_bytes(&self) -> u64 {
        self.end.0 - self.start.0
    }

    /// Whether a place is in it.
    pub fn contains(&self, offset: Offset) -> bool {
        self.start <= offset && offset < self.end
    }

    /// The name as its author wrote it, or `gzip+0x4f50` for one without a name in image `gzip`.
    pub fn name(&self, image: &str) -> String {
        match &self.raw_name {
            Some(raw) => match demangle(raw) {
                Cow::Borrowed(name) => name.to_owned(),
                Cow::Owned(name) => name,
            },
            None => format!("{image}{}", self.start),
        }
    }
}

/// The procedures of an image: sorted, none empty, no two overlapping.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Procedures {
    list: Vec<Procedure>,
}

impl Procedures {
    /// Takes procedures that are already in order; what is empty or overlaps its predecessor is
    /// left out, so the promise of the type holds whatever the caller hands in.
    pub(crate) fn from_sorted(mut list: Vec<Procedure>) -> Procedures {
        let mut reached = 0;
        list.retain(|procedure| {
            let fits = procedure.start.0 >= reached && procedure.end > procedure.start;
            if fits {
                reached = procedure.end.0;
            }
            fits
        });
        Procedures { list }
    }

    /// The procedure that a place is in.
    pub fn find(&self, offset: Offset) -> Option<&Procedure> {
        let after = self.list.partition_point(|procedure| procedure.start <= offset);
        let candidate = self.list.get(after.checked_sub(1)?)?;
        candidate.contains(offset).then_some(candidate)
    }

    /// The procedure with this name, raw or demangled; the first one where several share it.
    pub fn named(&self, name: &str) -> Option<&Procedure> {
        let raw = |procedure: &&Procedure| procedure.raw_name.as_deref() == Some(name);
        let plain = |procedure: &&Procedure| {
            procedure.raw_name.as_deref().is_some_and(|raw| demangle(raw) == name)
        };
        self.list.iter().find(raw).or_else(|| self.list.iter().find(plain))
    }

    /// All of them, by address.
    pub fn iter(&self) -> std::slice::Iter<'_, Procedure> {
        self.list.iter()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }
}

impl<'a> IntoIterator for &'a Procedures {
    type Item = &'a Procedure;
    type IntoIter = std::slice::Iter<'a, Procedure>;

    fn into_iter(self) -> Self::IntoIter {
        self.list.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn procedure(start: u64, end: u64, name: Option<&str>) -> Procedure {
        Procedure {
            start: Offset(start),
            end: Offset(end),
            raw_name: name.map(Arc::from),
            source: NameSource::Symtab,
        }
    }

    #[test]
    fn looking_up_finds_the_one_range_that_holds_the_place() {
        let list = vec![procedure(4, 8, Some("a")), procedure(8, 9, None), procedure(20, 30, None)];
        let procedures = Procedures::from_sorted(list);
        let start = |offset| procedures.find(Offset(offset)).map(|found| found.start.0);
        assert_eq!([3, 4, 7, 8, 9, 19, 29, 30].map(start), {
            [None, Some(4), Some(4), Some(8), None, None, Some(20), None]
        });
    }

    #[test]
    fn a_nameless_procedure_is_called_by_its_place_in_the_image() {
        assert_eq!(procedure(0x4f50, 0x4f60, None).name("gzip"), "gzip+0x4f50");
        assert_eq!(procedure(0, 1, Some("_ZN3foo3barEv")).name("gzip"), "foo::bar()");
    }

    #[test]
    fn what_overlaps_or_is_empty_never_gets_in() {
        let list = vec![procedure(4, 8, None), procedure(6, 9, None), procedure(9, 9, None)];
        assert_eq!(Procedures::from_sorted(list).len(), 1);
    }
}
