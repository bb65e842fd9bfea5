//! Names as their authors wrote them.
//!
//! A mangled name can repeat its parts by reference, so a short hostile one may stand for
//! gigabytes. The writer below gives up at a limit, and the raw name is shown instead.

use std::borrow::Cow;
use std::fmt::{self, Write};

use cpp_demangle::{DemangleNodeType, DemangleOptions, DemangleWrite, ParseOptions, Symbol};

/// Longest raw name that is tried: the longest seen in large C++ programs stay below it.
const RAW_BYTES_MAX: usize = 16 << 10;
/// Longest readable name.
const NAME_BYTES_MAX: usize = 64 << 10;
/// Deepest recursion into a C++ name. The parser tries alternatives again at every level, so a
/// hostile name costs exponentially more the deeper it may go: a hundred bytes took most of a
/// minute at 96, while here the worst found takes a fraction of a second. Of the 144,000 names in
/// one system's libraries two in a thousand nest deeper, and stay raw.
const DEPTH_MAX: u32 = 48;

/// The readable form of a Rust (v0 or legacy) or C++ (Itanium) name; any other name as it is.
pub fn demangle(raw: &str) -> Cow<'_, str> {
    let mangled = raw.starts_with("_Z") || raw.starts_with("_R") || raw.starts_with("__Z");
    if !mangled || raw.len() > RAW_BYTES_MAX {
        return Cow::Borrowed(raw);
    }
    rust(raw).or_else(|| cpp(raw)).map_or(Cow::Borrowed(raw), Cow::Owned)
}

fn rust(raw: &str) -> Option<String> {
    let name = rustc_demangle::try_demangle(raw).ok()?;
    let mut out = Bounded::default();
    // The alternate form leaves out the hash, which only tells apart versions of one crate.
    write!(out, "{name:#}").ok()?;
    Some(out.text)
}

fn cpp(raw: &str) -> Option<String> {
    let parsing = ParseOptions::default().recursion_limit(DEPTH_MAX);
    let writing = DemangleOptions::new().recursion_limit(DEPTH_MAX);
    let symbol = Symbol::new_with_options(raw, &parsing).ok()?;
    let mut out = BoundedNodes::default();
    symbol.structured_demangle(&mut out, &writing).ok()?;
    Some(out.written.text)
}

#[derive(Default)]
struct Bounded {
    text: String,
}

impl Write for Bounded {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        if self.text.len() + part.len() > NAME_BYTES_MAX {
            return Err(fmt::Error);
        }
        self.text.push_str(part);
        Ok(())
    }
}

/// Counts the nodes that are visited as well, for names that expand to much work and little text.
#[derive(Default)]
struct BoundedNodes {
    written: Bounded,
    nodes: usize,
}

impl DemangleWrite for BoundedNodes {
    fn push_demangle_node(&mut self, _: DemangleNodeType) {
        self.nodes += 1;
    }

    fn write_string(&mut self, part: &str) -> fmt::Result {
        if self.nodes > NAME_BYTES_MAX {
            return Err(fmt::Error);
        }
        self.written.write_str(part)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rust_and_cpp_names_become_readable_and_others_stay() {
        let pairs = [
            ("_RNvCs1234_7mycrate3foo", "mycrate::foo"),
            ("_ZN4core3fmt9Formatter3pad17h0123456789abcdefE", "core::fmt::Formatter::pad"),
            ("_ZN3foo3barEi", "foo::bar(int)"),
            ("_ZNSt6vectorIiSaIiEE9push_backERKi", {
                "std::vector<int, std::allocator<int> >::push_back(int const&)"
            }),
            ("_Z3addii.cold", "add(int, int) [clone .cold]"),
            ("main", "main"),
            ("_Znonsense", "_Znonsense"),
            ("puts@plt", "puts@plt"),
            ("", ""),
        ];
        for (raw, readable) in pairs {
            assert_eq!(demangle(raw), readable);
        }
    }

    #[test]
    fn a_short_name_that_stands_for_a_huge_one_stays_raw() {
        // Each parameter is a template of the one before, twice: the last would print 2^40 names.
        let seq = |n: u32| char::from_digit(n, 36).unwrap().to_ascii_uppercase();
        let pairs: String = (0..30).map(|n| format!("S_IS{0}_S{0}_E", seq(n))).collect();
        let doubling = format!("_Z1f1AIccE{pairs}");
        assert_eq!(demangle(&doubling), doubling.as_str());
        let few: String = (0..2).map(|n| format!("S_IS{0}_S{0}_E", seq(n))).collect();
        assert!(
            demangle(&format!("_Z1f1AIccE{few}")).ends_with("A<A<char, char>, A<char, char> > >)")
        );
        let ambiguous = format!("_Z1f{}KiStv", "ILSt".repeat(11));
        assert_eq!(demangle(&ambiguous), ambiguous.as_str());
        let deep = format!("_Z1f{}i", "P".repeat(10_000));
        assert_eq!(demangle(&deep), deep.as_str());
        let long = format!("_Z{}", "a".repeat(RAW_BYTES_MAX));
        assert_eq!(demangle(&long), long.as_str());
    }
}
