//! What this machine answers when it is asked, as values.
//!
//! Nothing is judged here, so that answers of other machines can be judged in tests.

use std::fs;
use std::path::Path;

use perf::{BpfAbilities, BreakpointKind, Refusal, probe, probe_bpf, probe_breakpoint};
use vocab::{Event, EventCode, Mode};

use super::engine::{Engines, find_engines};

/// Everything that the judgement is made from.
#[derive(Clone, Debug)]
pub(crate) struct Probes {
    pub(crate) kernel_release: String,
    pub(crate) architecture: String,
    pub(crate) processor: Processor,
    /// The name of the hypervisor, where one shows itself.
    pub(crate) hypervisor: Option<String>,
    /// `kernel.perf_event_paranoid`; none where the file is missing: no perf events at all.
    pub(crate) paranoid: Option<i64>,
    /// Effective capabilities, as the kernel's bits.
    pub(crate) capabilities: u64,
    /// Whether a seccomp filter is in force.
    pub(crate) seccomp: bool,
    pub(crate) clock_user: Result<(), Refusal>,
    pub(crate) clock_kernel: Result<(), Refusal>,
    pub(crate) system_wide: Result<(), Refusal>,
    pub(crate) cycles: Result<(), Refusal>,
    /// PMUs of cores that sysfs lists (`cpu`, `cpu_core`, `armv8_pmuv3_0`).
    pub(crate) core_pmus: Vec<String>,
    pub(crate) breakpoint: Result<(), Refusal>,
    pub(crate) bpf: BpfAbilities,
    /// Whether /proc/kallsyms shows addresses.
    pub(crate) kernel_symbols: bool,
    /// None where it was not asked: asking runs a program.
    pub(crate) engines: Option<Engines>,
}

/// The processor as /proc/cpuinfo describes it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Processor {
    pub(crate) vendor: String,
    pub(crate) name: String,
    pub(crate) family: Option<u32>,
    pub(crate) model: Option<u32>,
}

impl Probes {
    /// Asks this machine, and for engines too.
    pub(crate) fn with_engines() -> Probes {
        Probes { engines: Some(find_engines()), ..Probes::take() }
    }

    /// Asks the kernel alone.
    pub(crate) fn take() -> Probes {
        let cpuinfo = text("/proc/cpuinfo").unwrap_or_default();
        let status = text("/proc/self/status").unwrap_or_default();
        let here = 0_u64;
        Probes {
            kernel_release: text("/proc/sys/kernel/osrelease").unwrap_or_default(),
            architecture: std::env::consts::ARCH.into(),
            processor: parse_processor(&cpuinfo),
            hypervisor: hypervisor(),
            paranoid: text("/proc/sys/kernel/perf_event_paranoid").and_then(|t| t.parse().ok()),
            capabilities: status_field(&status, "CapEff:")
                .and_then(|bits| u64::from_str_radix(bits, 16).ok())
                .unwrap_or(0),
            seccomp: status_field(&status, "Seccomp:").is_some_and(|mode| mode != "0"),
            clock_user: probe(&software_clock(Mode::User)),
            clock_kernel: probe(&software_clock(Mode::Both)),
            system_wide: perf::probe_system_wide(&software_clock(Mode::Both), 0),
            cycles: probe(&event("cycles", EventCode::new(0, 0), Mode::User)),
            core_pmus: core_pmus(Path::new("/sys/bus/event_source/devices")),
            breakpoint: probe_breakpoint(BreakpointKind::Write, std::ptr::from_ref(&here) as u64),
            bpf: probe_bpf(),
            kernel_symbols: shows_addresses("/proc/kallsyms"),
            engines: None,
        }
    }
}

fn event(name: &str, code: EventCode, mode: Mode) -> Event {
    Event { name: name.into(), code, mode }
}

/// The timer that every machine has.
fn software_clock(mode: Mode) -> Event {
    event("cpu-clock", EventCode::new(1, 0), mode)
}

fn text(path: &str) -> Option<String> {
    fs::read_to_string(path).ok().map(|text| text.trim_end().to_owned())
}

fn status_field<'a>(status: &'a str, name: &str) -> Option<&'a str> {
    status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim)
}

/// `key : value` lines of the first processor.
pub(crate) fn parse_processor(cpuinfo: &str) -> Processor {
    let field = |name: &str| {
        cpuinfo.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            (key.trim() == name).then(|| value.trim().to_owned())
        })
    };
    Processor {
        vendor: field("vendor_id").or_else(|| field("CPU implementer")).unwrap_or_default(),
        name: field("model name").or_else(|| field("CPU part")).unwrap_or_default(),
        family: field("cpu family").and_then(|f| f.parse().ok()),
        model: field("model").and_then(|m| m.parse().ok()),
    }
}

/// The processor tells on x86; elsewhere the firmware's tables may.
fn hypervisor() -> Option<String> {
    perf::hypervisor_name().or_else(|| text("/sys/hypervisor/type")).or_else(|| {
        let vendor = text("/sys/class/dmi/id/sys_vendor")?;
        let known = ["QEMU", "Amazon EC2", "VMware", "Xen", "Google", "Microsoft"];
        known.iter().find(|name| vendor.contains(**name)).map(|name| (*name).to_owned())
    })
}

/// PMUs whose events belong to a core: they carry `cpu`-like names and a `type`.
fn core_pmus(devices: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(devices) else { return Vec::new() };
    let mut names: Vec<String> = entries
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| {
            ["cpu", "cpu_core", "cpu_atom"].contains(&name.as_str())
                || name.starts_with("armv")
                || name.starts_with("riscv")
        })
        .collect();
    names.sort();
    names
}

fn shows_addresses(kallsyms: &str) -> bool {
    use std::io::{BufRead, BufReader};
    let Ok(file) = fs::File::open(kallsyms) else { return false };
    BufReader::new(file)
        .lines()
        .take(1000)
        .map_while(Result::ok)
        .any(|line| line.split(' ').next().is_some_and(|a| a.bytes().any(|b| b != b'0')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_processor_is_read_on_x86_and_arm() {
        let x86 = "processor\t: 0\nvendor_id\t: AuthenticAMD\ncpu family\t: 25\nmodel\t\t: 17\n\
                   model name\t: AMD EPYC\n";
        let processor = parse_processor(x86);
        assert_eq!((processor.family, processor.model), (Some(25), Some(17)));
        assert_eq!(processor.name, "AMD EPYC");
        let arm = "CPU implementer\t: 0x41\nCPU part\t: 0xd0c\n";
        assert_eq!(parse_processor(arm).vendor, "0x41");
    }
}
