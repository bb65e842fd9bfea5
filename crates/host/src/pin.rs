//! Staying on one CPU.

use std::io;
use std::mem;

/// This thread, and what it starts, on one CPU for as long as this lives.
#[derive(Debug)]
pub struct Pinned {
    cpu: usize,
    before: libc::cpu_set_t,
}

impl Pinned {
    /// Pins to the last CPU this thread may use: the first ones serve most interrupts.
    ///
    /// # Errors
    ///
    /// The kernel does not allow it.
    pub fn to_one() -> Result<Pinned, String> {
        let wrong = |e: io::Error| format!("this process cannot be pinned to a CPU: {e}");
        let before = affinity().map_err(wrong)?;
        // SAFETY: the index is below the size of the set.
        let may = |cpu: &usize| unsafe { libc::CPU_ISSET(*cpu, &before) };
        let last = (0..libc::CPU_SETSIZE as usize).rev().find(may);
        let cpu = last.ok_or_else(|| "this process may use no CPU at all".to_owned())?;
        // SAFETY: an all-zero set is a valid, empty one; the index is below its size.
        let one = unsafe {
            let mut set: libc::cpu_set_t = mem::zeroed();
            libc::CPU_SET(cpu, &mut set);
            set
        };
        set_affinity(&one).map_err(wrong)?;
        Ok(Pinned { cpu, before })
    }

    /// The CPU.
    pub fn cpu(&self) -> usize {
        self.cpu
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        // What was allowed before is allowed again; if not, the rest runs on one CPU.
        let _ = set_affinity(&self.before);
    }
}

fn affinity() -> io::Result<libc::cpu_set_t> {
    // SAFETY: an all-zero set is valid, and the kernel writes at most the size given.
    let (status, set) = unsafe {
        let mut set: libc::cpu_set_t = mem::zeroed();
        (libc::sched_getaffinity(0, size_of_val(&set), &raw mut set), set)
    };
    if status == 0 { Ok(set) } else { Err(io::Error::last_os_error()) }
}

fn set_affinity(set: &libc::cpu_set_t) -> io::Result<()> {
    // SAFETY: the pointer is to a live set of the size given.
    let status = unsafe { libc::sched_setaffinity(0, size_of_val(set), set) };
    if status == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pinned_thread_may_use_one_cpu_and_then_again_what_it_could_before() {
        // SAFETY: reads a set.
        let count = |set: &libc::cpu_set_t| unsafe { libc::CPU_COUNT(set) };
        let before = count(&affinity().unwrap());
        let pinned = Pinned::to_one().unwrap();
        assert_eq!(count(&affinity().unwrap()), 1);
        drop(pinned);
        assert_eq!(count(&affinity().unwrap()), before);
    }
}
