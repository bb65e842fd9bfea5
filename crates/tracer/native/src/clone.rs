//! New threads and new processes.

use std::sync::mpsc;

use tracer::inside::{Inside, fork as around};

use crate::calls::failed;
use crate::context::{Context, Vectors};
use crate::teller::Teller;
use crate::thread::{self, Nobody, Thread, new_context};
use crate::{cache, guest, lend, memory, signals};

const VM: u64 = libc::CLONE_VM as u64;
const VFORK: u64 = libc::CLONE_VFORK as u64;
const THREAD: u64 = libc::CLONE_THREAD as u64;
const PARENT_SETTID: u64 = libc::CLONE_PARENT_SETTID as u64;
const CHILD_SETTID: u64 = libc::CLONE_CHILD_SETTID as u64;
const CHILD_CLEARTID: u64 = libc::CLONE_CHILD_CLEARTID as u64;
const SETTLS: u64 = libc::CLONE_SETTLS as u64;
const PIDFD: u64 = libc::CLONE_PIDFD as u64;
const GET_TID_ADDRESS: i32 = 40;

/// The program's `clone`.
pub(crate) fn clone(thread: &mut Thread, arguments: &[u64; 6]) -> i64 {
    let [flags, stack, parent_tid, child_tid, tls, _] = *arguments;
    if flags & THREAD != 0 && flags & VM != 0 {
        return begin_thread(thread, flags, stack, [parent_tid, child_tid, tls]);
    }
    if flags & VM != 0 && flags & VFORK != 0 {
        return lend::lend(thread, arguments);
    }
    // A process that shares its memory for good. With a copy of it the program would wait for ever for
    // what the child was to write; like QEMU, we say at once that it cannot be had.
    if flags & VM != 0 {
        return failed(libc::EINVAL);
    }
    fork(thread, flags, [stack, parent_tid, child_tid, tls])
}

/// Registers on their way to the host's thread that will have them.
struct Parcel(Box<Context>, Vectors);

// SAFETY: nobody else has it any more.
unsafe impl Send for Parcel {}

fn begin_thread(
    parent: &mut Thread,
    flags: u64,
    stack: u64,
    [parent_tid, child_tid, tls]: [u64; 3],
) -> i64 {
    let parcel = copied(parent, flags, stack, tls);
    let mask = parent.signals.mask;
    let sandbox = parent.sandbox.clone();
    let (say, hear) = mpsc::channel();
    // Until the thread has its own context no signal may reach it.
    let before = signals::block_all();
    let body = move || {
        // SAFETY: asks the kernel for a number.
        let tid = unsafe { libc::gettid() };
        // Taken as a whole, which may cross threads; its parts may not. The thread is made here, since
        // its number with the kernel is that of who asks.
        let parcel = parcel;
        let Parcel(context, vectors) = parcel;
        let mut thread = Thread::new(context, vectors);
        thread.signals.mask = mask;
        thread.sandbox = sandbox;
        if flags & CHILD_CLEARTID != 0 {
            thread.clear_at_end = child_tid;
        }
        for (flag, place) in [(PARENT_SETTID, parent_tid), (CHILD_SETTID, child_tid)] {
            if flags & flag != 0 {
                guest::write(place, &tid.to_le_bytes());
            }
        }
        thread.begin(|| {
            // The parent waits; it cannot be gone.
            let _ = say.send(tid);
        });
        thread.run();
    };
    let made = std::thread::Builder::new().stack_size(1 << 20).spawn(body);
    let result = match made {
        Ok(_) => hear.recv().map_or(failed(libc::EAGAIN), i64::from),
        Err(_) => failed(libc::EAGAIN),
    };
    signals::unblock(before);
    result
}

/// Registers for a thread that begins where its parent is.
fn copied(parent: &mut Thread, flags: u64, stack: u64, tls: u64) -> Parcel {
    let mut context = new_context();
    context.registers = parent.context.registers;
    context.registers[0] = 0;
    if stack != 0 {
        context.registers[4] = stack;
    }
    context.flags = parent.context.flags;
    context.pc = parent.context.pc;
    context.guest_fs = if flags & SETTLS != 0 { tls } else { parent.context.guest_fs };
    context.guest_gs = parent.context.guest_gs;
    Parcel(context, parent.vectors().clone())
}

/// The program's `fork`, or a `clone` that comes to the same.
pub(crate) fn fork(
    thread: &mut Thread,
    flags: u64,
    [stack, parent_tid, child_tid, tls]: [u64; 4],
) -> i64 {
    around::expect(thread.number);
    let was_traced = Inside::get().is_some();
    let asked = flags & !(SETTLS | PARENT_SETTID | CHILD_SETTID | CHILD_CLEARTID);
    let is_plain = asked == libc::SIGCHLD as u64;
    // The C library's locks may be anybody's, and only its own fork sees to them.
    if !is_plain && !thread::is_only() {
        return failed(libc::EINVAL);
    }
    let before = signals::block_all();
    let mut descriptor = 0;
    // Locks that another thread may have are taken, so that the child does not inherit them taken.
    let (cache, space) = (cache::lock(), memory::space());
    let child = match is_plain {
        // SAFETY: the child goes on with this thread alone, and all that it shares is at rest.
        true => unsafe { libc::fork() },
        false => fork_with(asked, &mut descriptor),
    };
    drop((cache, space));
    if child == 0 {
        be_child(thread, flags, [stack, child_tid, tls]);
        if was_traced && Inside::get().is_none() {
            be_untraced(thread);
        }
    }
    signals::unblock(before);
    // Of these the kernel takes one at a time.
    for (flag, number) in [(PARENT_SETTID, child), (PIDFD, descriptor)] {
        if child > 0 && flags & flag != 0 {
            guest::write(parent_tid, &number.to_le_bytes());
        }
    }
    match child {
        // SAFETY: the C library's own error number.
        -1 => failed(unsafe { *libc::__errno_location() }),
        _ => i64::from(child),
    }
}

/// Forks as the kernel does, with what the C library's fork has no words for: other namespaces, shared
/// descriptors, another signal at the end. A descriptor that stands for the child is put down.
fn fork_with(flags: u64, descriptor: &mut i32) -> libc::pid_t {
    // Where the C library keeps this thread's number, which is another in the child.
    let mut number_at = 0u64;
    // SAFETY: the kernel writes a word of ours; it knows the address from the C library.
    let is_known = unsafe { libc::prctl(GET_TID_ADDRESS, &raw mut number_at) } == 0;
    let keeps = if is_known { CHILD_SETTID | CHILD_CLEARTID } else { 0 };
    around::before();
    // SAFETY: as with the C library's, for a process of one thread.
    let child = unsafe {
        let descriptor: *mut i32 = descriptor;
        libc::syscall(libc::SYS_clone, flags | keeps, 0, descriptor, number_at, 0)
    };
    match child {
        0 => around::in_child(),
        _ => around::in_parent(),
    }
    child as libc::pid_t
}

fn be_child(thread: &mut Thread, flags: u64, [stack, child_tid, tls]: [u64; 3]) {
    thread.be_alone();
    thread.signals.own_actions = None;
    thread.teller.forked();
    if stack != 0 {
        thread.context.registers[4] = stack;
    }
    if flags & SETTLS != 0 {
        thread.context.guest_fs = tls;
    }
    // SAFETY: asks the kernel for a number.
    let tid = unsafe { libc::gettid() };
    if flags & CHILD_SETTID != 0 {
        guest::write(child_tid, &tid.to_le_bytes());
    }
    thread.clear_at_end = if flags & CHILD_CLEARTID != 0 { child_tid } else { 0 };
}

/// There is no room for what the child counts, so nobody listens to it.
fn be_untraced(thread: &mut Thread) {
    thread.teller = Teller::new(Box::new(Nobody));
    if let Some(mut cache) = cache::lock() {
        cache.start_over();
    }
}
