//! What a report says of runs that were not timed whole, or did not end well.

use serde_json::Value;

use crate::{Folder, can_model, modelled, modelled_as, sum, whither};

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
