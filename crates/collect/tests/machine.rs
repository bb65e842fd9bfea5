//! The collector on this machine's kernel. On the machine identities alone are asserted.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may end here")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use collect::{CollectError, Collector, Drained, Geometry, Request, Route, Sampled, Taking};
use vocab::{Cpu, Event, EventCode, Mode};

const SMALL: Geometry = Geometry { ways: 4, bucket_bits: 2, spill_entries: 64 };

fn cpus() -> Vec<Cpu> {
    let count = std::thread::available_parallelism().map_or(1, usize::from);
    (0..count as u32).map(Cpu).collect()
}

fn sampled(name: &str, config: u64, period: u64) -> Sampled {
    let code = EventCode::new(1, config);
    Sampled { event: Event { name: name.into(), code, mode: Mode::Both }, period, in_turn: false }
}

fn request(route: Route, geometry: Geometry, events: Vec<Sampled>) -> Request {
    let (cpus, own_threads) = (cpus(), Vec::new());
    Request { events, cpus, geometry, route, kernel_by_process: true, own_threads }
}

/// None where this machine does not let us: said, not hidden.
fn open(request: &Request) -> Option<Collector> {
    match Collector::open(request) {
        Ok(mut collector) => {
            collector.begin(1).unwrap();
            Some(collector)
        }
        Err(CollectError::Program(refused)) if !refused.objection.is_empty() => panic!("{refused}"),
        Err(error) => {
            eprintln!("skipped: {error}");
            None
        }
    }
}

/// Threads that fault pages in from many different places until told to stop.
fn faulting(stop: &Arc<AtomicBool>) -> Vec<std::thread::JoinHandle<()>> {
    let work = |stop: Arc<AtomicBool>| {
        move || {
            while !stop.load(Ordering::Relaxed) {
                drop(std::hint::black_box(vec![1_u8; 1 << 22]));
            }
        }
    };
    (0..2).map(|_| std::thread::spawn(work(Arc::clone(stop)))).collect()
}

/// Drains over and over while handlers run; every drain must add up by itself.
fn drains(collector: &mut Collector, rounds: usize) -> Drained {
    let stop = Arc::new(AtomicBool::new(false));
    let threads = faulting(&stop);
    let mut all = Drained::default();
    for round in 0..rounds {
        std::thread::sleep(Duration::from_millis(1));
        collector.attend(|_| {});
        // Mostly spills, as a busy daemon takes them, and everything at the end.
        let taking = match round % 4 {
            3 => Taking::All,
            _ if round + 1 == rounds => Taking::All,
            _ => Taking::Spill,
        };
        collector.flip(taking);
        let mut handed = 0;
        let drained = collector.drain(taking, |entry| handed += u64::from(entry.count));
        assert!(drained.adds_up(), "round {round}: {drained:?}");
        assert_eq!(handed, drained.samples);
        all.add(&drained);
    }
    stop.store(true, Ordering::Relaxed);
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    all
}

#[test]
fn every_drain_adds_up_while_handlers_run_and_spills_overflow() {
    let events = vec![sampled("page-faults", 2, 1), sampled("cpu-clock", 0, 200_000)];
    let asked = request(Route::Program, SMALL, events);
    let Some(mut collector) = open(&asked) else { return };
    let all = drains(&mut collector, 300);
    assert!(all.entries > 0);
    assert!(all.handed <= all.samples);
}

#[test]
fn every_shape_of_table_is_accepted_by_the_kernel() {
    for ways in [1, 2, 4, 6, 8] {
        let geometry = Geometry { ways, bucket_bits: 3, spill_entries: 16 };
        let asked = request(Route::Program, geometry, vec![sampled("page-faults", 2, 1)]);
        let Some(mut collector) = open(&asked) else { return };
        drains(&mut collector, 20);
    }
}

#[test]
fn a_half_full_spill_wakes_the_reader() {
    let asked = request(Route::Program, SMALL, vec![sampled("page-faults", 2, 1)]);
    let Some(mut collector) = open(&asked) else { return };
    let fds = collector.raw_fds();
    let stop = Arc::new(AtomicBool::new(false));
    let threads = faulting(&stop);
    // Processes come and go, so that pids and addresses differ and the tiny table overflows.
    let deadline = Instant::now() + Duration::from_secs(20);
    let mut woken = false;
    while !woken && Instant::now() < deadline {
        let _ = std::process::Command::new("true").status();
        perf::wait_for_any(&fds, Duration::ZERO).unwrap();
        woken = collector.attend(|_| {});
    }
    stop.store(true, Ordering::Relaxed);
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    assert!(woken);
    let waiting = collector.waiting();
    collector.flip(Taking::All);
    let drained = collector.drain(Taking::All, |_| {});
    assert!(drained.adds_up() && drained.spilled >= u64::from(SMALL.wake_at()), "{drained:?}");
    // Sampling went on between the two.
    assert!((1..=drained.entries).contains(&waiting), "{waiting} of {drained:?}");
}

#[test]
fn the_ring_route_adds_up_and_keeps_chains() {
    let asked =
        request(Route::Ring { chains: true }, SMALL, vec![sampled("cpu-clock", 0, 200_000)]);
    let Some(mut collector) = open(&asked) else { return };
    let all = drains(&mut collector, 100);
    assert!(all.samples > 0);
    let chains_seen = collector.take_chains().unwrap();
    assert_eq!(chains_seen.samples(), all.samples);
    assert!(chains_seen.iter().any(|(chain, _)| chain.frames.len() > 1));
}

/// Unprivileged users may do this; root sees the same.
#[test]
fn own_threads_can_be_followed_alone() {
    let mut asked =
        request(Route::Own { chains: false }, SMALL, vec![sampled("cpu-clock", 0, 500_000)]);
    asked.own_threads = vec![std::process::id()];
    let Some(mut collector) = open(&asked) else { return };
    let tid: u32 = std::fs::read_link("/proc/thread-self")
        .unwrap()
        .file_name()
        .and_then(|name| name.to_str()?.parse().ok())
        .unwrap();
    assert_eq!(collector.follow(&[tid]), 0);
    let all = drains(&mut collector, 50);
    assert_eq!(all.entries, all.samples + all.lost);
    let mut strangers = 0;
    collector.attend(|_| {});
    collector.drain(Taking::All, |entry| strangers += u64::from(entry.pid.0 != std::process::id()));
    assert_eq!(strangers, 0);
}

#[test]
fn what_no_entry_can_hold_is_refused_in_a_sentence() {
    assert!(Collector::check_pids(1 << 22).is_ok());
    let error = Collector::check_pids((1 << 24) + 1).unwrap_err();
    assert!(error.to_string().contains("16777217"));
    let none = request(Route::Program, SMALL, Vec::new());
    assert_eq!(Collector::open(&none).unwrap_err(), CollectError::Events(0));
}

/// The kernel's places are the same in every process; the program's are not.
#[test]
fn kernel_addresses_are_counted_under_one_process_where_they_are_not_kept_apart() {
    for route in [Route::Program, Route::Ring { chains: false }] {
        let mut asked = request(route, SMALL, vec![sampled("cpu-clock", 0, 200_000)]);
        asked.kernel_by_process = false;
        let Some(mut collector) = open(&asked) else { return };
        let stop = Arc::new(AtomicBool::new(false));
        let threads = faulting(&stop);
        let (mut kernel, mut user) = (Vec::new(), Vec::new());
        // On a machine full of others it may take a while until we are sampled at all.
        for _ in 0..100 {
            std::thread::sleep(Duration::from_millis(200));
            collector.attend(|_| {});
            collector.flip(Taking::All);
            let drained = collector.drain(Taking::All, |entry| match entry.pc.0 >> 63 {
                0 => user.push(entry.pid.0),
                _ => kernel.push(entry.pid.0),
            });
            assert!(drained.adds_up(), "{drained:?}");
            if !kernel.is_empty() && !user.is_empty() {
                break;
            }
        }
        stop.store(true, Ordering::Relaxed);
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert!(!kernel.is_empty() && !user.is_empty(), "{} {}", kernel.len(), user.len());
        assert!(kernel.iter().all(|&pid| pid == 0 || pid == (1 << 24) - 1), "{kernel:?}");
        assert!(user.iter().all(|&pid| pid > 0 && pid < 1 << 22), "{user:?}");
    }
}

/// A CPU that comes gets what the others have; one that goes gives up what it counted.
#[test]
fn cpus_that_come_and_go_are_followed_and_every_drain_adds_up() {
    let all = cpus();
    for route in [Route::Program, Route::Ring { chains: false }] {
        let mut asked = request(route, SMALL, vec![sampled("cpu-clock", 0, 200_000)]);
        asked.cpus.truncate(1);
        let Some(mut collector) = open(&asked) else { return };
        drains(&mut collector, 20);
        assert_eq!(collector.follow_cpus(&all), all[1..]);
        drains(&mut collector, 20);
        assert_eq!(collector.follow_cpus(&all), [], "nobody came since");
        let due = collector.expected()[0];
        // The first goes: what it owed until then is still owed.
        assert_eq!(collector.follow_cpus(&all[1..]), []);
        drains(&mut collector, 20);
        assert!(collector.expected()[0].samples >= due.samples);
        assert_eq!(collector.follow_cpus(&all), all[..1]);
        drains(&mut collector, 20);
    }
}
