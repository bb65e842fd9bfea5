//! What the program maps, for all its threads; and pages of code that it might write to.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use crate::cache;
use crate::space::{PAGE, Space};

static SPACE: OnceLock<Mutex<Space>> = OnceLock::new();
/// Pages that the program may write to and that code was translated from, with what the program
/// thinks is allowed: writing is not, until it is tried.
static GUARDED: Mutex<Option<HashMap<u64, i32>>> = Mutex::new(None);

pub(crate) fn start(space: Space) {
    let _ = SPACE.set(Mutex::new(space));
}

/// The program's mappings, for one thread at a time.
pub(crate) fn space() -> Option<MutexGuard<'static, Space>> {
    SPACE.get().map(|space| space.lock().unwrap_or_else(PoisonError::into_inner))
}

fn guarded() -> MutexGuard<'static, Option<HashMap<u64, i32>>> {
    GUARDED.lock().unwrap_or_else(PoisonError::into_inner)
}

fn protect(page: u64, protection: i32) {
    // SAFETY: a page of the program's, and its own affair.
    unsafe { libc::mprotect(page as *mut _, PAGE as usize, protection) };
}

/// Code was translated that begins at an address: if the program may write there, it is noticed.
pub(crate) fn guard(pc: u64) {
    let Some(space) = space() else { return };
    // A block reaches into the next page at most.
    for page in [pc & !(PAGE - 1), (pc & !(PAGE - 1)) + PAGE] {
        let Some(protection) = space.protection(page) else { continue };
        if protection & libc::PROT_WRITE == 0 {
            continue;
        }
        let has_code = cache::lock().is_some_and(|cache| cache.has_code(page));
        if has_code && guarded().get_or_insert_default().insert(page, protection).is_none() {
            protect(page, protection & !libc::PROT_WRITE);
        }
    }
}

/// Lets the program write to a page that was guarded, and forgets the code from there. Whether it was.
pub(crate) fn unguard(address: u64) -> bool {
    let page = address & !(PAGE - 1);
    let Some(protection) = guarded().as_mut().and_then(|pages| pages.remove(&page)) else {
        return false;
    };
    if let Some(mut cache) = cache::lock() {
        cache.forget(page, page + PAGE);
    }
    protect(page, protection);
    true
}

/// Lets the program, and the kernel for it, write to all pages. Whether any were guarded.
pub(crate) fn unguard_all() -> bool {
    let pages: Vec<u64> = guarded().iter().flat_map(|pages| pages.keys().copied()).collect();
    pages.iter().filter(|page| unguard(**page)).count() > 0
}

/// The program has said anew what is allowed in a range.
pub(crate) fn release(start: u64, end: u64) {
    if let Some(pages) = guarded().as_mut() {
        pages.retain(|page, _| *page < start || *page >= end);
    }
}

/// A range is mapped anew, unmapped, or used otherwise: its code is forgotten.
pub(crate) fn changed(start: u64, end: u64) {
    release(start, end);
    if let Some(mut cache) = cache::lock() {
        cache.forget(start, end);
    }
}

/// This thread's thread pointer.
pub(crate) fn thread_pointer() -> u64 {
    let pointer: u64;
    // SAFETY: reads a register; the engine does not start where there is no such instruction.
    unsafe { std::arch::asm!("rdfsbase {}", out(reg) pointer, options(nomem, nostack)) };
    pointer
}
