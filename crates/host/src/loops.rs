//! The loops. Each says how many operations an iteration has; none is one of `suite/micro`.

use std::arch::asm;

use crate::arena::LINK;

/// Words that lie in one line.
#[repr(align(64))]
struct Line([u64; 8]);

/// Follows links, `steps` of them in rounds of 16. Returns the line where it ended.
///
/// # Safety
///
/// `first` is the first link of a woven arena that lives on.
pub(crate) unsafe fn chase(first: *const u8, steps: u64) -> *const u8 {
    let last;
    // SAFETY: reads links, each of which leads to another, and changes the named registers.
    unsafe {
        asm!(
            "2:",
            ".rept 16",
            "mov {at}, [{at} + {link}]",
            ".endr",
            "dec {rounds}",
            "jnz 2b",
            at = inout(reg) first => last,
            rounds = inout(reg) (steps / 16).max(1) => _,
            link = const LINK,
            options(nostack, readonly),
        );
    }
    last
}

/// Reads `bytes` from `start` on in pieces of sixteen; a multiple of 256.
///
/// # Safety
///
/// So many bytes are readable there.
pub(crate) unsafe fn read(start: *const u8, bytes: usize) {
    // SAFETY: reads what the caller promises and changes the named registers.
    unsafe {
        asm!(
            "2:",
            "movdqu xmm0, [{at}]",
            "movdqu xmm1, [{at} + 64]",
            "movdqu xmm2, [{at} + 128]",
            "movdqu xmm3, [{at} + 192]",
            "add {at}, 256",
            "dec {rounds}",
            "jnz 2b",
            at = inout(reg) start => _,
            rounds = inout(reg) (bytes / 256).max(1) => _,
            out("xmm0") _, out("xmm1") _, out("xmm2") _, out("xmm3") _,
            options(nostack, readonly),
        );
    }
}

/// `rounds` times 24 independent additions.
pub(crate) fn adds(rounds: u64) {
    // SAFETY: only the named registers and the flags change.
    unsafe {
        asm!(
            "2:",
            ".rept 4",
            "add {a}, 3", "add {b}, 3", "add {c}, 3", "add {d}, 3", "add {e}, 3", "add {f}, 3",
            ".endr",
            "dec {rounds}",
            "jnz 2b",
            a = inout(reg) 0_u64 => _, b = inout(reg) 0_u64 => _, c = inout(reg) 0_u64 => _,
            d = inout(reg) 0_u64 => _, e = inout(reg) 0_u64 => _, f = inout(reg) 0_u64 => _,
            rounds = inout(reg) rounds.max(1) => _,
            options(nomem, nostack),
        );
    }
}

/// `rounds` times 24 independent loads of one line.
pub(crate) fn loads(rounds: u64) {
    let line = Line([1; 8]);
    // SAFETY: reads the line and changes the named registers.
    unsafe {
        asm!(
            "2:",
            ".rept 6",
            "mov {a}, [{at}]", "mov {b}, [{at} + 16]", "mov {c}, [{at} + 24]", "mov {d}, [{at} + 40]",
            ".endr",
            "dec {rounds}",
            "jnz 2b",
            a = out(reg) _, b = out(reg) _, c = out(reg) _, d = out(reg) _,
            at = in(reg) line.0.as_ptr(),
            rounds = inout(reg) rounds.max(1) => _,
            options(nostack, readonly),
        );
    }
}

/// `rounds` times 24 stores to one line.
pub(crate) fn stores(rounds: u64) {
    let mut line = Line([1; 8]);
    // SAFETY: writes the line and changes the named registers.
    unsafe {
        asm!(
            "2:",
            ".rept 6",
            "mov [{at}], {v}", "mov [{at} + 16], {v}", "mov [{at} + 24], {v}", "mov [{at} + 40], {v}",
            ".endr",
            "dec {rounds}",
            "jnz 2b",
            v = in(reg) 5_u64,
            at = in(reg) line.0.as_mut_ptr(),
            rounds = inout(reg) rounds.max(1) => _,
            options(nostack),
        );
    }
}

/// `rounds` times 12 values that go through memory. Each load takes the upper half of what was
/// stored, which no machine passes on by renaming.
pub(crate) fn forwards(rounds: u64) {
    let mut line = Line([0; 8]);
    let at = line.0.as_mut_ptr();
    // Another address in another register, or the compiler would use one for both.
    let before = at.wrapping_byte_sub(8);
    // SAFETY: both addresses, with what is added to them, are in the third word of the line.
    unsafe {
        asm!(
            "2:",
            ".rept 12",
            "mov [{a} + 16], {v}",
            "mov {v:e}, [{b} + 28]",
            ".endr",
            "dec {rounds}",
            "jnz 2b",
            v = inout(reg) 5_u64 => _,
            a = in(reg) at, b = in(reg) before,
            rounds = inout(reg) rounds.max(1) => _,
            options(nostack),
        );
    }
}

/// `rounds` branches on a bit of a generator of random numbers, or on one that never changes.
/// Everything but the branch is the same.
pub(crate) fn branches(rounds: u64, random: bool) {
    let mask: u64 = if random { 1 << 40 } else { 0 };
    // SAFETY: only the named registers and the flags change.
    unsafe {
        asm!(
            "2:",
            "mov {t}, {s}", "shl {t}, 13", "xor {s}, {t}",
            "mov {t}, {s}", "shr {t}, 7", "xor {s}, {t}",
            "mov {t}, {s}", "shl {t}, 17", "xor {s}, {t}",
            "test {s}, {mask}",
            "jz 3f",
            "add {x}, 1",
            "jmp 4f",
            "3:",
            "sub {x}, 1",
            "jmp 4f",
            "4:",
            "dec {rounds}",
            "jnz 2b",
            s = inout(reg) 88_172_645_463_325_252_u64 => _,
            t = out(reg) _, x = inout(reg) 0_u64 => _,
            mask = in(reg) mask,
            rounds = inout(reg) rounds.max(1) => _,
            options(nomem, nostack),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Arena;
    use crate::arena::lines;

    #[test]
    fn every_loop_ends_and_leaves_the_stack_alone() {
        let guard = [0x5a_u8; 64];
        let mut arena = Arena::new(4096, false).unwrap();
        let first = arena.weave(&lines(4096), 1);
        // SAFETY: the arena is woven and lives on; it has 4096 bytes.
        unsafe {
            assert_eq!(chase(first, 64), first);
            assert_ne!(chase(first, 16), first);
            read(arena.start(), 4096);
        }
        for rounds in [0, 3] {
            adds(rounds);
            loads(rounds);
            stores(rounds);
            forwards(rounds);
            branches(rounds, true);
            branches(rounds, false);
        }
        assert_eq!(guard, [0x5a; 64]);
    }
}
