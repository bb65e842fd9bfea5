//! A machine file with some facts replaced, the rest of it untouched.

use super::{Machine, MachineError};

/// How the source of a table with replaced facts goes on.
const OTHERWISE: &str = "; otherwise ";

/// Replaces whole numbers by their dotted keys, as in `("caches.l2.latency_cycles", 14)`. The source
/// of each table that changes begins with `source` from then on.
///
/// # Errors
///
/// A key is not in the text, or the result is no machine.
pub fn rewritten(
    file: &str,
    text: &str,
    facts: &[(&str, u32)],
    source: &str,
) -> Result<String, MachineError> {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    for (key, value) in facts {
        replace(&mut lines, key, *value, source)
            .ok_or_else(|| MachineError::new(file, format!("there is no {key} to replace")))?;
    }
    let text = lines.join("\n") + "\n";
    Machine::load(file, &text, &[])?;
    Ok(text)
}

fn replace(lines: &mut [String], key: &str, value: u32, source: &str) -> Option<()> {
    let (table, rest) = lines.iter().find_map(|line| {
        let name = line.trim().strip_prefix('[')?.strip_suffix(']')?;
        Some((name.to_owned(), key.strip_prefix(name)?.strip_prefix('.')?.to_owned()))
    })?;
    let start = lines.iter().position(|line| line.trim() == format!("[{table}]"))? + 1;
    let end = lines[start..].iter().position(|line| line.starts_with('['));
    let end = end.map_or(lines.len(), |at| start + at);
    let lines = &mut lines[start..end];
    // `l2d.latency_cycles` stands in the line of `l2d`, any other key in one of its own.
    let (outer, inner) = match rest.split_once('.') {
        Some((outer, inner)) => (outer, inner),
        None => (rest.as_str(), rest.as_str()),
    };
    let line = lines.iter_mut().find(|line| begins(line, outer))?;
    *line = with_number(line, inner, value)?;
    if let Some(line) = lines.iter_mut().find(|line| begins(line, "source")) {
        *line = with_source(line, source)?;
    }
    Some(())
}

fn begins(line: &str, key: &str) -> bool {
    line.strip_prefix(key).is_some_and(|rest| rest.trim_start().starts_with('='))
}

/// The line with the number after `key =` replaced.
fn with_number(line: &str, key: &str, value: u32) -> Option<String> {
    let before = format!("{key} = ");
    let at = line.find(&before)? + before.len();
    let digits = line[at..].chars().take_while(char::is_ascii_digit).count();
    (digits > 0).then(|| format!("{}{value}{}", &line[..at], &line[at + digits..]))
}

/// The line with a source in front of the old one, once.
fn with_source(line: &str, source: &str) -> Option<String> {
    let old = line.split_once('"')?.1.strip_suffix('"')?;
    let kept = old.split_once(OTHERWISE).map_or(old, |(_, kept)| kept);
    Some(format!("source = \"{}{OTHERWISE}{kept}\"", source.replace(['"', '\\'], "'")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::text_of;

    #[test]
    fn replaced_facts_are_read_back_and_nothing_else_changes() {
        let text = text_of("zen4").unwrap();
        let facts = [
            ("identity.clock_mhz", 3141),
            ("caches.l2.latency_cycles", 15),
            ("tlbs.l2d.latency_cycles", 9),
            ("tlbs.walk_cycles", 77),
        ];
        let new = rewritten("zen4", text, &facts, "measured here").unwrap();
        let machine = Machine::load("zen4", &new, &[]).unwrap();
        assert_eq!(machine.identity.clock_mhz, 3141);
        assert_eq!(machine.caches.l2.latency_cycles, 15);
        let tlbs = &machine.tlbs;
        let second = |tlb: &Option<super::super::TlbFacts>| tlb.as_ref().unwrap().latency_cycles;
        assert_eq!((second(&tlbs.l2d), second(&tlbs.l2i), tlbs.walk_cycles), (9, 7, 77));
        assert!(tlbs.source.starts_with("measured here; otherwise AMD"), "{}", tlbs.source);
        assert_eq!(new.lines().count(), text.lines().count());
        let changed = new.lines().zip(text.lines()).filter(|(a, b)| a != b).count();
        assert_eq!(changed, 4 + 3);
        // A second time replaces what the first time put there.
        let again = rewritten("zen4", &new, &facts[..1], "measured again").unwrap();
        let machine = Machine::load("zen4", &again, &[]).unwrap();
        assert!(machine.identity.source.starts_with("measured again; otherwise AMD"));
    }

    #[test]
    fn a_key_that_is_not_there_and_a_value_that_cannot_be_are_refused() {
        let text = text_of("zen4").unwrap();
        let refused = |facts: &[(&str, u32)]| rewritten("zen4", text, facts, "x").unwrap_err();
        assert!(refused(&[("caches.l4.latency_cycles", 3)]).to_string().contains("caches.l4"));
        assert!(refused(&[("memory.bytes_per_cycle", 0)]).to_string().contains("between 1"));
    }
}
