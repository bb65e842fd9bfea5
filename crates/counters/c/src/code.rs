//! Errors as numbers, in PAPI's manner: 0 is well, below is not.

use std::ffi::{CStr, CString};
use std::sync::OnceLock;

use counters::sets::SetError;

/// A code of the interface.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Code {
    /// What a call returns.
    pub number: i32,
    /// Its name in the header.
    pub name: &'static str,
    /// What it means.
    pub meaning: &'static str,
}

/// Every code, by falling number.
pub(crate) const CODES: [Code; 13] = [
    Code { number: 0, name: "WHITHER_OK", meaning: "done" },
    Code { number: -1, name: "WHITHER_EINVAL", meaning: "an argument makes no sense" },
    Code { number: -2, name: "WHITHER_ENOEVST", meaning: "there is no such event set" },
    Code { number: -3, name: "WHITHER_EOWNER", meaning: "the event set belongs to another thread" },
    Code { number: -4, name: "WHITHER_EISRUN", meaning: "the event set is running" },
    Code { number: -5, name: "WHITHER_ENOTRUN", meaning: "the event set is not running" },
    Code { number: -6, name: "WHITHER_EEMPTY", meaning: "the event set has no events" },
    Code { number: -7, name: "WHITHER_ETWICE", meaning: "the event is in the event set already" },
    Code { number: -8, name: "WHITHER_ENOEVNT", meaning: "there is no such event" },
    Code {
        number: -9,
        name: "WHITHER_EPERM",
        meaning: "the event may not be counted by this user",
    },
    Code { number: -10, name: "WHITHER_ECNFLCT", meaning: "the events cannot be counted" },
    Code { number: -11, name: "WHITHER_ESYS", meaning: "a system call failed" },
    Code { number: -12, name: "WHITHER_EBUG", meaning: "a bug in this library; nothing was lost" },
];

/// The code of an error.
pub fn of(error: &SetError) -> i32 {
    match error {
        SetError::NoSuchSet => -2,
        SetError::NotYours => -3,
        SetError::IsRunning => -4,
        SetError::NotRunning => -5,
        SetError::Empty => -6,
        SetError::Twice(_) => -7,
        SetError::Unknown(_) => -8,
        SetError::Refused(_, refusal) if refusal.is_permission() => -9,
        SetError::Refused(..) => -8,
        SetError::Grouping(_) | SetError::Kernel(_) => -10,
        SetError::Call(_) | SetError::Ending => -11,
    }
}

/// A code's meaning as C text.
pub(crate) fn meaning(number: i32) -> &'static CStr {
    static TEXTS: OnceLock<Vec<(i32, CString)>> = OnceLock::new();
    let texts = TEXTS.get_or_init(|| {
        let text = |code: &Code| CString::new(code.meaning).ok().map(|text| (code.number, text));
        CODES.iter().filter_map(text).collect()
    });
    texts.iter().find(|(known, _)| *known == number).map_or(c"no such code", |(_, text)| text)
}
