//! Processes that run already, or the whole machine.

use std::fs;

use collect::{Placer, parse_maps};
use perf::{Bystander, ProcessFd, Requests, Running, SamplerExtras};
use vocab::Pid;

use super::Recorded;
use super::follow::{self, Collection};
use crate::cli::{RecordJob, Who};
use crate::failure::{Failure, RUN_FAILED};
use crate::run::{Sampling, exec_failure, find_program};

/// Samples until the program ends, the processes end, or somebody asks to stop.
pub(super) fn attached(
    job: &RecordJob,
    samplings: &[Sampling],
    mut collection: Collection,
) -> Result<Recorded, Failure> {
    let mut requests = Requests::hear()
        .map_err(|error| Failure::new(RUN_FAILED, format!("cannot hear signals: {error}")))?;
    let extras = SamplerExtras { chains: job.chains, at_once: true };
    let pids = match &job.who {
        Who::Processes(pids) => {
            for &pid in pids {
                for thread in threads(pid)? {
                    collection.open(job, samplings, extras, Some(thread))?;
                }
            }
            pids.clone()
        }
        Who::Threads(threads) => {
            for &thread in threads {
                collection.open(job, samplings, extras, Some(thread))?;
            }
            let mut pids: Vec<u32> = threads.iter().filter_map(|&tid| process_of(tid)).collect();
            pids.sort_unstable();
            pids.dedup();
            pids
        }
        _ => {
            collection.open(job, samplings, extras, None)?;
            all_processes()
        }
    };
    // Maps are read once the rings run: what is mapped later, the rings tell.
    pids.iter().for_each(|&pid| known(&mut collection.placer, pid));
    let running = started(job)?;
    let aside = running.as_ref().map(|running| Bystander::of(running.pid()));
    let watched: Vec<ProcessFd> = match (&job.who, &running) {
        (_, Some(running)) => ProcessFd::open(running.pid()).into_iter().collect(),
        (Who::Processes(pids) | Who::Threads(pids), None) => {
            pids.iter().filter_map(|&pid| ProcessFd::open(pid)).collect()
        }
        _ => Vec::new(),
    };
    let mut fds = collection.fds();
    fds.extend(watched.iter().map(ProcessFd::raw_fd));
    fds.push(requests.raw_fd());
    while goes_on(job, running.as_ref()) && !requests.came() {
        collection.wait(&fds)?;
    }
    let ended = running.map(follow::end).transpose()?;
    drop(aside);
    let command = match &job.who {
        Who::Processes(pids) => format!("processes {pids:?}"),
        Who::Threads(threads) => format!("threads {threads:?}"),
        _ => "the machine".to_owned(),
    };
    Ok(Recorded::new(command, collection.finish(), ended))
}

fn started(job: &RecordJob) -> Result<Option<Running>, Failure> {
    if job.program.is_empty() {
        return Ok(None);
    }
    let program = find_program(&job.program)?;
    let held = follow::hold(job)?;
    held.go().map(Some).map_err(|failed| exec_failure(&program, failed))
}

fn goes_on(job: &RecordJob, running: Option<&Running>) -> bool {
    match (running, &job.who) {
        (Some(running), _) => !running.has_ended(),
        (None, Who::Processes(pids) | Who::Threads(pids)) => pids.iter().any(|p| is_alive(*p)),
        (None, _) => true,
    }
}

/// A process that has ended and waits to be asked does nothing any more.
fn is_alive(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
    state.is_some_and(|state| !matches!(state, 'Z' | 'X'))
}

/// An event on a process follows the threads that it makes later; those that are there must be
/// named.
fn threads(pid: u32) -> Result<Vec<u32>, Failure> {
    let entries = fs::read_dir(format!("/proc/{pid}/task")).map_err(|error| {
        Failure::new(RUN_FAILED, format!("cannot sample process {pid}: {error}"))
            .kept("nothing was started")
    })?;
    Ok(entries.flatten().filter_map(|e| e.file_name().to_str()?.parse().ok()).collect())
}

/// The process that a thread belongs to.
fn process_of(thread: u32) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{thread}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("Tgid:"))?;
    line.trim().parse().ok()
}

fn all_processes() -> Vec<u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// Name and maps of a process as they are now. One that has gone is the rings' to tell of.
fn known(placer: &mut Placer, pid: u32) {
    if let Ok(name) = fs::read_to_string(format!("/proc/{pid}/comm")) {
        placer.take_name(Pid(pid), false, name.trim_end());
    }
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
    parse_maps(Pid(pid), &maps).iter().for_each(|mapping| placer.take_map(mapping));
}
