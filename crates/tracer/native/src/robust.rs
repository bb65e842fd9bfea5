//! Locks that say when whoever held them has ended (robust futexes).
//!
//! The kernel goes through a thread's list of them when the thread ends, and only then says that it has. Of
//! a thread of the program's the engine says so, a moment before the host's thread ends: whoever waited
//! for it would find its locks still held. So the list is gone through here first.

use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::SeqCst;

use crate::{guest, memory};

/// Entries that the kernel goes through at most.
const ENTRIES_MAX: usize = 2048;
/// In an entry's address: that the lock hands priority on. The kernel keeps an account of those.
const HANDS_ON: u64 = 1;
/// In a lock: who has it, that somebody waits, and that whoever had it has ended.
const OWNER: u32 = 0x3fff_ffff;
const IS_AWAITED: u32 = 0x8000_0000;
const OWNER_ENDED: u32 = 0x4000_0000;

/// Gives up the locks that this thread still holds.
pub(crate) fn give_up_locks() {
    let (mut head, mut len) = (0u64, 0u64);
    // SAFETY: the kernel writes two words of ours.
    let asked = unsafe { libc::syscall(libc::SYS_get_robust_list, 0, &raw mut head, &raw mut len) };
    if asked != 0 || head == 0 {
        return;
    }
    let Some([first, offset, pending]) = guest::words::<3>(head) else { return };
    let mut entry = first;
    for _ in 0..ENTRIES_MAX {
        if entry & !HANDS_ON == head {
            break;
        }
        // Before the lock is given up: its memory may be gone afterwards.
        let next = guest::words::<1>(entry & !HANDS_ON);
        if entry != pending {
            give_up(entry, offset);
        }
        match next {
            Some([next]) => entry = next,
            None => break,
        }
    }
    if pending != 0 {
        give_up(pending, offset);
    }
}

/// Gives up one lock, if this thread has it.
fn give_up(entry: u64, offset: u64) {
    let place = (entry & !HANDS_ON).wrapping_add(offset);
    if entry & HANDS_ON != 0 || !place.is_multiple_of(4) {
        return;
    }
    // SAFETY: asks the kernel for a number.
    let own = unsafe { libc::gettid() } as u32;
    if exchange(place, own).is_some_and(|before| before & IS_AWAITED != 0) {
        // SAFETY: wakes one that waits for the lock, at an address of the program's.
        unsafe { libc::syscall(libc::SYS_futex, place, libc::FUTEX_WAKE, 1) };
    }
}

/// Writes into a lock of this thread's that its owner has ended; what was there before.
fn exchange(place: u64, own: u32) -> Option<u32> {
    memory::may_touch(place).then(|| {
        // SAFETY: memory that the program may write to, aligned; others change it as a whole too.
        let lock = unsafe { &*(place as *const AtomicU32) };
        let given_up = |now: u32| (now & OWNER == own).then_some(now & IS_AWAITED | OWNER_ENDED);
        lock.fetch_update(SeqCst, SeqCst, given_up).ok()
    })?
}
