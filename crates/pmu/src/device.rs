//! A PMU as sysfs describes it: which bits its terms go into, and the names that it has for them.
//!
//! ```text
//! format/umask   config:8-15                events/tsc   event=0x00
//! format/event   config:0-7,32-35           type         17
//!
//! umask=0x41,event=0x12e ──► config 0x1_0000_412e: a term's bits fill its ranges from the lowest
//! ```
//!
//! The texts come from outside; reading them is the caller's work.

use std::fmt;

use vocab::EventCode;

/// Which word of the kernel's structure.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Word {
    Config,
    Config1,
    Config2,
}

/// Where a term's bits go.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TermFormat {
    word: Word,
    /// First and last bit of each range, the term's lowest bits first.
    ranges: Vec<(u32, u32)>,
}

impl TermFormat {
    /// From the text of a file under `format/`; none for what is no format.
    pub fn parse(text: &str) -> Option<TermFormat> {
        let (word, ranges) = text.trim().split_once(':')?;
        let word = match word {
            "config" => Word::Config,
            "config1" => Word::Config1,
            "config2" => Word::Config2,
            _ => return None,
        };
        let range = |part: &str| {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (first, last) = (first.parse::<u32>().ok()?, last.parse::<u32>().ok()?);
            (first <= last && last < 64).then_some((first, last))
        };
        let ranges = ranges.split(',').map(range).collect::<Option<Vec<_>>>()?;
        Some(TermFormat { word, ranges })
    }

    /// How many bits a value may have.
    fn width(&self) -> u32 {
        self.ranges.iter().map(|(first, last)| last - first + 1).sum()
    }

    /// The value's bits in their places; none where it has too many.
    fn place(&self, value: u64) -> Option<u64> {
        let width = self.width();
        if width < 64 && value >> width != 0 {
            return None;
        }
        let (mut left, mut placed) = (value, 0);
        for (first, last) in &self.ranges {
            let count = last - first + 1;
            let mask = if count >= 64 { u64::MAX } else { (1 << count) - 1 };
            placed |= (left & mask) << first;
            left = left.checked_shr(count).unwrap_or(0);
        }
        Some(placed)
    }
}

/// A PMU of this machine.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Device {
    /// Its folder in sysfs.
    pub name: String,
    /// The kernel's number for it.
    pub kind: u32,
    /// Its terms, by name.
    pub formats: Vec<(String, TermFormat)>,
    /// Its own event names and the terms that they stand for.
    pub events: Vec<(String, String)>,
    /// The CPUs whose events it counts, where it belongs to no thread; empty for a core's PMU.
    pub cpumask: String,
}

/// Terms that do not describe an event of the PMU.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TermError {
    /// Neither a term nor an event of the PMU.
    Unknown {
        /// The PMU.
        device: String,
        /// As typed.
        term: String,
        /// What it has.
        known: Vec<String>,
    },
    /// A number that is none, or too large for its bits.
    Value {
        /// As typed.
        term: String,
        /// How many bits there are.
        bits: u32,
    },
    /// Nothing between the slashes.
    Empty,
}

impl fmt::Display for TermError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TermError::Unknown { device, term, known } if known.is_empty() => {
                write!(f, "'{device}' has no term '{term}'")
            }
            TermError::Unknown { device, term, known } => {
                write!(f, "'{device}' has no term '{term}'; it has {}", known.join(", "))
            }
            TermError::Value { term, bits } => write!(f, "'{term}' needs a number of {bits} bits"),
            TermError::Empty => f.write_str("nothing stands between the slashes"),
        }
    }
}

/// An alias may name another alias; deeper than this is a circle.
const DEEPEST_ALIAS: u32 = 4;

impl Device {
    /// Whether it counts for threads: its events belong to a core.
    pub fn is_core(&self) -> bool {
        let family = ["cpu", "cpu_core", "cpu_atom"].contains(&self.name.as_str());
        family || self.name.starts_with("armv") || self.name.starts_with("riscv")
    }

    /// The code of `term=value,…`, and the name that the user gave it with `name=`.
    pub fn code(&self, terms: &str) -> Result<(EventCode, Option<String>), TermError> {
        let mut code = EventCode::new(self.kind, 0);
        let mut name = None;
        if terms.trim().is_empty() {
            return Err(TermError::Empty);
        }
        self.apply(terms, &mut code, &mut name, 0)?;
        Ok((code, name))
    }

    fn apply(
        &self,
        terms: &str,
        code: &mut EventCode,
        name: &mut Option<String>,
        depth: u32,
    ) -> Result<(), TermError> {
        for term in terms.split(',').map(str::trim) {
            match term.split_once('=') {
                Some(("name", given)) => *name = Some(given.to_owned()),
                Some((key, value)) => self.set(term, key, Some(value), code)?,
                None => match self.events.iter().find(|(alias, _)| alias == term) {
                    Some((_, meaning)) if depth < DEEPEST_ALIAS => {
                        self.apply(meaning, code, name, depth + 1)?;
                    }
                    _ => self.set(term, term, None, code)?,
                },
            }
        }
        Ok(())
    }

    /// One term; without a value it is 1.
    fn set(
        &self,
        term: &str,
        key: &str,
        value: Option<&str>,
        code: &mut EventCode,
    ) -> Result<(), TermError> {
        let bad = |bits| TermError::Value { term: term.to_owned(), bits };
        let number = value.map_or(Some(1), parse_number);
        // The words themselves, whole.
        let whole = match key {
            "config" => Some(&mut code.config),
            "config1" => Some(&mut code.config1),
            "config2" => Some(&mut code.config2),
            _ => None,
        };
        if let Some(word) = whole {
            *word = number.ok_or_else(|| bad(64))?;
            return Ok(());
        }
        let Some((_, format)) = self.formats.iter().find(|(name, _)| name == key) else {
            return Err(self.unknown(term));
        };
        let bits = format.width();
        let placed = number.and_then(|number| format.place(number)).ok_or_else(|| bad(bits))?;
        match format.word {
            Word::Config => code.config |= placed,
            Word::Config1 => code.config1 |= placed,
            Word::Config2 => code.config2 |= placed,
        }
        Ok(())
    }

    fn unknown(&self, term: &str) -> TermError {
        let names = self.formats.iter().map(|(name, _)| name);
        let known = names.chain(self.events.iter().map(|(name, _)| name)).take(12).cloned();
        TermError::Unknown {
            device: self.name.clone(),
            term: term.to_owned(),
            known: known.collect(),
        }
    }
}

/// Decimal, or hexadecimal after `0x`.
pub(crate) fn parse_number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn intel() -> Device {
        let format = |name: &str, text: &str| (name.to_owned(), TermFormat::parse(text).unwrap());
        Device {
            name: "cpu".into(),
            kind: 4,
            formats: vec![
                format("event", "config:0-7"),
                format("umask", "config:8-15"),
                format("inv", "config:23"),
                format("cmask", "config:24-31"),
                format("offcore_rsp", "config1:0-63"),
            ],
            events: vec![
                ("cache-misses".into(), "event=0x2e,umask=0x41".into()),
                ("ring".into(), "ring".into()),
            ],
            cpumask: String::new(),
        }
    }

    fn config(terms: &str) -> u64 {
        intel().code(terms).unwrap().0.config
    }

    #[test]
    fn terms_go_where_the_format_says() {
        assert_eq!(config("event=0xa3,umask=0x14,cmask=20"), 0x1400_14a3);
        assert_eq!(config("event=0xc2,umask=2,inv,cmask=1"), 0x0180_02c2);
        assert_eq!(config("cache-misses"), 0x412e);
        assert_eq!(config("config=0x1ff"), 0x1ff);
        let (code, name) = intel().code("event=1,offcore_rsp=0xffffffffffffffff,name=x").unwrap();
        assert_eq!((code.config1, name.as_deref()), (u64::MAX, Some("x")));
    }

    #[test]
    fn a_split_term_fills_its_ranges_from_the_lowest() {
        // AMD's event number: eight bits at the bottom, four more at bit 32.
        let split = TermFormat::parse("config:0-7,32-35\n").unwrap();
        assert_eq!(split.place(0x1a0), Some(0x1_0000_00a0));
        assert_eq!(split.place(0xfff), Some(0xf_0000_00ff));
        assert_eq!(split.place(0x1000), None);
        assert_eq!(TermFormat::parse("config:0-63").unwrap().place(u64::MAX), Some(u64::MAX));
        for odd in ["config:7-0", "config:64", "config", "config9:1", "config:", "config:a"] {
            assert_eq!(TermFormat::parse(odd), None, "{odd}");
        }
    }

    #[test]
    fn what_the_pmu_does_not_have_is_named() {
        let said = |terms: &str| intel().code(terms).unwrap_err().to_string();
        assert!(said("umsk=1").starts_with("'cpu' has no term 'umsk=1'; it has event, umask"));
        assert_eq!(said("umask=0x100"), "'umask=0x100' needs a number of 8 bits");
        assert_eq!(said("umask=?"), "'umask=?' needs a number of 8 bits");
        assert_eq!(said(" "), "nothing stands between the slashes");
        // An alias that names itself ends.
        assert!(said("ring").contains("no term 'ring'"));
    }
}
