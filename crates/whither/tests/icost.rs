//! `whither icost` on real programs: a planted case end to end, identities, and bad input.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may end here")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

fn whither(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_whither")).args(arguments).output().unwrap()
}

/// The one line of JSON, wherever it went.
fn json(arguments: &[&str]) -> Value {
    let output = whither(arguments);
    let text = String::from_utf8_lossy(if output.stdout.is_empty() {
        &output.stderr
    } else {
        &output.stdout
    })
    .into_owned();
    serde_json::from_str(text.lines().last().unwrap_or_default())
        .unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn trace(name: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../suite/traces");
    root.join(format!("{name}.trace")).to_str().unwrap().to_owned()
}

fn refusal(arguments: &[&str]) -> String {
    let output = whither(arguments);
    assert!(!output.status.success());
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_breakdown_adds_up_and_every_cost_has_its_interval() {
    let asked = ["icost", "--json", "--fast", "--window", "2000", "--machine", "icost-table6"];
    let report = json(&[&asked[..], &["--replay", &trace("art")]].concat());
    let parts = report["breakdown"].as_array().unwrap();
    let sum: f64 = parts.iter().map(|part| part["share"].as_f64().unwrap()).sum();
    assert!((sum - 1.0).abs() < 1e-9, "{sum}");
    assert_eq!(report["costs"].as_array().unwrap().len(), 8);
    assert_eq!(report["interactions"].as_array().unwrap().len(), 28);
    for cost in report["costs"].as_array().unwrap() {
        let (low, high) = (cost["cost"]["low"].as_f64(), cost["cost"]["high"].as_f64());
        assert!(low.unwrap() <= high.unwrap(), "{cost}");
    }
    assert!((report["run"]["graph"].as_f64().unwrap() - 1.0).abs() < 0.01);
    assert_eq!(report["run"]["ended"], "replayed");
}

#[test]
fn fair_shares_and_what_is_left_are_all_of_the_time() {
    let machine = ["icost", "--json", "--fast", "--machine", "icost-table6", "--powerset"];
    let trace = trace("applu");
    let report = json(
        &[
            &machine[..],
            &["--window", "2000", "--categories", "dmiss,win,bmisp", "--replay", &trace],
        ]
        .concat(),
    );
    let costs = report["costs"].as_array().unwrap();
    let fair: f64 = costs.iter().map(|row| row["fair"]["value"].as_f64().unwrap()).sum();
    let left = report["run"]["left"]["value"].as_f64().unwrap();
    assert!((fair + left - 1.0).abs() < 1e-9, "{fair} {left}");
}

#[test]
fn bad_input_gets_one_sentence() {
    let art = trace("art");
    let words = refusal(&["icost", "--categories", "dmis", "--replay", &art]);
    assert!(words.contains("did you mean 'dmiss'?"), "{words}");
    let all = "dl1,win,bw,bmisp,dmiss,shalu,lgalu,imiss,l2,l3,mem,dtlb";
    let words = refusal(&["icost", "--powerset", "--categories", all, "--replay", &art]);
    assert!(words.contains("4096 evaluations") && words.contains("16 times"), "{words}");
    let words = refusal(&["icost", "--machine", "alpha21164", "--replay", &art]);
    assert!(words.contains("in order"), "{words}");
    let words = refusal(&["icost", "--window", "5", "--replay", &art]);
    assert!(words.contains("from 1000"), "{words}");
    // Nine million instructions, a million a window: there is room. The other way round there is
    // none, which needs a program that is shorter.
    let words = refusal(&["icost", "--replay", "/no/such/trace"]);
    assert!(words.contains("/no/such/trace"), "{words}");
}

/// Whether there is an engine: our own, or qemu-user with plugins.
fn can_model() -> bool {
    let doctor = json(&["doctor", "--json"]);
    let engine = doctor["abilities"].as_array().unwrap().iter().find(|a| a["key"] == "engine");
    let works = engine.unwrap()["state"] == "works";
    if !works {
        eprintln!("skipped: there is no engine");
    }
    works
}

/// Two loads an iteration, each from a line of its own that no cache has, side by side; what they
/// read decides where the next iteration reads. With AHEAD both are fetched sixteen iterations
/// before they are needed: the sequence is known, since all that is read is zero. They are fetched
/// by writing to them, because the engine does not tell of prefetches; a store holds nobody up.
/// Lines are taken
/// in order so that translation stays out of it; this machine has no prefetcher.
const PLANTED: &str = r#"
#define LINES (1ul << 16)
static unsigned char a[LINES * 64], b[LINES * 64];
#define AT(array, x) (array + 64 * ((x) & (LINES - 1)))
#define FETCH(p) (*(volatile unsigned char *)(p) = 0)
int main(void) {
    unsigned long x = 1;
    for (long i = 0; i < 40000; i++) {
#ifdef AHEAD
        unsigned long later = x + 16;
        FETCH(AT(a, later));
        FETCH(AT(b, later));
#endif
        unsigned long first = *(volatile unsigned char *)AT(a, x);
        unsigned long second = *(volatile unsigned char *)AT(b, x);
        x = x + 1 + first + second;
    }
    return (int)(x == 0);
}
"#;

fn planted(flags: &[&str]) -> Option<PathBuf> {
    let name = format!("whither-icost-{}-{}", flags.len(), std::process::id());
    let program = std::env::temp_dir().join(name);
    let source = program.with_extension("c");
    std::fs::write(&source, PLANTED).unwrap();
    let mut compiler = Command::new("cc");
    compiler.args(["-O2", "-static", "-o"]).arg(&program).arg(&source).args(flags);
    let Ok(built) = compiler.status() else {
        eprintln!("skipped: there is no C compiler");
        return None;
    };
    assert!(built.success());
    std::fs::remove_file(source).unwrap();
    Some(program)
}

fn cycles(program: &Path) -> f64 {
    let model = ["model", "--json", "--full", "--machine", "icost-table6", "--"];
    let report = json(&[&model[..], &[program.to_str().unwrap()]].concat());
    report["run"]["cycles"].as_f64().unwrap()
}

#[test]
fn two_loads_that_miss_side_by_side_are_to_be_prefetched_both_and_that_gains_what_was_said() {
    if !can_model() {
        return;
    }
    let (Some(plain), Some(ahead)) = (planted(&[]), planted(&["-DAHEAD"])) else { return };
    let asked = ["icost", "--json", "--machine", "icost-table6", "--by", "instruction", "--"];
    let report = json(&[&asked[..], &[plain.to_str().unwrap()]].concat());
    let strongest = &report["interactions"][0];
    assert_eq!(strongest["kind"], "parallel", "{strongest}");
    let name = strongest["name"].as_str().unwrap();
    assert_eq!(name.matches("misses of main").count(), 2, "{name}");
    let advice = report["together"].to_string();
    assert!(advice.contains("more than the sum"), "{advice}");
    let said = strongest["cost"]["value"].as_f64().unwrap();
    let gained = 1.0 - cycles(&ahead) / cycles(&plain);
    assert!((said / gained - 1.0).abs() < 0.1, "said {said}, gained {gained}");
    for program in [plain, ahead] {
        std::fs::remove_file(program).unwrap();
    }
}

#[test]
fn a_window_longer_than_the_program_is_refused() {
    if !can_model() {
        return;
    }
    let words = refusal(&["icost", "--window", "1000000", "--", "true"]);
    assert!(words.contains("fewer than the 1000000 of a window"), "{words}");
}
