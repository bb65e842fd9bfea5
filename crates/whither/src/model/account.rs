//! What a modelled run left, as a profile.

use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use model::core::TICKS;
use model::event::{Counts, Event as ModelEvent};
use model::machine::Machine;
use tracer::counts::{PlacedBlock, ProcessCounts};
use tracer::launch::Finished;
use tracer::modelled::{InstructionRow, ModelledThread};
use vocab::{
    Count, Epoch, Event, EventCode, EventId, Image, ImageKind, Mode, Offset, Pid, Profile, Source,
    Spot,
};

/// The event of the profile that holds time, in ticks of a cycle.
pub(crate) const CYCLES: EventId = EventId(0);
/// The event of the profile that holds how often instructions ran.
pub(crate) const RUNS: EventId = EventId(1);
/// No kernel has this kind: the event was counted by a model.
const MODELLED: u32 = u32::MAX;

/// One process of the program.
#[derive(Clone, Debug)]
pub(crate) struct ModelledProcess {
    pub(crate) pid: u32,
    pub(crate) program: String,
    pub(crate) threads: usize,
    pub(crate) totals: Counts,
    /// Programs that it became without being followed.
    pub(crate) lost_execs: Vec<String>,
    pub(crate) is_complete: bool,
}

/// Everything that a modelled run left.
#[derive(Clone, Debug)]
pub(crate) struct ModelledRun {
    pub(crate) exit: ExitStatus,
    /// Over all processes and threads.
    pub(crate) totals: Counts,
    pub(crate) processes: Vec<ModelledProcess>,
    /// Ticks and runs by image and offset.
    pub(crate) profile: Profile,
    /// One sentence where QEMU lacked an instruction.
    pub(crate) missing_instruction: Option<&'static str>,
}

impl ModelledRun {
    pub(crate) fn read(finished: Finished, machine: &Machine) -> ModelledRun {
        let event = |name: &str, number| Event {
            name: name.into(),
            code: EventCode::new(MODELLED, number),
            mode: Mode::User,
        };
        let epoch = Epoch { host: machine.name.clone(), began_unix_ns: 0 };
        let events = vec![event("cycles", 0), event("instructions", 1)];
        let mut run = ModelledRun {
            exit: finished.status,
            totals: Counts::default(),
            processes: Vec::new(),
            profile: Profile::empty(epoch, Source::Modelled, events),
            missing_instruction: finished.missing_instruction(),
        };
        for process in tracer::counts::counts(&finished.processes) {
            let modelled = finished.processes.get(&process.key).map(|file| &file.modelled);
            run.add_process(&process, modelled.unwrap_or(&BTreeMap::new()));
        }
        run
    }

    /// The status to pass through, as a shell would have it.
    pub(crate) fn status(&self) -> u8 {
        match (self.exit.code(), self.exit.signal()) {
            (Some(code), _) => code as u8,
            (None, signal) => 128_u8.saturating_add(signal.unwrap_or(0) as u8),
        }
    }

    fn add_process(&mut self, process: &ProcessCounts, threads: &BTreeMap<u32, ModelledThread>) {
        let mut whole = ModelledThread::default();
        threads.values().for_each(|thread| whole.add(thread));
        for (total, more) in self.totals.0.iter_mut().zip(whole.totals.0) {
            *total = total.saturating_add(more);
        }
        self.store_rows(process, &whole.rows);
        self.processes.push(ModelledProcess {
            pid: process.key.pid,
            program: process.program.clone(),
            threads: threads.len(),
            totals: whole.totals,
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
        let Some(code) = placed.block.instructions.get(place) else { return };
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
        let image = self.profile.image_id(&Image { kind, path, build_id: None });
        let spot = |event| Spot { image, offset: Offset(offset), event };
        self.profile.store(spot(CYCLES), Count(row.ticks));
        self.profile.store(spot(RUNS), Count(row.runs));
    }

    pub(crate) fn cycles(&self) -> u64 {
        self.totals[ModelEvent::Cycles]
    }

    pub(crate) fn instructions(&self) -> u64 {
        self.totals[ModelEvent::Instructions]
    }
}

/// Ticks as cycles.
pub(crate) fn cycles_of(ticks: Count) -> f64 {
    ticks.as_f64() / TICKS as f64
}
