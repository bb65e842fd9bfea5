//! The most memory that a process and its descendants had.
//!
//! The kernel's account of a child that ended also holds what it had before exec, which was its
//! parent's: ours. So the processes are looked at while they run.

use std::fs;

/// The highest of the peaks so far of a process and its descendants, in bytes; none once they ended.
pub(super) fn peak_bytes(pid: u32) -> Option<u64> {
    let own = fs::read_to_string(format!("/proc/{pid}/status")).ok();
    let own = own.and_then(|status| high_water(&status));
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
    let children = children.unwrap_or_default();
    let below = children.split_whitespace().filter_map(|pid| peak_bytes(pid.parse().ok()?));
    own.into_iter().chain(below).max()
}

fn high_water(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_high_water_mark_is_read_and_damage_is_none() {
        assert_eq!(high_water("Name:\tx\nVmHWM:\t    2048 kB\nVmRSS:\t 1 kB\n"), Some(2 << 20));
        for odd in ["", "VmHWM: kB", "VmHWM: 5 MB", "VmHWM: 99999999999999999999 kB"] {
            assert_eq!(high_water(odd), None, "{odd}");
        }
    }

    #[test]
    fn this_process_has_a_peak_and_one_that_cannot_be_has_none() {
        assert!(peak_bytes(std::process::id()).is_some_and(|bytes| bytes > 0));
        assert_eq!(peak_bytes(u32::MAX), None);
    }
}
