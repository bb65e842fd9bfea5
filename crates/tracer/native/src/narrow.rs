//! System calls as 32-bit programs make them (`int 0x80`), which 64-bit programs can make too, and which
//! many that are written by hand do.
//!
//! They have numbers of their own. Those are carried out whose arguments mean the same to both; the
//! kernel of a system without such calls knows none of them.

use libc::c_long;

use crate::calls::Call;

/// Their numbers, and those of the calls that do the same.
const SAME: [(u32, c_long); 37] = [
    (1, libc::SYS_exit),
    (2, libc::SYS_fork),
    (3, libc::SYS_read),
    (4, libc::SYS_write),
    (5, libc::SYS_open),
    (6, libc::SYS_close),
    (8, libc::SYS_creat),
    (9, libc::SYS_link),
    (10, libc::SYS_unlink),
    (12, libc::SYS_chdir),
    (15, libc::SYS_chmod),
    (19, libc::SYS_lseek),
    (20, libc::SYS_getpid),
    (33, libc::SYS_access),
    (36, libc::SYS_sync),
    (37, libc::SYS_kill),
    (38, libc::SYS_rename),
    (39, libc::SYS_mkdir),
    (40, libc::SYS_rmdir),
    (41, libc::SYS_dup),
    (42, libc::SYS_pipe),
    (45, libc::SYS_brk),
    (54, libc::SYS_ioctl),
    (60, libc::SYS_umask),
    (63, libc::SYS_dup2),
    (64, libc::SYS_getppid),
    (83, libc::SYS_symlink),
    (85, libc::SYS_readlink),
    (91, libc::SYS_munmap),
    (125, libc::SYS_mprotect),
    (158, libc::SYS_sched_yield),
    (199, libc::SYS_getuid),
    (200, libc::SYS_getgid),
    (201, libc::SYS_geteuid),
    (202, libc::SYS_getegid),
    (224, libc::SYS_gettid),
    (252, libc::SYS_exit_group),
];

/// Registers by their numbers in the encoding, in the order of arguments.
const ARGUMENTS: [usize; 6] = [3, 1, 2, 6, 7, 5];

/// The call that is meant, if there is one that does the same.
pub(crate) fn meant(registers: &[u64; 16]) -> Option<Call> {
    let number = registers[0] as u32;
    let (_, same) = SAME.iter().find(|(narrow, _)| *narrow == number)?;
    let [a1, a2, a3, a4, a5, a6] = ARGUMENTS.map(|register| u64::from(registers[register] as u32));
    // The one number that may be negative, and is as wide as a register to the other call.
    let a2 = if *same == libc::SYS_lseek { a2 as i32 as u64 } else { a2 };
    Some([*same as u64, a1, a2, a3, a4, a5, a6])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lower_halves_of_other_registers_are_the_arguments() {
        let mut registers = [0xffff_ffff_0000_0000; 16];
        for (register, value) in [(0, 4), (3, 1), (1, 0x40_2000), (2, 4)] {
            registers[register] |= value;
        }
        assert_eq!(meant(&registers), Some([1, 1, 0x40_2000, 4, 0, 0, 0]));
        registers[0] = 19;
        registers[1] = 0xffff_fff0;
        assert_eq!(meant(&registers), Some([8, 1, u64::MAX - 15, 4, 0, 0, 0]));
        registers[0] = 90;
        assert_eq!(meant(&registers), None, "its argument is a structure of another shape");
    }
}
