//! How long it takes to look into a large program, beside `perf annotate` on the same samples.
//!
//! `cargo bench -p whither --bench dcpi [-- PREPROCESSED.i]` records cc1 with perf, imports the
//! recording, and prints: `calc` of the hottest procedure, `annotate --all`, `summary`, each with its
//! peak of memory; then perf's time. Nothing is judged here: the figures are the machine's.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a bench may end here")]

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// perf is stopped after this many times what whither took: by then the answer is known.
const PATIENCE: f64 = 40.0;

fn main() {
    let Some(cc1) = cc1() else {
        println!("skipped: there is no cc1 (gcc -print-prog-name=cc1)");
        return;
    };
    if Command::new("perf").arg("--version").output().is_err() {
        println!("skipped: there is no perf");
        return;
    }
    let folder = std::env::temp_dir().join(format!("whither-bench-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let asked = std::env::args().skip(1).find(|word| !word.starts_with('-')).map(PathBuf::from);
    let source = asked.unwrap_or_else(|| made_source(&folder));
    record(&folder, &cc1, &source);
    let calc = whither(&folder, &["calc", "--image", "cc1"]);
    let annotate = whither(&folder, &["annotate", "--all", "--image", "cc1"]);
    whither(&folder, &["summary", "--image", "cc1"]);
    println!("calc of the hottest procedure: {:.2} s", calc.as_secs_f64());
    beside_perf(&folder, annotate);
    std::fs::remove_dir_all(&folder).unwrap();
}

fn cc1() -> Option<PathBuf> {
    let output = Command::new("gcc").arg("-print-prog-name=cc1").output().ok()?;
    let path = PathBuf::from(String::from_utf8(output.stdout).ok()?.trim());
    path.is_absolute().then_some(path)
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
        .args(["-quiet", "-O2", "-o", "/dev/null"])
        .arg(source)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .unwrap();
    assert!(recorded.success(), "perf record failed");
    whither(folder, &["import", data.to_str().unwrap()]);
}

/// Runs whither and prints how long it took and the most memory that it had.
fn whither(folder: &Path, arguments: &[&str]) -> Duration {
    let began = Instant::now();
    let mut child = Command::new(env!("CARGO_BIN_EXE_whither"))
        .args(arguments)
        .env("WHITHER_DB", folder.join("db"))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let pid = child.id();
    let mut peak_kib = 0;
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        peak_kib = peak(pid).unwrap_or(0).max(peak_kib);
        std::thread::sleep(Duration::from_millis(5));
    };
    let took = began.elapsed();
    let mib = peak_kib / 1024;
    println!(
        "whither {}: {:.2} s, {mib} MiB, {status}",
        arguments.first().unwrap_or(&""),
        took.as_secs_f64()
    );
    took
}

/// The most memory that a process had so far.
fn peak(pid: u32) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().trim_end_matches(" kB").parse().ok()
}

fn beside_perf(folder: &Path, ours: Duration) {
    let began = Instant::now();
    let mut perf = Command::new("perf")
        .args(["annotate", "--stdio", "-q", "-i"])
        .arg(folder.join("perf.data"))
        .args(["--dsos", "cc1"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let limit = ours.mul_f64(PATIENCE).max(Duration::from_secs(20));
    let ended = loop {
        if perf.try_wait().unwrap().is_some() {
            break true;
        }
        if began.elapsed() > limit {
            perf.kill().unwrap();
            perf.wait().unwrap();
            break false;
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    let ratio = began.elapsed().as_secs_f64() / ours.as_secs_f64();
    let (how, least) = if ended { ("took", "") } else { ("was stopped after", "at least ") };
    println!(
        "perf annotate --stdio {how} {:.1} s: {least}{ratio:.1} times whither annotate --all",
        began.elapsed().as_secs_f64()
    );
}
