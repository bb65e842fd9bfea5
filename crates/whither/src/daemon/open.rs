//! Opening everything, and giving up what is not needed afterwards.

use std::os::unix::fs::MetadataExt;
use std::time::{SystemTime, UNIX_EPOCH};

use collect::{CollectError, Collector, Processes, Request, Route, Watch};
use perf::Capability;
use store::{Facts, Retention};
use vocab::Slice;

use super::choose::{self, Choice, Machine};
use super::clock::Moment;
use super::gather::Gather;
use super::keep::Keep;
use super::pending::{Apart, Pending};
use super::proc::{self, KernelFiles};
use super::room::Room;
use super::serve::Service;
use crate::cli::StartJob;
use crate::database::agreed;
use crate::failure::{ERROR, Failure};
use crate::run::online_cpus;

/// All that a collector needs once it has begun.
const KEPT: [Capability; 4] =
    [Capability::Perfmon, Capability::Bpf, Capability::SysPtrace, Capability::DacReadSearch];

/// Opens events first, maps before everything, and the database last: with the rights that are
/// left, so that a database that cannot be written is found now.
pub(super) fn open(job: &StartJob, room: &Room) -> Result<Service, Failure> {
    let choice = choose_here(job)?;
    let cpus = online_cpus();
    if let Some(max) = proc::number("/proc/sys/kernel/pid_max") {
        Collector::check_pids(max).map_err(refused)?;
    }
    let watch = Watch::open(&cpus);
    let only_user = match &watch {
        Ok(_) => None,
        Err(_) => Some(own_user()),
    };
    let request = Request {
        events: choice.events.clone(),
        cpus,
        geometry: choice.geometry,
        route: Route::Program,
        kernel_by_process: job.per_process,
        own_threads: only_user.map(proc::threads_of).unwrap_or_default(),
    };
    let followed = request.own_threads.iter().copied().collect();
    let mut notes = choice.notes.clone();
    let (mut collector, route) = open_collector(job, request, only_user.is_some(), &mut notes)?;
    let mut kernel = KernelFiles::open();
    // Before there is any other thread: each has its own.
    perf::keep_only(&KEPT)
        .map_err(|error| Failure::new(ERROR, format!("cannot give up privileges: {error}")))?;
    let mut processes = Processes::new(kernel.layout());
    proc::scan(&mut processes, only_user);
    let now = Moment::now();
    let slice_ns = job.slice.map(|slice| slice.as_nanos() as u64);
    let retention = Retention { age_ns: job.keep_ns, bytes: job.keep_bytes };
    let (database, host) = (room.database.clone(), room.host.clone());
    let told = choice.events.iter().map(|sampled| (sampled.event.name.as_str(), sampled.period));
    let facts = Facts { origin: "daemon".into(), modelled: None, slice_ns, periods: agreed(told) };
    let keep = Keep::open(database, host, facts, retention, now)?;
    collector.begin(seed()).map_err(refused)?;
    let apart = Apart { processes: job.per_process, slice: slice_ns.map(|_| Slice(0)) };
    let events = choice.events.iter().map(|sampled| sampled.event.clone()).collect();
    let pending = Pending::new(keep.epoch.clone(), events, apart, choice.hertz);
    let watch = watch.ok();
    let gather = Gather { collector, watch, processes, kernel, only_user, followed };
    Ok(Service::new(
        job.clone(),
        choice,
        route,
        gather,
        pending,
        keep,
        notes,
        room.folder.clone(),
        now,
    ))
}

fn choose_here(job: &StartJob) -> Result<Choice, Failure> {
    let machine = Machine {
        probe: &|event| perf::probe_system_wide(event, 0).or_else(|_| perf::probe(event)),
        in_a_guest: perf::hypervisor_name().is_some(),
        core_hertz: proc::core_hertz(),
        max_hertz: proc::number("/proc/sys/kernel/perf_event_max_sample_rate"),
    };
    choose::choose(job, &machine)
}

/// The best route that is permitted; each step down is noted.
fn open_collector(
    job: &StartJob,
    mut request: Request,
    own: bool,
    notes: &mut Vec<String>,
) -> Result<(Collector, Route), Failure> {
    let chains = job.chains;
    request.route = match own {
        true => Route::Own { chains },
        false if job.ring || chains => Route::Ring { chains },
        false => Route::Program,
    };
    if own {
        notes
            .push("not permitted to see every process: your own are followed, in user mode".into());
    }
    // Numbers of processes differ between the kernel's program and a namespace.
    if request.route == Route::Program && !proc::sees_global_pids() {
        notes.push("in a process namespace of its own: samples come through rings".into());
        request.route = Route::Ring { chains };
    }
    let opened = match Collector::open(&request) {
        Err(error) if request.route == Route::Program && error.is_about_programs() => {
            notes.push(format!("{error}; samples come through rings"));
            request.route = Route::Ring { chains };
            Collector::open(&request)
        }
        other => other,
    };
    Ok((opened.map_err(refused)?, request.route))
}

fn refused(error: CollectError) -> Failure {
    Failure::new(ERROR, error.to_string())
        .kept("nothing was started")
        .remedy("`whither doctor` says what this machine can do")
}

fn own_user() -> u32 {
    std::fs::metadata("/proc/self").map(|data| data.uid()).unwrap_or(u32::MAX)
}

/// Periods differ from start to start.
fn seed() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    now.as_nanos() as u64 ^ u64::from(std::process::id()) << 40
}
