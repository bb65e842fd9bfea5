//! From what a user types to events, as perf spells them.
//!
//! ```text
//! cycles  cycles:u  LLC-loads:k  r01c2  cpu/event=0x3c,umask=1/u  msr/tsc/
//! mem:0x601040/8:w:u  sched:sched_switch  {cycles,instructions}:u,page-faults
//! ```

use std::fmt;

use vocab::{Event, EventCode, Mode};

use crate::device::{TermError, parse_number};
use crate::{Dictionary, EventTable, nearest};

/// The kernel's kind for tracepoints.
const TRACEPOINT: u32 = 2;
/// The kernel's kind for raw codes.
const RAW: u32 = 4;
/// The kernel's kind for hardware breakpoints.
pub const BREAKPOINT: u32 = 5;

/// A spelling that names no event.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum EventError {
    /// Not in any table; perhaps a slip.
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
        /// One that perf has and we have not.
        letter: Option<char>,
    },
    /// Terms between slashes.
    Terms(TermError),
    /// No PMU of that name.
    NoDevice {
        /// As typed.
        name: String,
        /// Those that are there.
        known: Vec<String>,
    },
    /// An event of this core, whose PMU is not there.
    NoPmu {
        /// As typed.
        name: String,
        /// The core.
        core: String,
    },
    /// A breakpoint that is none.
    Breakpoint {
        /// As typed.
        spelling: String,
    },
    /// Braces or slashes that do not close.
    Unclosed {
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
            EventError::Modifier { spelling, letter: Some(letter) } => write!(
                f,
                "'{spelling}': whither does not have perf's modifier '{letter}', only u, k and p"
            ),
            EventError::Modifier { spelling, letter: None } => write!(
                f,
                "'{spelling}': after the colon only u (user), k (kernel) and p (precise) may stand"
            ),
            EventError::Terms(error) => error.fmt(f),
            EventError::NoDevice { name, known } => {
                write!(f, "this machine has no PMU '{name}'; it has {}", known.join(", "))
            }
            EventError::NoPmu { name, core } => {
                write!(f, "'{name}' is an event of {core}, whose PMU this machine does not show")
            }
            EventError::Breakpoint { spelling } => write!(
                f,
                "'{spelling}' is no breakpoint; they are written mem:ADDRESS/LENGTH:rwx, \
                 LENGTH 1, 2, 4 or 8"
            ),
            EventError::Unclosed { spelling } => {
                write!(f, "a brace or slash of '{spelling}' has no partner")
            }
            EventError::Empty => f.write_str("an event name is empty"),
        }
    }
}

impl std::error::Error for EventError {}

/// Events, and which of them stood in braces together.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct EventList {
    /// In the order typed.
    pub events: Vec<Event>,
    /// As each was typed, its modifiers included: what perf prints.
    pub typed: Vec<String>,
    /// Places of events that must be counted at the same time.
    pub groups: Vec<Vec<usize>>,
}

impl EventList {
    /// Adds another list after this one.
    pub fn extend(&mut self, other: EventList) {
        let shift = self.events.len();
        self.events.extend(other.events);
        self.typed.extend(other.typed);
        let moved = |group: Vec<usize>| group.into_iter().map(|place| place + shift).collect();
        self.groups.extend(other.groups.into_iter().map(moved));
    }
}

/// One part of a list: an event, or several in braces.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ListItem {
    /// As typed, the modifiers of the braces apart.
    pub members: Vec<String>,
    /// Whether there were braces.
    pub is_braced: bool,
    /// What stood behind the braces, after a colon.
    pub modifiers: String,
}

/// A list of events taken apart, its names not looked up.
pub fn split_list(spelling: &str) -> Result<Vec<ListItem>, EventError> {
    split(spelling)?.into_iter().map(list_item).collect()
}

fn list_item(item: String) -> Result<ListItem, EventError> {
    let Some(braced) = item.strip_prefix('{') else {
        let members = vec![item];
        return match members.iter().any(String::is_empty) {
            true => Err(EventError::Empty),
            false => Ok(ListItem { members, ..ListItem::default() }),
        };
    };
    let unclosed = || EventError::Unclosed { spelling: item.clone() };
    let (inside, after) = braced.rsplit_once('}').ok_or_else(unclosed)?;
    if inside.contains(['{', '}']) {
        return Err(unclosed());
    }
    let modifiers = match after.strip_prefix(':') {
        Some(modifiers) if !modifiers.is_empty() => modifiers,
        None if after.is_empty() => "",
        _ => return Err(unclosed()),
    };
    let members = split(inside)?;
    match members.iter().any(String::is_empty) {
        true => Err(EventError::Empty),
        false => Ok(ListItem { members, is_braced: true, modifiers: modifiers.to_owned() }),
    }
}

/// One event of the kernel's own names.
pub fn parse_event(table: &EventTable, spelling: &str) -> Result<Event, EventError> {
    Dictionary::of_table(table.clone()).parse_event(spelling)
}

/// Several events between commas.
pub fn parse_events(table: &EventTable, spelling: &str) -> Result<Vec<Event>, EventError> {
    Dictionary::of_table(table.clone()).parse_list(spelling).map(|list| list.events)
}

impl Dictionary {
    /// Several events between commas, some in braces.
    pub fn parse_list(&self, spelling: &str) -> Result<EventList, EventError> {
        let mut list = EventList::default();
        for item in split_list(spelling)? {
            let first = list.events.len();
            for member in &item.members {
                self.add(member, &item.modifiers, &mut list)?;
            }
            if item.is_braced {
                list.groups.push((first..list.events.len()).collect());
            }
        }
        Ok(list)
    }

    fn add(&self, typed: &str, group: &str, list: &mut EventList) -> Result<(), EventError> {
        let mut event = self.parse_event(typed)?;
        let mut typed = typed.to_owned();
        if !group.is_empty() {
            let of_group = mode(&format!("{typed}:{group}"), group)?;
            if event.mode == Mode::Both {
                event.mode = of_group;
            }
            // As perf prints members of a group with modifiers.
            if !typed.contains(':') {
                typed = format!("{typed}:{group}");
            }
        }
        list.events.push(event);
        list.typed.push(typed);
        Ok(())
    }

    /// One event.
    pub fn parse_event(&self, spelling: &str) -> Result<Event, EventError> {
        if spelling.is_empty() {
            return Err(EventError::Empty);
        }
        if let Some(breakpoint) = spelling.strip_prefix("mem:") {
            return parse_breakpoint(spelling, breakpoint);
        }
        if let Some((device, rest)) = spelling.split_once('/') {
            return self.parse_terms(spelling, device, rest);
        }
        let (name, modifier) = match spelling.rsplit_once(':') {
            // `sched:sched_switch`: the part after the colon is a name, not modifiers.
            Some((group, event)) if self.tracepoint(group, event).is_some() => (spelling, None),
            Some((name, modifier)) => (name, Some(modifier)),
            None => (spelling, None),
        };
        if name.is_empty() {
            return Err(EventError::Empty);
        }
        let mode = modifier.map_or(Ok(Mode::Both), |letters| mode(spelling, letters))?;
        let code = self.code(name).ok_or_else(|| self.unknown(name))?;
        Ok(Event { name: name.into(), code, mode })
    }

    fn unknown(&self, name: &str) -> EventError {
        let of_core = |core: &&crate::CoreEvents| core.has(name);
        match self.core.as_ref().filter(of_core) {
            Some(core) => EventError::NoPmu { name: name.into(), core: core.title.clone() },
            None => EventError::Unknown {
                name: name.into(),
                nearest: nearest(name, self.names()).map(str::to_owned),
            },
        }
    }

    fn code(&self, name: &str) -> Option<EventCode> {
        self.named(name).or_else(|| raw(name)).or_else(|| {
            let (group, event) = name.split_once(':')?;
            self.tracepoint(group, event).map(|id| EventCode::new(TRACEPOINT, id))
        })
    }

    /// `device/terms/modifiers`.
    fn parse_terms(&self, spelling: &str, device: &str, rest: &str) -> Result<Event, EventError> {
        let unclosed = || EventError::Unclosed { spelling: spelling.to_owned() };
        let (terms, modifiers) = rest.rsplit_once('/').ok_or_else(unclosed)?;
        let modifiers = modifiers.strip_prefix(':').unwrap_or(modifiers);
        let mode = if modifiers.is_empty() { Mode::Both } else { mode(spelling, modifiers)? };
        let found = self.devices.iter().find(|known| known.name == device);
        let found = found.ok_or_else(|| EventError::NoDevice {
            name: device.to_owned(),
            known: self.devices.iter().map(|known| known.name.clone()).collect(),
        })?;
        let (code, name) = found.code(terms).map_err(EventError::Terms)?;
        let name = name.unwrap_or_else(|| format!("{device}/{terms}/"));
        Ok(Event { name, code, mode })
    }
}

/// At commas outside braces and slashes.
fn split(spelling: &str) -> Result<Vec<String>, EventError> {
    let (mut braces, mut is_in_slashes) = (0_i32, false);
    let mut items = vec![String::new()];
    for c in spelling.chars() {
        match c {
            '{' => braces += 1,
            '}' => braces -= 1,
            // The slash of a breakpoint stands alone.
            '/' if !items.last().is_some_and(|item| is_breakpoint(item)) => {
                is_in_slashes = !is_in_slashes;
            }
            ',' if braces == 0 && !is_in_slashes => {
                items.push(String::new());
                continue;
            }
            _ => {}
        }
        if braces < 0 {
            return Err(EventError::Unclosed { spelling: spelling.to_owned() });
        }
        if let Some(item) = items.last_mut() {
            item.push(c);
        }
    }
    if braces != 0 || is_in_slashes {
        return Err(EventError::Unclosed { spelling: spelling.to_owned() });
    }
    Ok(items.into_iter().map(|item| item.trim().to_owned()).collect())
}

/// Whether the event that is being typed is a breakpoint.
fn is_breakpoint(item: &str) -> bool {
    item.rsplit(['{', ',']).next().is_some_and(|last| last.trim_start().starts_with("mem:"))
}

/// `u`, `k` and up to three `p`. Precision says where a sample points; a count has no place, so
/// that `p` changes nothing here.
fn mode(spelling: &str, letters: &str) -> Result<Mode, EventError> {
    let bad = |letter| Err(EventError::Modifier { spelling: spelling.to_owned(), letter });
    if letters.is_empty() || letters.matches('p').count() > 3 {
        return bad(None);
    }
    match letters.chars().find(|letter| !"ukpP".contains(*letter)) {
        Some(letter) if "hGHISDWeb".contains(letter) => return bad(Some(letter)),
        Some(_) => return bad(None),
        None => {}
    }
    Ok(match (letters.contains('u'), letters.contains('k')) {
        (true, false) => Mode::User,
        (false, true) => Mode::Kernel,
        _ => Mode::Both,
    })
}

/// `ADDRESS[/LENGTH][:rwx][:modifiers]`. The access bits travel in `config`, the address and the
/// length where the kernel has them.
fn parse_breakpoint(spelling: &str, rest: &str) -> Result<Event, EventError> {
    let bad = || EventError::Breakpoint { spelling: spelling.to_owned() };
    let mut parts = rest.split(':');
    let place = parts.next().unwrap_or_default();
    let (address, length) = place.split_once('/').map_or((place, None), |(a, l)| (a, Some(l)));
    let address = parse_number(address).ok_or_else(bad)?;
    let mut words: Vec<&str> = parts.collect();
    let is_access = |word: &&str| !word.is_empty() && word.chars().all(|c| "rwx".contains(c));
    let access = match words.first().filter(|word| is_access(word)) {
        Some(letters) => {
            let letters = *letters;
            words.remove(0);
            letters
        }
        None => "rw",
    };
    let bit = |letter, bit| if access.contains(letter) { bit } else { 0 };
    let config = bit('r', 1) | bit('w', 2) | bit('x', 4);
    // perf's own defaults: a pointer for code, four bytes for data.
    let default = if access.contains('x') { 8 } else { 4 };
    let length = length.map_or(Some(default), parse_number).ok_or_else(bad)?;
    if ![1, 2, 4, 8].contains(&length) || words.len() > 1 {
        return Err(bad());
    }
    let mode = words.first().map_or(Ok(Mode::Both), |letters| mode(spelling, letters))?;
    let code = EventCode { kind: BREAKPOINT, config, config1: address, config2: length };
    Ok(Event { name: format!("mem:{place}:{access}"), code, mode })
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
mod tests;
