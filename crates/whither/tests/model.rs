//! `whither model` on real programs: closed forms and identities, exact.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may end here")]

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Output};

use serde_json::Value;

fn whither(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_whither")).args(arguments).output().unwrap()
}

/// Whether there is an engine: our own, or qemu-user with plugins.
fn can_model() -> bool {
    let doctor: Value = serde_json::from_slice(&whither(&["doctor", "--json"]).stdout).unwrap();
    let engine = doctor["abilities"].as_array().unwrap().iter().find(|a| a["key"] == "engine");
    let engine = engine.unwrap();
    if engine["state"] != "works" {
        eprintln!("skipped: {}", engine["why"]);
    }
    engine["state"] == "works"
}

fn modelled(arguments: &[&str]) -> Value {
    modelled_as(&["--full"], arguments)
}

fn modelled_as(options: &[&str], arguments: &[&str]) -> Value {
    let mut all = vec!["model", "--json", "--machine", "zen4", "--pin"];
    all.extend(options);
    all.push("--");
    all.extend(arguments);
    let output = whither(&all);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    serde_json::from_str(text.lines().last().unwrap_or_default())
        .unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// A folder of this test's own, gone when dropped.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path =
            std::env::temp_dir().join(format!("whither-model-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    /// Compiles or assembles; none where there is no compiler.
    fn program(&self, source: &str, suffix: &str, flags: &[&str]) -> Option<String> {
        let (input, program) = (self.0.join(format!("program.{suffix}")), self.0.join("program"));
        std::fs::write(&input, source).unwrap();
        let built =
            Command::new("cc").arg("-o").arg(&program).arg(&input).args(flags).status().ok();
        let Some(built) = built else {
            eprintln!("skipped: there is no C compiler");
            return None;
        };
        assert!(built.success());
        Some(program.to_str().unwrap().to_owned())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn sum(rows: &Value, key: &str) -> u64 {
    rows.as_array().unwrap().iter().map(|row| row[key].as_u64().unwrap()).sum()
}

fn count(report: &Value, event: &str) -> u64 {
    let counters = report["counters"].as_array().unwrap();
    counters.iter().find(|row| row["event"] == event).unwrap()["count"].as_u64().unwrap()
}

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
fn warming_alone_times_nothing_and_is_no_failure() {
    if can_model() {
        let output = whither(&["model", "--core", "warm", "--", "true"]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{said}");
        assert!(said.contains("not counted: warming alone counts nothing"), "{said}");
        let report = modelled_as(&["--core", "warm"], &["true"]);
        let uncounted = |row: &Value, keys: &[&str]| {
            let why = "warming alone counts nothing";
            keys.iter().for_each(|key| assert_eq!(row[key]["not_counted"], why, "{key}: {row}"));
        };
        uncounted(&report["run"], &["instructions", "cycles", "cpi", "clock_s"]);
        uncounted(&report["processes"][0], &["threads", "instructions", "cycles"]);
        let counters = report["counters"].as_array().unwrap();
        counters.iter().for_each(|row| uncounted(row, &["count", "per_thousand"]));
        assert!(!counters.is_empty());
    }
}

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

/// What a refused program gets: its status and the one sentence.
fn refused(program: &str) -> (Option<i32>, String) {
    refusal(&["--machine", "zen4", "--", program], None)
}

fn refusal(arguments: &[&str], path: Option<&str>) -> (Option<i32>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_whither"));
    command.arg("model").args(arguments);
    if let Some(path) = path {
        command.env("PATH", path);
    }
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(output.stdout.is_empty());
    (output.status.code(), said)
}

#[test]
fn what_cannot_be_modelled_gets_one_sentence_and_the_status_that_env_gives() {
    if !can_model() {
        return;
    }
    let folder = Folder::new("refused");
    let put = |name: &str, bytes: &[u8]| {
        let path = folder.0.join(name);
        std::fs::write(&path, bytes).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        path.to_str().unwrap().to_owned()
    };
    // The start of an ELF header: class, byte order, version, and at 18 the processor.
    let elf = |class: u8, processor: u8| {
        let mut bytes = vec![0x7f, b'E', b'L', b'F', class, 1, 1];
        bytes.resize(18, 0);
        bytes.push(processor);
        bytes.resize(200, 0);
        bytes
    };
    let cases: [(&str, Vec<u8>, i32, &str); 5] = [
        ("text", b"neither\n".to_vec(), 126, "neither an ELF executable nor a script"),
        ("elf32", elf(1, 3), 126, "is a 32-bit program"),
        ("arm64", elf(2, 183), 126, "ELF machine 183"),
        ("cut", b"\x7fELF\x02".to_vec(), 126, "damaged ELF file"),
        ("script", b"#!/no/such/interpreter\n".to_vec(), 127, "/no/such/interpreter"),
    ];
    for (name, bytes, status, words) in cases {
        let (code, said) = refused(&put(name, &bytes));
        assert_eq!(code, Some(status), "{name}: {said}");
        assert!(said.contains(words), "{name}: {said}");
    }
    let (code, said) = refused("/no/such/program");
    assert_eq!((code, said.contains("no such program")), (Some(127), true), "{said}");
}

#[test]
fn who_asks_for_qemu_is_told_what_is_wrong_with_it() {
    let folder = Folder::new("qemu");
    let path = folder.0.to_str().unwrap();
    let without =
        || refusal(&["--machine", "zen4", "--engine", "qemu", "--", "/bin/true"], Some(path));
    let (code, said) = without();
    assert_eq!((code, said.contains("not installed")), (Some(125), true), "{said}");
    let qemu = folder.0.join("qemu-x86_64");
    std::fs::write(&qemu, "#!/bin/sh\necho usage\nexit 1\n").unwrap();
    std::fs::set_permissions(&qemu, std::fs::Permissions::from_mode(0o755)).unwrap();
    let (code, said) = without();
    assert_eq!((code, said.contains("without plugins")), (Some(125), true), "{said}");
}

#[test]
fn a_killed_program_keeps_what_was_counted() {
    let folder = Folder::new("killed");
    let source = "#include <signal.h>\n#include <unistd.h>\nint main(void) {\n\
        volatile long x = 0; for (long i = 0; i < 1000000; i++) x += i;\n\
        kill(getpid(), SIGKILL); return 0; }\n";
    let Some(program) = folder.program(source, "c", &["-O1"]).filter(|_| can_model()) else {
        return;
    };
    let output = whither(&["model", "--json", "--", &program]);
    assert_eq!(output.status.code(), Some(128 + 9));
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let report: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    // The loop alone is four million instructions and more; at most 65,536 may be missing.
    assert!(report["run"]["instructions"].as_u64().unwrap() > 3_900_000, "{text}");
}

#[test]
fn a_short_program_that_kills_itself_is_counted_and_its_end_confessed() {
    let folder = Folder::new("suicide");
    if !can_model() {
        return;
    }
    // A thousand turns of two instructions, then kill(getpid(), SIGKILL).
    let source = ".globl _start\n_start: mov $1000, %ecx\n1: dec %ecx\n jnz 1b\n\
        mov $39, %eax\n syscall\n mov %eax, %edi\n mov $9, %esi\n mov $62, %eax\n syscall\n";
    let Some(program) = folder.program(source, "s", &["-nostdlib", "-static"]) else { return };
    let report = modelled(&[&program]);
    assert_eq!(report["run"]["instructions"], 2000 + 7);
    let notes = report["notes"].as_array().unwrap();
    assert!(notes.iter().any(|note| note.as_str().unwrap().starts_with("Signal 9 ")), "{notes:?}");
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
fn what_cannot_be_modelled_gets_one_sentence() {
    let cases: [(&[&str], i32, &str); 5] = [
        (&["model", "--machine", "zen44", "true"], 125, "no such machine"),
        (&["model", "--ideal", "dmis", "true"], 125, "did you mean 'dmiss'?"),
        (&["model", "--machine", "/no/such.toml", "true"], 125, "/no/such.toml"),
        (&["model", "no-such-program-here"], 127, "no-such-program-here"),
        (&["model", "/etc/passwd"], 126, "/etc/passwd"),
    ];
    for (arguments, status, words) in cases {
        if status != 125 && !can_model() {
            continue;
        }
        let output = whither(arguments);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(status), "{arguments:?}: {said}");
        assert!(said.contains(words) && said.lines().count() == 1, "{arguments:?}: {said}");
    }
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

#[test]
fn a_report_says_what_was_made_perfect_and_that_so_little_was_timed_whole() {
    if !can_model() {
        return;
    }
    let core = |arguments: &[&str]| {
        let all = [&["model", "--json"], arguments, &["--", "true"]].concat();
        let said = String::from_utf8_lossy(&whither(&all).stderr).into_owned();
        let report: Value = serde_json::from_str(said.lines().last().unwrap()).unwrap();
        report["run"]["core"].as_str().unwrap().to_owned()
    };
    assert!(core(&["--ideal", "win,dmiss"]).ends_with("; made perfect: dmiss, win"));
    assert!(core(&["--mode", "single"]).ends_with("; one instruction a group"));
    assert!(core(&[]).contains("every instruction timed"), "{}", core(&[]));
}

#[test]
fn a_sampled_report_adds_up_and_says_how_sure_it_is_of_every_cause() {
    let folder = Folder::new("sampled");
    // Two parts with rates of their own, so that windows and total are estimated apart.
    let source = "static volatile long x; static long big[1 << 20];\n\
        int main(void) { unsigned long at = 1, sum = 0;\n\
          for (long i = 0; i < 3000000; i++) x += i;\n\
          for (long i = 0; i < 2000000; i++) { at = at * 6364136223846793005UL + 1;\n\
            sum += big[at >> 44]++; } return (int)(sum & 1); }\n";
    let Some(program) = folder.program(source, "c", &["-O1"]).filter(|_| can_model()) else {
        return;
    };
    let output = whither(&["model", "--json", "--machine", "zen4", "--pin", "--", &program]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let report: Value = serde_json::from_str(said.lines().last().unwrap()).unwrap();
    let cycles = report["run"]["cycles"]["value"].as_f64().unwrap();
    for (table, least) in [("images", 0.999), ("procedures", 0.999)] {
        let rows = report[table].as_array().unwrap();
        let shares: f64 = rows.iter().map(|row| row["share"].as_f64().unwrap()).sum();
        assert!((least..1.001).contains(&shares), "{table}: {shares}");
        let sum = sum(&report[table], "cycles") as f64;
        assert!((sum / cycles - 1.0).abs() < 0.001, "{table}: {sum} of {cycles}");
    }
    let stack = report["cpi_stack"].as_array().unwrap();
    let value = |row: &Value| row["cycles"]["value"].as_f64().or(row["cycles"].as_f64()).unwrap();
    // Each cause is estimated for itself: the sum need not be the total, but is as sure as that.
    let all: f64 = stack.iter().map(value).sum();
    let side = |name: &str| report["run"]["cycles"][name].as_f64().unwrap();
    assert!((side("low")..side("high")).contains(&all), "{all} of {cycles}");
    assert!(
        stack[0]["cycles"]["high"].as_f64() > stack[0]["cycles"]["value"].as_f64(),
        "{stack:?}"
    );
}

#[test]
fn a_program_with_avx_512_gets_its_sentence_from_whatever_models_it() {
    let folder = Folder::new("avx512");
    // vpxord zmm0, zmm0, zmm0, after enough turns for a sample.
    let source = ".globl _start\n_start: mov $100000, %ecx\n1: dec %ecx\n jnz 1b\n\
        .byte 0x62, 0xf1, 0x7d, 0x48, 0xef, 0xc0\n\
        mov $60, %eax\n xor %edi, %edi\n syscall\n";
    let flags = ["-nostdlib", "-static"];
    let Some(program) = folder.program(source, "s", &flags).filter(|_| can_model()) else { return };
    let (database, trace) = (folder.0.join("db"), folder.0.join("trace"));
    let (database, trace) = (database.to_str().unwrap(), trace.to_str().unwrap());
    let commands: [&[&str]; 4] = [
        &["model", "--machine", "zen4", "--", &program],
        &["model", "--record", trace, "--", &program],
        &["record", "--machine", "zen4", "-o", database, "--", &program],
        &["stat", "--machine", "zen4", "--", &program],
    ];
    for command in commands {
        let output = whither(command);
        let said = String::from_utf8_lossy(&output.stderr).replace("\n    ", " ");
        assert_eq!(output.status.code(), Some(128 + 4), "{command:?}: {said}");
        assert!(said.contains("that the tracer does not have, such as AVX-512"), "{said}");
    }
}
