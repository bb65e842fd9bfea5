//! What must be counted, whoever counts it and however it is heard of.

use std::process::Command;

use serde_json::Value;

use crate::{Folder, can_model, count, modelled, modelled_as, sum, whither};

/// A million turns of two instructions, a load and a store each, and nothing else but the ends.
const LOOP: &str = ".globl _start\n_start: mov $1000000, %ecx\n\
    1: mov word(%rip), %rax\n mov %rax, other(%rip)\n dec %ecx\n jnz 1b\n\
    mov $60, %eax\n xor %edi, %edi\n syscall\n\
    .bss\n .balign 64\nword: .skip 64\nother: .skip 64\n";

#[test]
fn a_loop_counts_what_it_must() {
    let folder = Folder::new("loop");
    let flags = ["-nostdlib", "-static"];
    let Some(program) = folder.program(LOOP, "s", &flags).filter(|_| can_model()) else { return };
    let report = modelled(&[&program]);
    let n = 1_000_000;
    assert_eq!(report["run"]["instructions"], 4 * n + 4);
    assert_eq!((count(&report, "loads"), count(&report, "stores")), (n, n));
    assert_eq!(count(&report, "conditional-branches"), n);
    assert_eq!(count(&report, "taken-branches"), n - 1);
}

/// Twenty rounds over a million lines, more than caches hold, so that a sampled run skips most of it and
/// hears of all lines.
const ROUNDS: &str = ".globl _start\n_start: mov $20, %edx\n\
    2: lea lines(%rip), %rdi\n mov $1048576, %ecx\n\
    1: mov (%rdi), %rax\n add $64, %rdi\n dec %ecx\n jnz 1b\n dec %edx\n jnz 2b\n\
    mov $60, %eax\n xor %edi, %edi\n syscall\n\
    .bss\n .balign 64\nlines: .skip 67108864\n";

#[test]
fn a_loop_that_is_mostly_skipped_counts_what_it_must() {
    let folder = Folder::new("rounds");
    let flags = ["-nostdlib", "-static"];
    let Some(program) = folder.program(ROUNDS, "s", &flags).filter(|_| can_model()) else { return };
    let report = modelled_as(&["--error", "3%"], &[&program]);
    let (rounds, n) = (20, 1 << 20);
    assert_eq!(report["run"]["instructions"], 1 + rounds * (2 + 4 * n + 2) + 3);
    assert_eq!(count(&report, "loads"), rounds * n);
    assert_eq!(count(&report, "conditional-branches"), rounds * (n + 1));
}

#[test]
fn every_cycle_has_one_cause_and_every_instruction_one_procedure() {
    if !can_model() {
        return;
    }
    let report = modelled(&["ls", "/"]);
    let cycles = report["run"]["cycles"].as_u64().unwrap();
    assert_eq!(sum(&report["cpi_stack"], "cycles"), cycles);
    assert_eq!(sum(&report["processes"], "cycles"), cycles);
    let instructions = report["run"]["instructions"].as_u64().unwrap();
    assert_eq!(sum(&report["procedures"], "instructions"), instructions);
    // Each row of cycles is rounded.
    let rows = report["procedures"].as_array().unwrap().len() as u64;
    assert!(sum(&report["procedures"], "cycles").abs_diff(cycles) <= rows, "{report}");
}

#[test]
fn the_same_command_twice_gives_the_same_counts() {
    if !can_model() {
        return;
    }
    let counters = || modelled(&["sort", "/etc/passwd"])["counters"].clone();
    assert_eq!(counters(), counters());
}

const THREADS: &str = "#include <pthread.h>\n\
    static void *work(void *n) { volatile long x = 0; for (long i = 0; i < 100000; i++) x += i;\n\
      return (void *)x; }\n\
    int main(void) { pthread_t t[4]; for (int i = 0; i < 4; i++) pthread_create(t+i,0,work,0);\n\
      for (int i = 0; i < 4; i++) pthread_join(t[i],0); return 0; }\n";

#[test]
fn every_thread_is_accounted_for() {
    let folder = Folder::new("threads");
    let flags = ["-O1", "-pthread"];
    let Some(program) = folder.program(THREADS, "c", &flags).filter(|_| can_model()) else {
        return;
    };
    let report = modelled(&[&program]);
    assert_eq!(report["processes"][0]["threads"], 5, "{}", report["processes"]);
    let work = report["procedures"].as_array().unwrap().iter().find(|p| p["procedure"] == "work");
    // Four threads of 100,000 turns of at least four instructions.
    assert!(work.unwrap()["instructions"].as_u64().unwrap() >= 1_600_000, "{report}");
}

#[test]
fn a_compiler_is_followed_into_its_parts() {
    let folder = Folder::new("compiler");
    let source = folder.0.join("x.c");
    std::fs::write(&source, "int main(void) { return 0; }\n").unwrap();
    if !can_model() || Command::new("gcc").arg("--version").output().is_err() {
        eprintln!("skipped: there is no gcc or no engine");
        return;
    }
    let object = folder.0.join("x.o");
    let report = modelled(&["gcc", "-c", "-o", object.to_str().unwrap(), source.to_str().unwrap()]);
    assert!(object.is_file());
    let programs = report["processes"].to_string();
    assert!(programs.contains("/cc1\"") && programs.contains("as\""), "{programs}");
}

/// They show the program the same processor, so that it takes the same ways; what the kernel and the
/// engine hand it at its start differs a little.
#[test]
fn both_engines_tell_almost_the_same_instructions() {
    let with = |engine: &str| {
        // Where libraries are looked for would be: each engine puts such a variable elsewhere.
        let output = Command::new(env!("CARGO_BIN_EXE_whither"))
            .args([
                "count",
                "--json",
                "--hottest",
                "0",
                "--engine",
                engine,
                "--",
                "sort",
                "/dev/null",
            ])
            .env_remove("LD_LIBRARY_PATH")
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        if output.status.code() == Some(125) {
            eprintln!("skipped: {said}");
            return None;
        }
        let report: Value = serde_json::from_str(said.lines().last().unwrap()).unwrap();
        report["run"]["instructions"].as_u64()
    };
    let (Some(native), Some(qemu)) = (with("native"), with("qemu")) else { return };
    // Memory lies elsewhere, which an allocator notices; a routine chosen otherwise would make more.
    assert!(native > 50_000 && native.abs_diff(qemu) * 100 < native, "{native} {qemu}");
}

#[test]
fn children_that_run_a_little_before_they_become_another_leave_the_sum_counted() {
    if !can_model() {
        return;
    }
    let script = "/bin/true; /bin/true; exec /bin/true";
    let output = whither(&["model", "--json", "--machine", "zen4", "--", "sh", "-c", script]);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let report: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    // Everything is short enough to be timed whole.
    assert!(report["run"]["cycles"].as_u64().is_some_and(|cycles| cycles > 0), "{report}");
    let processes = report["processes"].as_array().unwrap();
    assert!(processes.iter().all(|process| process["cycles"].as_u64().is_some()), "{processes:?}");
    let (all, of) = (&report["run"]["instructions"], sum(&report["processes"], "instructions"));
    assert_eq!(all.as_u64(), Some(of));
}

#[test]
fn a_second_run_finds_the_same_input_and_its_output_is_dropped() {
    if !can_model() {
        return;
    }
    let script = format!(
        "printf 'b\\na\\n' | {} run --json --model --machine zen4 -- sort",
        env!("CARGO_BIN_EXE_whither")
    );
    let output = Command::new("sh").args(["-c", &script]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.stdout, b"a\nb\n", "{said}");
    assert!(said.starts_with("whither: the program runs twice"), "{said}");
    let report: Value = serde_json::from_str(said.lines().last().unwrap()).unwrap();
    assert_eq!(report["modelled"]["ended"], "exit status: 0");
    assert_eq!(sum(&report["cpi_stack"], "cycles"), report["modelled"]["cycles"].as_u64().unwrap());
}

#[test]
fn a_recorded_trace_gives_the_same_counts_without_an_engine() {
    if !can_model() {
        return;
    }
    let folder = Folder::new("trace");
    let trace = folder.0.join("sort.trace");
    let trace = trace.to_str().unwrap();
    let recorded =
        whither(&["model", "--json", "--pin", "--record", trace, "--", "sort", "/etc/passwd"]);
    assert_eq!(recorded.status.code(), Some(0));
    let said: Value = serde_json::from_slice(&recorded.stderr).unwrap();
    assert_eq!((&said["run"]["lost"], &said["run"]["processes"]), (&0.into(), &1.into()));
    let replay = ["model", "--full", "--json", "--machine", "zen4", "--replay", trace];
    let replayed = Command::new(env!("CARGO_BIN_EXE_whither"))
        .args(replay)
        .env("PATH", "/nowhere")
        .output()
        .unwrap();
    assert_eq!(replayed.status.code(), Some(0));
    let replayed: Value = serde_json::from_slice(&replayed.stdout).unwrap();
    assert_eq!(replayed["run"]["ended"], "replayed");
    let live = modelled(&["sort", "/etc/passwd"]);
    assert_eq!(replayed["counters"], live["counters"]);
    assert_eq!(replayed["procedures"], live["procedures"]);
    // Damage is survived and said.
    let bytes = std::fs::read(trace).unwrap();
    std::fs::write(trace, &bytes[..bytes.len() / 2]).unwrap();
    let cut = whither(&replay);
    assert_eq!(cut.status.code(), Some(0));
    let cut: Value = serde_json::from_slice(&cut.stdout).unwrap();
    assert!(cut["run"]["instructions"].as_u64() < live["run"]["instructions"].as_u64());
    let foreign = whither(&["model", "--replay", "/etc/passwd"]);
    assert_eq!(foreign.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&foreign.stderr).contains("is no trace that"));
}

#[test]
fn every_machine_runs_in_every_mode_on_both_cores_to_its_end() {
    if !can_model() {
        return;
    }
    let cycles = |machine: &str, core: &str, mode: &str| {
        let of = ["model", "--json", "--pin", "--machine", machine, "--core", core, "--mode", mode];
        let output = whither(&[&of[..], &["--", "true"]].concat());
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let report: Value = serde_json::from_str(said.lines().last().unwrap()).unwrap();
        assert_eq!(sum(&report["cpi_stack"], "cycles"), report["run"]["cycles"].as_u64().unwrap());
        report["run"]["cycles"].as_f64().unwrap()
    };
    for machine in model::machine::machines() {
        for mode in ["native", "single", "in-order", "in-order-superscalar"] {
            let (fast, reference) =
                (cycles(machine, "fast", mode), cycles(machine, "reference", mode));
            assert!((fast / reference - 1.0).abs() < 0.1, "{machine} {mode}: {fast} {reference}");
        }
    }
}
