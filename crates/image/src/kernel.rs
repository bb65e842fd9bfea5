//! The kernel's procedures and its modules', from the text of /proc/kallsyms.
//!
//! ```text
//! ffffffff81000000 T _text                 where the kernel's offsets count from
//! ffffffff81387d20 T core_kernel_text      address, kind, name
//! ffffffffc0201000 t nf_hook [nf_tables]   a module's
//! ```
//!
//! The list has no sizes: a procedure reaches to the next symbol, of whatever kind.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use vocab::{Offset, Pc};

use crate::procedure::{NameSource, Procedure, Procedures};
use crate::symbols::{Binding, Symbol, best_of_aliases};

/// Symbols that mark where a stretch of the kernel begins or ends; they bound procedures without
/// being any.
const MARKS: [&str; 5] = ["_text", "_stext", "_etext", "_sinittext", "_einittext"];
/// Nobody says where the last procedure ends; perf lets it reach to the end of the next page.
const PAGE_BYTES: u64 = 4096;

/// Why the list gives no names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum KernelError {
    /// Every address is zero: the kernel hides them from this user.
    Hidden,
    /// Nothing says where the kernel's text begins, so offsets would mean nothing.
    NoText,
}

impl fmt::Display for KernelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            KernelError::Hidden => {
                "the kernel hides its addresses; run as root or set kernel.kptr_restrict to 0"
            }
            KernelError::NoText => {
                "the kernel's list of symbols does not say where its text begins"
            }
        })
    }
}

impl std::error::Error for KernelError {}

/// The procedures of the kernel and its modules.
#[derive(Clone, Debug)]
pub struct Kernel {
    text: Pc,
    procedures: Procedures,
    modules: BTreeMap<String, KernelModule>,
    unread_lines: u64,
}

/// The procedures of one kernel module, by the addresses at which it is loaded now.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct KernelModule {
    pieces: Vec<(u64, u64, Arc<str>)>,
}

impl Kernel {
    /// Reads the text of /proc/kallsyms.
    pub fn parse(kallsyms: &[u8]) -> Result<Kernel, KernelError> {
        let (mut owners, mut unread_lines) = (BTreeMap::<&[u8], Vec<Line<'_>>>::new(), 0);
        for bytes in kallsyms.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()) {
            match Line::parse(bytes) {
                Some(line) => owners.entry(line.module).or_default().push(line),
                None => unread_lines += 1,
            }
        }
        let kernel = owners.remove(&b""[..]).unwrap_or_default();
        let mut every = kernel.iter().chain(owners.values().flatten()).peekable();
        if every.peek().is_some() && every.all(|line| line.address == 0) {
            return Err(KernelError::Hidden);
        }
        let text = text_start(&kernel).ok_or(KernelError::NoText)?;
        let modules = owners.into_iter().map(|(name, lines)| {
            (String::from_utf8_lossy(name).into_owned(), KernelModule { pieces: pieces(&lines) })
        });
        Ok(Kernel {
            text: Pc(text),
            procedures: procedures(&pieces(&kernel), text),
            modules: modules.filter(|(_, module)| !module.pieces.is_empty()).collect(),
            unread_lines,
        })
    }

    /// Where the kernel's text begins, which moves with every boot.
    pub fn text(&self) -> Pc {
        self.text
    }

    /// The kernel's own procedures, by distance from its text.
    pub fn procedures(&self) -> &Procedures {
        &self.procedures
    }

    /// The modules by name.
    pub fn modules(&self) -> &BTreeMap<String, KernelModule> {
        &self.modules
    }

    /// Lines that were no symbol.
    pub fn unread_lines(&self) -> u64 {
        self.unread_lines
    }
}

impl KernelModule {
    /// The address of its first procedure.
    pub fn start(&self) -> Pc {
        Pc(self.pieces.first().map_or(0, |piece| piece.0))
    }

    /// Its procedures by distance from where it was loaded, which /proc/modules says; what lies
    /// before that is left out.
    pub fn procedures(&self, base: Pc) -> Procedures {
        procedures(&self.pieces, base.0)
    }
}

struct Line<'a> {
    address: u64,
    kind: u8,
    name: &'a [u8],
    module: &'a [u8],
}

impl<'a> Line<'a> {
    fn parse(bytes: &'a [u8]) -> Option<Line<'a>> {
        let blank = |byte: &u8| byte.is_ascii_whitespace();
        let mut words = bytes.split(blank).filter(|word| !word.is_empty());
        let address = hexadecimal(words.next()?)?;
        let &[kind] = words.next()? else { return None };
        let name = words.next()?;
        let module = match words.next() {
            Some(word) => word.strip_prefix(b"[")?.strip_suffix(b"]")?,
            None => b"",
        };
        Some(Line { address, kind, name, module })
    }

    fn is_text(&self) -> bool {
        matches!(self.kind, b't' | b'T' | b'w' | b'W')
    }

    fn is_mark(&self) -> bool {
        MARKS.iter().any(|mark| mark.as_bytes() == self.name)
    }

    fn symbol(&self) -> Symbol {
        let binding = match self.kind {
            b't' => Binding::Local,
            b'T' => Binding::Global,
            _ => Binding::Weak,
        };
        let name = Arc::from(String::from_utf8_lossy(self.name));
        Symbol { address: self.address, size: 0, binding, declared: true, name }
    }
}

pub(crate) fn hexadecimal(word: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(word).ok()?;
    // The standard parser would take a sign as well.
    text.bytes().all(|byte| byte.is_ascii_hexdigit()).then(|| u64::from_str_radix(text, 16).ok())?
}

fn text_start(lines: &[Line<'_>]) -> Option<u64> {
    let named = |name: &[u8]| lines.iter().find(|line| line.name == name).map(|line| line.address);
    named(b"_text").or_else(|| named(b"_stext"))
}

fn pieces(lines: &[Line<'_>]) -> Vec<(u64, u64, Arc<str>)> {
    let mut bounds: Vec<u64> = lines.iter().map(|line| line.address).collect();
    bounds.sort_unstable();
    let text = lines.iter().filter(|line| line.is_text() && !line.is_mark() && line.address > 0);
    let best = best_of_aliases(text.map(Line::symbol).collect());
    let piece = |symbol: Symbol| {
        let start = symbol.address;
        let next = bounds.get(bounds.partition_point(|&bound| bound <= start)).copied();
        let page_end = start.checked_next_multiple_of(PAGE_BYTES);
        let last = page_end.map_or(u64::MAX, |end| end.saturating_add(PAGE_BYTES));
        (start, next.unwrap_or(last), symbol.name)
    };
    best.into_iter().map(piece).collect()
}

fn procedures(pieces: &[(u64, u64, Arc<str>)], base: u64) -> Procedures {
    let after = pieces.iter().filter(|piece| piece.0 >= base);
    let list = after.map(|(start, end, name)| Procedure {
        start: Offset(start - base),
        end: Offset(end - base),
        raw_name: Some(Arc::clone(name)),
        source: NameSource::Kallsyms,
    });
    Procedures::from_sorted(list.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = "\
ffffffff81000000 T _stext
ffffffff81000000 T _text
ffffffff81000000 T startup_64
ffffffff81000040 t helper
ffffffff81000040 T sys_read
ffffffff81000040 W __x64_sys_read
ffffffff81000090 T last_in_text
ffffffff810000c8 T _etext
ffffffff81200000 D data
ffffffff81300010 T boot_only
0000000000001000 A percpu
ffffffffc0201080 t second\t[nf]
ffffffffc0201000 t first\t[nf]
ffffffffc0201f00 d table [nf]
ffffffffc0301000 t only [other]
nonsense
";

    fn ranges(procedures: &Procedures) -> Vec<(u64, u64, String)> {
        let parts = |p: &Procedure| (p.start.0, p.end.0, p.name("kernel"));
        procedures.iter().map(parts).collect()
    }

    #[test]
    fn the_kernels_procedures_count_from_its_text_and_end_at_the_next_symbol() {
        let kernel = Kernel::parse(LIST.as_bytes()).unwrap();
        assert_eq!(kernel.text(), Pc(0xffff_ffff_8100_0000));
        assert_eq!(
            ranges(kernel.procedures()),
            [
                (0, 0x40, "startup_64".to_owned()),
                (0x40, 0x90, "sys_read".to_owned()),
                (0x90, 0xc8, "last_in_text".to_owned()),
                (0x30_0010, 0x30_2000, "boot_only".to_owned()),
            ]
        );
        assert_eq!(kernel.unread_lines(), 1);
    }

    #[test]
    fn modules_keep_their_own_procedures_relative_to_where_they_are_loaded() {
        let kernel = Kernel::parse(LIST.as_bytes()).unwrap();
        assert_eq!(kernel.modules().keys().collect::<Vec<_>>(), ["nf", "other"]);
        let module = &kernel.modules()["nf"];
        assert_eq!(module.start(), Pc(0xffff_ffff_c020_1000));
        let expected = [(0, 0x80, "first".to_owned()), (0x80, 0xf00, "second".to_owned())];
        assert_eq!(ranges(&module.procedures(module.start())), expected);
    }

    #[test]
    fn hidden_addresses_and_a_missing_text_are_told_apart() {
        let hidden = "0000000000000000 T _text\n0000000000000000 t a [m]\n";
        assert_eq!(Kernel::parse(hidden.as_bytes()).unwrap_err(), KernelError::Hidden);
        assert_eq!(Kernel::parse(b"").unwrap_err(), KernelError::NoText);
        assert_eq!(Kernel::parse(b"f0 T main\n").unwrap_err(), KernelError::NoText);
    }
}
