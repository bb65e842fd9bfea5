//! The core's clock, from a chain of dependent additions.

use std::arch::asm;

/// Additions in a chain: some 30 ms, so that it meets timer ticks as the runs beside it do. A
/// shorter one would tell a clock that no program gets.
const ADDS: u64 = 64 * 1_600_000;

/// The clock of the CPU this thread runs on, in hertz.
pub fn clock_hz() -> f64 {
    let began = thread_seconds();
    chain(ADDS / 64);
    ADDS as f64 / (thread_seconds() - began).max(f64::MIN_POSITIVE)
}

/// `rounds` times 64 additions, each of which waits for the one before. The loop's own count goes
/// beside them.
fn chain(rounds: u64) {
    // SAFETY: only the two registers that are named and the flags change; no memory is touched.
    unsafe {
        asm!(
            "2:",
            ".rept 64",
            "add {sum}, {one}",
            ".endr",
            "dec {rounds}",
            "jnz 2b",
            sum = inout(reg) 0_u64 => _,
            one = in(reg) 1_u64,
            rounds = inout(reg) rounds.max(1) => _,
            options(nomem, nostack),
        );
    }
}

pub(crate) fn thread_seconds() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a live local of the right type. The clock exists since Linux 2.6.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_ends_and_takes_time() {
        chain(0);
        assert!(clock_hz().is_finite() && clock_hz() > 0.0);
    }
}
