//! The modelled core's counters taking turns inside a real program, against the exact truth.

#![allow(clippy::unwrap_used, reason = "a failure here is the test failing")]

mod planted;

use std::fs;
use std::path::{Path, PathBuf};

use metrology::Coverage;
use model::event::Event;
use planted::{compile, engines};
use pmu::schedule::OPENING_CYCLES_MIN;
use tracer::launch::{Finished, Launch};
use tracer::modelled::counting::{CountedProcess, read_logs};
use tracer::modelled::{CoreAsk, CountAsk, ModelAsk};
use tracer::settings::Listener;

const EVENTS: &str = "loads stores branches taken-branches branch-misses uops l1d-load-misses \
                      l1d-store-misses dtlb-load-misses store-forwards stall-cycles retire-cycles \
                      stall-memory-cycles integer-multiplies calls returns l1i-misses l2-misses";

fn ask(name: &str, slice: u64) -> CountAsk {
    seeded(name, slice, 7)
}

fn seeded(name: &str, slice: u64, seed: u64) -> CountAsk {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../machines/zen4.toml");
    let machine = fs::read_to_string(path).unwrap();
    let settings = model::core::Settings::default();
    let model = ModelAsk { name: "zen4".into(), machine, core: CoreAsk::Fast, settings };
    let units: Vec<Vec<String>> =
        EVENTS.split_whitespace().map(|event| vec![event.to_owned()]).collect();
    let logs = logs(name);
    fs::create_dir_all(&logs).unwrap();
    CountAsk::new(model, &units, "cycles", slice, seed, logs).unwrap()
}

fn logs(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{}-{name}", std::process::id()))
}

fn run(source: &str, options: &[&str], ask: &CountAsk) -> (Finished, Vec<CountedProcess>) {
    let program = compile("program.c", source, options);
    let listener = Listener::Count(Box::new(ask.clone()));
    let launch = Launch { listener, is_repeatable: true, ..Launch::new(program) };
    let finished = launch.run(engines()).unwrap();
    let processes = read_logs(&ask.logs).unwrap();
    fs::remove_dir_all(&ask.logs).unwrap();
    (finished, processes)
}

fn exact(finished: &Finished, pid: u32, event: Event) -> u64 {
    let of = finished.processes.iter().filter(|(key, _)| key.pid == pid);
    of.flat_map(|(_, file)| file.modelled.values()).map(|thread| thread.totals[event]).sum()
}

const WORK: &str = r"
#include <stdint.h>
static uint64_t table[1 << 15];
static uint64_t work(uint64_t seed, int rounds) {
    uint64_t x = seed;
    for (int r = 0; r < rounds; r++) {
        for (int i = 0; i < 4096; i++) table[i] += x * i;
        for (int i = 0; i < 3000; i++) {
            x = x * 6364136223846793005u + 1442695040888963407u;
            if (x >> 63) table[(x >> 40) & 32767] ^= x; else x += table[i];
        }
    }
    return x;
}
";

#[test]
fn turns_add_up_to_the_whole_run_and_estimates_hold_the_truth() {
    let source = format!("{WORK} int main(void) {{ return work(1, 150) == 7; }}");
    let mut held = 0;
    for seed in 7..=12 {
        held += turns_of(&source, &seeded(&format!("whole-{seed}"), 5000, seed));
    }
    // Of intervals that hold 95 times in a hundred, fewer would hold once in a million times.
    assert!(held >= 89, "{held} of 108");
}

/// Holds one run's totals against the truth; how many of its eighteen intervals hold it.
fn turns_of(source: &str, ask: &CountAsk) -> usize {
    assert!(ask.grouping.groups.len() == 3 && ask.grouping.is_fewest);
    let (finished, processes) = run(source, &["-O1"], ask);
    assert_eq!((processes.len(), processes[0].ended.len()), (1, 1));
    let process = &processes[0];
    assert_eq!(
        (process.header.source.as_str(), process.header.mode.as_str()),
        ("modelled core", "user")
    );
    let totals = process.totals();
    let mut held = 0;
    for (name, counted) in process.header.events.iter().zip(&totals) {
        let truth = exact(&finished, process.pid, Event::named(name).unwrap());
        let counted = counted.unwrap();
        assert!(counted.counted <= truth, "{name}: {} of {truth}", counted.counted);
        if ["cycles", "instructions"].contains(&name.as_str()) {
            assert_eq!(counted.counted, truth, "{name}");
            assert_eq!(counted.share, 1.0);
        } else {
            assert!((counted.share - 1.0 / 3.0).abs() < 0.02, "{name}: {}", counted.share);
            let holds = counted.interval(Coverage::P95).holds(truth as f64);
            held += usize::from(holds);
        }
    }
    held
}

#[test]
fn threads_and_forks_have_turns_and_logs_of_their_own() {
    let source = format!(
        "#include <pthread.h>\n#include <sys/wait.h>\n#include <unistd.h>\n{WORK}
        static void *thread(void *seed) {{ return (void *)work((uint64_t)seed, 20); }}
        int main(void) {{
            work(3, 10);
            pid_t child = fork();
            if (child == 0) _exit(work(4, 20) == 7);
            pthread_t other;
            pthread_create(&other, 0, thread, (void *)5);
            work(6, 10);
            pthread_join(other, 0);
            int status; waitpid(child, &status, 0);
            return status;
        }}"
    );
    let (finished, processes) = run(&source, &["-O1", "-pthread"], &ask("threads", 20_000));
    assert_eq!(processes.len(), 2);
    let mut threads: Vec<usize> = processes.iter().map(|process| process.threads.len()).collect();
    threads.sort_unstable();
    assert_eq!(threads, [1, 2]);
    for process in &processes {
        for (place, event) in [Event::Cycles, Event::Instructions].into_iter().enumerate() {
            let slices = process.threads.values().flatten();
            let sum: u64 = slices.map(|reading| reading.counts[place]).sum();
            assert_eq!(sum, exact(&finished, process.pid, event), "{}", event.name());
        }
    }
}

#[test]
fn a_killed_program_leaves_whole_slices() {
    let source = format!(
        "#include <signal.h>\n#include <unistd.h>\n{WORK}
        int main(void) {{ work(1, 30); kill(getpid(), SIGKILL); return 0; }}"
    );
    let (finished, processes) = run(&source, &["-O1"], &ask("killed", 5000));
    let process = &processes[0];
    assert!(process.ended.is_empty() && finished.status.code().is_none());
    let readings = &process.threads[&0];
    assert!(readings.len() > 100);
    let whole = |reading: &pmu::Reading| reading.counts[0] >= OPENING_CYCLES_MIN;
    assert!(readings.iter().all(whole));
    let cycles: u64 = readings.iter().map(|reading| reading.counts[0]).sum();
    assert!(cycles <= exact(&finished, process.pid, Event::Cycles) + 1_000_000);
}
