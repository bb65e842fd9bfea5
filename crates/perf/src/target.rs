//! Whose events are counted.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::Arc;

use vocab::Cpu;

/// Whose events are counted.
#[derive(Clone, Debug)]
pub enum Target {
    /// The thread that opens the event, on whichever CPU it runs.
    ThisThread,
    /// A thread, by its number; a process's first thread has the process's number.
    Thread(u32),
    /// Everything that runs on a CPU.
    Cpu(Cpu),
    /// A control group, on one CPU: the kernel has no other form.
    Cgroup {
        /// The open directory of the group.
        group: Arc<File>,
        /// The CPU.
        cpu: Cpu,
    },
}

impl Target {
    /// A control group by its directory.
    pub fn cgroup(directory: &Path, cpu: Cpu) -> io::Result<Target> {
        Ok(Target::Cgroup { group: Arc::new(File::open(directory)?), cpu })
    }

    /// The CPU that the target is tied to, if it is.
    pub fn cpu(&self) -> Option<Cpu> {
        match self {
            Target::Cpu(cpu) | Target::Cgroup { cpu, .. } => Some(*cpu),
            Target::ThisThread | Target::Thread(_) => None,
        }
    }

    /// The call's `pid` and `cpu`.
    pub(crate) fn numbers(&self) -> (i32, i32) {
        match self {
            Target::ThisThread => (0, -1),
            Target::Thread(tid) => (*tid as i32, -1),
            Target::Cpu(cpu) => (-1, cpu.0 as i32),
            Target::Cgroup { group, cpu } => (group.as_raw_fd(), cpu.0 as i32),
        }
    }
}

/// What happens to threads and processes that the target starts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Inherit {
    /// They are not counted.
    #[default]
    No,
    /// New threads of the same process are; other processes are not.
    Threads,
    /// All are.
    All,
}

/// The threads of a process, by number, in ascending order. Empty when it is gone.
pub fn threads_of(pid: u32) -> Vec<u32> {
    let entries = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten();
    let number = |entry: std::fs::DirEntry| entry.file_name().to_str()?.parse().ok();
    let mut threads: Vec<u32> = entries.flatten().filter_map(number).collect();
    threads.sort_unstable();
    threads
}

/// The CPU on which a thread runs at this moment; none while it waits or once it is gone.
pub fn running_on(tid: u32) -> Option<Cpu> {
    cpu_of_stat(&std::fs::read_to_string(format!("/proc/{tid}/stat")).ok()?)
}

/// The name, in parentheses, may hold anything: fields are counted from its end. The first after it
/// is the state, the thirty-seventh the CPU.
fn cpu_of_stat(stat: &str) -> Option<Cpu> {
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace();
    if fields.next()? != "R" {
        return None;
    }
    fields.nth(35)?.parse().ok().map(Cpu)
}

/// The CPUs that are switched on, in ascending order.
pub fn cpus_online() -> Vec<Cpu> {
    let list = std::fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
    parse_cpus(list.trim())
}

/// `0-3,8` as the kernel writes it.
fn parse_cpus(list: &str) -> Vec<Cpu> {
    let mut cpus = Vec::new();
    for part in list.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        if let (Ok(first), Ok(last)) = (first.parse::<u32>(), last.parse::<u32>()) {
            cpus.extend((first..=last).map(Cpu));
        }
    }
    cpus
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_cpus_is_read_as_the_kernel_writes_it() {
        assert_eq!(parse_cpus("0-2,5"), [0, 1, 2, 5].map(Cpu));
        assert_eq!(parse_cpus("0"), [Cpu(0)]);
        assert_eq!(parse_cpus(""), []);
    }

    #[test]
    fn a_running_threads_cpu_is_found_behind_any_name() {
        let stat = |state: &str| {
            let rest: Vec<String> = (4..=52).map(|field| (field * 10).to_string()).collect();
            format!("7 (a) R 1 (b)) {state} {}", rest.join(" "))
        };
        assert_eq!(cpu_of_stat(&stat("R")), Some(Cpu(390)));
        assert_eq!(cpu_of_stat(&stat("S")), None);
        assert_eq!(cpu_of_stat("7 (x) R 1"), None);
        assert!(cpus_online().contains(&running_on(crate::this_thread()).unwrap()));
    }

    #[test]
    fn the_threads_of_this_process_hold_its_first_and_a_stranger_has_none() {
        assert!(threads_of(std::process::id()).contains(&std::process::id()));
        assert_eq!(threads_of(u32::MAX), []);
    }
}
