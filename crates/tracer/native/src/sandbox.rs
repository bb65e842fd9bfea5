//! System calls that the program forbids itself (seccomp).
//!
//! The kernel would apply what it is told to the engine's calls too, which are not the program's. So it
//! is not told: the program's filters are run here, on its own calls. A program that it becomes has
//! them no more.

use std::sync::Arc;

use libc::c_long;

use crate::calls::{After, Call, failed};
use crate::context::Fault;
use crate::frame::{Told, deliver};
use crate::signals::{self, give_up};
use crate::thread::Thread;
use crate::{filter, guest};

/// What a thread has forbidden itself.
#[derive(Clone, Default)]
pub(crate) struct Sandbox {
    /// But for reading, writing and ending, everything.
    is_strict: bool,
    filters: Vec<Arc<[filter::Step]>>,
}

const SET_STRICT: u64 = 0;
const SET_FILTER: u64 = 1;
const NEW_LISTENER: u64 = 8;
/// Instructions of a filter, at most.
const STEPS_MAX: u64 = 4096;

/// The program's `prctl` or `seccomp`, if it is about this.
pub(crate) fn set(thread: &mut Thread, call: &Call) -> Option<i64> {
    let [number, a1, a2, a3, ..] = *call;
    let (mode, flags, program) = match (number as c_long, a1 as i32, a2) {
        (libc::SYS_prctl, libc::PR_GET_SECCOMP, _) => return Some(thread.sandbox.mode()),
        (libc::SYS_prctl, libc::PR_SET_SECCOMP, 1) => (SET_STRICT, 0, 0),
        (libc::SYS_prctl, libc::PR_SET_SECCOMP, 2) => (SET_FILTER, 0, a3),
        (libc::SYS_seccomp, 0 | 1, _) => (a1, a2, a3),
        _ => return None,
    };
    Some(match mode {
        SET_STRICT if thread.sandbox.filters.is_empty() => {
            thread.sandbox.is_strict = true;
            0
        }
        // Nobody is asked about calls who could answer for them.
        SET_FILTER if flags & NEW_LISTENER == 0 => add(thread, program),
        _ => failed(libc::EINVAL),
    })
}

impl Sandbox {
    fn mode(&self) -> i64 {
        if self.is_strict { 1 } else { i64::from(!self.filters.is_empty()) * 2 }
    }
}

fn add(thread: &mut Thread, program: u64) -> i64 {
    let Some([len, at]) = guest::words::<2>(program) else { return failed(libc::EFAULT) };
    let len = len & 0xffff;
    // SAFETY: asks the kernel for numbers.
    let is_allowed =
        unsafe { libc::geteuid() == 0 || libc::prctl(libc::PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 };
    if !(1..=STEPS_MAX).contains(&len) || thread.sandbox.is_strict {
        return failed(libc::EINVAL);
    }
    if !is_allowed {
        return failed(libc::EACCES);
    }
    let bytes = guest::read(at, len as usize * 8);
    if bytes.len() as u64 != len * 8 {
        return failed(libc::EFAULT);
    }
    match filter::read(&bytes) {
        Some(steps) => {
            thread.sandbox.filters.push(steps);
            0
        }
        None => failed(libc::EINVAL),
    }
}

/// What becomes of a call that the program may have forbidden itself: `None` if it is made.
pub(crate) fn judge(thread: &mut Thread, call: &Call) -> Option<After> {
    let sandbox = &thread.sandbox;
    if sandbox.is_strict {
        let is_allowed = matches!(
            call[0] as c_long,
            libc::SYS_read | libc::SYS_write | libc::SYS_exit | libc::SYS_rt_sigreturn
        );
        let fault = Fault { signal: libc::SIGKILL as u64, ..Fault::default() };
        return (!is_allowed).then(|| give_up(thread, &fault));
    }
    let answers = sandbox.filters.iter().map(|steps| filter::run(steps, call, thread.context.pc));
    // The most severe counts; read as a signed number it is the lowest.
    let answer = answers.min_by_key(|answer| (answer & ACTION) as i32)?;
    let data = (answer & 0xffff) as i32;
    match answer & ACTION {
        ALLOW | LOG => None,
        ERRNO => Some(refuse(thread, data.min(4095))),
        TRACE | ASK => Some(refuse(thread, libc::ENOSYS)),
        TRAP => Some(trap(thread, call, data)),
        _ => Some(give_up(thread, &Fault { signal: libc::SIGSYS as u64, ..Fault::default() })),
    }
}

const ACTION: u32 = 0xffff_0000;
const TRAP: u32 = 0x0003_0000;
const ERRNO: u32 = 0x0005_0000;
const ASK: u32 = 0x7fc0_0000;
const TRACE: u32 = 0x7ff0_0000;
const LOG: u32 = 0x7ffc_0000;
const ALLOW: u32 = 0x7fff_0000;

fn refuse(thread: &mut Thread, errno: i32) -> After {
    thread.context.registers[0] = failed(errno) as u64;
    After::GoesOn
}

/// The program is told by a signal, and may answer in the call's place.
fn trap(thread: &mut Thread, call: &Call, data: i32) -> After {
    let signal = libc::SIGSYS;
    let is_blocked = thread.signals.mask & signals::bit(signal) != 0;
    if signals::action(thread, signal).handler <= 1 || is_blocked {
        return give_up(thread, &Fault { signal: signal as u64, ..Fault::default() });
    }
    let mut info = [0; 128];
    let words = [signal, data, 1, 0];
    for (place, word) in info.chunks_exact_mut(4).zip(words) {
        place.copy_from_slice(&word.to_le_bytes());
    }
    info[16..24].copy_from_slice(&thread.context.pc.to_le_bytes());
    info[24..28].copy_from_slice(&(call[0] as u32).to_le_bytes());
    info[28..32].copy_from_slice(&filter::X86_64.to_le_bytes());
    let mask = thread.signals.mask;
    deliver(thread, signal, &Told { info: &info, fault: &Fault::default(), mask });
    signals::set_kernel_mask(thread);
    After::GoesOn
}
