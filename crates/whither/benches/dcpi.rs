//! How long it takes to look into large programs, beside `perf annotate` on the same samples.
//!
//! `cargo bench -p whither --bench dcpi [-- PREPROCESSED.i | suite]` prints four figures, or the last
//! alone, with the goals that they are read against. Nothing is judged here: the figures are the machine's.
//!
//! ```text
//! calc       the hottest procedure of cc1, its file not in memory
//! annotate   every sampled procedure of cc1: whither, perf, whither again
//! memory     the most that any command had on cc1
//! suite      every procedure of the suite's binaries: flow, schedule, frequencies
//! ```

#![allow(clippy::unwrap_used, clippy::panic, reason = "a bench may end here")]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use analyse::{Examiner, Request, Sampled, Samples};
use image::{Binary, Callees};
use model::machine::Machine;

/// perf and our own analysis of whole binaries are stopped after this long: by then the answer is
/// known.
const PATIENCE: Duration = Duration::from_secs(150);
/// How often each of ours runs.
const RUNS: usize = 5;

fn main() {
    if std::env::args().all(|word| word != "suite") {
        beside_cc1();
    }
    suite();
}

fn beside_cc1() {
    let Some(cc1) = cc1() else {
        println!("cc1: there is none (gcc -print-prog-name=cc1); the rest is skipped");
        return;
    };
    if Command::new("perf").arg("--version").output().is_err() {
        println!("perf: there is none; the rest is skipped");
        return;
    }
    let folder = std::env::temp_dir().join(format!("whither-bench-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let asked = std::env::args().skip(1).find(|word| !word.starts_with('-')).map(PathBuf::from);
    let source = asked.or_else(preprocessed).unwrap_or_else(|| made_source(&folder));
    record(&folder, &cc1, &source);
    beside_perf(&folder, &cc1);
    std::fs::remove_dir_all(&folder).unwrap();
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The programs that the suite's commands name, each once.
fn binaries() -> Vec<PathBuf> {
    let mut found = Vec::new();
    let files = std::fs::read_dir(root().join("suite/programs")).unwrap();
    let mut files: Vec<PathBuf> = files.filter_map(|file| Some(file.ok()?.path())).collect();
    files.sort();
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap_or_default();
        let command = text.lines().find_map(|line| line.strip_prefix("command = [\""));
        let Some(word) = command.and_then(|rest| rest.split('"').next()) else { continue };
        let name = file.file_stem().unwrap_or_default();
        let places = [
            PathBuf::from(word),
            root().join("target/suite/programs").join(name).join(word),
            Path::new("/usr/bin").join(word),
            Path::new("/usr/games").join(word),
        ];
        let place = places.into_iter().find(|place| place.is_file());
        found.extend(place.and_then(|place| place.canonicalize().ok()));
    }
    found.sort();
    found.dedup();
    found
}

/// Every procedure of every binary, with a sample at each of its blocks, on two cores.
fn suite() {
    let binaries = binaries();
    let machine = Machine::named("zen4").unwrap();
    let began = Instant::now();
    let (mut done, mut all) = (Done::default(), 0);
    for path in &binaries {
        let bytes = std::fs::read(path).unwrap();
        let Ok(binary) = Binary::parse(&bytes) else { continue };
        let procedures: Vec<&image::Procedure> = binary.procedures().iter().collect();
        all += procedures.len();
        let next = AtomicUsize::new(0);
        let work = || {
            let callees = Callees::new(&binary, &bytes);
            let mut examiner = Examiner::new(&machine);
            let mut done = Done::default();
            while began.elapsed() < PATIENCE {
                let place = next.fetch_add(1, Ordering::Relaxed);
                let Some(procedure) = procedures.get(place) else { break };
                done.add(analysed(&mut examiner, &machine, &callees, procedure));
            }
            done
        };
        let parts: Vec<Done> = std::thread::scope(|scope| {
            let workers: Vec<_> = (0..2).map(|_| scope.spawn(work)).collect();
            workers.into_iter().map(|worker| worker.join().unwrap()).collect()
        });
        parts.into_iter().for_each(|part| done.add(Some(part)));
    }
    println!(
        "suite     {} of {all} procedures of {} binaries, {} instructions analysed: {:.1} s (goal: \
         all in at most 10 s)",
        done.procedures,
        binaries.len(),
        done.instructions,
        began.elapsed().as_secs_f64()
    );
}

/// What was analysed.
#[derive(Default)]
struct Done {
    procedures: usize,
    instructions: usize,
}

impl Done {
    fn add(&mut self, more: Option<Done>) {
        let more = more.unwrap_or_default();
        self.procedures += more.procedures;
        self.instructions += more.instructions;
    }
}

fn analysed(
    examiner: &mut Examiner,
    machine: &Machine,
    callees: &Callees<'_>,
    procedure: &image::Procedure,
) -> Option<Done> {
    let (graph, parts) = callees.flow_and_parts_of(procedure)?;
    let first = |block: &image::Block| Some((graph.steps.get(block.first)?.address, 1));
    let at: BTreeMap<u64, u64> = graph.blocks.iter().filter_map(first).collect();
    let samples = [Samples { event: Sampled::Cycles, period: 1000.0, is_precise: false, at }];
    let report = examiner.examine(&Request {
        graph: &graph,
        parts: &parts,
        machine,
        samples: &samples,
        branches: None,
        edge_samples: None,
        exact: None,
        all_samples: 1,
    });
    Some(Done { procedures: 1, instructions: report.instructions.len() })
}

fn cc1() -> Option<PathBuf> {
    let output = Command::new("gcc").arg("-print-prog-name=cc1").output().ok()?;
    let path = PathBuf::from(String::from_utf8(output.stdout).ok()?.trim());
    path.is_absolute().then_some(path)
}

/// The suite's own input, where it has been made.
fn preprocessed() -> Option<PathBuf> {
    let folder = root().join("target/suite/programs/cc1");
    ["full.i", "standard.i"].iter().map(|name| folder.join(name)).find(|path| path.is_file())
}

/// A few thousand procedures with loops, branches and tables: enough to keep every pass busy.
fn made_source(folder: &Path) -> PathBuf {
    let mut text = String::new();
    for k in 0..3000 {
        let _ = writeln!(
            text,
            "int f{k}(int *a, int n) {{ int s = {k}; for (int i = 0; i < n; i++) {{ switch \
             (a[i] & 7) {{ case 0: s += a[i]; break; case 1: s ^= i; break; case 2: s *= 3; break; \
             case 3: s -= a[n - i - 1]; break; case 5: a[i] = s; break; default: s += {k}; }} }} \
             return s; }}"
        );
    }
    let path = folder.join("made.i");
    std::fs::write(&path, text).unwrap();
    path
}

fn record(folder: &Path, cc1: &Path, source: &Path) {
    let data = folder.join("perf.data");
    let recorded = Command::new("perf")
        .args(["record", "-q", "-F", "997", "-o"])
        .arg(&data)
        .arg(cc1)
        .args(["-quiet", "-fpreprocessed", "-O2", "-o", "/dev/null"])
        .arg(source)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .unwrap();
    assert!(recorded.success(), "perf record failed");
    whither(folder, &["import", data.to_str().unwrap()]);
}

/// What a command took.
#[derive(Clone, Copy)]
struct Took {
    wall: Duration,
    peak_kib: u64,
}

/// Runs a command to its end, or stops it when patience is over.
fn timed(command: &mut Command) -> (Took, bool) {
    let began = Instant::now();
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let mut peak_kib = 0;
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return (Took { wall: began.elapsed(), peak_kib }, status.success());
        }
        if began.elapsed() > PATIENCE {
            child.kill().unwrap();
            child.wait().unwrap();
            return (Took { wall: began.elapsed(), peak_kib }, false);
        }
        peak_kib = peak(child.id()).unwrap_or(0).max(peak_kib);
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// The most memory that a process had so far.
fn peak(pid: u32) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().trim_end_matches(" kB").parse().ok()
}

fn whither(folder: &Path, arguments: &[&str]) -> Took {
    let mut command = Command::new(env!("CARGO_BIN_EXE_whither"));
    let (took, is_well) = timed(command.args(arguments).env("WHITHER_DB", folder.join("db")));
    assert!(is_well, "whither {arguments:?} failed");
    took
}

fn median(mut times: Vec<f64>) -> (f64, f64, f64) {
    times.sort_by(f64::total_cmp);
    (times[times.len() / 2], times[0], times[times.len() - 1])
}

/// Lets go of a file's pages, as far as nobody has them mapped.
fn forget(path: &Path) {
    let from = format!("if={}", path.display());
    let _ = Command::new("dd").args([&from, "iflag=nocache", "count=0"]).output();
}

fn sampled_procedures(folder: &Path) -> usize {
    let output = Command::new(env!("CARGO_BIN_EXE_whither"))
        .args(["--json", "prof", "by", "procedure", "--image", "cc1"])
        .env("WHITHER_DB", folder.join("db"))
        .output()
        .unwrap();
    let view: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    view["rows"].as_array().map_or(0, Vec::len)
}

fn beside_perf(folder: &Path, cc1: &Path) {
    let seconds = |took: &Took| took.wall.as_secs_f64();
    let calc: Vec<Took> = (0..RUNS)
        .map(|_| {
            forget(cc1);
            whither(folder, &["calc", "--image", "cc1"])
        })
        .collect();
    let (middle, least, most) = median(calc.iter().map(seconds).collect());
    println!(
        "calc      the hottest procedure of cc1, cold: {middle:.2} s, {least:.2} to {most:.2} over \
         {RUNS} (goal: at most 1 s)"
    );
    let annotate = || whither(folder, &["annotate", "--all", "--image", "cc1"]);
    let mut ours: Vec<Took> = (0..RUNS / 2 + 1).map(|_| annotate()).collect();
    let mut perf = Command::new("perf");
    perf.args(["annotate", "--stdio", "-q", "--dsos", "cc1", "-i"]).arg(folder.join("perf.data"));
    let (theirs, is_ended) = timed(&mut perf);
    ours.extend((0..RUNS / 2).map(|_| annotate()));
    let (middle, least, most) = median(ours.iter().map(seconds).collect());
    let (how, at_least) = if is_ended { ("took", "") } else { ("was stopped after", "at least ") };
    println!(
        "annotate  {} sampled procedures of cc1: {middle:.2} s, {least:.2} to {most:.2} over \
         {RUNS}; perf annotate --stdio {how} {:.1} s: {at_least}{:.1} times (goal: at least 10)",
        sampled_procedures(folder),
        seconds(&theirs),
        seconds(&theirs) / middle
    );
    let summary = whither(folder, &["summary", "--image", "cc1"]);
    let peaks = calc.iter().chain(&ours).chain([&summary]).map(|took| took.peak_kib);
    println!(
        "memory    the most of calc, annotate --all and summary on cc1: {} MB (goal: at most 500)",
        peaks.max().unwrap_or(0) * 1024 / 1_000_000
    );
}
