//! Time that the hypervisor gave to someone else.

/// Ticks stolen from a CPU since boot; none where the kernel does not say.
pub(crate) fn ticks(cpu: usize) -> Option<u64> {
    parse(&std::fs::read_to_string("/proc/stat").ok()?, cpu)
}

/// The eighth number of the CPU's line: user, nice, system, idle, iowait, irq, softirq, steal.
fn parse(stat: &str, cpu: usize) -> Option<u64> {
    let name = format!("cpu{cpu}");
    let line = stat.lines().find(|line| line.split(' ').next() == Some(&name))?;
    line.split_ascii_whitespace().nth(8)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_steal_of_the_right_cpu_is_read() {
        let stat = "cpu  9 9 9 9 9 9 9 99 0 0\ncpu1 1 2 3 4 5 6 7 8 9 10\ncpu11 0 0 0 0 0 0 0 5\n";
        assert_eq!((parse(stat, 1), parse(stat, 11), parse(stat, 2)), (Some(8), Some(5), None));
        assert_eq!(parse("cpu0 1 2", 0), None);
    }
}
