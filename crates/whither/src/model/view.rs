//! The report of a modelled run.

use std::collections::HashMap;
use std::os::unix::process::ExitStatusExt;

use analyse::{ProcedureTime, by_image, by_procedure};
use metrology::{Coverage, Estimate};
use model::core::{Ideal, Mode};
use model::event::Event;
use show::{Body, Cell, Column, Fact, Row, Schema, Section, Table, Tone, Unit, View};
use tracer::modelled::{CoreAsk, ROWS_EVERY, TOTALS_EVERY};
use vocab::{Count, ImageId, Offset, Source};

use super::account::{CYCLES, ModelledProcess, ModelledRun, RUNS};
use super::stack;
use crate::cli::ModelJob;
use crate::run::Images;

pub(super) fn view(job: &ModelJob, run: &ModelledRun, images: &Images) -> View {
    let mut command: Vec<_> = job.program.iter().map(|word| word.to_string_lossy()).collect();
    if let Some(trace) = &job.replay {
        command = vec!["--replay".into(), trace.to_string_lossy()];
    }
    View {
        schema: Schema { name: "model", version: 1 },
        title: format!("whither model: {}", command.join(" ")),
        sections: vec![
            summary(job, run, command.join(" ")),
            stack::section(&run.totals, job),
            image_section(run),
            procedure_section(job, run, images),
            process_section(job, run),
            counter_section(job, run),
            Section {
                key: "notes",
                title: "WHAT THIS REPORT DOES NOT SEE".into(),
                caption: String::new(),
                body: Body::Prose(notes(run, images)),
            },
        ],
    }
}

pub(crate) fn summary(job: &ModelJob, run: &ModelledRun, command: String) -> Section {
    let instructions = run.instructions() as f64;
    let cycles = run.totals.of(Event::Cycles);
    let cpi = cycles.scaled(1.0 / instructions.max(1.0));
    let seconds = cycles.value / (f64::from(job.machine.identity.clock_mhz) * 1e6);
    let ideal = 1.0 / f64::from(job.machine.window.dispatch_width.max(1));
    let number = |value| Cell::Number(value, Unit::Number);
    let uncounted = why_uncounted(job, run);
    let of = |cell| uncounted.map_or(cell, |why| Cell::NotCounted(why.into()));
    Section {
        key: "run",
        title: String::new(),
        caption: String::new(),
        body: Body::Facts(vec![
            Fact::new("command", "command", Cell::text(command)),
            Fact::new("source", "source", Cell::text(Source::Modelled.word())),
            Fact::new("machine", "machine", Cell::text(&*job.machine.name)),
            Fact::new("core", "core", Cell::text(core_words(job, run))),
            Fact::new("ended", "ended", ended_cell(run)),
            Fact::new("instructions", "instructions", of(Cell::Count(Count(run.instructions())))),
            Fact::new("cycles", "cycles", of(run.totals.cell(Event::Cycles))),
            Fact::new("cpi", "cycles an instruction", of(cpi_cell(cpi))),
            Fact::new("ideal_cpi", "at full width", number(ideal)),
            Fact::new(
                "clock_s",
                "at the machine's clock",
                of(Cell::Number(seconds, Unit::Seconds)),
            ),
        ]),
    }
}

/// Why there are no counts, if there are none.
fn why_uncounted(job: &ModelJob, run: &ModelledRun) -> Option<&'static str> {
    // A program that was killed before anything was told has run for a while all the same.
    let is_known = run.instructions() > 0 || run.exit.is_some() && signal(run).is_none();
    match run.exit {
        _ if keeps_no_account(job) => Some("warming alone counts nothing"),
        _ if is_known => None,
        Some(_) => Some("it ended before anything was told"),
        None => Some("nothing of the trace could be read"),
    }
}

fn keeps_no_account(job: &ModelJob) -> bool {
    job.core == CoreAsk::Warm && job.replay.is_none()
}

/// The signal that ended the program, if one did.
fn signal(run: &ModelledRun) -> Option<i32> {
    run.exit.and_then(|exit| exit.signal())
}

fn ended_cell(run: &ModelledRun) -> Cell {
    match run.exit {
        Some(exit) => Cell::text(exit.to_string()),
        None => Cell::Word { key: "replayed", text: "replayed from a trace".into() },
    }
}

fn cpi_cell(cpi: Estimate) -> Cell {
    match cpi.standard_uncertainty {
        0.0 => Cell::Number(cpi.value, Unit::Number),
        _ => Cell::Estimate(cpi.value, cpi.interval(Coverage::P95), Unit::Number),
    }
}

/// How the core timed the program, and what was not as the machine file says.
fn core_words(job: &ModelJob, run: &ModelledRun) -> String {
    let mut words = timed_words(job, run);
    words += match job.settings.mode {
        Mode::Native => "",
        Mode::Single => "; one instruction a group",
        Mode::InOrder => "; in order, group after group",
        Mode::InOrderSuperscalar => "; in order, several a cycle",
    };
    let ideal = Ideal::NAMES.iter().filter(|(_, part)| job.settings.ideal.has(*part));
    let ideal: Vec<&str> = ideal.map(|(name, _)| *name).collect();
    if !ideal.is_empty() {
        words += &format!("; made perfect: {}", ideal.join(", "));
    }
    words
}

fn timed_words(job: &ModelJob, run: &ModelledRun) -> String {
    match job.core {
        CoreAsk::Fast => "one pass, every instruction timed".into(),
        CoreAsk::Interrupts(_) => "one pass, sampled by its counters' interrupts".into(),
        CoreAsk::Reference => "cycle by cycle, every instruction timed".into(),
        CoreAsk::Warm => "none: caches, translation and predictors only".into(),
        CoreAsk::Sampled { .. } if run.totals.is_exact() && run.instructions() > 0 => {
            "one pass, every instruction timed: too few ran to sample".into()
        }
        CoreAsk::Sampled { error_ppm, .. } => {
            let error = f64::from(error_ppm) / 1e4;
            format!("one pass, sampled until ±{error} % holds at 95 %")
        }
    }
}

fn share(ticks: Count, run: &ModelledRun) -> f64 {
    run.cycles_in(ticks) / run.cycles().max(1.0)
}

fn image_section(run: &ModelledRun) -> Section {
    let row = |time: analyse::ImageTime| {
        let path = run.profile.image(time.image).map_or("?", |image| image.path.as_str());
        Row::Cells(
            Tone::Plain,
            vec![
                Cell::Number(share(time.count, run), Unit::Share),
                Cell::Count(Count(run.cycles_in(time.count).round() as u64)),
                Cell::text(path),
            ],
        )
    };
    Section {
        key: "images",
        title: "BY IMAGE".into(),
        caption: String::new(),
        body: Body::Table(Table {
            columns: vec![
                Column::number("share", "share"),
                Column::number("cycles", "cycles"),
                Column::text("image", "image"),
            ],
            rows: by_image(&run.profile, CYCLES).into_iter().map(row).collect(),
            text_rows: Some(8),
        }),
    }
}

fn procedure_section(job: &ModelJob, run: &ModelledRun, images: &Images) -> Section {
    let key = |time: &ProcedureTime| (time.image, time.procedure.as_ref().map(|p| p.start));
    let runs: HashMap<(ImageId, Option<Offset>), Count> =
        by_procedure(&run.profile, RUNS, images.procedures())
            .iter()
            .map(|time| (key(time), time.count))
            .collect();
    let row = |time: &ProcedureTime| {
        let image = run.profile.image(time.image).map_or("?", |image| image.short_name());
        let name = match &time.procedure {
            Some(procedure) => procedure.name(image),
            None => format!("{image} (no known procedure)"),
        };
        let instructions = runs.get(&key(time)).copied().unwrap_or_default();
        let cycles = run.cycles_in(time.count);
        let cpi = cycles / instructions.as_f64().max(1.0);
        let share = share(time.count, run);
        let tone = if share >= 0.1 { Tone::Hot } else { Tone::Plain };
        Row::Cells(
            tone,
            vec![
                Cell::Number(share, Unit::Share),
                Cell::Number(cpi, Unit::Number),
                Cell::Count(instructions),
                Cell::Count(Count(cycles.round() as u64)),
                Cell::text(image),
                Cell::text(name),
            ],
        )
    };
    let times = by_procedure(&run.profile, CYCLES, images.procedures());
    Section {
        key: "procedures",
        title: "BY PROCEDURE".into(),
        caption: String::new(),
        body: Body::Table(Table {
            columns: vec![
                Column::number("share", "share"),
                Column::number("cpi", "CPI"),
                Column::number("instructions", "instructions"),
                Column::number("cycles", "cycles").only_in_json(),
                Column::text("image", "image"),
                Column::text("procedure", "procedure"),
            ],
            rows: times.iter().map(row).collect(),
            text_rows: Some(job.procedures),
        }),
    }
}

fn process_section(job: &ModelJob, run: &ModelledRun) -> Section {
    let uncounted = why_uncounted(job, run);
    let row = |process: &ModelledProcess| {
        let totals = &process.totals;
        let untold = (process.threads == 0).then_some("it ended before anything was told");
        let why = uncounted.or(untold);
        let of = |cell| why.map_or(cell, |why| Cell::NotCounted(why.into()));
        Row::Cells(
            Tone::Plain,
            vec![
                Cell::Id(u64::from(process.pid)),
                of(Cell::Count(Count(process.threads as u64))),
                of(totals.cell(Event::Instructions)),
                of(totals.cell(Event::Cycles)),
                Cell::text(&*process.program),
            ],
        )
    };
    let counted = |key, head| match uncounted {
        // Once is enough in text: the facts above say so.
        Some(_) => Column::number(key, head).only_in_json(),
        None => Column::number(key, head),
    };
    Section {
        key: "processes",
        title: "PROCESSES".into(),
        caption: "a core to each thread".into(),
        body: Body::Table(Table {
            columns: vec![
                Column::number("pid", "pid"),
                counted("threads", "threads"),
                counted("instructions", "instructions"),
                counted("cycles", "cycles"),
                Column::text("program", "program"),
            ],
            rows: run.processes.iter().map(row).collect(),
            text_rows: Some(12),
        }),
    }
}

fn counter_section(job: &ModelJob, run: &ModelledRun) -> Section {
    let per_thousand = 1000.0 / run.instructions().max(1) as f64;
    let uncounted = why_uncounted(job, run);
    let of = |cell| uncounted.map_or(cell, |why| Cell::NotCounted(why.into()));
    let row = |&event: &Event| {
        let count = run.totals.of(event).value;
        let cells = vec![
            of(run.totals.cell(event)),
            of(Cell::Number(count * per_thousand, Unit::Number)),
            Cell::text(event.name()),
            Cell::text(event.about()),
        ];
        if count > 0.0 { Row::Cells(Tone::Plain, cells) } else { Row::InJson(cells) }
    };
    Section {
        key: "counters",
        title: "COUNTED".into(),
        caption: match run.totals.is_exact() {
            true => format!("{}, exact, at commit", Source::Modelled.word()),
            false => format!("{}, at commit; ± at 95 %", Source::Modelled.word()),
        },
        body: Body::Table(Table {
            columns: vec![
                Column::number("count", "count"),
                Column::number("per_thousand", "per 1000"),
                Column::text("event", "event"),
                Column::text("about", "what it counts"),
            ],
            rows: Event::ALL.iter().map(row).collect(),
            text_rows: None,
        }),
    }
}

/// Which estimator, how much was timed, and what is in the ± and what beside it.
fn sampling_notes(run: &ModelledRun) -> [String; 2] {
    let sampled = run.totals.sampled();
    let share = 100.0 * sampled.timed as f64 / sampled.of.max(1) as f64;
    let how = format!(
        "Estimated from {} windows at random places by regression on what caches, translation and \
         predictors counted around them; {share:.2} % of the instructions were timed.",
        sampled.windows
    );
    let bias = match sampled.longer_warming {
        Some((_, longer)) => {
            let half_width = longer.interval(Coverage::P95).half_width();
            format!(
                "warming four times as long before a window changed its cycles by {:+.2} ± {:.2} %",
                100.0 * longer.value,
                100.0 * half_width
            )
        }
        None => "everything between the windows was warmed".to_owned(),
    };
    let part = 100.0 * sampled.taken_off / run.totals.of(Event::Cycles).value.max(1.0);
    let taken_off = match part {
        0.005.. => {
            format!(" {part:.2} % were taken off for what all of it would have taught them.")
        }
        ..=-0.005 => format!(" {:.2} % were added for what all of it would have cost them.", -part),
        _ => String::new(),
    };
    let apart = format!(
        "The ± is what sampling leaves open, and a little for predictors that saw only a part of \
         what ran.{taken_off} Apart from it, {bias}. Time by image and procedure is from the same \
         windows, made to add up to the total, without a ± of its own. --full times everything."
    );
    [how, apart]
}

pub(crate) fn notes(run: &ModelledRun, images: &Images) -> Vec<String> {
    // What went wrong comes first: the rest is true of every run.
    let mut notes = run.damage.clone();
    notes.extend([
        "A stall charged to a cause is not what removing the cause would gain: waits overlap."
            .to_owned(),
        "Not modelled: the kernel, wrong paths, and the clocks of threads against each other. \
         Code that asks for AVX-512 takes another path here than on a machine that has it."
            .to_owned(),
    ]);
    if let Some(signal) = signal(run) {
        notes.push(format!(
            "Signal {signal} ended it without a word: what each thread ran last is in no count, \
             at most {TOTALS_EVERY} instructions or two thirds of a shorter run, and up to \
             {ROWS_EVERY} are in no procedure."
        ));
    }
    let unknown = run.totals.of(Event::Unknown).value;
    if unknown > 0.0 {
        notes.push(format!("{unknown:.0} instructions were unknown and modelled generically."));
    }
    if !run.totals.is_exact() {
        notes.extend(sampling_notes(run));
    }
    if run.untimed > Count::ZERO {
        notes.push(format!(
            "{} instructions fell in no window; their time is in the total, and procedures share it.",
            run.untimed
        ));
    }
    for process in &run.processes {
        for program in &process.lost_execs {
            notes.push(format!("{program} ran unmodelled: it could not be followed."));
        }
        if !process.is_complete {
            notes.push(format!("Counts of process {} are missing: no room.", process.pid));
        }
    }
    for (id, why) in &images.unread {
        let name = run.profile.image(*id).map_or("?", |image| image.short_name());
        notes.push(format!("{name} could not be read, so its cycles have no names: {why}."));
    }
    notes
}
