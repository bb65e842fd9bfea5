//! Why nothing retired.

use crate::event::Event;
use crate::machine::Class;
use crate::units::Level;

/// The cause of a stall. Every cycle either retires something or has one of these.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum Cause {
    /// The window was empty after a mispredicted branch.
    Mispredict,
    /// The window was empty after the decoder put fetch right.
    Resteer,
    /// The window was empty while code came from beyond the first level.
    Code,
    /// The window was empty while a fetch was translated.
    CodeTlb,
    /// The window was empty for another reason of the front end.
    Fetch,
    /// A load that hit the first-level cache.
    L1d,
    /// A load served by the second level, or that waited for a line on its way from there.
    L2,
    /// The same of the third level.
    L3,
    /// The same of memory.
    Memory,
    /// A load that hit its cache after a TLB miss.
    DataTlb,
    /// A load that waited for an older store, or had overtaken one and was done again.
    Forward,
    /// The window was empty because the store queue was full.
    Store,
    /// Short integer work.
    Integer,
    /// Integer multiplication and division.
    LongInteger,
    /// Floating-point and vector work.
    Float,
    /// Fences and microcode.
    Other,
}

impl Cause {
    /// Every cause, in order of its number.
    pub const ALL: [Cause; 16] = [
        Cause::Mispredict,
        Cause::Resteer,
        Cause::Code,
        Cause::CodeTlb,
        Cause::Fetch,
        Cause::L1d,
        Cause::L2,
        Cause::L3,
        Cause::Memory,
        Cause::DataTlb,
        Cause::Forward,
        Cause::Store,
        Cause::Integer,
        Cause::LongInteger,
        Cause::Float,
        Cause::Other,
    ];

    /// The event that counts its cycles exactly: each cycle by what the oldest micro-op does.
    pub fn exact_event(self) -> Event {
        Event::ALL[Event::StallMispredict as usize + self as usize]
    }

    /// The event that counts its cycles as stall counters do: a stall goes to what ends it.
    pub fn charged_event(self) -> Event {
        Event::ALL[Event::SsbMispredict as usize + self as usize]
    }

    /// Whether the window is empty meanwhile.
    pub fn is_front(self) -> bool {
        self <= Cause::Fetch || self == Cause::Store
    }

    /// What the oldest micro-op is busy with when it is no load.
    pub(crate) fn of_work(class: Class) -> Cause {
        match class {
            Class::Mul | Class::Div32 | Class::Div64 => Cause::LongInteger,
            Class::Fence | Class::Microcode => Cause::Other,
            class if class >= Class::VecStoreData => Cause::Float,
            _ => Cause::Integer,
        }
    }

    /// What a load is busy with that waits for something from a level.
    pub(crate) fn of_load(from: Level, translated: bool, forwarded: bool) -> Cause {
        match from {
            _ if forwarded => Cause::Forward,
            Level::L1 if translated => Cause::DataTlb,
            Level::L1 => Cause::L1d,
            Level::L2 => Cause::L2,
            Level::L3 => Cause::L3,
            Level::Memory => Cause::Memory,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_and_their_events_stand_in_the_same_order() {
        let expected = [
            "mispredict",
            "resteer",
            "code",
            "code-tlb",
            "fetch",
            "l1d",
            "l2",
            "l3",
            "memory",
            "data-tlb",
            "forward",
            "store",
            "integer",
            "long-integer",
            "float",
            "other",
        ];
        for (cause, name) in Cause::ALL.into_iter().zip(expected) {
            assert_eq!(cause.exact_event().name(), format!("stall-{name}-cycles"));
            assert_eq!(cause.charged_event().name(), format!("ssb-{name}-cycles"));
        }
    }
}
