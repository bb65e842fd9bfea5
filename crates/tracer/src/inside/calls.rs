//! System calls that change what the process is.

use super::{Inside, exec, fork, images};
use crate::record::ProcessRecord;

/// The calls of x86-64 that matter here.
mod number {
    pub(super) const MMAP: i64 = 9;
    pub(super) const MPROTECT: i64 = 10;
    pub(super) const MUNMAP: i64 = 11;
    pub(super) const MREMAP: i64 = 25;
    pub(super) const CLONE: i64 = 56;
    pub(super) const FORK: i64 = 57;
    pub(super) const VFORK: i64 = 58;
    pub(super) const EXECVE: i64 = 59;
    pub(super) const EXIT: i64 = 60;
    pub(super) const EXECVEAT: i64 = 322;
    pub(super) const CLONE3: i64 = 435;
}

const AT_FDCWD: u64 = libc::AT_FDCWD as u64;

/// Who calls the kernel.
#[derive(Clone, Copy, Debug)]
pub struct Caller {
    /// The thread's number for the engine, by which it is told of a fork.
    pub index: u32,
    /// The thread's number in the records.
    pub thread: u32,
}

/// A thread is about to enter the kernel, having told all that it ran. Does not return if the program
/// becomes another that is followed.
pub fn on_call(inside: &Inside, caller: Caller, call: i64, arguments: &[u64; 6]) {
    let [a1, a2, a3, a4, a5, _] = *arguments;
    match call {
        number::CLONE | number::FORK | number::VFORK | number::CLONE3 => {
            fork::expect(caller.index);
        }
        number::EXECVE => {
            let (dir, is_by_descriptor) = (AT_FDCWD, false);
            let request =
                exec::Request { dir, path: a1, arguments: a2, environment: a3, is_by_descriptor };
            exec::follow(inside, &request);
        }
        number::EXECVEAT => {
            let is_by_descriptor = a5 & libc::AT_EMPTY_PATH as u64 != 0;
            let request = exec::Request {
                dir: a1,
                path: a2,
                arguments: a3,
                environment: a4,
                is_by_descriptor,
            };
            exec::follow(inside, &request);
        }
        number::EXIT => {
            inside.process().record(&ProcessRecord::ThreadEnded { thread: caller.thread });
        }
        _ => {}
    }
}

/// A thread came back from the kernel, with an error if the result is a small negative number.
pub fn on_return(inside: &Inside, call: i64, arguments: &[u64; 6], result: i64) {
    if !changes_maps(call, result) {
        return;
    }
    let [start, len, protection, ..] = *arguments;
    let mut process = inside.process();
    match call {
        number::MMAP => images::on_mapped(&mut process, result as u64, arguments),
        number::MPROTECT => images::on_protected(&mut process, start, len, protection),
        _ => images::on_unmapped(&mut process, start, len),
    }
}

/// Whether a call that returned may have changed which files lie where.
fn changes_maps(call: i64, result: i64) -> bool {
    let is_error = (-4095..0).contains(&result);
    !is_error && matches!(call, number::MMAP..=number::MUNMAP | number::MREMAP)
}
