//! The whole line on recorded input: bytes of ring records, through merging, placing, naming and
//! the report, to the golden. The image is the small ELF file of the image room's tests.

use std::time::Duration;

use collect::{KernelLayout, Merge, Placer};
use model::machine::Machine;
use perf::{Ended, Rate, Reading, SamplerRequest, Usage, parse_record};
use show::{Colour, Page, render_json, render_text};
use vocab::{Count, Epoch, Event, EventCode, Mode, Profile};

use super::images::Images;
use super::program::Program;
use super::report::Report;
use super::sample::Native;
use super::sampling::Sampling;
use super::{SAMPLED, hottest};
use crate::cli::RunJob;

#[path = "../../tests/golden.rs"]
mod golden;

const PID: u64 = 7;

fn fixture() -> String {
    concat!(env!("CARGO_MANIFEST_DIR"), "/../image/tests/fixtures/tiny").to_owned()
}

fn record(kind: u32, misc: u16, words: &[u64], text: &str, trailer: &[u64]) -> Vec<u8> {
    let mut body: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
    if !text.is_empty() {
        body.extend(text.as_bytes());
        body.resize(body.len() + 8 - text.len() % 8, 0);
    }
    body.extend(trailer.iter().flat_map(|word| word.to_ne_bytes()));
    let mut bytes = kind.to_ne_bytes().to_vec();
    bytes.extend(misc.to_ne_bytes());
    bytes.extend((8 + body.len() as u16).to_ne_bytes());
    bytes.extend(body);
    bytes
}

/// An MMAP2 record: the first 16 KiB of a file at an address, executable, no build-id.
fn mapped(time: u64, path: &str, start: u64) -> Vec<u8> {
    let executable = 5;
    let words = [PID | PID << 32, start, 0x4000, 0, 0, 0, 0, executable];
    record(10, 2, &words, path, &[PID | PID << 32, time, 0])
}

fn sampled(time: u64, misc: u16, pc: u64) -> Vec<u8> {
    record(9, misc, &[pc, PID | PID << 32, time, 0], "", &[])
}

/// Samples on each of the fixture's procedures, in the kernel, nowhere, and five lost.
fn recording() -> Vec<Vec<u8>> {
    let bytes = std::fs::read(fixture()).unwrap();
    let binary = image::Binary::parse(&bytes).unwrap();
    let base = 0x5555_0000_0000;
    let mut records = vec![mapped(1, &fixture(), base)];
    for (place, procedure) in binary.procedures().iter().enumerate() {
        for repeat in 0..(1 + place as u64) * 40 {
            records.push(sampled(10 + repeat, 2, base + procedure.start.0 + repeat % 2));
        }
    }
    records.extend((0..30).map(|time| sampled(20 + time, 1, 0xffff_ffff_8100_0010)));
    records.extend((0..3).map(|time| sampled(20 + time, 2, 0x10)));
    records.push(record(2, 0, &[0, 5], "", &[PID | PID << 32, 500, 0]));
    records
}

fn replayed() -> Profile {
    let epoch = Epoch { host: "recorded".into(), began_unix_ns: 0 };
    let kallsyms = "ffffffff81000000 T _text\nffffffff82000000 T _end\n";
    let mut placer = Placer::new(epoch, vec![clock()], KernelLayout::parse(kallsyms, ""));
    let mut merge = Merge::default();
    for bytes in recording() {
        merge.push(SAMPLED, parse_record(&bytes).unwrap());
    }
    merge.finish(|event, record| placer.take(event, &record));
    placer.finish()
}

fn clock() -> Event {
    Event { name: "cpu-clock".into(), code: EventCode::new(1, 0), mode: Mode::Both }
}

/// The fixture's place on this machine must not show in the golden.
fn native() -> Native {
    let usage = Usage {
        user: Duration::from_millis(400),
        system: Duration::from_millis(30),
        peak_kib: 1740,
    };
    let task_clock = Event { name: "task-clock".into(), ..clock() };
    let reading =
        Reading { count: Count(430_000_000), enabled_ns: 430_000_000, running_ns: 430_000_000 };
    let faults = Event { name: "minor-faults".into(), ..clock() };
    Native {
        profile: replayed(),
        kernel: KernelLayout::default(),
        ended: Ended::exited(0, usage),
        elapsed: Duration::from_millis(450),
        counted: vec![(task_clock, Ok(reading)), (faults, Err("it never had a counter".into()))],
        mode: Mode::Both,
        precision: 0,
    }
}

#[test]
fn the_report_of_a_recording_is_as_recorded() {
    let mut native = native();
    let job = RunJob {
        program: vec!["./tiny".into()],
        event: None,
        rate: None,
        counted: vec![],
        procedures: 20,
        hottest: 2,
        syntax: image::Syntax::Intel,
        model: None,
    };
    let program =
        Program { path: "./tiny".into(), command: vec!["./tiny".into()], interpreter: None };
    let request =
        SamplerRequest { event: clock(), rate: Rate::Hertz(997), precise: false, ring_pages: 128 };
    let sampling = Sampling { request, because: "no PMU: recorded without one".into() };
    let images = Images::load_files(&native.profile);
    for image in &mut native.profile.images {
        image.path = image.path.replace(&fixture(), "/somewhere/tiny");
    }
    let times = analyse::by_procedure(&native.profile, SAMPLED, images.procedures());
    let machine = Machine::named("zen4").unwrap();
    let held = hottest::Held { machine: &machine, period: 1e9 / 997.0 };
    let hottest = hottest::listings(&times, &images, &native.profile, &job, Some(held));
    let report = Report {
        job: &job,
        program: &program,
        sampling: &sampling,
        native: &native,
        images: &images,
        times: &times,
        hottest: &hottest,
        core: Some(&machine.title),
        second: None,
    };
    let view = report.view();
    let page = Page { width: 100, colour: Colour::Off };
    golden::check("run-report.txt", &render_text(&view, page));
    let json = serde_json::to_string_pretty(&render_json(&view)).unwrap();
    golden::check("run-report.json", &format!("{json}\n"));
}
