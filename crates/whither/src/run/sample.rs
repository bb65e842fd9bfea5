//! One native run, sampled from its first instruction to its end.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use collect::{KernelLayout, Merge, Placer};
use perf::{Counter, Ended, Held, ProcessFd, Reading, Refusal, Running, Sampler, parse_record};
use vocab::{Cpu, Epoch, Event, Mode, Profile};

use super::SAMPLED;
use super::program::{Program, exec_failure};
use super::sampling::Sampling;
use crate::failure::{Failure, RUN_FAILED, passed_on};

/// How long to wait for a ring to fill before looking at all of them anyway.
const ROUND: Duration = Duration::from_millis(250);

/// What a run left behind.
#[derive(Debug)]
pub(crate) struct Native {
    pub(crate) profile: Profile,
    pub(crate) kernel: KernelLayout,
    pub(crate) ended: Ended,
    pub(crate) elapsed: Duration,
    /// Each event of the set with what became of it.
    pub(crate) counted: Vec<(Event, Result<Reading, String>)>,
    /// Whether the samples include the kernel.
    pub(crate) mode: Mode,
    /// 0 may skid, 3 may not.
    pub(crate) precision: u8,
}

impl Native {
    /// The status to pass through, as a shell would have it.
    pub(crate) fn status(&self) -> u8 {
        passed_on(self.ended.code(), self.ended.signal())
    }
}

/// Runs it.
pub(crate) fn sample(
    program: &Program,
    sampling: &Sampling,
    counted: &[Event],
) -> Result<Native, Failure> {
    let kernel = kernel_layout();
    let (path, arguments, environment) = program.for_exec()?;
    let held = Held::fork(&path, &arguments, &environment)
        .map_err(|error| Failure::new(RUN_FAILED, format!("cannot start a process: {error}")))?;
    let samplers = match open_samplers(sampling, held.pid()) {
        Ok(samplers) => samplers,
        Err(failure) => {
            held.abandon();
            return Err(failure);
        }
    };
    let (mode, precision) = (samplers[0].mode, samplers[0].precision.0);
    let counters: Vec<(Event, Result<Counter, Refusal>)> =
        counted.iter().map(|event| (event.clone(), open_counter(event, held.pid()))).collect();
    let placer = Placer::new(this_epoch(), vec![sampling.request.event.clone()], kernel.clone());
    let aside = perf::Bystander::of(held.pid());
    let began = Instant::now();
    let running = held.go().map_err(|failed| exec_failure(program, failed))?;
    let mut collection = Collection { samplers, merge: Merge::default(), placer };
    collection.follow(&running)?;
    let elapsed = began.elapsed();
    let ended = running
        .wait()
        .map_err(|error| Failure::new(RUN_FAILED, format!("lost the program: {error}")))?;
    drop(aside);
    let counted = counters.into_iter().map(|(event, counter)| (event, read(counter))).collect();
    let profile = collection.finish();
    Ok(Native { profile, kernel, ended, elapsed, counted, mode, precision })
}

/// The rings and what is made of their records.
struct Collection {
    samplers: Vec<Sampler>,
    merge: Merge,
    placer: Placer,
}

impl Collection {
    /// Drains the rings until the program ends.
    fn follow(&mut self, running: &Running) -> Result<(), Failure> {
        let process = ProcessFd::open(running.pid());
        let mut fds: Vec<_> = self.samplers.iter().map(Sampler::raw_fd).collect();
        fds.extend(process.as_ref().map(ProcessFd::raw_fd));
        while !running.has_ended() {
            perf::wait_for_any(&fds, ROUND).map_err(|error| {
                Failure::new(RUN_FAILED, format!("cannot wait for samples: {error}"))
            })?;
            self.round();
        }
        Ok(())
    }

    fn round(&mut self) {
        let Collection { samplers, merge, placer } = self;
        for sampler in samplers {
            let read = sampler.ring.drain(|bytes| match parse_record(bytes) {
                Some(record) => merge.push(SAMPLED, record),
                None => placer.take_malformed(),
            });
            if read.skipped_bytes > 0 {
                placer.take_malformed();
            }
        }
        merge.end_round(|event, record| placer.take(event, &record));
    }

    fn finish(mut self) -> Profile {
        self.round();
        let Collection { merge, mut placer, .. } = self;
        merge.finish(|event, record| placer.take(event, &record));
        placer.finish()
    }
}

/// One sampler a CPU: an inherited event can have a ring only if it is tied to a CPU.
fn open_samplers(sampling: &Sampling, pid: u32) -> Result<Vec<Sampler>, Failure> {
    let mut samplers = Vec::new();
    for cpu in online_cpus() {
        match Sampler::open(&sampling.request, pid, cpu) {
            Ok(sampler) => samplers.push(sampler),
            // Gone offline since we looked: nothing will run there.
            Err(Refusal::NoSuchEvent) if !samplers.is_empty() => {}
            Err(refusal) => {
                let event = &sampling.request.event.name;
                return Err(Failure::new(RUN_FAILED, format!("cannot sample {event}: {refusal}"))
                    .kept("the program was not started")
                    .remedy("`whither doctor` says what this machine can do"));
            }
        }
    }
    if samplers.is_empty() {
        return Err(Failure::new(RUN_FAILED, "the kernel names no CPU that is online"));
    }
    Ok(samplers)
}

/// The event as asked, or in user mode where the kernel's part is not permitted.
fn open_counter(event: &Event, pid: u32) -> Result<Counter, Refusal> {
    match Counter::on_exec(event, pid) {
        Err(refusal) if refusal.is_permission() && event.mode == Mode::Both => {
            Counter::on_exec(&Event { mode: Mode::User, ..event.clone() }, pid)
        }
        other => other,
    }
}

fn read(counter: Result<Counter, Refusal>) -> Result<Reading, String> {
    let mut counter = counter.map_err(|refusal| refusal.to_string())?;
    let reading = counter.read().map_err(|error| error.to_string())?;
    match reading.running_ns {
        0 => Err("it never had a counter".into()),
        _ => Ok(reading),
    }
}

pub(crate) fn online_cpus() -> Vec<Cpu> {
    let text = std::fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
    parse_cpus(&text)
}

/// `0-3,8` → 0 1 2 3 8. A container may hide the file: then there is at least the first.
fn parse_cpus(text: &str) -> Vec<Cpu> {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (first.parse::<u32>().ok()?, last.parse::<u32>().ok()?);
        // No kernel has more; a larger number is not a list of CPUs.
        (last < 1 << 16).then_some(first..=last)
    };
    let cpus: Vec<Cpu> = text.trim().split(',').filter_map(range).flatten().map(Cpu).collect();
    if cpus.is_empty() { vec![Cpu(0)] } else { cpus }
}

fn kernel_layout() -> KernelLayout {
    let text = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    KernelLayout::parse(&text("/proc/kallsyms"), &text("/proc/modules"))
}

fn this_epoch() -> Epoch {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Epoch { host: host.trim().into(), began_unix_ns: now.as_nanos() as u64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_cpus_are_ranges_and_single_numbers() {
        let numbers = |text| parse_cpus(text).into_iter().map(|cpu| cpu.0).collect::<Vec<_>>();
        assert_eq!(numbers("0-2,5\n"), [0, 1, 2, 5]);
        assert_eq!(numbers(""), [0]);
        assert_eq!(numbers("0-99999999999"), [0]);
    }
}
