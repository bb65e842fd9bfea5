//! The calls that change the program's memory.

use crate::calls::{Call, failed};
use crate::space::{PAGE, Space};
use crate::{memory, views};

const FIXED: u64 = libc::MAP_FIXED as u64;
const NO_REPLACE: u64 = libc::MAP_FIXED_NOREPLACE as u64;
const LOW: u64 = libc::MAP_32BIT as u64;
const ANONYMOUS: u64 = libc::MAP_ANONYMOUS as u64;
const SHARED: u64 = libc::MAP_SHARED as u64;
const EXEC: u64 = libc::PROT_EXEC as u64;
const WRITE: u64 = libc::PROT_WRITE as u64;
const MAY_MOVE: u64 = libc::MREMAP_MAYMOVE as u64;
const MOVE_FIXED: u64 = libc::MREMAP_FIXED as u64;

/// Carries out mmap, munmap, mremap or mprotect.
pub(crate) fn change(call: &Call) -> i64 {
    match call[0] as libc::c_long {
        libc::SYS_mmap => map(call),
        libc::SYS_munmap => unmap(call),
        libc::SYS_mremap => remap(call),
        _ => protect(call),
    }
}

/// The kernel's answer to a call about the program's memory.
fn ask(call: &Call) -> i64 {
    let [number, a1, a2, a3, a4, a5, a6] = *call;
    // SAFETY: the addresses are the program's: of its own choosing, or free ones of ours.
    let result = unsafe { libc::syscall(number as libc::c_long, a1, a2, a3, a4, a5, a6) };
    match result {
        // SAFETY: the C library's own error number.
        -1 => failed(unsafe { *libc::__errno_location() }),
        _ => result,
    }
}

fn is_error(result: i64) -> bool {
    (-4095..0).contains(&result)
}

fn end_of(start: u64, len: u64) -> u64 {
    start.saturating_add(len).checked_next_multiple_of(PAGE).unwrap_or(u64::MAX)
}

fn map(call: &Call) -> i64 {
    let Some(mut space) = memory::space() else { return failed(libc::ENOMEM) };
    let [_, wish, len, protection, flags, ..] = *call;
    let mut call = *call;
    if flags & (FIXED | NO_REPLACE | LOW) == 0 && len > 0 {
        let Some(start) = choose(&mut space, wish, len, flags & ANONYMOUS == 0) else {
            return failed(libc::ENOMEM);
        };
        call[1] = start;
        call[4] = flags | NO_REPLACE;
    }
    let mut result = ask(&call);
    let is_refused = [libc::EEXIST, libc::EINVAL].map(failed).contains(&result);
    if is_refused && flags & (FIXED | NO_REPLACE) == 0 {
        // Something is there that we know nothing of, or pages are larger.
        call[1] = 0;
        call[4] = flags;
        result = ask(&call);
    }
    if !is_error(result) {
        let (start, end) = (result as u64, end_of(result as u64, len));
        space.add(start, end, protection as i32);
        drop(space);
        views::remove(start, end);
        memory::changed(start, end);
        if flags & SHARED != 0 && flags & ANONYMOUS == 0 {
            views::add(start, end, call[5] as i32, call[6]);
            memory::changed(start, end);
        }
    }
    result
}

/// The address that the program wishes for, if it is free, or one of ours.
fn choose(space: &mut Space, wish: u64, len: u64, is_file: bool) -> Option<u64> {
    let wish = wish & !(PAGE - 1);
    let end = end_of(wish, len);
    let is_ours = wish >= 0x10000 && end <= space.layout.rest.end;
    if is_ours && space.is_free(wish, end) {
        return Some(wish);
    }
    space.place(len, is_file)
}

fn unmap(call: &Call) -> i64 {
    let Some(mut space) = memory::space() else { return failed(libc::ENOMEM) };
    let [_, start, len, ..] = *call;
    let result = ask(call);
    if !is_error(result) {
        space.remove(start, end_of(start, len));
        drop(space);
        views::remove(start, end_of(start, len));
        memory::changed(start, end_of(start, len));
    }
    result
}

fn remap(call: &Call) -> i64 {
    let Some(mut space) = memory::space() else { return failed(libc::ENOMEM) };
    let [_, old, old_len, new_len, flags, ..] = *call;
    let mut call = *call;
    let (old_end, grown_end) = (end_of(old, old_len), end_of(old, new_len));
    let stays = grown_end <= old_end || space.is_free(old_end, grown_end);
    if flags & MOVE_FIXED == 0 && !stays {
        if flags & MAY_MOVE == 0 {
            return failed(libc::ENOMEM);
        }
        let Some(place) = space.place(new_len, false) else { return failed(libc::ENOMEM) };
        call[4] = flags | MOVE_FIXED;
        call[5] = place;
    }
    let protection = space.protection(old).unwrap_or(libc::PROT_READ | libc::PROT_WRITE);
    let result = ask(&call);
    if !is_error(result) {
        let (start, end) = (result as u64, end_of(result as u64, new_len));
        space.remove(old, old_end);
        space.add(start, end, protection);
        drop(space);
        views::moved(old, old_end, start, end);
        memory::changed(old, old_end);
        memory::changed(start, end);
    }
    result
}

fn protect(call: &Call) -> i64 {
    let Some(mut space) = memory::space() else { return failed(libc::ENOMEM) };
    let [_, start, len, protection, ..] = *call;
    let result = ask(call);
    if !is_error(result) {
        space.protect(start, end_of(start, len), protection as i32);
        drop(space);
        let keeps_code = protection & EXEC != 0 && protection & WRITE == 0;
        match keeps_code {
            true => memory::release(start, end_of(start, len)),
            false => memory::changed(start, end_of(start, len)),
        }
    }
    result
}

/// Moves the end of the program's first heap; says where it is.
pub(crate) fn set_break(wish: u64) -> i64 {
    let Some(mut space) = memory::space() else { return 0 };
    let now = space.break_now;
    if wish < space.break_start || wish > space.layout.break_end {
        return now as i64;
    }
    let (old, new) = (now.next_multiple_of(PAGE), wish.next_multiple_of(PAGE));
    if new > old {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE as u64 | ANONYMOUS | NO_REPLACE;
        let call = [libc::SYS_mmap as u64, old, new - old, protection as u64, flags, u64::MAX, 0];
        if !space.is_free(old, new) || ask(&call) != old as i64 {
            return now as i64;
        }
        space.add(old, new, protection);
    } else if new < old {
        ask(&[libc::SYS_munmap as u64, new, old - new, 0, 0, 0, 0]);
        space.remove(new, old);
    }
    space.break_now = wish;
    drop(space);
    if new < old {
        memory::changed(new, old);
    }
    wish as i64
}
