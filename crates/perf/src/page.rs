//! A counter read without a system call, where the machine and the kernel allow it.
//!
//! The kernel shares one page a counter. It says which register holds the running part and what is
//! to be added, and changes `lock` whenever it changes the rest:
//!
//! ```text
//! again: s = lock; index, offset, times = …; register = rdpmc(index − 1); lock ≠ s → again
//! count = offset + register (sign-extended from `width` bits)
//! ```

use std::os::fd::AsRawFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU16, AtomicU32, AtomicU64, Ordering, compiler_fence};

use vocab::Count;

use crate::attr::Attr;
use crate::group::{Group, GroupReading};
use crate::{Refusal, Ring};

/// Offsets in `struct perf_event_mmap_page`.
const LOCK: usize = 8;
const INDEX: usize = 12;
const OFFSET: usize = 16;
const TIME_ENABLED: usize = 24;
const TIME_RUNNING: usize = 32;
const CAPABILITIES: usize = 40;
const PMC_WIDTH: usize = 48;
const TIME_SHIFT: usize = 50;
const TIME_MULT: usize = 52;
const TIME_OFFSET: usize = 56;
const TIME_CYCLES: usize = 80;
const TIME_MASK: usize = 88;

const CAP_USER_RDPMC: u64 = 1 << 2;
const CAP_USER_TIME: u64 = 1 << 3;
const CAP_USER_TIME_SHORT: u64 = 1 << 5;

/// How often a reading is tried before the kernel is asked: whoever changes the page that often is
/// switching groups, and waiting for it is not the point of a fast path.
const TRIES: u32 = 16;

/// The pages of a group's members. Only for the thread that is counted, hence not `Send`: on
/// another thread the register holds something else, and on Arm reading it is a fault.
#[derive(Debug)]
pub struct UserPages {
    pages: Vec<Page>,
}

/// What one page said.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct PageReading {
    count: u64,
    enabled_ns: u64,
    running_ns: u64,
}

#[derive(Debug)]
struct Page {
    base: NonNull<u8>,
}

impl UserPages {
    /// Maps the pages of a group that was opened on the calling thread.
    pub fn map(group: &Group) -> Result<UserPages, Refusal> {
        let pages: Result<Vec<Page>, Refusal> =
            group.fds().iter().map(|fd| Page::map(fd.as_raw_fd())).collect();
        Ok(UserPages { pages: pages? })
    }

    /// Whether the kernel allows registers to be read for every member.
    pub fn allowed(&self) -> bool {
        self.pages.iter().all(|page| page.word64(CAPABILITIES) & CAP_USER_RDPMC != 0)
    }

    /// Reads every member from its register. `false`: a member has no register at this moment, or
    /// the machine does not allow it, and [`Group::read`] must be asked.
    pub fn read(&self, into: &mut GroupReading) -> bool {
        into.counts.clear();
        for (place, page) in self.pages.iter().enumerate() {
            let Some(reading) = page.read() else { return false };
            if place == 0 {
                (into.enabled_ns, into.running_ns) = (reading.enabled_ns, reading.running_ns);
            }
            into.counts.push(Count(reading.count));
        }
        true
    }
}

impl Page {
    fn map(fd: i32) -> Result<Page, Refusal> {
        // SAFETY: a new read-only mapping of one page of a perf descriptor; the kernel checks it.
        let base = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                Ring::page_size(),
                libc::PROT_READ,
                libc::MAP_SHARED,
                fd,
                0,
            )
        };
        if base == libc::MAP_FAILED {
            return Err(Refusal::last());
        }
        NonNull::new(base.cast::<u8>()).map(|base| Page { base }).ok_or(Refusal::NotUnderstood)
    }

    fn word64(&self, offset: usize) -> u64 {
        // SAFETY: the offset is one of the constants above, aligned, inside the mapped page; the
        // kernel writes it while we read, hence the atomic.
        unsafe { (*self.base.as_ptr().add(offset).cast::<AtomicU64>()).load(Ordering::Relaxed) }
    }

    fn word32(&self, offset: usize) -> u32 {
        // SAFETY: as above.
        unsafe { (*self.base.as_ptr().add(offset).cast::<AtomicU32>()).load(Ordering::Relaxed) }
    }

    fn word16(&self, offset: usize) -> u16 {
        // SAFETY: as above.
        unsafe { (*self.base.as_ptr().add(offset).cast::<AtomicU16>()).load(Ordering::Relaxed) }
    }

    fn read(&self) -> Option<PageReading> {
        for _ in 0..TRIES {
            let lock = self.word32(LOCK);
            // The kernel writes on this very CPU: only the compiler could reorder what we see.
            compiler_fence(Ordering::SeqCst);
            let reading = self.read_once();
            compiler_fence(Ordering::SeqCst);
            if self.word32(LOCK) == lock {
                return reading;
            }
        }
        None
    }

    fn read_once(&self) -> Option<PageReading> {
        let capabilities = self.word64(CAPABILITIES);
        let index = self.word32(INDEX);
        if capabilities & CAP_USER_RDPMC == 0 || index == 0 || capabilities & CAP_USER_TIME == 0 {
            return None;
        }
        let since_ns = self.nanoseconds_since(register::clock(), capabilities);
        let width = u32::from(self.word16(PMC_WIDTH)).clamp(1, 64);
        let register = sign_extended(register::counter(index - 1)?, width);
        Some(PageReading {
            count: self.word64(OFFSET).wrapping_add(register),
            enabled_ns: self.word64(TIME_ENABLED).wrapping_add(since_ns),
            running_ns: self.word64(TIME_RUNNING).wrapping_add(since_ns),
        })
    }

    /// Nanoseconds between the kernel's last word and the clock's reading.
    fn nanoseconds_since(&self, mut cycles: u64, capabilities: u64) -> u64 {
        if capabilities & CAP_USER_TIME_SHORT != 0 {
            let (start, mask) = (self.word64(TIME_CYCLES), self.word64(TIME_MASK));
            cycles = start.wrapping_add(cycles.wrapping_sub(start) & mask);
        }
        let shift = u32::from(self.word16(TIME_SHIFT)).min(63);
        scaled(cycles, u64::from(self.word32(TIME_MULT)), shift)
            .wrapping_add(self.word64(TIME_OFFSET))
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        // SAFETY: the mapping was made with this base and length.
        unsafe { libc::munmap(self.base.as_ptr().cast(), Ring::page_size()) };
    }
}

/// The lowest `width` bits as a signed number.
fn sign_extended(register: u64, width: u32) -> u64 {
    let unused = 64 - width;
    (((register << unused) as i64) >> unused) as u64
}

/// `cycles · mult / 2^shift`, without the product that would overflow.
fn scaled(cycles: u64, mult: u64, shift: u32) -> u64 {
    let (whole, rest) = (cycles >> shift, cycles & ((1_u64 << shift) - 1));
    whole.wrapping_mul(mult).wrapping_add(rest.wrapping_mul(mult) >> shift)
}

/// Arm's kernel gives a register to the program only when asked with the event; elsewhere it is a
/// matter of the machine's settings alone.
pub(crate) fn ask_for_user_read(attr: &mut Attr) {
    const ARM_USER_READ: u64 = 1 << 1;
    const OF_THE_PMU: [u32; 3] = [0, 3, 4];
    if cfg!(target_arch = "aarch64") && OF_THE_PMU.contains(&attr.kind) {
        attr.config1 |= ARM_USER_READ;
    }
}

#[cfg(target_arch = "x86_64")]
mod register {
    use std::arch::asm;

    /// The counter of that index.
    pub(super) fn counter(index: u32) -> Option<u64> {
        let (low, high): (u32, u32);
        // SAFETY: the kernel said in the page that this thread may read this register; that is
        // looked up again after the read, and a fault between is excluded because the kernel
        // withdraws the right only on a thread that is not running.
        unsafe {
            asm!("rdpmc", in("ecx") index, out("eax") low, out("edx") high,
                 options(nomem, nostack, preserves_flags));
        }
        Some(u64::from(high) << 32 | u64::from(low))
    }

    pub(super) fn clock() -> u64 {
        // SAFETY: the kernel said that the time-stamp counter may be used.
        unsafe { std::arch::x86_64::_rdtsc() }
    }
}

#[cfg(target_arch = "aarch64")]
mod register {
    use std::arch::asm;

    /// The cycle counter has a register of its own.
    const CYCLES: u32 = 31;

    /// The counter of that index.
    pub(super) fn counter(index: u32) -> Option<u64> {
        let value: u64;
        // SAFETY: the kernel said in the page that this thread may read this register. The
        // selector is this thread's to set: the kernel sets it anew before it uses it.
        unsafe {
            if index == CYCLES {
                asm!("mrs {}, pmccntr_el0", out(reg) value, options(nomem, nostack));
            } else {
                asm!("msr pmselr_el0, {index}", "isb", "mrs {value}, pmxevcntr_el0",
                     index = in(reg) u64::from(index), value = out(reg) value,
                     options(nomem, nostack));
            }
        }
        Some(value)
    }

    pub(super) fn clock() -> u64 {
        let value: u64;
        // SAFETY: the kernel said that the counter may be used.
        unsafe { asm!("mrs {}, cntvct_el0", out(reg) value, options(nomem, nostack)) };
        value
    }
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
mod register {
    /// This processor's registers are not known here: the kernel is asked.
    pub(super) fn counter(_index: u32) -> Option<u64> {
        None
    }

    pub(super) fn clock() -> u64 {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_register_is_signed_at_its_own_width() {
        assert_eq!(sign_extended(0xffff_ffff_ffff, 48), u64::MAX);
        assert_eq!(sign_extended(0x7fff_ffff_ffff, 48), 0x7fff_ffff_ffff);
        assert_eq!(sign_extended(5, 64), 5);
        assert_eq!(sign_extended(0x8000_0000, 32) as i64, -(1_i64 << 31));
    }

    #[test]
    fn scaling_is_exact_where_the_product_would_overflow() {
        let (cycles, mult, shift) = (u64::MAX / 3, 699_050_u64, 21);
        let exact = (u128::from(cycles) * u128::from(mult)) >> shift;
        assert!(exact.abs_diff(u128::from(scaled(cycles, mult, shift))) <= 1);
        assert_eq!(scaled(1 << 20, 3 << 10, 10), 3 << 20);
    }
}
