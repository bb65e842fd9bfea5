//! The program's system calls: most are the kernel's as they are; those that change what the process
//! is are carried out here.

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::sync::atomic::Ordering::SeqCst;

use libc::c_long;
use tracer::inside::Inside;
use tracer::inside::calls::{Caller, on_call, on_return};

use crate::context::Fault;
use crate::frame::{self, DISARMS};
use crate::signals::{self, Action};
use crate::switch::{NOT_MADE, whither_call};
use crate::thread::{self, Thread, end_all, state};
use crate::{clone, guest, lend, maps, memory, narrow, robust, sandbox};

/// Whether the thread goes on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum After {
    GoesOn,
    Ended,
}

/// A call's number and its arguments.
pub(crate) type Call = [u64; 7];

/// Registers by their numbers in the encoding, in the order of arguments.
const ARGUMENTS: [usize; 6] = [7, 6, 2, 10, 8, 9];
/// Bytes of the instruction that makes a call, of either kind.
const CALL_BYTES: u64 = 2;

/// What a `vfork` is a `clone` with.
const VFORK_FLAGS: u64 = (libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD) as u64;

const ARCH_SET_GS: u64 = 0x1001;
const ARCH_SET_FS: u64 = 0x1002;
const ARCH_GET_FS: u64 = 0x1003;
const ARCH_GET_GS: u64 = 0x1004;

/// No address of a program's is here or above.
const USER_END: u64 = (1 << 47) - 4096;

pub(crate) fn failed(errno: i32) -> i64 {
    -i64::from(errno)
}

/// The thread made a system call; what it ran before was told.
pub(crate) fn call(thread: &mut Thread) -> After {
    let registers = &mut thread.context.registers;
    let number = registers[0];
    let arguments = ARGUMENTS.map(|register| registers[register]);
    registers[1] = thread.context.pc;
    registers[11] = thread.context.flags;
    let [a1, a2, a3, a4, a5, a6] = arguments;
    make(thread, [number, a1, a2, a3, a4, a5, a6])
}

/// The thread made a call as 32-bit programs make them.
pub(crate) fn narrow_call(thread: &mut Thread) -> After {
    match narrow::meant(&thread.context.registers) {
        Some(call) => make(thread, call),
        None => {
            thread.context.registers[0] = failed(libc::ENOSYS) as u64;
            After::GoesOn
        }
    }
}

fn make(thread: &mut Thread, call: Call) -> After {
    let [number, arguments @ ..] = call;
    let a1 = arguments[0];
    thread.teller.system_call(number);
    if let Some(after) = sandbox::judge(thread, &call) {
        thread.begin_recording();
        return after;
    }
    let ends_child = number as c_long == libc::SYS_exit && thread.is_borrowed();
    if let Some(inside) = Inside::get().filter(|_| !ends_child) {
        let caller = Caller { index: thread.number, thread: thread.number };
        if matches!(number as c_long, libc::SYS_execve | libc::SYS_execveat) {
            // What the program that it becomes inherits.
            signals::unblock(thread.signals.mask);
        }
        on_call(inside, caller, number as i64, &arguments);
        if matches!(number as c_long, libc::SYS_execve | libc::SYS_execveat) {
            signals::set_kernel_mask(thread);
        }
    }
    let result = match number as c_long {
        libc::SYS_exit | libc::SYS_exit_group if thread.is_borrowed() => {
            // SAFETY: ends the child, which has nothing of its own to end.
            unsafe { libc::_exit(a1 as i32) }
        }
        libc::SYS_exit => return exit(thread, a1),
        libc::SYS_exit_group => {
            end_all(thread);
            // SAFETY: ends the process.
            unsafe { libc::_exit(a1 as i32) }
        }
        libc::SYS_rt_sigreturn => {
            let after = frame::leave_handler(thread);
            thread.begin_recording();
            return after;
        }
        libc::SYS_clone => clone::clone(thread, &arguments),
        libc::SYS_fork => clone::fork(thread, libc::SIGCHLD as u64, [0; 4]),
        libc::SYS_vfork => lend::lend(thread, &[VFORK_FLAGS, 0, 0, 0, 0, 0]),
        libc::SYS_prctl | libc::SYS_seccomp => match sandbox::set(thread, &call) {
            Some(result) => result,
            None => kernel(thread, &call),
        },
        _ => match ours(thread, &call) {
            Some(result) => result,
            None => kernel(thread, &call),
        },
    };
    if result == NOT_MADE || result == failed(libc::EINTR) && is_made_again(thread, &call) {
        thread.context.pc -= CALL_BYTES;
    } else {
        thread.context.registers[0] = result as u64;
    }
    thread.begin_recording();
    After::GoesOn
}

/// Calls that are carried out here.
fn ours(thread: &mut Thread, call: &Call) -> Option<i64> {
    let [number, a1, a2, a3, a4, ..] = *call;
    Some(match number as c_long {
        libc::SYS_mmap | libc::SYS_munmap | libc::SYS_mremap | libc::SYS_mprotect => {
            let result = maps::change(call);
            if let (Some(inside), [_, arguments @ ..]) = (Inside::get(), *call) {
                on_return(inside, number as i64, &arguments, result);
            }
            result
        }
        // Memory is locked as it is touched: all that the engine reserves would be too much.
        libc::SYS_mlockall => {
            let flags = a1 | libc::MCL_ONFAULT as u64;
            enter_kernel(thread, &[number, flags, 0, 0, 0, 0, 0])
        }
        // The engine's memory would count too: it would have none left, and the program with it.
        libc::SYS_setrlimit if is_of_memory(a1) => 0,
        libc::SYS_prlimit64 if is_of_memory(a2) && a3 != 0 => {
            kernel(thread, &[number, a1, a2, 0, a4, 0, 0])
        }
        // CPUID shows no such keys.
        libc::SYS_pkey_alloc => failed(libc::ENOSPC),
        libc::SYS_pkey_mprotect if a4 as i32 != -1 => failed(libc::EINVAL),
        libc::SYS_pkey_mprotect => maps::change(&[libc::SYS_mprotect as u64, a1, a2, a3, 0, 0, 0]),
        libc::SYS_brk => maps::set_break(a1),
        libc::SYS_rt_sigaction => set_action(thread, a1 as i32, a2, a3),
        libc::SYS_rt_sigprocmask => set_mask(thread, a1 as i32, a2, a3),
        libc::SYS_rt_sigpending => return signals::add_faults(kernel(thread, call), a1, a2),
        libc::SYS_rt_sigtimedwait => return signals::take_fault(a1, a2),
        libc::SYS_rt_sigsuspend => suspend(thread, a1)?,
        libc::SYS_sigaltstack => set_stack(thread, a1, a2),
        libc::SYS_arch_prctl => return set_thread_pointer(thread, a1, a2),
        libc::SYS_set_tid_address => {
            thread.clear_at_end = a1;
            // SAFETY: asks the kernel for a number.
            i64::from(unsafe { libc::gettid() })
        }
        // Restartable sequences are addresses of code, which runs elsewhere here; and of the two
        // ways to make a thread, programs know both.
        libc::SYS_rseq | libc::SYS_clone3 => failed(libc::ENOSYS),
        libc::SYS_readlink => return read_own_link(a1, a2, a3),
        libc::SYS_readlinkat => return read_own_link(a2, a3, a4),
        libc::SYS_open => return open_own(thread, call, 1),
        libc::SYS_openat => return open_own(thread, call, 2),
        _ => return None,
    })
}

/// Whether a limit is one of the process's memory.
fn is_of_memory(resource: u64) -> bool {
    [libc::RLIMIT_AS, libc::RLIMIT_DATA].map(u64::from).contains(&resource)
}

/// Has the kernel carry out a call.
pub(crate) fn kernel(thread: &mut Thread, call: &Call) -> i64 {
    let mask = mask_of_wait(call);
    let result = enter_kernel(thread, call);
    // What came meanwhile is told as the mask of the call has it, if it ended the call.
    thread.signals.waits_with = mask.filter(|_| result == failed(libc::EINTR));
    // The kernel may write where the program thinks that it may, but for pages that we guard.
    if result == failed(libc::EFAULT) && memory::unguard_all() {
        return enter_kernel(thread, call);
    }
    result
}

/// What is blocked while a call waits, if the call says so.
fn mask_of_wait(call: &Call) -> Option<u64> {
    let [number, _, _, _, a4, a5, a6] = *call;
    let at = match number as c_long {
        libc::SYS_ppoll => a4,
        libc::SYS_epoll_pwait | libc::SYS_epoll_pwait2 => a5,
        libc::SYS_pselect6 if a6 != 0 => guest::words::<1>(a6)?[0],
        _ => 0,
    };
    (at != 0).then(|| guest::words::<1>(at)).flatten().map(|[mask]| mask)
}

fn enter_kernel(thread: &mut Thread, call: &Call) -> i64 {
    thread.state.store(state::AWAY, SeqCst);
    // SAFETY: the program's own call, with its own memory; what concerns ours was kept out.
    let result = unsafe { whither_call(call, &raw const thread.context.has_signal) };
    thread.state.store(state::RUNNING, SeqCst);
    if thread::is_ending() && !thread.is_borrowed() {
        thread.stay_away();
    }
    result
}

/// Whether a call that a signal interrupted is made again: if the handlers ask for it and it is of
/// the kind for which that holds.
fn is_made_again(thread: &Thread, call: &Call) -> bool {
    let [number, _, _, _, time, ..] = *call;
    let is_kind = matches!(
        number as c_long,
        libc::SYS_read
            | libc::SYS_write
            | libc::SYS_readv
            | libc::SYS_writev
            | libc::SYS_ioctl
            | libc::SYS_open
            | libc::SYS_openat
            | libc::SYS_wait4
            | libc::SYS_waitid
            | libc::SYS_pread64
            | libc::SYS_pwrite64
            | libc::SYS_preadv
            | libc::SYS_pwritev
            | libc::SYS_creat
            | libc::SYS_getrandom
            | libc::SYS_sendfile
            | libc::SYS_splice
            | libc::SYS_mq_timedsend
            | libc::SYS_mq_timedreceive
            | libc::SYS_flock
            | libc::SYS_fcntl
            | libc::SYS_accept
            | libc::SYS_accept4
            | libc::SYS_connect
            | libc::SYS_recvfrom
            | libc::SYS_recvmsg
            | libc::SYS_sendto
            | libc::SYS_sendmsg
    );
    // A wait that has an end would otherwise begin anew each time.
    let is_kind = is_kind || number as c_long == libc::SYS_futex && time == 0;
    is_kind && thread.context.has_signal != 0 && signals::restarts_calls(thread)
}

/// Where the kernel once had three calls for everybody, and what they are today. No code is there.
const OLD_CALLS: [(u64, c_long); 3] = [
    (0xffff_ffff_ff60_0000, libc::SYS_gettimeofday),
    (0xffff_ffff_ff60_0400, libc::SYS_time),
    (0xffff_ffff_ff60_0800, libc::SYS_getcpu),
];

/// Whether one of those begins at an address.
pub(crate) fn is_old_call(pc: u64) -> bool {
    OLD_CALLS.iter().any(|(at, _)| *at == pc)
}

/// Carries one out, as the kernel does: it returns to whoever called it.
pub(crate) fn old_call(thread: &mut Thread) -> After {
    let found = OLD_CALLS.iter().find(|(at, _)| *at == thread.context.pc);
    let rsp = thread.context.registers[4];
    if let (Some((_, number)), Some([back])) = (found, guest::words::<1>(rsp)) {
        let [_, _, _, _, _, _, a2, a1, ..] = thread.context.registers;
        let result = enter_kernel(thread, &[*number as u64, a1, a2, 0, 0, 0, 0]);
        if result != NOT_MADE {
            thread.context.registers[0] = result as u64;
            thread.context.registers[4] = rsp.wrapping_add(8);
            thread.context.pc = back;
        }
        return After::GoesOn;
    }
    let fault = Fault { signal: libc::SIGSEGV as u64, code: 1, address: rsp, ..Fault::default() };
    signals::deliver_fault(thread, &fault)
}

/// One thread ends.
fn exit(thread: &mut Thread, status: u64) -> After {
    robust::give_up_locks();
    if thread.clear_at_end != 0 {
        guest::write(thread.clear_at_end, &[0; 4]);
        // SAFETY: wakes whoever waits for the thread, at an address of the program's.
        unsafe { libc::syscall(libc::SYS_futex, thread.clear_at_end, libc::FUTEX_WAKE, i32::MAX) };
    }
    signals::leave();
    thread.leave_list();
    if thread.is_main {
        // SAFETY: ends this thread alone. Its memory stays: others may be looking at it.
        unsafe { libc::syscall(libc::SYS_exit, status) };
    }
    After::Ended
}

fn set_action(thread: &mut Thread, signal: i32, new: u64, old: u64) -> i64 {
    let action = match new {
        0 => None,
        _ => match guest::words::<4>(new) {
            Some([handler, flags, restorer, mask]) => {
                Some(Action { handler, flags, restorer, mask })
            }
            None => return failed(libc::EFAULT),
        },
    };
    match signals::set_action(thread, signal, action) {
        Err(result) => result,
        Ok(before) if old != 0 => {
            let words = [before.handler, before.flags, before.restorer, before.mask];
            if guest::write_words(old, &words) { 0 } else { failed(libc::EFAULT) }
        }
        Ok(_) => 0,
    }
}

fn set_mask(thread: &mut Thread, how: i32, new: u64, old: u64) -> i64 {
    let before = thread.signals.mask;
    if new != 0 {
        let Some([given]) = guest::words::<1>(new) else { return failed(libc::EFAULT) };
        // These two cannot be blocked.
        let given = given & !(1 << (libc::SIGKILL - 1) | 1 << (libc::SIGSTOP - 1));
        thread.signals.mask = match how {
            libc::SIG_BLOCK => before | given,
            libc::SIG_UNBLOCK => before & !given,
            libc::SIG_SETMASK => given,
            _ => return failed(libc::EINVAL),
        };
        signals::set_kernel_mask(thread);
    }
    if old != 0 && !guest::write_words(old, &[before]) {
        return failed(libc::EFAULT);
    }
    0
}

/// Waits for a signal with another mask; that of before is in place again when it was told.
fn suspend(thread: &mut Thread, mask: u64) -> Option<i64> {
    let [wanted] = guest::words::<1>(mask)?;
    let mask = wanted & !signals::fault_bits();
    let call = [libc::SYS_rt_sigsuspend as u64, &raw const mask as u64, 8, 0, 0, 0, 0];
    let result = enter_kernel(thread, &call);
    thread.signals.waits_with = (result == failed(libc::EINTR)).then_some(wanted);
    Some(result)
}

fn set_stack(thread: &mut Thread, new: u64, old: u64) -> i64 {
    let [start, flags, len] = thread.signals.stack;
    let rsp = thread.context.registers[4];
    let is_on = rsp > start && rsp <= start.wrapping_add(len);
    if new != 0 {
        let Some([start, flags, len]) = guest::words::<3>(new) else { return failed(libc::EFAULT) };
        if is_on {
            return failed(libc::EPERM);
        }
        let is_off = flags as u32 & libc::SS_DISABLE as u32 != 0;
        if !is_off && len < 2048 {
            return failed(libc::ENOMEM);
        }
        thread.signals.stack =
            if is_off { [0, libc::SS_DISABLE as u64, 0] } else { [start, flags & DISARMS, len] };
    }
    let told = if is_on { libc::SS_ONSTACK as u64 } else { flags };
    if old != 0 && !guest::write_words(old, &[start, told, len]) {
        return failed(libc::EFAULT);
    }
    0
}

fn set_thread_pointer(thread: &mut Thread, which: u64, value: u64) -> Option<i64> {
    Some(match which {
        ARCH_SET_FS | ARCH_SET_GS if value >= USER_END => failed(libc::EPERM),
        ARCH_SET_FS => {
            thread.context.guest_fs = value;
            0
        }
        ARCH_GET_FS if guest::write_words(value, &[thread.context.guest_fs]) => 0,
        ARCH_GET_GS if guest::write_words(value, &[thread.context.guest_gs]) => 0,
        ARCH_GET_FS | ARCH_GET_GS => failed(libc::EFAULT),
        ARCH_SET_GS => {
            thread.context.guest_gs = value;
            0
        }
        _ => return None,
    })
}

/// The program's own file, if a path of the program's means it.
fn own_file(path: u64) -> Option<CString> {
    let bytes = guest::read(path, 32);
    let end = bytes.iter().position(|byte| *byte == 0)?;
    let path = bytes.get(..end)?;
    let own = format!("/proc/{}/exe", std::process::id());
    if path != b"/proc/self/exe" && path != own.as_bytes() {
        return None;
    }
    CString::new(crate::program()?.as_os_str().as_bytes()).ok()
}

fn read_own_link(path: u64, buffer: u64, len: u64) -> Option<i64> {
    let file = own_file(path)?;
    let bytes = file.as_bytes();
    let bytes = bytes.get(..bytes.len().min(len as usize))?;
    Some(if guest::write(buffer, bytes) { bytes.len() as i64 } else { failed(libc::EFAULT) })
}

fn open_own(thread: &mut Thread, call: &Call, place: usize) -> Option<i64> {
    let file = own_file(call[place])?;
    let mut call = *call;
    call[place] = file.as_ptr() as u64;
    Some(enter_kernel(thread, &call))
}
