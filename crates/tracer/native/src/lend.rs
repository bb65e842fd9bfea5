//! A child that has its parent's memory until it becomes another program, as `vfork` and `posix_spawn`
//! make it.
//!
//! The parent's thread waits meanwhile, so that its child can use all that it has here: its context, its
//! listener, its place in the list. What the child runs is counted where its parent's is. What it
//! changes of the thread is put back; what it changes of the program's memory stays, as the program
//! expects: an error that it writes there is how its parent hears that there is no such program.
//!
//! ```text
//! parent  run > step > call > lend ............................ goes on, as it was
//! child                          run > step > call: exec or exit
//! ```

use crate::calls::failed;
use crate::context::Vectors;
use crate::sandbox::Sandbox;
use crate::signals::{self, Actions};
use crate::switch::whither_lend;
use crate::thread::Thread;

const SETTLS: u64 = libc::CLONE_SETTLS as u64;
const CHILD_CLEARTID: u64 = libc::CLONE_CHILD_CLEARTID as u64;

/// What a thread has that its child may change.
struct Kept {
    registers: [u64; 16],
    flags: u64,
    pc: u64,
    guest_fs: u64,
    guest_gs: u64,
    vectors: Vectors,
    has_signal: u64,
    mask: u64,
    stack: [u64; 3],
    actions: Option<Box<Actions>>,
    sandbox: Sandbox,
    waiting: u64,
    clear_at_end: u64,
}

impl Kept {
    fn of(thread: &mut Thread) -> Kept {
        let context = &thread.context;
        Kept {
            registers: context.registers,
            flags: context.flags,
            pc: context.pc,
            guest_fs: context.guest_fs,
            guest_gs: context.guest_gs,
            has_signal: context.has_signal,
            mask: thread.signals.mask,
            stack: thread.signals.stack,
            actions: thread.signals.own_actions.take(),
            sandbox: thread.sandbox.clone(),
            waiting: signals::exchange_waiting(0),
            clear_at_end: thread.clear_at_end,
            vectors: thread.vectors().clone(),
        }
    }

    fn put_back(self, thread: &mut Thread) {
        *thread.vectors() = self.vectors;
        let context = &mut thread.context;
        context.registers = self.registers;
        context.flags = self.flags;
        context.pc = self.pc;
        context.guest_fs = self.guest_fs;
        context.guest_gs = self.guest_gs;
        context.has_signal = self.has_signal;
        thread.signals.mask = self.mask;
        thread.signals.stack = self.stack;
        thread.signals.waits_with = None;
        thread.signals.own_actions = self.actions;
        thread.sandbox = self.sandbox;
        thread.clear_at_end = self.clear_at_end;
        signals::exchange_waiting(self.waiting);
    }
}

/// The program's `vfork`, or a `clone` that comes to the same.
pub(crate) fn lend(thread: &mut Thread, arguments: &[u64; 6]) -> i64 {
    let [flags, stack, parent_tid, child_tid, tls, _] = *arguments;
    signals::block_all();
    let mut kept = Kept::of(thread);
    thread.signals.own_actions = Some(kept.actions.clone().unwrap_or_else(signals::actions));
    thread.context.registers[0] = 0;
    thread.context.has_signal = 0;
    thread.clear_at_end = 0;
    if stack != 0 {
        thread.context.registers[4] = stack;
    }
    if flags & SETTLS != 0 {
        thread.context.guest_fs = tls;
    }
    // The engine's own thread pointer stays, and its stack.
    let flags = flags & !(SETTLS | CHILD_CLEARTID);
    let call = [libc::SYS_clone as u64, flags, 0, parent_tid, child_tid, 0, 0];
    // SAFETY: the thread lives; nobody but the child uses it before the call returns.
    let child = unsafe { whither_lend(&raw const call, begin, (&raw mut *thread).cast()) };
    if child < 0 {
        kept.has_signal |= u64::from(child == failed(libc::EINTR));
    }
    kept.put_back(thread);
    signals::set_kernel_mask(thread);
    child
}

/// Where the child begins.
unsafe extern "C" fn begin(thread: *mut libc::c_void) -> ! {
    // SAFETY: the parent's thread, which waits.
    let thread = unsafe { &mut *thread.cast::<Thread>() };
    signals::set_kernel_mask(thread);
    thread.begin_recording();
    thread.run();
    // SAFETY: ends the child.
    unsafe { libc::_exit(0) }
}
