//! From answers to a judgement: what works, what does not, why, and what to do.
//!
//! The rule that matters most: what a setting or a capability would allow is 'not permitted';
//! what no setting of this system can bring is 'not there'.

use perf::Refusal;

use super::engine::{Engines, QemuState};
use super::probes::Probes;

/// How things stand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum State {
    Works,
    NotPermitted,
    NotThere,
}

/// One thing that whither would like to do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Finding {
    pub(crate) key: &'static str,
    pub(crate) what: &'static str,
    pub(crate) state: State,
    pub(crate) why: String,
    /// Empty where nothing needs doing.
    pub(crate) remedy: String,
}

const CAP_SYS_ADMIN: u32 = 21;
const CAP_PERFMON: u32 = 38;
const CAP_BPF: u32 = 39;

/// All findings, most wanted first.
pub(crate) fn judge(probes: &Probes) -> Vec<Finding> {
    let mut findings = vec![
        own_programs(probes),
        kernel_too(probes),
        every_process(probes),
        hardware_counters(probes),
        breakpoints(probes),
        bpf_tables(probes),
        kernel_names(probes),
    ];
    findings.extend(probes.engines.as_ref().map(engine));
    findings
}

fn works(key: &'static str, what: &'static str, why: impl Into<String>) -> Finding {
    Finding { key, what, state: State::Works, why: why.into(), remedy: String::new() }
}

fn own_programs(probes: &Probes) -> Finding {
    let (key, what) = ("sample_own", "sample your own programs");
    match probes.clock_user {
        Ok(()) => works(key, what, "the timer (cpu-clock) can be sampled"),
        Err(refusal) => refused(key, what, refusal, probes),
    }
}

fn kernel_too(probes: &Probes) -> Finding {
    let (key, what) = ("sample_kernel", "see the kernel's part of the time");
    match probes.clock_kernel {
        Ok(()) => works(key, what, "kernel mode is included"),
        Err(refusal) => refused(key, what, refusal, probes),
    }
}

fn every_process(probes: &Probes) -> Finding {
    let (key, what) = ("sample_all", "sample every process");
    match probes.system_wide {
        Ok(()) => works(key, what, "events can be opened for a whole CPU"),
        Err(refusal) => refused(key, what, refusal, probes),
    }
}

fn hardware_counters(probes: &Probes) -> Finding {
    let (key, what) = ("pmu", "count with the hardware (PMU)");
    match probes.cycles {
        Ok(()) => works(key, what, format!("cycles count; PMU: {}", probes.core_pmus.join(", "))),
        // A refusal for lack of permission says nothing about the hardware; sysfs does.
        Err(refusal) if refusal.is_permission() && !probes.core_pmus.is_empty() => {
            refused(key, what, refusal, probes)
        }
        Err(Refusal::Busy) => Finding {
            key,
            what,
            state: State::NotPermitted,
            why: "another user holds the counters (EBUSY)".into(),
            remedy: "end the other profiler, or switch the NMI watchdog off with \
                     `sysctl kernel.nmi_watchdog=0`"
                .into(),
        },
        Err(_) => no_pmu(key, what, probes),
    }
}

fn no_pmu(key: &'static str, what: &'static str, probes: &Probes) -> Finding {
    let (why, remedy) = match &probes.hypervisor {
        Some(name) => (
            format!("no PMU: {name} does not pass one on to this virtual machine"),
            "time comes from the timer instead; for counters use a bare-metal machine, or have \
             the hypervisor expose its PMU (KVM: `-cpu host,pmu=on`)",
        ),
        None => (
            "no PMU: the kernel lists no core PMU under /sys/bus/event_source/devices".into(),
            "time comes from the timer instead; check that the kernel has a driver for this \
             processor and that the firmware does not switch its PMU off",
        ),
    };
    Finding { key, what, state: State::NotThere, why, remedy: remedy.into() }
}

fn breakpoints(probes: &Probes) -> Finding {
    let (key, what) = ("breakpoints", "count exactly with hardware breakpoints");
    match probes.breakpoint {
        Ok(()) => works(key, what, "a data breakpoint could be set"),
        Err(refusal) => refused(key, what, refusal, probes),
    }
}

fn bpf_tables(probes: &Probes) -> Finding {
    let (key, what) = ("bpf", "aggregate samples inside the kernel (BPF)");
    let refusal = match (probes.bpf.table, probes.bpf.program) {
        (Ok(()), Ok(())) => {
            let woken = match probes.bpf.bell {
                Ok(()) => "and can wake the daemon",
                Err(_) => "but cannot wake the daemon before its time (Linux 5.8 has the means)",
            };
            return works(key, what, format!("a table can be mapped; a program loads {woken}"));
        }
        (Err(refusal), _) | (_, Err(refusal)) => refusal,
    };
    let (state, why, remedy) = match refusal {
        Refusal::NoSuchCall => (
            State::NotThere,
            "this kernel is built without bpf()".to_owned(),
            "samples go through the perf ring instead; use a kernel with CONFIG_BPF_SYSCALL",
        ),
        Refusal::NotUnderstood if older_than(&probes.kernel_release, 5, 5) => (
            State::NotThere,
            format!("Linux {} has no tables that can be mapped", probes.kernel_release),
            "samples go through the perf ring instead; Linux 5.5 or newer has them",
        ),
        refusal if refusal.is_permission() => (
            State::NotPermitted,
            permission_reason(refusal, probes, CAP_BPF, "CAP_BPF"),
            "samples go through the perf ring instead; run as root or grant CAP_BPF and \
             CAP_PERFMON",
        ),
        other => (
            State::NotThere,
            format!("bpf() failed: {other}"),
            "samples go through the perf ring instead",
        ),
    };
    Finding { key, what, state, why, remedy: remedy.into() }
}

fn kernel_names(probes: &Probes) -> Finding {
    let (key, what) = ("kernel_names", "name the kernel's procedures");
    if probes.kernel_symbols {
        return works(key, what, "/proc/kallsyms shows addresses");
    }
    Finding {
        key,
        what,
        state: State::NotPermitted,
        why: "/proc/kallsyms hides its addresses".into(),
        remedy: "run as root, or `sysctl kernel.kptr_restrict=0` with \
                 `kernel.perf_event_paranoid` at 1 or less"
            .into(),
    }
}

/// Either engine will do; the other is named so that its state is known too.
fn engine(engines: &Engines) -> Finding {
    let (key, what) = ("engine", "trace programs exactly, for a modelled core");
    let (why, remedy) = qemu(&engines.qemu);
    let is_ready = remedy.is_empty();
    if engines.native {
        let beside = if is_ready { "also" } else { "not needed" };
        return works(key, what, format!("the native engine runs here ({beside}: {why})"));
    }
    let needs = "the native engine needs x86-64 with AVX and BMI2, and Linux 5.9";
    let why = format!("{why}; {needs}");
    match is_ready {
        true => works(key, what, why),
        false => Finding { key, what, state: State::NotThere, why, remedy: remedy.into() },
    }
}

/// How it stands with QEMU, and what to do; nothing where it is ready.
fn qemu(state: &QemuState) -> (String, &'static str) {
    match state {
        QemuState::Ready(version) => (format!("qemu-x86_64 {version} takes plugins"), ""),
        QemuState::Missing => (
            "qemu-x86_64 is not on the PATH".to_owned(),
            "`apt-get install qemu-user` on Debian or Ubuntu",
        ),
        QemuState::WithoutPlugins => (
            "qemu-x86_64 is built without plugins".to_owned(),
            "install a qemu-user built with --enable-plugins (Debian 12's qemu-user 7.2 is)",
        ),
        QemuState::OtherPlugins(version) => (
            format!("qemu-x86_64 {version} has a plugin interface of another version"),
            "install a qemu-user from 6.0 to 8.2",
        ),
        QemuState::Broken(why) => {
            (format!("qemu-x86_64 does not run: {why}"), "reinstall the qemu-user package")
        }
    }
}

/// A finding for an event that could not be opened.
fn refused(key: &'static str, what: &'static str, refusal: Refusal, probes: &Probes) -> Finding {
    if refusal.is_permission() {
        let why = permission_reason(refusal, probes, CAP_PERFMON, "CAP_PERFMON");
        return Finding {
            key,
            what,
            state: State::NotPermitted,
            why,
            remedy: permission_remedy(key, probes),
        };
    }
    let (why, remedy) = match refusal {
        Refusal::NoSuchCall => (
            "this kernel is built without perf events".to_owned(),
            "use a kernel with CONFIG_PERF_EVENTS",
        ),
        Refusal::NotUnderstood => (
            format!("Linux {} does not understand the request", probes.kernel_release),
            "use a newer kernel",
        ),
        other => (format!("the kernel refused: {other}"), "see `dmesg` for the kernel's reason"),
    };
    Finding { key, what, state: State::NotThere, why, remedy: remedy.into() }
}

/// Which of the possible guards said no: the filter, the paranoid level or the capability.
fn permission_reason(refusal: Refusal, probes: &Probes, capability: u32, name: &str) -> String {
    let holds = |bit: u32| probes.capabilities & (1 << bit) != 0;
    if holds(capability) || holds(CAP_SYS_ADMIN) {
        return match probes.seccomp {
            true => "a seccomp filter (of a container, most likely) forbids the call".into(),
            false => format!("refused although {name} is held: {refusal}"),
        };
    }
    match (probes.paranoid, refusal) {
        _ if probes.seccomp && refusal == Refusal::Privilege => {
            format!("a seccomp filter forbids the call, or {name} is missing")
        }
        (Some(level), Refusal::Forbidden) => {
            format!("kernel.perf_event_paranoid is {level} and {name} is missing")
        }
        _ => format!("{name} is missing"),
    }
}

fn permission_remedy(key: &str, probes: &Probes) -> String {
    if probes.seccomp {
        return "start the container with a seccomp profile that allows perf_event_open \
                (docker: `--security-opt seccomp=unconfined --cap-add PERFMON`)"
            .into();
    }
    let level = match key {
        "sample_all" => 0,
        "sample_kernel" => 1,
        _ => 2,
    };
    format!(
        "run as root, grant CAP_PERFMON (`setcap cap_perfmon+ep`), or \
         `sysctl kernel.perf_event_paranoid={level}`"
    )
}

/// Whether a release such as `5.4.0-150-generic` is older than a version.
fn older_than(release: &str, major: u32, minor: u32) -> bool {
    let mut parts = release.split(|c: char| !c.is_ascii_digit()).map(|n| n.parse::<u32>().ok());
    match (parts.next().flatten(), parts.next().flatten()) {
        (Some(a), Some(b)) => (a, b) < (major, minor),
        _ => false,
    }
}

#[cfg(test)]
#[path = "judge_tests.rs"]
mod tests;
