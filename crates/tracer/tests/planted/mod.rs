//! Programs whose counts are known in advance, and the engines to run them with.

#![allow(clippy::unwrap_used, reason = "a failure here is the test failing")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

use tracer::counts::{ProcessCounts, counts};
use tracer::launch::{EngineChoice, Engines, Finished, Launch, can_run_natively};

/// The engines, built once.
pub(crate) fn engines() -> &'static Engines<'static> {
    static ENGINES: OnceLock<Engines<'static>> = OnceLock::new();
    ENGINES.get_or_init(|| {
        let built = tracer_embed::build(Path::new(env!("CARGO_TARGET_TMPDIR"))).unwrap();
        let read = |path| fs::read(path).unwrap().leak();
        Engines { plugin: read(built.plugin), native: read(built.native) }
    })
}

/// Compiles a program; `options` come before the source.
pub(crate) fn compile(name: &str, source: &str, options: &[&str]) -> PathBuf {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Relaxed);
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{}", std::process::id()));
    fs::create_dir_all(&dir).unwrap();
    let (file, program) =
        (dir.join(format!("{number}-{name}")), dir.join(format!("{number}-{name}.out")));
    fs::write(&file, source).unwrap();
    let gcc =
        Command::new("gcc").args(options).arg(&file).arg("-o").arg(&program).output().unwrap();
    assert!(gcc.status.success(), "{}", String::from_utf8_lossy(&gcc.stderr));
    program
}

/// Whether this machine's compiler takes these options.
#[allow(dead_code, reason = "not every test binary needs it")]
pub(crate) fn compiles(source: &str, options: &[&str]) -> bool {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("tried-{}", std::process::id()));
    fs::create_dir_all(&dir).unwrap();
    let file = dir.join("tried.c");
    fs::write(&file, source).unwrap();
    let mut gcc = Command::new("gcc");
    let is_done = gcc
        .args(options)
        .arg(&file)
        .arg("-o")
        .arg(dir.join("tried"))
        .output()
        .unwrap()
        .status
        .success();
    fs::remove_dir_all(&dir).unwrap();
    is_done
}

/// Assembles a program without any library.
#[allow(dead_code, reason = "not every test binary needs it")]
pub(crate) fn assemble(source: &str) -> PathBuf {
    compile("program.S", source, &["-nostdlib", "-static"])
}

/// Runs a program and counts it.
#[allow(dead_code, reason = "not every test binary counts")]
pub(crate) fn count(launch: &Launch) -> (Finished, Vec<ProcessCounts>) {
    let finished = launch.run(engines()).unwrap();
    let counts = counts(&finished.processes);
    (finished, counts)
}

/// How often the instruction with these first bytes ran, over all processes given.
#[allow(dead_code, reason = "not every test binary needs it")]
pub(crate) fn ran(counts: &[ProcessCounts], bytes: &[u8]) -> u64 {
    let spots = counts.iter().flat_map(ProcessCounts::instructions);
    spots.filter(|(spot, _)| spot.bytes.starts_with(bytes)).map(|(_, count)| count).sum()
}

/// Compiles a program, runs it alone and under the engine of our own, and gives what was counted. It says
/// by its exit status where it went wrong; alone first, so that a wrong check fails too.
#[allow(dead_code, reason = "not every test binary needs it")]
pub(crate) fn unharmed(name: &str, source: &str, options: &[&str]) -> Option<Vec<ProcessCounts>> {
    if !can_run_natively() {
        eprintln!("skipped: this machine cannot run the native engine");
        return None;
    }
    let program = compile(name, source, options);
    let alone = Command::new(&program).status().unwrap();
    assert_eq!(alone.code(), Some(0), "{name} alone");
    let engine = EngineChoice::Native;
    let (finished, counts) = count(&Launch { engine, ..Launch::new(&program) });
    assert_eq!(finished.status.code(), Some(0), "{name} traced");
    Some(counts)
}
