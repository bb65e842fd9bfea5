//! The list that a just-in-time compiler leaves in /tmp/perf-PID.map.
//!
//! Each line is `START SIZE name`, the numbers in hexadecimal, the name up to the end of the line.

use std::collections::BTreeMap;
use std::sync::Arc;

use vocab::Offset;

use crate::kernel::hexadecimal;
use crate::procedure::{NameSource, Procedure, Procedures};

/// The procedures of a JIT. Its code has no file, so the offsets are the process's addresses.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct JitMap {
    /// The procedures that are still there: where two overlap the later line has overwritten the
    /// earlier one's memory.
    pub procedures: Procedures,
    /// Lines that could not be read, such as the last one of a list that is still being written.
    pub unread_lines: u64,
}

impl JitMap {
    /// Reads the text of a map.
    pub fn parse(map: &[u8]) -> JitMap {
        let (mut by_start, mut unread_lines) = (BTreeMap::new(), 0);
        for line in map.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()) {
            match parse_line(line) {
                Some(procedure) => replace(&mut by_start, procedure),
                None => unread_lines += 1,
            }
        }
        let procedures = Procedures::from_sorted(by_start.into_values().collect());
        JitMap { procedures, unread_lines }
    }
}

fn parse_line(line: &[u8]) -> Option<Procedure> {
    let mut words = line.splitn(3, |&byte| byte == b' ');
    let mut number = || {
        let word = words.next()?;
        hexadecimal(word.strip_prefix(b"0x").unwrap_or(word))
    };
    let (start, size) = (number()?, number()?);
    let end = start.checked_add(size).filter(|&end| end > start)?;
    let name = String::from_utf8_lossy(words.next()?.trim_ascii()).into_owned();
    (!name.is_empty()).then(|| Procedure {
        start: Offset(start),
        end: Offset(end),
        raw_name: Some(Arc::from(name)),
        source: NameSource::JitMap,
    })
}

/// Puts a procedure in the place of those that it overlaps; each is removed only once, so the
/// whole list costs n log n.
fn replace(by_start: &mut BTreeMap<Offset, Procedure>, procedure: Procedure) {
    while let Some((&start, older)) = by_start.range(..procedure.end).next_back() {
        if older.end <= procedure.start {
            break;
        }
        by_start.remove(&start);
    }
    by_start.insert(procedure.start, procedure);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_lines_take_the_place_of_what_they_overwrite() {
        let text = b"1000 20 old\n2000 10 LazyCompile:*run a.js:3\n1010 40 new one\n0x3000 8 c\n";
        let map = JitMap::parse(text);
        let parts = |p: &Procedure| (p.start.0, p.end.0, p.name("jit"));
        assert_eq!(
            map.procedures.iter().map(parts).collect::<Vec<_>>(),
            [
                (0x1010, 0x1050, "new one".to_owned()),
                (0x2000, 0x2010, "LazyCompile:*run a.js:3".to_owned()),
                (0x3000, 0x3008, "c".to_owned()),
            ]
        );
    }

    #[test]
    fn lines_that_say_nothing_are_counted() {
        let text = b"1000 0 empty\n1000 20\n+10 20 sign\nffffffffffffffff 5 wraps\n1000 20  \n";
        let map = JitMap::parse(text);
        assert!(map.procedures.is_empty());
        assert_eq!(map.unread_lines, 5);
    }
}
