//! What the program maps, for all its threads; and pages of code that it might write to.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use crate::space::{PAGE, Space};
use crate::{cache, guest, thread, views};

static SPACE: OnceLock<Mutex<Space>> = OnceLock::new();
/// Pages that the program may write to and that code was translated from: writing faults, until it is
/// tried.
static GUARDED: Mutex<BTreeSet<u64>> = Mutex::new(BTreeSet::new());

pub(crate) fn start(space: Space) {
    let _ = SPACE.set(Mutex::new(space));
}

/// The program's mappings, for one thread at a time.
pub(crate) fn space() -> Option<MutexGuard<'static, Space>> {
    SPACE.get().map(|space| space.lock().unwrap_or_else(PoisonError::into_inner))
}

fn guarded() -> MutexGuard<'static, BTreeSet<u64>> {
    GUARDED.lock().unwrap_or_else(PoisonError::into_inner)
}

fn protect(page: u64, protection: i32) {
    // SAFETY: a page of the program's, and its own affair.
    unsafe { libc::mprotect(page as *mut _, PAGE as usize, protection) };
}

/// The bytes of code at an address, no more than `most`. If the program may write there it is noticed from
/// now on, from before the bytes are read. To be asked while the cache is locked.
pub(crate) fn code(pc: u64, most: usize) -> Vec<u8> {
    let page = pc & !(PAGE - 1);
    let left = (page + PAGE - pc) as usize;
    guard(page);
    if !may_write(page + PAGE) {
        return guest::read(pc, most);
    }
    // The next page is looked at only for an instruction that reaches into it.
    if left >= LONGEST_INSTRUCTION {
        return guest::read(pc, left.min(most));
    }
    guard(page + PAGE);
    guest::read(pc, LONGEST_INSTRUCTION)
}

pub(crate) const LONGEST_INSTRUCTION: usize = 15;

fn may_write(page: u64) -> bool {
    let protection = space().and_then(|space| space.protection(page));
    protection.is_some_and(|protection| protection & libc::PROT_WRITE != 0)
}

/// Whether the program may write at an address; nothing that guards it is in the way then.
pub(crate) fn may_touch(address: u64) -> bool {
    let page = address & !(PAGE - 1);
    let is_guarded = guarded().contains(&page);
    may_write(page) && (!is_guarded || unguard(page))
}

/// Has writing to a page fault, and to every other view of what is there.
fn guard(page: u64) {
    guard_one(page);
    let others = views::others(page, page + PAGE);
    others.iter().for_each(|(other, _)| guard_one(*other));
}

fn guard_one(page: u64) {
    let Some(protection) = space().and_then(|space| space.protection(page)) else { return };
    if protection & libc::PROT_WRITE != 0 && guarded().insert(page) {
        protect(page, protection & !libc::PROT_WRITE);
    }
}

/// Lets the program write to a page that was guarded, and forgets the code from there. Whether it may
/// write there: another thread may have been told so a moment ago.
pub(crate) fn unguard(address: u64) -> bool {
    let page = address & !(PAGE - 1);
    // With the lock that code is read under, so that none is read between the two.
    let Some(mut cache) = cache::lock() else { return false };
    guarded().remove(&page);
    let Some(protection) = space().and_then(|space| space.protection(page)) else { return false };
    if protection & libc::PROT_WRITE == 0 {
        return false;
    }
    thread::forget_branches(&cache.forget(page, page + PAGE));
    for (start, end) in views::others(page, page + PAGE) {
        thread::forget_branches(&cache.forget(start, end));
    }
    protect(page, protection);
    true
}

/// Lets the program, and the kernel for it, write to all pages. Whether any were guarded.
pub(crate) fn unguard_all() -> bool {
    let pages: Vec<u64> = guarded().iter().copied().collect();
    pages.iter().filter(|page| unguard(**page)).count() > 0
}

/// The program has said anew what is allowed in a range.
pub(crate) fn release(start: u64, end: u64) {
    guarded().retain(|page| *page < start || *page >= end);
}

/// A range is mapped anew, unmapped, or used otherwise: its code is forgotten.
pub(crate) fn changed(start: u64, end: u64) {
    release(start, end);
    if let Some(mut cache) = cache::lock() {
        thread::forget_branches(&cache.forget(start, end));
        for (start, end) in views::others(start, end) {
            thread::forget_branches(&cache.forget(start, end));
        }
    }
}

/// This thread's thread pointer.
pub(crate) fn thread_pointer() -> u64 {
    let pointer: u64;
    // SAFETY: reads a register; the engine does not start where there is no such instruction.
    unsafe { std::arch::asm!("rdfsbase {}", out(reg) pointer, options(nomem, nostack)) };
    pointer
}
