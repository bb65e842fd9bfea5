//! /proc: who is there, and what they have mapped.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;

use collect::{KernelLayout, Processes, parse_maps};
use vocab::{BuildId, Pid};

use super::head;

/// Longer lists of maps than this are cut: nobody maps code in so many places.
const MAPS_BYTES: u64 = 4 << 20;

/// Build-ids by device and inode. The kernel's records carry them and /proc does not: without them
/// one image would be taken for two.
type Identities = HashMap<(u64, u64), Option<BuildId>>;

/// Tells the processes of everybody who is there, or of one user.
pub(super) fn scan(processes: &mut Processes, only_user: Option<u32>) {
    let mut known = Identities::new();
    let Ok(entries) = fs::read_dir("/proc") else { return };
    for entry in entries.flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        let is_theirs = |user: u32| entry.metadata().is_ok_and(|data| data.uid() == user);
        if only_user.is_none_or(is_theirs) {
            scan_with(processes, Pid(pid), &mut known);
        }
    }
}

/// Tells the maps of one process, if it is there and lets itself be looked at.
pub(super) fn scan_one(processes: &mut Processes, pid: Pid) -> bool {
    scan_with(processes, pid, &mut Identities::new())
}

fn scan_with(processes: &mut Processes, pid: Pid, known: &mut Identities) -> bool {
    let mut maps = String::new();
    let read = File::open(format!("/proc/{}/maps", pid.0))
        .and_then(|file| file.take(MAPS_BYTES).read_to_string(&mut maps));
    if read.is_err() {
        return false;
    }
    let name = fs::read_to_string(format!("/proc/{}/comm", pid.0)).unwrap_or_default();
    let mut mappings = parse_maps(pid, &maps);
    for mapping in &mut mappings {
        mapping.build_id = identity(pid, &mapping.path, known);
    }
    processes.scanned(pid, name.trim_end(), &mappings);
    true
}

fn identity(pid: Pid, path: &str, known: &mut Identities) -> Option<BuildId> {
    let file = head::open(pid, path)?;
    let data = file.metadata().ok()?;
    let read = || head::read(&file).and_then(|head| head.build_id);
    *known.entry((data.dev(), data.ino())).or_insert_with(read)
}

/// Threads of a user's processes, this one left out.
pub(super) fn threads_of(user: u32) -> Vec<u32> {
    let mut threads = Vec::new();
    let own = std::process::id();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let pid = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok());
        let Some(pid) = pid.filter(|&pid| pid != own) else { continue };
        if entry.metadata().is_ok_and(|data| data.uid() == user) {
            let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
            threads.extend(tasks.filter_map(|task| task.file_name().to_str()?.parse::<u32>().ok()));
        }
    }
    threads
}

/// Whether a process is still there.
pub(super) fn is_there(pid: Pid) -> bool {
    fs::exists(format!("/proc/{}", pid.0)).unwrap_or(false)
}

/// Where the kernel's code lies, and its modules as they come and go. The files are opened before
/// privileges are given up: what they show depends on who opened them.
#[derive(Debug)]
pub(super) struct KernelFiles {
    kallsyms: String,
    modules: Option<File>,
    /// The modules when they were last told of.
    last: String,
}

impl KernelFiles {
    pub(super) fn open() -> KernelFiles {
        let lines = File::open("/proc/kallsyms").map(|file| BufReader::new(file).lines());
        // A line that is no text ends it: the kernel writes none.
        let lines = lines.into_iter().flatten().map_while(Result::ok);
        KernelFiles {
            kallsyms: KernelLayout::lines_of_interest(lines),
            modules: File::open("/proc/modules").ok(),
            last: String::new(),
        }
    }

    /// The layout of now.
    pub(super) fn layout(&mut self) -> KernelLayout {
        self.last = self.read_modules();
        KernelLayout::parse(&self.kallsyms, &self.last)
    }

    /// Tells of modules that came or went since the last time; true if any did.
    pub(super) fn tell(&mut self, processes: &mut Processes) -> bool {
        let changed = self.read_modules() != self.last;
        if changed {
            processes.set_kernel(self.layout());
        }
        changed
    }

    fn read_modules(&mut self) -> String {
        let mut modules = String::new();
        if let Some(file) = &mut self.modules
            && file.seek(SeekFrom::Start(0)).is_ok()
        {
            let _ = file.read_to_string(&mut modules);
        }
        modules
    }
}

/// Whether this process sees the whole machine's process numbers: inside a namespace of its own,
/// the kernel's program would see others.
pub(super) fn sees_global_pids() -> bool {
    const INITIAL: &str = "pid:[4026531836]";
    fs::read_link("/proc/self/ns/pid").is_ok_and(|link| link.to_str() == Some(INITIAL))
}

/// A number that is all a file holds.
pub(super) fn number(path: &str) -> Option<u64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// The highest clock of the first core.
pub(super) fn core_hertz() -> Option<u64> {
    let khz = number("/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq");
    khz.map(|khz| khz * 1000).or_else(|| {
        let text = fs::read_to_string("/proc/cpuinfo").ok()?;
        let line = text.lines().find(|line| line.starts_with("cpu MHz"))?;
        let mhz: f64 = line.split(':').nth(1)?.trim().parse().ok()?;
        Some((mhz * 1e6) as u64)
    })
}

/// Memory that this process holds now, in KiB.
pub(super) fn resident_kib() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().trim_end_matches(" kB").parse().ok()
}
