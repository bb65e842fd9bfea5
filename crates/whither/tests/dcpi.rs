//! The dcpi commands as a user meets them, on samples that are known to the last one.
//!
//! A recording is made by hand: samples at chosen places of a program whose lines are known
//! (crates/image/tests/fixtures/walk.c).

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may end here")]

mod golden;
mod place;

use std::io::Read;
use std::process::Command;

use serde_json::Value;

use place::{Place, stderr, sum};

const WALK: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../image/tests/fixtures/walk");
/// (offset, samples): the loop of walk, a little of fill.
const SAMPLES: [(u64, u64); 7] =
    [(0x160, 10), (0x163, 40), (0x167, 12), (0x16a, 130), (0x16e, 50), (0x188, 3), (0x18f, 15)];

#[test]
fn annotate_shows_every_sample_at_its_instruction_and_its_line() {
    let place = Place::new(WALK);
    place.import(&SAMPLES, None);
    let view = place.json(&["annotate", "walk"]);
    assert_eq!(view["procedure"]["samples"], 242);
    assert_eq!(sum(&view["code"][0]["rows"], "samples"), 242);
    let lines = view["source"][0]["rows"].as_array().unwrap();
    assert_eq!(view["source"][0]["title"], "/src/walk.c");
    // Line 7 is the body of step, inlined at 14; line 13 is the loop itself.
    let line = |number: u64| lines.iter().find(|row| row["line"] == number).unwrap();
    assert_eq!(line(7)["samples"], 10 + 12 + 130);
    assert_eq!(line(13)["samples"], 40 + 50);
    golden::check("annotate.txt", &place.text(&["annotate", "walk"], "SOURCE"));
    // Without a name it is the hottest; all are two.
    assert_eq!(place.json(&["annotate"])["procedure"]["procedure"], "walk");
    let all = place.json(&["annotate", "--all"]);
    assert_eq!((all["code"].as_array().unwrap().len(), &all["shown"]["samples"]), (2, &260.into()));
}

#[test]
fn the_source_stands_beside_the_code_where_it_can_be_read() {
    let place = Place::new(WALK);
    place.import(&SAMPLES, None);
    let narrow = place.text(&["annotate", "walk", "--no-pager"], "ASSEMBLY");
    assert!(narrow.contains("walk.c:7 (inlined step)"), "{narrow}");
}

#[test]
fn calc_accounts_for_every_cycle() {
    let place = Place::new(WALK);
    place.import(&SAMPLES, None);
    let view = place.json(&["calc", "walk", "--machine", "zen4"]);
    let summary = view["summary"].as_array().unwrap();
    let share = |key: &str| {
        let row = summary.iter().find(|row| row["key"] == key).unwrap();
        row["share_max"].as_f64().unwrap()
    };
    let whole = share("total_stall") + share("execution") + share("sampling_error");
    assert!((whole - share("total_tallied")).abs() < 1e-9);
    assert!((share("total_tallied") - 1.0).abs() < 1e-9, "{whole}");
    let dynamic = share("subtotal_dynamic") + share("subtotal_static");
    assert!((dynamic - share("total_stall")).abs() < 1e-9);
    assert_eq!(sum(&view["code"], "samples"), 242);
    assert_eq!(sum(&view["blocks"], "samples"), 242);
    let instructions = view["code"].as_array().unwrap().len() as u64;
    assert!(sum(&view["blocks"], "instructions") <= instructions);
    let text = place.text(&["calc", "walk", "--machine", "zen4"], "INSTRUCTION");
    for words in ["*** Best-case", "*** Actual", "D-cache miss", "Total tallied", "100.0 %"] {
        assert!(text.contains(words), "{words}: {text}");
    }
    golden::check("calc.txt", &text);
}

#[test]
fn summary_weighs_procedures_by_their_samples() {
    let place = Place::new(WALK);
    place.import(&SAMPLES, None);
    let view = place.json(&["summary", "--cover", "100%", "--machine", "zen4"]);
    assert_eq!(sum(&view["procedures"], "samples"), 260);
    let rows = view["summary"].as_array().unwrap();
    let tallied = rows.iter().find(|row| row["key"] == "total_tallied").unwrap();
    assert!((tallied["share_max"].as_f64().unwrap() - 1.0).abs() < 1e-9);
    let text = place.text(&["summary", "--cover", "100%", "--machine", "zen4"], "WHERE");
    golden::check("summary.txt", &text);
}

#[test]
fn the_flow_graph_is_drawn_whole() {
    let place = Place::new(WALK);
    place.import(&SAMPLES, None);
    let view = place.json(&["cfg", "walk", "--machine", "zen4"]);
    let blocks = view["blocks"].as_array().unwrap();
    assert_eq!(sum(&view["blocks"], "samples"), 242);
    let edges = view["edges"].as_array().unwrap();
    assert!(edges.iter().any(|edge| edge["from"] == edge["to"]), "the loop leads to itself");
    golden::check("cfg.txt", &place.text(&["cfg", "walk", "--machine", "zen4"], "BLOCKS"));
    let picture = place.folder.join("walk.svg");
    place.run(&["cfg", "walk", "--machine", "zen4", "-o", picture.to_str().unwrap()]);
    let svg = std::fs::read_to_string(picture).unwrap();
    assert!(svg.starts_with("<svg") && svg.ends_with("</svg>\n"));
    assert_eq!(svg.matches("marker-end").count(), edges.len());
    assert_eq!(svg.matches("<rect").count(), 1 + blocks.len());
    let dot = place.run(&["cfg", "walk", "--machine", "zen4", "--format", "dot"]);
    assert_eq!(String::from_utf8(dot.stdout).unwrap().matches(" -> ").count(), edges.len());
}

#[test]
fn stats_has_the_papers_numbers() {
    let place = Place::new(WALK);
    for factor in [1, 2, 4] {
        let samples: Vec<(u64, u64)> = SAMPLES.iter().map(|&(at, n)| (at, n * factor)).collect();
        place.import(&samples, None);
    }
    let view = place.json(&["stats", "--least", "0%"]);
    let rows = view["procedures"].as_array().unwrap();
    let row = rows.iter().find(|row| row["procedure"] == "walk").unwrap();
    let counts = [242.0, 484.0, 968.0];
    let (sum, mean) = (1694.0, 1694.0 / 3.0);
    assert!((row["range"].as_f64().unwrap() - (968.0 - 242.0) / sum).abs() < 1e-12);
    assert_eq!((&row["min"], &row["max"], &row["sum"]), (&242.into(), &968.into(), &1694.into()));
    let deviation = (counts.iter().map(|x: &f64| (x - mean).powi(2)).sum::<f64>() / 2.0_f64).sqrt();
    assert!((row["deviation"].as_f64().unwrap() - deviation).abs() < 1e-9);
    assert!(row["chance"].as_f64().unwrap() < 1e-6);
    let one = Place::new(WALK);
    one.import(&SAMPLES, None);
    let refused = one.run(&["stats"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(stderr(&refused).contains("one epoch alone does not vary"));
}

#[test]
fn diff_ends_with_three_on_a_regression_that_is_sure() {
    let place = Place::new(WALK);
    let double: Vec<(u64, u64)> = SAMPLES.iter().map(|&(at, n)| (at, n * 2)).collect();
    place.import(&SAMPLES, None);
    place.import(&SAMPLES, None);
    place.import(&double, None);
    let same = place.run(&["diff", "1", "2", "--fail-above", "1%"]);
    assert_eq!(same.status.code(), Some(0), "{}", stderr(&same));
    let worse = place.run(&["diff", "1", "3", "--fail-above", "10%"]);
    assert_eq!(worse.status.code(), Some(3));
    let view = place.json(&["diff", "1", "3"]);
    assert_eq!(view["procedures"][0]["procedure"], "walk");
    assert_eq!(view["procedures"][0]["verdict"], "more");
    assert_eq!(view["comparison"]["ratio"]["value"], 2.0);
    // Better is no regression, and neither is what was not asked about.
    assert_eq!(place.run(&["diff", "3", "1", "--fail-above", "1%"]).status.code(), Some(0));
    assert_eq!(place.run(&["diff", "1", "3"]).status.code(), Some(0));
}

#[test]
fn folded_stacks_and_the_flame_graph_hold_every_sample() {
    let place = Place::new(WALK);
    place.import(&SAMPLES, None);
    let folded = place.run(&["export", "--format", "folded"]);
    assert_eq!(
        String::from_utf8(folded.stdout).unwrap(),
        "walk;fill 18\nwalk;walk 90\nwalk;walk;step 152\n"
    );
    let svg = place.run(&["export", "--format", "flamegraph"]);
    let svg = String::from_utf8(svg.stdout).unwrap();
    assert!(svg.contains("<title>step (152 samples, 58.46 %)</title>"), "{svg}");
}

#[test]
fn a_firefox_profile_has_tables_that_fit_each_other() {
    let place = Place::new(WALK);
    place.import(&SAMPLES, None);
    let output = place.run(&["export", "--format", "firefox"]);
    let profile: Value = serde_json::from_slice(&output.stdout).unwrap();
    let thread = &profile["threads"][0];
    assert_eq!(sum_of(&thread["samples"]["weight"]), 260);
    for table in ["samples", "stackTable", "frameTable", "funcTable", "resourceTable"] {
        let length = thread[table]["length"].as_u64().unwrap() as usize;
        for (key, column) in thread[table].as_object().unwrap() {
            let column = column.as_array();
            assert!(column.is_none_or(|column| column.len() == length), "{table}.{key}");
        }
    }
    let names = thread["stringArray"].as_array().unwrap();
    assert!(names.contains(&"step".into()) && names.contains(&"fill".into()));
}

fn sum_of(list: &Value) -> u64 {
    list.as_array().unwrap().iter().map(|value| value.as_u64().unwrap()).sum()
}

/// Reads a varint.
fn varint(bytes: &mut &[u8]) -> u64 {
    let mut value = 0;
    for shift in (0..).step_by(7) {
        let (&byte, rest) = bytes.split_first().unwrap();
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            break;
        }
    }
    value
}

/// The fields of a message: (number, number or bytes).
fn fields(mut bytes: &[u8]) -> Vec<(u64, Result<u64, &[u8]>)> {
    let mut found = Vec::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes);
        let value = match key & 7 {
            0 => Ok(varint(&mut bytes)),
            2 => {
                let length = varint(&mut bytes) as usize;
                let (value, rest) = bytes.split_at(length);
                bytes = rest;
                Err(value)
            }
            kind => panic!("kind {kind}"),
        };
        found.push((key >> 3, value));
    }
    found
}

#[test]
fn a_pprof_profile_holds_every_sample_with_inlined_lines() {
    let place = Place::new(WALK);
    place.import(&SAMPLES, None);
    let output = place.run(&["export", "--format", "pprof"]);
    let mut bytes = Vec::new();
    flate2::read::GzDecoder::new(&output.stdout[..]).read_to_end(&mut bytes).unwrap();
    let profile = fields(&bytes);
    let messages = |number: u64| {
        let of = profile.iter().filter(move |(field, _)| *field == number);
        of.map(|(_, value)| value.unwrap_err())
    };
    let values = |sample: &[u8]| {
        let packed = fields(sample).into_iter().find(|(field, _)| *field == 2).unwrap();
        varint(&mut packed.1.unwrap_err())
    };
    assert_eq!(messages(2).map(values).sum::<u64>(), 260);
    let strings: Vec<&str> = messages(6).map(|text| std::str::from_utf8(text).unwrap()).collect();
    assert_eq!(strings[0], "");
    for name in ["samples", "walk", "step", "fill", "/src/walk.c"] {
        assert!(strings.contains(&name), "{name}");
    }
    // A place in step has two lines: step's own, and the one in walk that calls it.
    let lines = |location: &[u8]| fields(location).iter().filter(|(field, _)| *field == 4).count();
    assert_eq!(messages(4).map(lines).max(), Some(2));
}

fn tool(name: &str) -> Option<String> {
    let versions = [String::new(), "-14".into(), "-15".into(), "-16".into(), "-18".into()];
    let found = versions.iter().map(|version| format!("{name}{version}")).find(|name| {
        Command::new(name).arg("--version").output().is_ok_and(|output| output.status.success())
    });
    if found.is_none() {
        eprintln!("skipped: there is no {name}");
    }
    found
}

#[test]
fn an_llvm_profile_goes_through_llvm_profdata_and_clang_builds_with_it() {
    let place = Place::new(WALK);
    place.import(&SAMPLES, None);
    let text = place.folder.join("walk.prof");
    let file = text.to_str().unwrap();
    let output = place.run(&["export", "--machine", "zen4", "-o", file]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let written = std::fs::read_to_string(&text).unwrap();
    // step is declared on line 5 and its body on 7; it is called on 14, four lines below walk.
    assert!(written.contains("\n 4: step:") && written.contains("\n  2: "), "{written}");
    let Some(profdata) = tool("llvm-profdata") else { return };
    let binary = place.folder.join("walk.profdata");
    let merged = Command::new(&profdata)
        .args(["merge", "--sample", file, "-o", binary.to_str().unwrap()])
        .output()
        .unwrap();
    assert!(merged.status.success(), "{}", stderr(&merged));
    let shown = Command::new(&profdata)
        .args(["show", "--sample", binary.to_str().unwrap()])
        .output()
        .unwrap();
    let shown = String::from_utf8(shown.stdout).unwrap();
    assert!(shown.contains("Function: walk") && shown.contains("step"), "{shown}");
    let Some(clang) = tool("clang") else { return };
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/../image/tests/fixtures/walk.c");
    let built = place.folder.join("built");
    let use_it = format!("-fprofile-sample-use={}", binary.display());
    let compiled = Command::new(clang)
        .args(["-O2", "-gmlt", "-nostdlib", "-static", "-fno-stack-protector", &use_it, "-o"])
        .arg(&built)
        .arg(source)
        .output()
        .unwrap();
    assert!(compiled.status.success(), "{}", stderr(&compiled));
    assert!(Command::new(&built).status().unwrap().success());
}

#[test]
fn pixie_counts_have_a_line_a_block() {
    let place = Place::new(WALK);
    place.import(&SAMPLES, None);
    let output = place.run(&["export", "--format", "pixie", "--machine", "zen4"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.starts_with("# image\tprocedure\toffset\tinstructions\truns\tconfidence\n"));
    let blocks =
        place.json(&["cfg", "walk", "--machine", "zen4"])["blocks"].as_array().unwrap().len();
    assert_eq!(text.lines().filter(|line| line.contains("\twalk\t")).count(), blocks);
}

#[test]
fn count_is_exact() {
    let place = Place::new(WALK);
    let output =
        place.run(&["--json", "count", "--hottest", "2", "--", place.program.to_str().unwrap()]);
    if output.status.code() == Some(125) {
        assert!(stderr(&output).to_lowercase().contains("qemu"), "{}", stderr(&output));
        eprintln!("skipped: there is no engine");
        return;
    }
    let view: Value = serde_json::from_str(stderr(&output).lines().last().unwrap()).unwrap();
    // walk: four before its loop of six, then ret; fill: one, its loop of six, two after it.
    let rows = view["procedures"].as_array().unwrap();
    let of = |name: &str| rows.iter().find(|row| row["procedure"] == name).unwrap();
    let (before, after) = (5, 1);
    assert_eq!(of("walk")["instructions"], 4000 * 6 + before + after);
    assert_eq!(of("walk")["entered"], 1);
    let blocks = view["blocks"].as_array().unwrap();
    let ran = |offset: &str| blocks.iter().find(|row| row["offset"] == offset).unwrap();
    assert_eq!((&ran("0x160")["runs"], &ran("0x160")["instructions"]), (&4000.into(), &6.into()));
    assert_eq!(ran("0x188")["runs"], 64);
    assert_eq!(
        sum(&view["procedures"], "instructions"),
        view["run"]["instructions"].as_u64().unwrap()
    );
    assert_eq!(view["run"]["taken"], 3999 + 63);
}

#[test]
fn slips_get_one_sentence_and_the_right_status() {
    let place = Place::new(WALK);
    let empty = place.run(&["annotate"]);
    assert_eq!(empty.status.code(), Some(1));
    assert!(stderr(&empty).contains("there is nothing in the database"));
    place.import(&SAMPLES, None);
    for (arguments, status, words) in [
        (&["annotate", "walc"][..], 1, "did you mean 'walk'?"),
        (&["calc", "--image", "nothing"], 1, "there are no samples of 'nothing'"),
        (&["calc", "--event", "cylces"], 1, "there are cycles"),
        (&["calc", "--machine", "zen44"], 1, "zen44"),
        (&["diff", "1", "x@y"], 2, "'y' is no epoch"),
        (&["diff", "1", "9"], 1, "matches"),
        (&["stats", "--least", "lots"], 2, "'lots' is no share"),
        (&["annotate", "walk", "--all"], 2, "cannot be used with"),
        (&["export", "--format", "llwm"], 2, "llvm"),
        (&["export", "-o", "/no/such/folder/x.folded"], 1, "cannot write"),
        (&["count"], 125, "PROGRAM"),
        (&["count", "no-such-program-here"], 127, "no-such-program-here"),
    ] {
        let output = place.run(arguments);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(status), "{arguments:?}: {said}");
        assert!(said.contains(words), "{arguments:?}: {said}");
    }
}
