//! From what a user types to an event: `cycles`, `cycles:u`, `r01c2:k`.

use std::fmt;

use vocab::{Event, EventCode, Mode};

use crate::{EventTable, nearest};

/// The kernel's kind for raw codes.
const RAW: u32 = 4;

/// A spelling that names no event.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum EventError {
    /// Not in the table; perhaps a slip.
    Unknown {
        /// As typed.
        name: String,
        /// What it may have meant.
        nearest: Option<String>,
    },
    /// The part after the colon.
    Modifier {
        /// As typed.
        spelling: String,
    },
    /// Nothing between two commas.
    Empty,
}

impl fmt::Display for EventError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EventError::Unknown { name, nearest: Some(near) } => {
                write!(f, "there is no event '{name}'; did you mean '{near}'?")
            }
            EventError::Unknown { name, nearest: None } => {
                write!(f, "there is no event '{name}'; `whither list events` shows them all")
            }
            EventError::Modifier { spelling } => {
                write!(f, "'{spelling}': after the colon only u (user) and k (kernel) may stand")
            }
            EventError::Empty => f.write_str("an event name is empty"),
        }
    }
}

impl std::error::Error for EventError {}

/// One event.
pub fn parse_event(table: &EventTable, spelling: &str) -> Result<Event, EventError> {
    let (name, modifier) = match spelling.rsplit_once(':') {
        Some((name, modifier)) => (name, Some(modifier)),
        None => (spelling, None),
    };
    if name.is_empty() {
        return Err(EventError::Empty);
    }
    let mode = match modifier {
        None | Some("uk" | "ku") => Mode::Both,
        Some("u") => Mode::User,
        Some("k") => Mode::Kernel,
        Some(_) => return Err(EventError::Modifier { spelling: spelling.into() }),
    };
    let code = match table.get(name) {
        Some(entry) => entry.code(),
        None => raw(name).ok_or_else(|| EventError::Unknown {
            name: name.into(),
            nearest: nearest(name, table.names()).map(str::to_owned),
        })?,
    };
    Ok(Event { name: name.into(), code, mode })
}

/// Several events between commas.
pub fn parse_events(table: &EventTable, spelling: &str) -> Result<Vec<Event>, EventError> {
    spelling.split(',').map(|one| parse_event(table, one.trim())).collect()
}

/// `r` and hexadecimal digits, as perf has it.
fn raw(name: &str) -> Option<EventCode> {
    let digits = name.strip_prefix('r')?;
    let hex = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    if !hex {
        return None;
    }
    u64::from_str_radix(digits, 16).ok().map(|config| EventCode::new(RAW, config))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(spelling: &str) -> Result<Event, EventError> {
        parse_event(&EventTable::embedded().unwrap(), spelling)
    }

    #[test]
    fn names_aliases_modifiers_and_raw_codes() {
        assert_eq!(parse("cpu-cycles:u").unwrap().code, EventCode::new(0, 0));
        assert_eq!(parse("cycles:u").unwrap().mode, Mode::User);
        assert_eq!(parse("cycles:k").unwrap().mode, Mode::Kernel);
        assert_eq!(parse("r01c2").unwrap().code, EventCode::new(4, 0x1c2));
    }

    #[test]
    fn a_slip_suggests_the_nearest_and_a_bad_modifier_is_named() {
        let message = parse("cylces").unwrap_err().to_string();
        assert_eq!(message, "there is no event 'cylces'; did you mean 'cycles'?");
        assert!(parse("cycles:x").unwrap_err().to_string().contains("cycles:x"));
        assert_eq!(parse(""), Err(EventError::Empty));
        assert!(parse("rzz").is_err() && parse("r").is_err());
    }

    #[test]
    fn a_list_keeps_its_order() {
        let table = EventTable::embedded().unwrap();
        let events = parse_events(&table, "cycles, instructions:u").unwrap();
        let names: Vec<&str> = events.iter().map(|event| event.name.as_str()).collect();
        assert_eq!(names, ["cycles", "instructions"]);
        assert_eq!(parse_events(&table, "cycles,"), Err(EventError::Empty));
    }
}
