//! Images that are not what they were, not what they say, or more than anyone wrote: each gets one
//! sentence, and every sample still counts.
//!
//! The files are real: made by gcc, strip and objcopy here, and then spoilt.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may end here")]

mod place;

use std::fmt::Write as _;
use std::process::Command;

use image::{Binary, NameSource, Syntax};
use place::{Place, stderr, sum, total};
use serde_json::Value;

const WALK: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../image/tests/fixtures/walk");
const STRIPPED: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../image/tests/fixtures/walk-stripped");
/// (offset, samples) in walk and fill of the fixture.
const SAMPLES: [(u64, u64); 7] =
    [(0x160, 10), (0x163, 40), (0x167, 12), (0x16a, 130), (0x16e, 50), (0x188, 3), (0x18f, 15)];

/// The commands that need the image itself.
const LOOKING: [&[&str]; 5] = [
    &["annotate"],
    &["calc", "--machine", "zen4"],
    &["cfg", "--machine", "zen4"],
    &["summary", "--machine", "zen4"],
    &["export", "--format", "llvm", "--machine", "zen4"],
];

/// What they say where the file is well but says nothing about procedures.
const NOWHERE: [&str; 3] = [
    "no sample lies in a known procedure",
    "these samples lie in no known procedure",
    "no sampled procedure has line information",
];

fn run(tool: &str, arguments: &[&str]) {
    let output = Command::new(tool).args(arguments).output().unwrap();
    assert!(output.status.success(), "{tool} {arguments:?}: {}", stderr(&output));
}

/// Builds the place's program from source, C or assembly.
fn build(place: &Place, source: &str, kind: &str, flags: &[&str]) {
    let file = place.folder.join(format!("source.{kind}"));
    std::fs::write(&file, source).unwrap();
    let program = place.program.to_str().unwrap();
    let always = ["-o", program, file.to_str().unwrap()];
    run("gcc", &[flags, &always[..]].concat());
}

/// A program whose procedure `busy` adds `step` up.
fn busy(place: &Place, step: u32) {
    let source = format!(
        "static volatile long kept;\n\
         __attribute__((noinline)) long busy(long n)\n\
         {{ long s = 0; for (long i = 0; i < n; i++) s = (s ^ i) * {step}; return s; }}\n\
         int main(void) {{ kept = busy(1000); return 0; }}\n"
    );
    build(place, &source, "c", &["-O1", "-g", "-Wl,--build-id=sha1"]);
}

fn parsed(place: &Place) -> (Binary, Vec<u8>) {
    let bytes = std::fs::read(&place.program).unwrap();
    (Binary::parse(&bytes).unwrap(), bytes)
}

/// Three samples on the first instruction of a procedure, four on the second, and so on.
fn samples_of(place: &Place, name: &str) -> Vec<(u64, u64)> {
    let (binary, bytes) = parsed(place);
    let procedure = binary.procedures().named(name).unwrap();
    let listing = binary.disassemble(&bytes, procedure, Syntax::Intel, "").unwrap();
    let offset = |address: u64| binary.offset_of(address).unwrap().0;
    let places = listing.instructions.iter().map(|it| offset(it.address));
    places.zip(3..).collect()
}

fn build_id(place: &Place) -> [u8; 20] {
    let text = parsed(place).0.build_id().unwrap().to_string();
    let byte = |k: usize| u8::from_str_radix(&text[2 * k..2 * k + 2], 16).unwrap();
    std::array::from_fn(byte)
}

/// Everything that needs the code says so in one sentence; everything else still counts.
fn refused(place: &Place, samples: &[(u64, u64)], words: &[&str]) {
    for arguments in LOOKING {
        let output = place.run(arguments);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {said}");
        assert_eq!(said.lines().count(), 1, "{arguments:?}: {said}");
        assert!(words.iter().any(|words| said.contains(words)), "{arguments:?}: {said}");
    }
    counted(place, samples);
}

fn counted(place: &Place, samples: &[(u64, u64)]) {
    for by in ["procedure", "image", "process"] {
        let prof = place.json(&["prof", "by", by]);
        assert_eq!(sum(&prof["rows"], "samples"), total(samples), "by {by}");
    }
}

#[test]
fn an_image_that_was_built_anew_is_refused_and_still_counted() {
    let place = Place::empty("busy");
    busy(&place, 3);
    let samples = samples_of(&place, "busy");
    place.import(&samples, Some(build_id(&place)));
    assert_eq!(place.json(&["annotate", "busy"])["procedure"]["samples"], total(&samples));
    busy(&place, 5);
    refused(&place, &samples, &["its build-id differs"]);
}

#[test]
fn an_image_that_changed_is_refused_by_name_too() {
    let place = Place::new(WALK);
    place.import(&SAMPLES, Some([7; 20]));
    for command in ["annotate", "calc", "cfg"] {
        let output = place.run(&[command, "walk"]);
        assert_eq!(output.status.code(), Some(1), "{command}");
        let said = stderr(&output);
        assert!(said.contains("its build-id differs") && said.contains("still counts"), "{said}");
    }
    counted(&place, &SAMPLES);
}

#[test]
fn files_that_are_gone_empty_or_no_program_get_a_sentence() {
    let place = Place::new(WALK);
    place.import(&SAMPLES, None);
    let whole = std::fs::read(WALK).unwrap();
    let mut packed = b"\x7fELF\x02\x01\x01".to_vec();
    packed.resize(4096, 0xaa);
    for (bytes, words) in [
        (Some(&whole[..40]), "ends before"),
        (Some(&b"UPX!"[..]), "not an ELF file"),
        (Some(&b""[..]), "empty"),
        (Some(&packed[..]), "cannot be"),
        (None, "No such file"),
    ] {
        match bytes {
            Some(bytes) => std::fs::write(&place.program, bytes).unwrap(),
            None => std::fs::remove_file(&place.program).unwrap(),
        }
        refused(&place, &SAMPLES, &[words]);
    }
}

#[test]
fn a_program_that_is_cut_short_anywhere_gets_a_sentence_or_an_answer() {
    let place = Place::empty("busy");
    busy(&place, 3);
    let samples = samples_of(&place, "busy");
    place.import(&samples, Some(build_id(&place)));
    let whole = std::fs::read(&place.program).unwrap();
    let busy_ends = samples.iter().map(|(offset, _)| *offset as usize).max().unwrap() + 16;
    for eighth in 0..8 {
        let length = whole.len() * eighth / 8;
        std::fs::write(&place.program, &whole[..length]).unwrap();
        for arguments in LOOKING {
            let output = place.run(arguments);
            let said = stderr(&output);
            let is_refused = output.status.code() == Some(1) && said.lines().count() == 1;
            // The symbols lie at the end of the file: without them the code has other names.
            let is_answered = output.status.code() == Some(0) && length >= busy_ends;
            assert!(is_refused || is_answered, "{length} bytes, {arguments:?}: {said}");
        }
        counted(&place, &samples);
    }
}

#[test]
fn a_stripped_program_has_its_procedures_from_the_unwind_table() {
    let place = Place::new(STRIPPED);
    place.import(&SAMPLES, None);
    let view = place.json(&["annotate"]);
    assert_eq!(view["procedure"]["procedure"], "walk+0x150");
    assert_eq!(view["procedure"]["named_by"], "unwind table");
    assert_eq!(view["procedure"]["samples"], 242);
    // By any place in it.
    assert_eq!(place.json(&["calc", "walk+0x16a"])["procedure"]["samples"], 242);
}

#[test]
fn stripping_takes_the_names_and_then_the_extents_but_no_sample() {
    let place = Place::empty("busy");
    busy(&place, 3);
    let samples = samples_of(&place, "busy");
    let (first, all) = (samples[0].0, total(&samples));
    place.import(&samples, Some(build_id(&place)));
    let program = place.program.to_str().unwrap();
    run("strip", &[program]);
    let view = place.json(&["annotate"]);
    assert_eq!(view["procedure"]["procedure"], format!("busy+{first:#x}"));
    assert_eq!(view["procedure"]["samples"], all);
    assert_eq!(sum(&view["code"][0]["rows"], "samples"), all);
    run("objcopy", &["-R", ".eh_frame", "-R", ".eh_frame_hdr", program]);
    // The file holds no word about where procedures begin.
    let left = parsed(&place).0;
    assert!(left.procedures().iter().all(|p| p.source != NameSource::Unwind));
    refused(&place, &samples, &NOWHERE);
}

/// The file without its table of sections, as packers leave it.
fn without_sections(bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes[0x28..0x30].fill(0);
    bytes[0x3c..0x40].fill(0);
    bytes
}

#[test]
fn a_packed_program_without_sections_is_counted_and_said_to_name_nothing() {
    let place = Place::empty("busy");
    busy(&place, 3);
    let samples = samples_of(&place, "busy");
    place.import(&samples, None);
    let whole = std::fs::read(&place.program).unwrap();
    std::fs::write(&place.program, without_sections(&whole)).unwrap();
    refused(&place, &samples, &NOWHERE);
}

#[test]
fn sections_that_lie_about_their_place_get_a_sentence_or_an_honest_answer() {
    let place = Place::empty("busy");
    busy(&place, 3);
    let samples = samples_of(&place, "busy");
    place.import(&samples, None);
    let whole = std::fs::read(&place.program).unwrap();
    let word = |at: usize| u64::from_le_bytes(whole[at..at + 8].try_into().unwrap()) as usize;
    let (table, count) = (word(0x28), whole[0x3c] as usize);
    // Offset and size of every section: beyond the file, all over it, without end.
    for (offset, size) in [(1 << 40, 64), (0, whole.len() as u64), (8, u64::MAX), (u64::MAX, 1)] {
        let mut lying = whole.clone();
        for section in 1..count {
            let at = table + section * 64;
            lying[at + 0x18..at + 0x20].copy_from_slice(&u64::to_le_bytes(offset));
            lying[at + 0x20..at + 0x28].copy_from_slice(&u64::to_le_bytes(size));
        }
        std::fs::write(&place.program, lying).unwrap();
        for arguments in LOOKING {
            let output = place.run(arguments);
            let said = stderr(&output);
            // Where the whole file passes for symbols, some of its bytes may make a procedure: how
            // long the file is decides, and with it the length of this folder's name.
            let lines = match output.status.code() {
                Some(0) => 0,
                code => {
                    assert_eq!(code, Some(1), "{arguments:?}: {said}");
                    1
                }
            };
            assert_eq!(said.lines().count(), lines, "{arguments:?}: {said}");
        }
        counted(&place, &samples);
    }
}

/// A loop whose body is the last four bytes of another instruction.
const OVERLAP: &str = "\
    .globl _start\n\
    .type _start, @function\n\
_start:\n\
    call overlap\n\
    mov $60, %eax\n\
    xor %edi, %edi\n\
    syscall\n\
    .size _start, . - _start\n\
    .globl overlap\n\
    .type overlap, @function\n\
overlap:\n\
    mov $1000, %ecx\n\
    jmp inside\n\
    .byte 0xb8\n\
inside:\n\
    dec %ecx\n\
    nop\n\
    nop\n\
    test %ecx, %ecx\n\
    jg inside\n\
    ret\n\
    .size overlap, . - overlap\n";

#[test]
fn code_that_overlaps_itself_keeps_its_samples_and_is_named_so() {
    let place = Place::empty("overlap");
    build(&place, OVERLAP, "s", &["-nostdlib", "-static"]);
    assert!(Command::new(&place.program).status().unwrap().success());
    let (binary, _) = parsed(&place);
    let start = binary.procedures().named("overlap").unwrap().start.0;
    // mov 5 bytes, jmp 2, the byte that hides what follows, then the loop.
    let samples =
        [(start, 2), (start + 8, 40), (start + 10, 20), (start + 12, 30), (start + 14, 9)];
    place.import(&samples, None);
    let annotate = place.json(&["annotate", "overlap"]);
    assert_eq!(sum(&annotate["code"][0]["rows"], "samples"), total(&samples));
    let calc = place.json(&["calc", "overlap", "--machine", "zen4"]);
    assert_eq!(sum(&calc["code"], "samples"), total(&samples), "{calc}");
    assert_eq!(sum(&calc["blocks"], "samples"), total(&samples));
    let notes = calc["notes"].as_array().unwrap();
    let says = |words: &str| notes.iter().any(|note| note.as_str().unwrap().contains(words));
    assert!(says("2 branches lead into the middle of another instruction"), "{notes:?}");
    let cfg = place.json(&["cfg", "overlap", "--machine", "zen4"]);
    assert_eq!(sum(&cfg["blocks"], "samples"), total(&samples));
    let edges = cfg["edges"].as_array().unwrap();
    let is_back = |edge: &Value| edge["from"].as_u64() >= edge["to"].as_u64();
    assert!(edges.iter().any(is_back), "the loop: {edges:?}");
    counted(&place, &samples);
}

/// A procedure of so many instructions: blocks of ten that branch on, back and far away.
fn giant(instructions: u32) -> String {
    let blocks = instructions / 10;
    let mut text = String::from(".globl _start\n.type _start, @function\n_start:\n");
    for k in 0..blocks {
        // A multiplier prime to the number of blocks spreads the targets over all of them.
        let far = (u64::from(k) * 7919 + 13) % u64::from(blocks);
        let _ = writeln!(
            text,
            "b{k}: add %rax, %rbx\n imul %rbx, %rcx\n mov (%rsp), %rdx\n xor %rdx, %rax\n\
             lea 3(%rax,%rbx), %rsi\n sub %rsi, %rdi\n cmp %rdi, %r8\n jl b{far}\n\
             test %rax, %rax\n jne b{}",
            if k % 16 == 15 { k - 15 } else { k + 1 }
        );
    }
    // The last block falls through to here.
    let _ = writeln!(text, "b{blocks}: mov $60, %eax\n xor %edi, %edi\n syscall");
    text.push_str(".size _start, . - _start\n");
    text
}

#[test]
fn a_procedure_of_a_hundred_thousand_instructions_is_looked_into() {
    let place = Place::empty("giant");
    build(&place, &giant(100_000), "s", &["-nostdlib", "-static"]);
    let (binary, _) = parsed(&place);
    let start = binary.procedures().named("_start").unwrap().start.0;
    let samples: Vec<(u64, u64)> = (0..200).map(|k| (start + 1500 * k, 1 + k % 7)).collect();
    place.import(&samples, None);
    let calc = place.json(&["calc", "_start", "--machine", "zen4"]);
    assert!(calc["code"].as_array().unwrap().len() > 100_000);
    assert_eq!(calc["procedure"]["samples"], total(&samples));
    let notes = calc["notes"].as_array().unwrap();
    let says = |words: &str| notes.iter().any(|note| note.as_str().unwrap().contains(words));
    assert!(says("blocks are tied too closely to be solved together"), "{notes:?}");
}

#[test]
fn a_procedure_beyond_all_measure_is_counted_and_said_to_be_too_long() {
    let place = Place::empty("giant");
    let nops = "nop\n".repeat(300_000);
    let text = format!(
        ".globl _start\n.type _start, @function\n_start:\n{nops}\
        mov $60, %eax\n xor %edi, %edi\n syscall\n.size _start, . - _start\n"
    );
    build(&place, &text, "s", &["-nostdlib", "-static"]);
    let (binary, _) = parsed(&place);
    let start = binary.procedures().named("_start").unwrap().start.0;
    let samples = [(start + 7, 30), (start + 299_999, 12)];
    place.import(&samples, None);
    let said = stderr(&place.run(&["calc", "_start", "--machine", "zen4"]));
    assert!(said.contains("300003 instructions"), "{said}");
    assert_eq!(sum(&place.json(&["annotate"])["code"][0]["rows"], "samples"), total(&samples));
    counted(&place, &samples);
}
