//! What cannot be traced is refused in one sentence, before anything runs.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a failure here is the test failing")]

mod planted;

use std::fs;
use std::path::Path;
use std::process::Command;

use planted::{compile, engines};
use tracer::launch::target::TargetError;
use tracer::launch::{EngineChoice, Engines, Launch, LaunchError, Qemu, can_run_natively};

const NOTHING: &str = "int main(void) { return 0; }";

fn refusal(launch: &Launch) -> TargetError {
    match launch.run(engines()).unwrap_err() {
        LaunchError::Target(why) => {
            let sentence = why.to_string();
            assert!(!sentence.contains('\n') && sentence.len() < 300, "{sentence}");
            why
        }
        other => panic!("{other}"),
    }
}

#[test]
fn a_program_without_its_library_is_refused_with_the_library_s_name() {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("lib-{}", std::process::id()));
    fs::create_dir_all(&dir).unwrap();
    let (source, library) = (dir.join("lost.c"), dir.join("liblost.so"));
    fs::write(&source, "int lost(void) { return 0; }").unwrap();
    let mut gcc = Command::new("gcc");
    gcc.args(["-shared", "-fPIC"]).arg(&source).arg("-o").arg(&library);
    assert!(gcc.status().unwrap().success());
    let search = format!("-L{}", dir.display());
    let uses = "int lost(void); int main(void) { return lost(); }";
    let program = compile("uses.c", uses, &[&search, "-Wl,--no-as-needed", "-llost"]);
    fs::remove_dir_all(&dir).unwrap();
    let why = refusal(&Launch::new(program));
    assert!(why.to_string().contains("liblost.so"), "{why}");
    assert_eq!(why.exit_status(), 127);
}

#[test]
fn a_program_marked_for_avx512_is_refused() {
    let program = compile("v4.c", NOTHING, &["-Wl,-z,x86-64-v4"]);
    let why = refusal(&Launch::new(program));
    assert!(matches!(why, TargetError::NeedsAvx512(_)), "{why}");
    assert_eq!(why.exit_status(), 126);
}

#[test]
fn a_program_that_executes_avx512_dies_and_the_reason_is_known() {
    // vpaddd %zmm0,%zmm0,%zmm0, behind a compiler that need not know it.
    let source =
        "int main(void) { __asm__ volatile(\".byte 0x62,0xf1,0x7d,0x48,0xfe,0xc0\"); return 0; }";
    let finished = Launch::new(compile("avx512.c", source, &[])).run(engines()).unwrap();
    assert!(!finished.status.success());
    assert!(finished.missing_instruction().unwrap().contains("AVX-512"));
}

#[test]
fn no_such_program_no_permission_and_no_qemu_have_a_sentence_each() {
    assert!(matches!(refusal(&Launch::new("no-such-program-here")), TargetError::NotFound(_)));
    assert!(matches!(refusal(&Launch::new("/etc/passwd")), TargetError::NotExecutable(_)));
    let qemu = Qemu { path: "/no/such/qemu".into(), version: "7.2".into() };
    let engine = EngineChoice::Qemu(Some(qemu));
    let why = Launch { engine, ..Launch::new("/bin/true") }.run(engines()).unwrap_err();
    assert!(matches!(why, LaunchError::Start(_)), "{why}");
}

#[test]
fn limits_of_memory_that_a_program_sets_itself_leave_the_engine_alone() {
    if !can_run_natively() {
        return eprintln!("skipped: this machine cannot run the native engine");
    }
    for limit in ["-v 300000", "-d 100000"] {
        let words = format!("ulimit {limit}; /bin/echo goes on; exit $?");
        let arguments = ["-c", &words].map(Into::into).into();
        let launch = Launch { engine: EngineChoice::Native, arguments, ..Launch::new("sh") };
        let finished = launch.run(engines()).unwrap();
        assert_eq!(finished.status.code(), Some(0), "{limit}");
        assert_eq!(finished.processes.len(), 2, "{limit}");
    }
}

#[test]
fn a_plugin_that_is_none_is_reported_and_the_program_did_not_run() {
    let engines = Engines { plugin: b"not a shared object", native: b"" };
    let engine = EngineChoice::Qemu(None);
    let why = Launch { engine, ..Launch::new("/bin/true") }.run(&engines).unwrap_err();
    assert!(matches!(why, LaunchError::NoResults(_)), "{why}");
}

#[test]
fn an_engine_that_ends_at_once_or_is_none_is_reported() {
    let run = |native| {
        let engine = EngineChoice::Native;
        let launch = Launch { engine, ..Launch::new("/bin/true") };
        launch.run(&Engines { plugin: b"", native }).unwrap_err()
    };
    let ends = run(b"#!/bin/false\n");
    assert!(matches!(ends, LaunchError::NoResults(_)), "{ends}");
    let none = run(b"no executable");
    assert!(matches!(none, LaunchError::Start(_)), "{none}");
}
