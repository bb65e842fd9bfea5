//! A value as C sees it.

use std::ffi::{c_double, c_int, c_longlong};

use counters::NotCounted;
use counters::sets::Value;

/// What a set says of one event.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct WhitherValue {
    /// The estimated total.
    pub value: c_double,
    /// Its standard uncertainty; 0 where it was counted all the time, infinite where one slice
    /// leaves none to tell.
    pub uncertainty: c_double,
    /// The share of time in which it was counted.
    pub share: c_double,
    /// What was counted in that share.
    pub counted: c_longlong,
    /// `WHITHER_COUNTED`, or why there is no value.
    pub state: c_int,
}

/// The fields, for the header.
pub(crate) const FIELDS: [(&str, &str, &str); 5] = [
    ("double", "value", "the estimated total"),
    ("double", "uncertainty", "its standard uncertainty; 0 where it was counted all the time"),
    ("double", "share", "the share of time in which it was counted"),
    ("long long", "counted", "what was counted in that share"),
    ("int", "state", "WHITHER_COUNTED, or why there is no value"),
];

/// The states, for the header.
pub(crate) const STATES: [(&str, i32, &str); 4] = [
    ("WHITHER_COUNTED", 0, "the value is there"),
    ("WHITHER_NO_TURN", 1, "not counted: its turn never came; this is not 0"),
    ("WHITHER_NEVER_RAN", 2, "not counted: its group never had its counters"),
    ("WHITHER_REFUSED", 3, "not counted: the kernel would not open it"),
];

impl From<&Value> for WhitherValue {
    fn from(value: &Value) -> WhitherValue {
        match value {
            Ok(counted) => WhitherValue {
                value: counted.estimate.value,
                uncertainty: counted.estimate.standard_uncertainty,
                share: counted.share,
                counted: counted.counted.try_into().unwrap_or(c_longlong::MAX),
                state: 0,
            },
            Err(why) => WhitherValue {
                value: f64::NAN,
                uncertainty: f64::INFINITY,
                state: match why {
                    NotCounted::NoTurn => 1,
                    NotCounted::NeverRan => 2,
                    NotCounted::Refused(_) | NotCounted::NoSlot => 3,
                },
                ..WhitherValue::default()
            },
        }
    }
}

impl WhitherValue {
    /// The sum of two stretches of counting; a stretch that was not counted leaves no sum.
    pub(crate) fn plus(&self, more: &WhitherValue) -> WhitherValue {
        WhitherValue {
            value: self.value + more.value,
            uncertainty: self.uncertainty.hypot(more.uncertainty),
            share: (self.share + more.share) / 2.0,
            counted: self.counted.saturating_add(more.counted),
            state: self.state.max(more.state),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_counted_is_no_number_and_sums_to_none() {
        let none = WhitherValue::from(&Err(NotCounted::NoTurn));
        assert!(none.value.is_nan() && none.state == 1);
        let some = WhitherValue { value: 3.0, uncertainty: 3.0, share: 1.0, counted: 3, state: 0 };
        let more = WhitherValue { uncertainty: 4.0, ..some };
        assert_eq!(
            some.plus(&more),
            WhitherValue { value: 6.0, uncertainty: 5.0, counted: 6, ..some }
        );
        assert!(some.plus(&none).value.is_nan() && some.plus(&none).state == 1);
    }
}
