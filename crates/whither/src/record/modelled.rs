//! Samples of a modelled core, stored like measured ones and labelled as what they are.

use std::os::unix::process::ExitStatusExt;

use model::event::Event as ModelEvent;
use pmu::nearest;
use store::{Facts, ModelledBy, Span};
use tracer::counts::ProcessCounts;
use tracer::launch::Finished;
use tracer::modelled::{
    CoreAsk, InstructionRow, InterruptAsk, ModelAsk, ModelledThread, SAMPLED_MOST,
};
use tracer::settings::Listener;
use vocab::{
    Count, Epoch, Event, EventCode, EventId, Image, Mode, Offset, Onward, Owner, Pid, Place,
    Process, Profile, Source, Spot, Way, WayTally,
};

use super::view::recording;
use crate::cli::{ModelJob, ModelledRecord, RecordJob};
use crate::database::{Keeping, host_name, keep, note_facts, now_unix_ns};
use crate::failure::{ERROR, Failure, RUN_FAILED, passed_on};
use crate::model::{MODELLED, launch, place_of};
use crate::output::Output;

/// Time, and how often everything ran: without the second, what `calc` makes of the first on an
/// out-of-order core is a guess.
const EVENTS: &str = "cycles,instructions:p";

/// A mean period that gives a hundred samples in two million cycles.
const PERIOD: u64 = 20_000;

/// Cycles between the two interrupts of a double sample: a few instructions, so that a pair tells of
/// one stretch of code.
const GAP_CYCLES: u64 = 16;

/// Runs the program on the modelled core; returns the program's own status.
pub(super) fn record(
    job: &RecordJob,
    asked: &ModelledRecord,
    output: &Output,
) -> Result<u8, Failure> {
    let interrupts = interrupts(job, asked)?;
    let core = CoreAsk::Interrupts(interrupts);
    let plain = ModelJob::plain(job.program.clone(), Some(&asked.machine), asked.engine.clone())?;
    let model = ModelJob { core, drops_output: false, ..plain };
    interrupts
        .sampler(&model.machine, 0)
        .map_err(|error| Failure::new(RUN_FAILED, error.to_string()))?;
    let ask = ModelAsk {
        name: model.machine.name.clone(),
        machine: model.machine_text.clone(),
        core,
        settings: model.settings,
    };
    let began = now_unix_ns();
    let finished = launch(&model, Listener::Model(ask))?;
    let mut profile = profile(&finished, &interrupts, began)?;
    note_facts(&mut profile);
    if profile.tally.taken() == Count::ZERO {
        return Err(Failure::new(RUN_FAILED, "the modelled counters never overflowed")
            .kept("nothing was stored")
            .remedy("ask for a shorter period with -c"));
    }
    let words: Vec<_> = job.program.iter().map(|word| word.to_string_lossy()).collect();
    let command = words.join(" ");
    let by = ModelledBy {
        machine: model.machine.name.clone(),
        seed: interrupts.seed,
        period: interrupts.period,
        gap_cycles: interrupts.gap_cycles,
    };
    let rate = |event: &Event| format!("{} every {} on {}", event.name, by.period, by.machine);
    let rates: Vec<String> = profile.events.iter().map(rate).collect();
    let facts = Facts {
        origin: format!("record {command}"),
        modelled: Some(by.clone()),
        ..Facts::default()
    };
    let kept = keep(
        Keeping {
            database: &job.database,
            host: &profile.epoch.host,
            writer: "record",
            facts,
            span: Span { from_unix_ns: began, to_unix_ns: now_unix_ns() },
            status: RUN_FAILED,
        },
        &profile,
    )?;
    let trouble = finished.missing_instruction();
    output.write(&recording(&command, &profile, &kept, &rates, trouble))?;
    Ok(passed_on(finished.status.code(), finished.status.signal()))
}

fn interrupts(job: &RecordJob, asked: &ModelledRecord) -> Result<InterruptAsk, Failure> {
    let spelling = asked.events.as_deref().unwrap_or(EVENTS);
    let names: Vec<&str> = spelling.split(',').collect();
    if names.len() > SAMPLED_MOST {
        let what = format!("the modelled core samples at most {SAMPLED_MOST} events at a time");
        return Err(Failure::new(RUN_FAILED, what));
    }
    let mut events = [None; SAMPLED_MOST];
    let mut is_precise = [false; SAMPLED_MOST];
    for ((place, is_precise), name) in events.iter_mut().zip(&mut is_precise).zip(names) {
        let (plain, modifiers) = name.split_once(':').unwrap_or((name, ""));
        if let Some(odd) = modifiers.chars().find(|modifier| !"up".contains(*modifier)) {
            let what = format!("the modelled core knows no modifier '{odd}' ('{name}')");
            return Err(Failure::new(RUN_FAILED, what)
                .remedy("u is all that it runs, and p names the very instruction"));
        }
        *place = Some(named(plain)?);
        *is_precise = modifiers.contains('p');
    }
    let period = match job.rate {
        Some(perf::Rate::Period(period)) => period,
        _ => PERIOD,
    };
    // Where control goes is told beside where time goes.
    let of_time = |(event, is_precise): (&Option<ModelEvent>, &bool)| {
        *event == Some(ModelEvent::Cycles) && !is_precise
    };
    let has_time = events.iter().zip(&is_precise).any(of_time);
    let gap_cycles = has_time.then_some(GAP_CYCLES);
    Ok(InterruptAsk { events, is_precise, period, seed: asked.seed, gap_cycles })
}

fn named(name: &str) -> Result<ModelEvent, Failure> {
    ModelEvent::named(name).ok_or_else(|| {
        let near = nearest(name, ModelEvent::ALL.iter().map(|event| event.name()));
        let what = match near {
            Some(near) => format!("the model has no event '{name}'; did you mean '{near}'?"),
            None => format!("the model has no event '{name}'"),
        };
        Failure::new(RUN_FAILED, what)
    })
}

fn profile(
    finished: &Finished,
    asked: &InterruptAsk,
    began_unix_ns: u64,
) -> Result<Profile, Failure> {
    let event = |(event, &is_precise): (&Option<ModelEvent>, &bool)| {
        let event = (*event)?;
        let precisely = if is_precise { ":p" } else { "" };
        Some(Event {
            name: format!("{}{precisely}", event.name()),
            code: EventCode::new(MODELLED, event as u64),
            mode: Mode::User,
        })
    };
    let events = asked.events.iter().zip(&asked.is_precise).filter_map(event).collect();
    let epoch = Epoch { host: host_name(), began_unix_ns };
    let mut profile = Profile::empty(epoch, Source::Modelled, events);
    for &key in finished.processes.keys() {
        let Some(process) = tracer::counts::count(&finished.processes, key) else { continue };
        let threads = finished.modelled(key).map_err(|why| Failure::new(ERROR, why.to_string()))?;
        threads.values().for_each(|thread| add_thread(&mut profile, &process, thread));
    }
    Ok(profile)
}

fn add_thread(profile: &mut Profile, process: &ProcessCounts, thread: &ModelledThread) {
    let pid = Pid(process.key.pid);
    let name = process.program.rsplit('/').next().unwrap_or("").to_owned();
    let owner = Owner { process: Some(profile.process_id(&Process { pid, name })), slice: None };
    profile.tally.lost += Count(thread.rows.values().map(InstructionRow::lost).sum());
    let numbers = Numbers::of(process);
    let time = profile.events.iter().position(|event| event.name == ModelEvent::Cycles.name());
    for (&number, row) in &thread.rows {
        let Some((image, offset)) = numbers.place(number) else { continue };
        let image = profile.image_id(&image);
        for event in 0..profile.events.len() {
            let spot = Spot { image, offset, event: EventId(event as u16) };
            if row.samples(event) > 0 {
                profile.store_for(spot, owner, Count(row.samples(event)));
            }
        }
        if let Some(event) = time {
            let event = EventId(event as u16);
            add_edges(profile, event, Place { image, offset }, row);
        }
    }
    for (&(from, to), &count) in &thread.ways {
        let (Some(event), Some((image, offset)), Some((to_image, to))) =
            (time, numbers.place(from), numbers.place(to))
        else {
            continue;
        };
        // A way out of the image is no edge of a procedure.
        if image == to_image {
            let image = profile.image_id(&image);
            let place = Place { image, offset };
            let way = Way { event: EventId(event as u16), place, onward: Onward::To(to) };
            let tally = WayTally { count: Count(count), ..WayTally::default() };
            profile.ways.entry(way).or_default().add(&tally);
        }
    }
}

/// What samples told of where control went from an instruction.
fn add_edges(profile: &mut Profile, event: EventId, place: Place, row: &InstructionRow) {
    let edges = row.edges();
    let once = |count: u64| WayTally { count: Count(count), ..WayTally::default() };
    let passed = WayTally {
        count: Count(edges.passed),
        pairs: Count(edges.pairs),
        begun: Count(edges.begun),
    };
    let told = [
        (Onward::Passed, passed),
        (Onward::Taken, once(edges.taken)),
        (Onward::Straight, once(edges.straight)),
    ];
    for (onward, tally) in told.into_iter().filter(|(_, tally)| tally.count > Count::ZERO) {
        profile.ways.entry(Way { event, place, onward }).or_default().add(&tally);
    }
}

/// The instructions of a process by number: they are counted as its blocks tell them, block after
/// block.
struct Numbers<'a> {
    process: &'a ProcessCounts,
    /// The number of each block's first instruction.
    firsts: Vec<u32>,
}

impl Numbers<'_> {
    fn of(process: &ProcessCounts) -> Numbers<'_> {
        let lengths = process.blocks.iter().map(|placed| placed.block.instructions.len() as u32);
        let firsts = lengths.scan(0_u32, |next, length| {
            let first = *next;
            *next = next.saturating_add(length);
            Some(first)
        });
        Numbers { process, firsts: firsts.collect() }
    }

    fn place(&self, number: u32) -> Option<(Image, Offset)> {
        let block = self.firsts.partition_point(|first| *first <= number).checked_sub(1)?;
        let placed = self.process.blocks.get(block)?;
        place_of(self.process, placed, (number - self.firsts.get(block)?) as usize)
    }
}
