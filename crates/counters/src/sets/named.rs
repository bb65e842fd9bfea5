//! Events by the names that a program gives.

use std::sync::OnceLock;

use perf::{BreakpointKind, breakpoint};
use pmu::{EventError, EventTable, parse_event};
use vocab::Event;

use super::SetError;

/// An event by its name: `cycles:u`, `r01c2`, or `mem:0x7ffc…:w` (`:x`) for a hardware breakpoint.
pub fn event_named(name: &str) -> Result<Event, SetError> {
    static TABLE: OnceLock<Option<EventTable>> = OnceLock::new();
    if let Some(event) = watched(name) {
        return Ok(event);
    }
    // The table travels inside: that it can be read is tested where it is made.
    let table = TABLE.get_or_init(|| EventTable::embedded().ok());
    let table = table.as_ref().ok_or(SetError::Unknown(EventError::Empty))?;
    parse_event(table, name).map_err(SetError::Unknown)
}

/// `mem:ADDRESS:KIND`, as perf has it.
fn watched(name: &str) -> Option<Event> {
    let (address, kind) = name.strip_prefix("mem:")?.split_once(':')?;
    let kind = match kind.trim_end_matches(":u") {
        "w" => BreakpointKind::Write,
        "x" => BreakpointKind::Execute,
        _ => return None,
    };
    let digits = address.strip_prefix("0x")?;
    u64::from_str_radix(digits, 16).ok().map(|address| breakpoint(kind, address))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_slips_and_breakpoints() {
        assert_eq!(event_named("page-faults:u").unwrap().mode, vocab::Mode::User);
        let slip = event_named("page-fualts").unwrap_err().to_string();
        assert!(slip.contains("did you mean 'page-faults'"), "{slip}");
        let event = breakpoint(BreakpointKind::Write, 0x1000);
        assert_eq!(event_named("mem:0x1000:w"), Ok(event.clone()));
        assert_eq!(event_named(&crate::full_name(&event)), Ok(event));
        assert!(event_named("mem:0x1000:q").is_err() && event_named("mem:zz:w").is_err());
    }
}
