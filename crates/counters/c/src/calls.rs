//! The calls.

use std::ffi::{CStr, c_char, c_int, c_longlong};
use std::panic::{AssertUnwindSafe, catch_unwind};

use counters::sets::{EventSet, SetError, SetOptions, SetState, Value, configure, event_named};

use crate::WhitherValue;
use crate::code::{CODES, of};

const OK: c_int = 0;
const INVALID: c_int = -1;
const BUG: c_int = -12;

/// A declaration, for the header.
pub(crate) struct Declaration {
    pub(crate) name: &'static str,
    pub(crate) returns: &'static str,
    pub(crate) arguments: &'static [(&'static str, &'static str)],
    pub(crate) what: &'static [&'static str],
}

/// Declares each call once: as an exported procedure, and as a line of the header.
macro_rules! interface {
    ($($(#[doc = $what:literal])+ fn $name:ident($($argument:ident: $kind:ty),* $(,)?) -> $returns:ty $body:block)+) => {
        $(
            $(#[doc = $what])+
            ///
            /// # Safety
            ///
            /// A pointer is null or points to what its type says, as many as the call is told;
            /// text ends in a nul.
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name($($argument: $kind),*) -> $returns $body
        )+

        pub(crate) const DECLARATIONS: &[Declaration] = &[$(
            Declaration {
                name: stringify!($name),
                returns: stringify!($returns),
                arguments: &[$((stringify!($argument), stringify!($kind))),*],
                what: &[$($what),+],
            }
        ),+];
    };
}

interface! {
    /// Makes an event set of the calling thread.
    fn whither_create_eventset(set: *mut c_int) -> c_int {
        guarded(|| {
            let id = EventSet::create()?;
            if set.is_null() {
                EventSet::destroy_by_id(id)?;
                return Ok(INVALID);
            }
            // SAFETY: not null, and by the call's contract an int.
            unsafe { set.write(id) };
            Ok(OK)
        })
    }

    /// Adds an event by its name: `page-faults`, `cycles:u`, `r01c2`, `mem:0x7ffc1000:w`.
    fn whither_add_event(set: c_int, name: *const c_char) -> c_int {
        guarded(|| {
            // SAFETY: by the call's contract.
            let Some(name) = (unsafe { text(name) }) else { return Ok(INVALID) };
            EventSet::add_by_id(set, &event_named(&name)?)?;
            Ok(OK)
        })
    }

    /// How many events the set has, or an error below 0.
    fn whither_num_events(set: c_int) -> c_int {
        guarded(|| Ok(EventSet::names_by_id(set)?.len().try_into().unwrap_or(c_int::MAX)))
    }

    /// Whether the set runs: 1 or 0, or an error below 0.
    fn whither_is_running(set: c_int) -> c_int {
        guarded(|| Ok(c_int::from(EventSet::state_by_id(set)? == SetState::Running)))
    }

    /// Starts counting from nought.
    fn whither_start(set: c_int) -> c_int {
        guarded(|| EventSet::start_by_id(set).map(|()| OK))
    }

    /// Reads the totals so far into an array with room for `room` values, while the set runs or of
    /// its last run. Values come in the order in which events were added.
    fn whither_read(set: c_int, values: *mut WhitherValue, room: c_int) -> c_int {
        guarded(|| {
            // SAFETY: by the call's contract.
            let Some(into) = (unsafe { array(values, room) }) else { return Ok(INVALID) };
            put(&EventSet::read_by_id(set)?, into)
        })
    }

    /// Adds the totals so far to an array and counts from nought again.
    fn whither_accum(set: c_int, values: *mut WhitherValue, room: c_int) -> c_int {
        guarded(|| {
            // SAFETY: by the call's contract.
            let Some(into) = (unsafe { array(values, room) }) else { return Ok(INVALID) };
            let read = EventSet::read_by_id(set)?;
            if read.len() > into.len() {
                return Ok(INVALID);
            }
            EventSet::reset_by_id(set)?;
            for (sum, value) in into.iter_mut().zip(&read) {
                *sum = sum.plus(&value.into());
            }
            Ok(OK)
        })
    }

    /// Counts from nought again, without stopping.
    fn whither_reset(set: c_int) -> c_int {
        guarded(|| EventSet::reset_by_id(set).map(|()| OK))
    }

    /// Stops; reads the totals as whither_read does. Without an array it only stops.
    fn whither_stop(set: c_int, values: *mut WhitherValue, room: c_int) -> c_int {
        guarded(|| {
            // SAFETY: by the call's contract.
            let into = unsafe { array(values, room) };
            // What has no room is found before the set is stopped, so that nothing is lost.
            let events = EventSet::names_by_id(set)?.len();
            if into.as_ref().is_some_and(|into| into.len() < events) {
                return Ok(INVALID);
            }
            let totals = EventSet::stop_by_id(set)?;
            into.map_or(Ok(OK), |into| put(&totals, into))
        })
    }

    /// Takes all events out of a set that does not run.
    fn whither_cleanup_eventset(set: c_int) -> c_int {
        guarded(|| EventSet::cleanup_by_id(set).map(|()| OK))
    }

    /// Destroys a set that does not run; its number becomes 0, which is never a set.
    fn whither_destroy_eventset(set: *mut c_int) -> c_int {
        guarded(|| {
            if set.is_null() {
                return Ok(INVALID);
            }
            // SAFETY: not null, and by the call's contract an int.
            let id = unsafe { set.read() };
            EventSet::destroy_by_id(id)?;
            // SAFETY: as above.
            unsafe { set.write(0) };
            Ok(OK)
        })
    }

    /// How the calling thread takes turns: slices of so many nanoseconds of its own time (0 for the
    /// default of 10 ms), and only so many events at a time (0 for what the machine can do).
    fn whither_set_multiplex(slice_ns: c_longlong, counters: c_int) -> c_int {
        guarded(|| {
            let (Ok(slice_ns), Ok(counters)) = (u64::try_from(slice_ns), u32::try_from(counters))
            else {
                return Ok(INVALID);
            };
            let default = SetOptions::default();
            let slice_ns = if slice_ns == 0 { default.slice_ns } else { slice_ns };
            let counters = (counters > 0).then_some(counters);
            configure(SetOptions { slice_ns, counters, ..default }).map(|()| OK)
        })
    }

    /// What a code means; the text lives as long as the program.
    fn whither_strerror(code: c_int) -> *const c_char {
        crate::code::meaning(code).as_ptr()
    }
}

/// An answer as a code; a panic becomes one too.
fn guarded(call: impl FnOnce() -> Result<c_int, SetError>) -> c_int {
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(Ok(number)) => number,
        Ok(Err(error)) => of(&error),
        Err(_) => BUG,
    }
}

/// # Safety
/// The pointer is null or points to text that ends in a nul.
unsafe fn text(name: *const c_char) -> Option<String> {
    if name.is_null() {
        return None;
    }
    // SAFETY: not null, and by the contract text.
    unsafe { CStr::from_ptr(name) }.to_str().ok().map(str::to_owned)
}

/// # Safety
/// The pointer is null or points to `room` values.
unsafe fn array<'a>(values: *mut WhitherValue, room: c_int) -> Option<&'a mut [WhitherValue]> {
    let room = usize::try_from(room).ok()?;
    if values.is_null() || !values.is_aligned() {
        return None;
    }
    // SAFETY: not null, aligned, and by the contract so many.
    Some(unsafe { std::slice::from_raw_parts_mut(values, room) })
}

fn put(totals: &[Value], into: &mut [WhitherValue]) -> Result<c_int, SetError> {
    if totals.len() > into.len() {
        return Ok(INVALID);
    }
    into.iter_mut().zip(totals).for_each(|(place, total)| *place = total.into());
    Ok(OK)
}

const _: () = assert!(CODES[0].number == OK && CODES[1].number == INVALID);
const _: () = assert!(CODES[12].number == BUG);
