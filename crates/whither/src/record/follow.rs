//! Rings drained until the program ends.

use std::os::fd::RawFd;
use std::time::Duration;

use collect::Placer;
use perf::{Bystander, Held, ProcessFd, Refusal, Running, Sampler, SamplerExtras};
use recording::Live;
use vocab::{Cpu, Profile};

use super::Recorded;
use crate::cli::RecordJob;
use crate::database::take_item;
use crate::failure::{Failure, RUN_FAILED};
use crate::run::{Sampling, exec_failure, find_program, online_cpus};

/// How long to wait for a ring to fill before looking at all of them anyway.
const ROUND: Duration = Duration::from_millis(250);

/// The rings, each with the place of its event, and what is made of their records.
pub(super) struct Collection {
    pub(super) samplers: Vec<(usize, Sampler)>,
    pub(super) live: Live,
    pub(super) placer: Placer,
}

impl Collection {
    /// Opens every event on every CPU: for a process, or for whatever runs there.
    pub(super) fn open(
        &mut self,
        job: &RecordJob,
        samplings: &[Sampling],
        extras: SamplerExtras,
        pid: Option<u32>,
    ) -> Result<(), Failure> {
        let cpus: Vec<Cpu> = if job.cpus.is_empty() { online_cpus() } else { job.cpus.clone() };
        for (place, sampling) in samplings.iter().enumerate() {
            for &cpu in &cpus {
                match Sampler::open_with(&sampling.request, extras, pid, cpu) {
                    Ok(sampler) => self.samplers.push((place, sampler)),
                    // Gone offline since we looked: nothing will run there.
                    Err(Refusal::NoSuchEvent) if !self.samplers.is_empty() => {}
                    Err(refusal) => {
                        let event = &sampling.request.event.name;
                        let what = format!("cannot sample {event} on CPU {}: {refusal}", cpu.0);
                        return Err(Failure::new(RUN_FAILED, what)
                            .kept("nothing was started")
                            .remedy("`whither doctor` says what this machine can do"));
                    }
                }
            }
        }
        Ok(())
    }

    /// What to wait for.
    pub(super) fn fds(&self) -> Vec<RawFd> {
        self.samplers.iter().map(|(_, sampler)| sampler.raw_fd()).collect()
    }

    /// Waits for samples, and takes what is there.
    pub(super) fn wait(&mut self, fds: &[RawFd]) -> Result<(), Failure> {
        perf::wait_for_any(fds, ROUND).map_err(|error| {
            Failure::new(RUN_FAILED, format!("cannot wait for samples: {error}"))
        })?;
        self.round();
        Ok(())
    }

    fn round(&mut self) {
        let Collection { samplers, live, placer } = self;
        for (place, sampler) in samplers {
            let read = sampler.ring.drain(|bytes| {
                if !live.push(*place, bytes) {
                    placer.take_malformed();
                }
            });
            if read.skipped_bytes > 0 {
                placer.take_malformed();
            }
        }
        live.end_round(|item| take_item(placer, item));
    }

    pub(super) fn finish(mut self) -> Profile {
        self.round();
        let Collection { live, mut placer, .. } = self;
        live.finish(|item| take_item(&mut placer, item));
        placer.finish()
    }
}

/// A program from its first instruction to its end.
pub(super) fn program(
    job: &RecordJob,
    samplings: &[Sampling],
    mut collection: Collection,
) -> Result<Recorded, Failure> {
    let program = find_program(&job.program)?;
    let held = hold(job)?;
    let extras = SamplerExtras { chains: job.chains, at_once: false };
    if let Err(failure) = collection.open(job, samplings, extras, Some(held.pid())) {
        held.abandon();
        return Err(failure);
    }
    let aside = Bystander::of(held.pid());
    let running = held.go().map_err(|failed| exec_failure(&program, failed))?;
    let process = ProcessFd::open(running.pid());
    let mut fds = collection.fds();
    fds.extend(process.as_ref().map(ProcessFd::raw_fd));
    while !running.has_ended() {
        collection.wait(&fds)?;
    }
    let ended = end(running)?;
    drop(aside);
    Ok(Recorded::new(program.shown(), collection.finish(), Some(ended)))
}

/// The program, forked and held before its first instruction.
pub(super) fn hold(job: &RecordJob) -> Result<Held, Failure> {
    let (path, arguments, environment) = find_program(&job.program)?.for_exec()?;
    Held::fork(&path, &arguments, &environment)
        .map_err(|error| Failure::new(RUN_FAILED, format!("cannot start a process: {error}")))
}

pub(super) fn end(running: Running) -> Result<perf::Ended, Failure> {
    running.wait().map_err(|error| Failure::new(RUN_FAILED, format!("lost the program: {error}")))
}
