//! What a modelled run left, as a profile.

use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use metrology::{Coverage, Estimate};
use model::core::TICKS;
use model::event::Event as ModelEvent;
use model::machine::Machine;
use show::{Cell, Unit};
use tracer::counts::{self, PlacedBlock, ProcessCounts};
use tracer::launch::Finished;
use tracer::modelled::{InstructionRow, ModelledThread};
use tracer::results::{ProcessFile, ProcessKey};
use vocab::{
    Count, Epoch, Event, EventCode, EventId, Image, ImageKind, Mode, Offset, Pid, Profile, Source,
    Spot,
};

use crate::failure::passed_on;

/// The event of the profile that holds time, in ticks of a cycle.
pub(crate) const CYCLES: EventId = EventId(0);
/// The event of the profile that holds how often instructions ran.
pub(crate) const RUNS: EventId = EventId(1);
/// No kernel has this kind: the event was counted by a model.
pub(crate) const MODELLED: u32 = u32::MAX;

/// One process of the program.
#[derive(Clone, Debug)]
pub(crate) struct ModelledProcess {
    pub(crate) pid: u32,
    pub(crate) program: String,
    pub(crate) threads: usize,
    pub(crate) totals: Totals,
    /// Programs that it became without being followed.
    pub(crate) lost_execs: Vec<String>,
    pub(crate) is_complete: bool,
}

/// Everything that a modelled run left.
#[derive(Clone, Debug)]
pub(crate) struct ModelledRun {
    /// How the program ended; none where a trace was replayed.
    pub(crate) exit: Option<ExitStatus>,
    /// Over all processes and threads.
    pub(crate) totals: Totals,
    /// Instructions that ran and were never in a window: their time is unknown.
    pub(crate) untimed: Count,
    pub(crate) processes: Vec<ModelledProcess>,
    /// Ticks and runs by image and offset.
    pub(crate) profile: Profile,
    /// All of its ticks, and all of its runs, timed or not.
    stored: (Count, Count),
    /// Sentences about what is missing or went wrong.
    pub(crate) damage: Vec<String>,
}

impl ModelledRun {
    pub(crate) fn read(finished: &Finished, machine: &Machine) -> ModelledRun {
        let mut run = ModelledRun::empty(Some(finished.status), machine);
        // One at a time: a compiler's rows are a hundred megabytes, and a build runs it many times.
        for &key in finished.processes.keys() {
            let Some(process) = counts::count(&finished.processes, key) else { continue };
            match finished.modelled(key) {
                Ok(threads) => run.add_process(&process, &threads),
                Err(why) => run.damage.push(format!("Process {key} is left out: {why}.")),
            }
        }
        run.damage.extend(finished.missing_instruction().map(str::to_owned));
        run
    }

    pub(crate) fn of(
        exit: Option<ExitStatus>,
        processes: &BTreeMap<ProcessKey, ProcessFile>,
        machine: &Machine,
    ) -> ModelledRun {
        let mut run = ModelledRun::empty(exit, machine);
        for (&key, file) in processes {
            let process = counts::count(processes, key);
            process.iter().for_each(|process| run.add_process(process, &file.modelled));
        }
        run
    }

    fn empty(exit: Option<ExitStatus>, machine: &Machine) -> ModelledRun {
        let event = |name: &str, number| Event {
            name: name.into(),
            code: EventCode::new(MODELLED, number),
            mode: Mode::User,
        };
        let epoch = Epoch { host: machine.name.clone(), began_unix_ns: 0 };
        let events = vec![event("cycles", 0), event("instructions", 1)];
        ModelledRun {
            exit,
            totals: Totals::default(),
            untimed: Count::ZERO,
            processes: Vec::new(),
            profile: Profile::empty(epoch, Source::Modelled, events),
            stored: (Count::ZERO, Count::ZERO),
            damage: Vec::new(),
        }
    }

    /// The status to pass through, as a shell would have it.
    pub(crate) fn status(&self) -> u8 {
        self.exit.map_or(0, |exit| passed_on(exit.code(), exit.signal()))
    }

    fn add_process(&mut self, process: &ProcessCounts, threads: &BTreeMap<u32, ModelledThread>) {
        let mut whole = Totals::default();
        for thread in threads.values() {
            whole.add(thread);
            self.totals.add(thread);
            self.store_rows(process, &thread.rows);
        }
        self.processes.push(ModelledProcess {
            pid: process.key.pid,
            program: process.program.clone(),
            threads: threads.len(),
            totals: whole,
            lost_execs: process.execs.iter().filter(|e| !e.1).map(|e| e.0.clone()).collect(),
            is_complete: process.is_complete,
        });
    }

    /// Rows are numbered as the process's blocks tell its instructions, block after block.
    fn store_rows(&mut self, process: &ProcessCounts, rows: &BTreeMap<u32, InstructionRow>) {
        let mut number = 0_u32;
        for placed in &process.blocks {
            let count = placed.block.instructions.len() as u32;
            for (&row_number, row) in rows.range(number..number.saturating_add(count)) {
                self.store_row(process, placed, (row_number - number) as usize, row);
            }
            number = number.saturating_add(count);
        }
    }

    fn store_row(
        &mut self,
        process: &ProcessCounts,
        placed: &PlacedBlock,
        place: usize,
        row: &InstructionRow,
    ) {
        let Some((image, offset)) = place_of(process, placed, place) else { return };
        let image = self.profile.image_id(&image);
        let spot = |event| Spot { image, offset, event };
        match row.ticks_of_all() {
            Some(ticks) => {
                self.profile.store(spot(CYCLES), Count(ticks));
                self.stored.0 += Count(ticks);
            }
            None => self.untimed += Count(row.runs),
        }
        self.stored.1 += Count(row.runs);
        self.profile.store(spot(RUNS), Count(row.runs));
    }

    pub(crate) fn cycles(&self) -> f64 {
        self.totals.of(ModelEvent::Cycles).value
    }

    /// The cycles that some of the profile's ticks stand for.
    ///
    /// In a sampled run instructions have their rates from the windows, and the total is estimated
    /// from more than that. The two differ within the ±; parts are scaled to add up to the total, or
    /// to the part of it whose instructions have a place.
    pub(crate) fn cycles_in(&self, ticks: Count) -> f64 {
        let (all, runs) = self.stored;
        if self.totals.is_exact() || all == Count::ZERO {
            return cycles_of(ticks);
        }
        let placed = runs.as_f64() / self.instructions().max(1) as f64;
        ticks.as_f64() / all.as_f64() * self.cycles() * placed.min(1.0)
    }

    pub(crate) fn instructions(&self) -> u64 {
        self.totals.of(ModelEvent::Instructions).value as u64
    }
}

/// Where an instruction of a block lies.
pub(crate) fn place_of(
    process: &ProcessCounts,
    placed: &PlacedBlock,
    place: usize,
) -> Option<(Image, Offset)> {
    let code = placed.block.instructions.get(place)?;
    let start = placed.block.instructions.first().map_or(code.pc, |first| first.pc);
    let (kind, path, offset) = match placed.place {
        Some(found) => {
            let path = process.images.get(found.image as usize).cloned().unwrap_or_default();
            (ImageKind::File, path, found.offset.wrapping_add(code.pc.wrapping_sub(start)))
        }
        None => {
            let path = format!("[generated code of process {}]", process.key.pid);
            (ImageKind::Generated(Pid(process.key.pid)), path, code.pc)
        }
    };
    Some((Image { kind, path, build_id: None }, Offset(offset)))
}

/// Every event's total with its uncertainty; exact where everything was timed.
#[derive(Clone, Debug)]
pub(crate) struct Totals(Vec<Estimate>, Sampled);

/// How totals were estimated, all threads together.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sampled {
    /// Windows measured.
    pub(crate) windows: u64,
    /// Instructions timed by threads that were sampled.
    pub(crate) timed: u64,
    /// Instructions that those threads ran.
    pub(crate) of: u64,
    /// What warming for four times as long changed, of the thread that ran most of those that tell.
    pub(crate) longer_warming: Option<(u64, Estimate)>,
    /// Cycles taken off for what predictors did not hear of.
    pub(crate) taken_off: f64,
}

impl Default for Totals {
    fn default() -> Totals {
        Totals(vec![Estimate::exact(0.0); ModelEvent::COUNT], Sampled::default())
    }
}

impl Totals {
    /// One event's.
    pub(crate) fn of(&self, event: ModelEvent) -> Estimate {
        self.0.get(event as usize).copied().unwrap_or(Estimate::exact(0.0))
    }

    /// How they were estimated.
    pub(crate) fn sampled(&self) -> Sampled {
        self.1
    }

    /// Whether nothing is estimated.
    pub(crate) fn is_exact(&self) -> bool {
        self.0.iter().all(|total| total.standard_uncertainty == 0.0)
    }

    /// Threads are sampled apart, so that their errors are independent.
    fn add(&mut self, thread: &ModelledThread) {
        for &event in ModelEvent::ALL {
            self.0[event as usize] = self.of(event).plus(thread.estimate(event));
        }
        let Some(sampling) = thread.sampling else { return };
        let ran = thread.totals[ModelEvent::Instructions];
        self.1.windows += sampling.windows;
        self.1.timed += sampling.timed;
        self.1.of += ran;
        self.1.taken_off += sampling.taken_off;
        if let Some(longer) = sampling.longer_warming
            && self.1.longer_warming.is_none_or(|(most, _)| ran > most)
        {
            self.1.longer_warming = Some((ran, longer));
        }
    }

    /// As a person reads it: a count, or an estimate with its interval.
    pub(crate) fn cell(&self, event: ModelEvent) -> Cell {
        let total = self.of(event);
        match total.standard_uncertainty {
            0.0 => Cell::Count(Count(total.value as u64)),
            u if u.is_finite() => {
                Cell::Estimate(total.value, total.interval(Coverage::P95), Unit::Count)
            }
            _ => Cell::NotCounted("too little of it was timed".into()),
        }
    }
}

/// Ticks as cycles.
fn cycles_of(ticks: Count) -> f64 {
    ticks.as_f64() / TICKS as f64
}
