//! Listening to a program, or to a trace of one.

use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::sync::Arc;

use icost::sample::{Sampled, Sampler, Schedule};
use model::core::Accounting;
use model::machine::Machine;
use model::stream::{Access, BlockId, CoreListener, StaticBlock};
use tracer::modelled::ModelledThread;
use tracer::record::ProcessRecord;
use tracer::results::{ProcessFile, ProcessKey};
use tracer::trace::Audience;

use super::{Played, play};
use crate::cli::{IcostJob, ModelJob};
use crate::failure::{Failure, passed_on};
use crate::model::core_of;

/// What a program left.
#[derive(Debug)]
pub(crate) struct Heard {
    pub(crate) sampled: Sampled,
    /// What was said about its processes: where their code came from.
    pub(crate) processes: BTreeMap<ProcessKey, ProcessFile>,
    /// How it ended; none where a trace was replayed.
    pub(crate) exit: Option<ExitStatus>,
    /// Sentences about what is missing.
    pub(crate) damage: Vec<String>,
}

impl Heard {
    /// The status to pass through, as a shell would have it.
    pub(crate) fn status(&self) -> u8 {
        self.exit.map_or(0, |exit| passed_on(exit.code(), exit.signal()))
    }
}

/// Runs the program, or replays the trace.
pub(crate) fn listen(job: &IcostJob) -> Result<Heard, Failure> {
    hear(job, None)
}

/// The same, and times all of it on the core that a job asks for: the accounts are in `processes`.
pub(crate) fn listen_and_time(job: &IcostJob) -> Result<Heard, Failure> {
    hear(job, Some(&job.model))
}

fn hear(job: &IcostJob, timed: Option<&ModelJob>) -> Result<Heard, Failure> {
    let mut listeners = Listeners {
        timed,
        machine: Arc::new(job.model.machine.clone()),
        schedule: Arc::new(Schedule::new(job.plan)),
        processes: BTreeMap::new(),
    };
    let Played { exit, damage } = play(&job.model, &mut listeners)?;
    let sampled = listeners.schedule.finish();
    Ok(Heard { sampled, processes: listeners.processes, exit, damage })
}

struct Listeners<'a> {
    timed: Option<&'a ModelJob>,
    machine: Arc<Machine>,
    schedule: Arc<Schedule>,
    processes: BTreeMap<ProcessKey, ProcessFile>,
}

impl Listeners<'_> {
    fn process(&mut self, key: ProcessKey) -> &mut ProcessFile {
        self.processes.entry(key).or_insert_with(|| ProcessFile::empty(key))
    }
}

impl Audience for Listeners<'_> {
    type Core = Listener;

    fn thread(&mut self, process: ProcessKey, thread: u32) -> Listener {
        let (machine, schedule) = (self.machine.clone(), self.schedule.clone());
        Listener {
            sampler: Sampler::new(machine, schedule, process.to_word()),
            core: self.timed.map(|job| core_of(job, thread)),
        }
    }

    fn record(&mut self, process: ProcessKey, record: &ProcessRecord) {
        record.encode(&mut self.process(process).records);
    }

    fn ended(&mut self, process: ProcessKey, thread: u32, listener: Listener) {
        let Some(mut core) = listener.core else { return };
        core.settle_all();
        let account = ModelledThread::of(core.as_ref());
        self.process(process).modelled.insert(thread, account);
    }
}

/// Draws windows, and times everything if asked to.
struct Listener {
    sampler: Sampler,
    core: Option<Box<dyn Accounting>>,
}

impl Listener {
    fn each(&mut self, tell: impl Fn(&mut dyn CoreListener)) {
        tell(&mut self.sampler);
        if let Some(core) = &mut self.core {
            tell(core.as_mut());
        }
    }
}

impl CoreListener for Listener {
    fn translated(&mut self, id: BlockId, block: &StaticBlock) {
        self.each(|listener| listener.translated(id, block));
    }

    fn executed(&mut self, id: BlockId, ran: u16, accesses: &[Access]) {
        self.each(|listener| listener.executed(id, ran, accesses));
    }

    fn continued(&mut self, id: BlockId, accesses: &[Access]) {
        self.each(|listener| listener.continued(id, accesses));
    }

    fn interrupted(&mut self) {
        self.each(|listener| listener.interrupted());
    }

    fn system_call(&mut self, number: u64) {
        self.each(|listener| listener.system_call(number));
    }
}
