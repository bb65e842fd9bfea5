//! CPUs come and go.
//!
//! The kernel ends an event whose CPU goes offline and does not bring it back with the CPU. So what
//! was opened for a CPU that is gone is let go once its counts have been taken, and a CPU that has
//! come, or come back, gets everything anew.

use vocab::Cpu;

use super::pace::Paced;

/// Both halves of a table have been taken after so many drains.
const LAST_DRAINS: u8 = 2;

/// Whether a CPU's events are at work.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Presence {
    /// They are; their clock showed this much when they were last looked at.
    Here {
        /// Nanoseconds for which the first was meant to count.
        enabled_ns: u64,
    },
    /// They are not any more, and their counts are taken so many times still.
    Gone {
        /// How often.
        drains_left: u8,
    },
}

impl Presence {
    pub(super) const NEW: Presence = Presence::Here { enabled_ns: 0 };

    pub(super) fn is_here(self) -> bool {
        matches!(self, Presence::Here { .. })
    }

    /// Looks again. A CPU that went and came back between two looks is in the list, but the clock
    /// of its events has stopped.
    pub(super) fn look(&mut self, cpu: Cpu, online: &[Cpu], events: &[Paced]) {
        let Presence::Here { enabled_ns: before } = *self else { return };
        // Events that take turns stand still now and then.
        let steady = events.iter().find(|paced| !paced.in_turn);
        let enabled_ns = steady.map_or(u64::MAX, |paced| paced.expected().enabled_ns);
        let stands_still = steady.is_some() && enabled_ns <= before;
        *self = match online.contains(&cpu) && !stands_still {
            true => Presence::Here { enabled_ns },
            false => Presence::Gone { drains_left: LAST_DRAINS },
        };
    }

    /// A drain is over; false if there is nothing left to take.
    pub(super) fn after_drain(&mut self) -> bool {
        match self {
            Presence::Here { .. } => true,
            Presence::Gone { drains_left } => {
                *drains_left = drains_left.saturating_sub(1);
                *drains_left > 0
            }
        }
    }
}
