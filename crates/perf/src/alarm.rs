//! A thread that wakes when a counter has counted so much.
//!
//! ```text
//! member of a group, period n ──overflow──► signal to one thread ──► AlarmClock::wait returns
//! ```
//! The signal goes to that thread alone, which never handles it but only waits for it: no handler
//! of the program that we live in is touched, and no other thread is interrupted. A ring would do
//! the same, but the kernel gives none to inherited events that are not tied to a CPU.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Duration;

use crate::Group;

/// The kernel's numbers, which our C library's bindings lack; x86 and Arm agree on them.
const F_SETSIG: libc::c_int = 10;
const F_SETOWN_EX: libc::c_int = 15;
const F_OWNER_TID: libc::c_int = 0;

/// The kernel's `struct f_owner_ex`.
#[repr(C)]
struct Owner {
    kind: libc::c_int,
    number: libc::pid_t,
}

/// Which member of a group rings, and how often.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Alarm {
    /// The member, by its place.
    pub place: usize,
    /// It rings each time it has counted so much.
    pub period: u64,
}

/// The calling thread's wait for alarms.
#[derive(Debug)]
pub struct AlarmClock {
    signals: libc::sigset_t,
    thread: u32,
}

/// One of the last real-time signals, which hardly anybody uses.
fn signal() -> libc::c_int {
    libc::SIGRTMAX() - 2
}

impl AlarmClock {
    /// Makes the calling thread one that alarms wake. It must be the one that waits.
    ///
    /// # Errors
    ///
    /// The signal cannot be held back, and would end the process.
    pub fn here() -> io::Result<AlarmClock> {
        // SAFETY: a sigset_t is plain bits, emptied before it is used. Where signals cannot be
        // queued the kernel sends SIGIO instead.
        let (signals, failed) = unsafe {
            let mut signals: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&raw mut signals);
            libc::sigaddset(&raw mut signals, signal());
            libc::sigaddset(&raw mut signals, libc::SIGIO);
            let nowhere = std::ptr::null_mut();
            (signals, libc::pthread_sigmask(libc::SIG_BLOCK, &raw const signals, nowhere))
        };
        match failed {
            0 => Ok(AlarmClock { signals, thread: crate::this_thread() }),
            number => Err(io::Error::from_raw_os_error(number)),
        }
    }

    /// Lets a group that was opened with an alarm ring here.
    ///
    /// # Errors
    ///
    /// The kernel's.
    pub fn hear(&self, group: &Group, alarm: Alarm) -> io::Result<()> {
        group.fds().get(alarm.place).map_or(Ok(()), |fd| self.own(fd))
    }

    fn own(&self, fd: &OwnedFd) -> io::Result<()> {
        let fd = fd.as_raw_fd();
        let owner = Owner { kind: F_OWNER_TID, number: self.thread as i32 };
        let done =
            |outcome| if outcome < 0 { Err(io::Error::last_os_error()) } else { Ok(outcome) };
        // SAFETY: the descriptor is open, and the pointer is to a live local.
        done(unsafe { libc::fcntl(fd, F_SETOWN_EX, &raw const owner) })?;
        // SAFETY: plain numbers; the kernel checks them.
        done(unsafe { libc::fcntl(fd, F_SETSIG, signal()) })?;
        // SAFETY: as above.
        let flags = done(unsafe { libc::fcntl(fd, libc::F_GETFL) })?;
        // SAFETY: as above.
        done(unsafe { libc::fcntl(fd, libc::F_SETFL, flags | libc::O_ASYNC) })?;
        Ok(())
    }

    /// Waits for an alarm, or for the time to be up; whether one rang. Alarms that rang meanwhile
    /// are taken together.
    pub fn wait(&self, at_most: Duration) -> bool {
        let rang = self.take(at_most);
        while rang && self.take(Duration::ZERO) {}
        rang
    }

    fn take(&self, at_most: Duration) -> bool {
        let time = libc::timespec {
            tv_sec: i64::try_from(at_most.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(at_most.subsec_nanos()),
        };
        let nowhere = std::ptr::null_mut();
        // SAFETY: the set and the time are live; nothing is asked to be written.
        unsafe { libc::sigtimedwait(&raw const self.signals, nowhere, &raw const time) > 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{BreakpointKind, GroupOptions, GroupReading, Target, breakpoint};
    use std::sync::atomic::{AtomicU64, Ordering};

    static WORD: AtomicU64 = AtomicU64::new(0);

    #[test]
    fn the_thread_that_asked_wakes_when_so_much_was_counted_and_not_before() {
        let alarm = Alarm { place: 0, period: 10 };
        let options = GroupOptions { alarm: Some(alarm), ..GroupOptions::default() };
        let event = breakpoint(BreakpointKind::Write, std::ptr::from_ref(&WORD) as u64);
        let write = |times: u64| (0..times).for_each(|i| WORD.store(i, Ordering::Relaxed));
        let Ok(group) = Group::open(&[event], &Target::ThisThread, options) else { return };
        std::thread::scope(|scope| {
            let (ready, is_ready) = std::sync::mpsc::channel();
            let (rang, has_rung) = std::sync::mpsc::channel();
            let group = &group;
            scope.spawn(move || {
                let clock = AlarmClock::here().unwrap();
                clock.hear(group, alarm).unwrap();
                ready.send(()).unwrap();
                // It may ring early only if something is wrong; that it rings ends the wait.
                rang.send(clock.wait(Duration::from_secs(60))).unwrap();
            });
            is_ready.recv().unwrap();
            group.enable().unwrap();
            write(9);
            assert!(has_rung.recv_timeout(Duration::from_millis(20)).is_err());
            write(1);
            assert_eq!(has_rung.recv(), Ok(true));
            group.disable().unwrap();
        });
        let mut reading = GroupReading::default();
        group.read(&mut reading).unwrap();
        assert_eq!(reading.counts, [vocab::Count(10)]);
    }
}
