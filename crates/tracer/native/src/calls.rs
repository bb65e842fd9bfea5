//! The program's system calls: most are the kernel's as they are; those that change what the process
//! is are carried out here.

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::sync::atomic::Ordering::SeqCst;

use libc::c_long;
use tracer::inside::Inside;
use tracer::inside::calls::{Caller, on_call, on_return};

use crate::signals::{self, Action};
use crate::switch::{NOT_MADE, whither_call};
use crate::thread::{self, Thread, end_all, state};
use crate::{clone, guest, maps, memory};

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
/// Bytes of the instruction that makes a call.
const CALL_BYTES: u64 = 2;

const ARCH_SET_GS: u64 = 0x1001;
const ARCH_SET_FS: u64 = 0x1002;
const ARCH_GET_FS: u64 = 0x1003;
const ARCH_GET_GS: u64 = 0x1004;

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
    thread.teller.system_call(number);
    if let Some(inside) = Inside::get() {
        let caller = Caller { index: thread.number, thread: thread.number };
        if matches!(number as c_long, libc::SYS_execve | libc::SYS_execveat) {
            // What the program that it becomes inherits.
            signals::unblock(thread.signals.mask);
        }
        on_call(inside, caller, number as i64, &arguments);
    }
    let [a1, a2, a3, a4, a5, a6] = arguments;
    let call = [number, a1, a2, a3, a4, a5, a6];
    let result = match number as c_long {
        libc::SYS_exit => return exit(thread, a1),
        libc::SYS_exit_group => {
            end_all(thread);
            // SAFETY: ends the process.
            unsafe { libc::_exit(a1 as i32) }
        }
        libc::SYS_rt_sigreturn => {
            let after = signals::leave_handler(thread);
            thread.begin_recording();
            return after;
        }
        libc::SYS_clone => clone::clone(thread, &arguments),
        libc::SYS_fork | libc::SYS_vfork => clone::fork(thread, 0, [0; 3]),
        _ => match ours(thread, &call) {
            Some(result) => result,
            None => kernel(thread, &call),
        },
    };
    if result == NOT_MADE || result == failed(libc::EINTR) && is_made_again(thread, number) {
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
        libc::SYS_brk => maps::set_break(a1),
        libc::SYS_rt_sigaction => set_action(a1 as i32, a2, a3),
        libc::SYS_rt_sigprocmask => set_mask(thread, a1 as i32, a2, a3),
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

/// Has the kernel carry out a call.
pub(crate) fn kernel(thread: &mut Thread, call: &Call) -> i64 {
    let result = enter_kernel(thread, call);
    // The kernel may write where the program thinks that it may, but for pages that we guard.
    if result == failed(libc::EFAULT) && memory::unguard_all() {
        return enter_kernel(thread, call);
    }
    result
}

fn enter_kernel(thread: &mut Thread, call: &Call) -> i64 {
    thread.state.store(state::AWAY, SeqCst);
    // SAFETY: the program's own call, with its own memory; what concerns ours was kept out.
    let result = unsafe { whither_call(call, &raw const thread.context.has_signal) };
    thread.state.store(state::RUNNING, SeqCst);
    if thread::is_ending() {
        thread.stay_away();
    }
    result
}

/// Whether a call that a signal interrupted is made again: if the handlers ask for it and it is of
/// the kind for which that holds.
fn is_made_again(thread: &Thread, number: u64) -> bool {
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
            | libc::SYS_futex
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
    is_kind && thread.context.has_signal != 0 && signals::restarts_calls()
}

/// One thread ends.
fn exit(thread: &mut Thread, status: u64) -> After {
    if thread.clear_at_end != 0 {
        guest::write(thread.clear_at_end, &[0; 4]);
        // SAFETY: wakes whoever waits for the thread, at an address of the program's.
        unsafe { libc::syscall(libc::SYS_futex, thread.clear_at_end, libc::FUTEX_WAKE, i32::MAX) };
    }
    thread.leave_list();
    if thread.is_main {
        // SAFETY: ends this thread alone. Its memory stays: others may be looking at it.
        unsafe { libc::syscall(libc::SYS_exit, status) };
    }
    After::Ended
}

fn set_action(signal: i32, new: u64, old: u64) -> i64 {
    let action = match new {
        0 => None,
        _ => match guest::words::<4>(new) {
            Some([handler, flags, restorer, mask]) => {
                Some(Action { handler, flags, restorer, mask })
            }
            None => return failed(libc::EFAULT),
        },
    };
    match signals::set_action(signal, action) {
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

/// Waits for a signal with another mask. What is told meanwhile finds the mask of before.
fn suspend(thread: &mut Thread, mask: u64) -> Option<i64> {
    let [mask] = guest::words::<1>(mask)?;
    let mask = mask & !signals::fault_bits();
    Some(enter_kernel(
        thread,
        &[libc::SYS_rt_sigsuspend as u64, &raw const mask as u64, 8, 0, 0, 0, 0],
    ))
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
            if is_off { [0, libc::SS_DISABLE as u64, 0] } else { [start, 0, len] };
    }
    let told = if is_on { libc::SS_ONSTACK as u64 } else { flags };
    if old != 0 && !guest::write_words(old, &[start, told, len]) {
        return failed(libc::EFAULT);
    }
    0
}

fn set_thread_pointer(thread: &mut Thread, which: u64, value: u64) -> Option<i64> {
    Some(match which {
        ARCH_SET_FS => {
            thread.context.guest_fs = value;
            0
        }
        ARCH_GET_FS if guest::write_words(value, &[thread.context.guest_fs]) => 0,
        ARCH_GET_FS => failed(libc::EFAULT),
        // It holds what translated code works with.
        ARCH_SET_GS | ARCH_GET_GS => failed(libc::EINVAL),
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
