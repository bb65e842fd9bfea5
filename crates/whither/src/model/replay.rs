//! A modelled run without an engine: the program's instructions come from a recorded trace.

use std::collections::BTreeMap;
use std::path::Path;

use model::core::Accounting;
use model::fast::FastCore;
use model::reference::ReferenceCore;
use model::sampled::{Plan, SampledCore};
use model::stream::{Access, BlockId, CoreListener, StaticBlock};
use tracer::modelled::{CoreAsk, ModelledThread};
use tracer::record::ProcessRecord;
use tracer::results::{ProcessFile, ProcessKey};
use tracer::stream::{InstructionStream, Recorded};
use tracer::trace::Audience;

use super::account::ModelledRun;
use crate::cli::ModelJob;
use crate::failure::{ERROR, Failure};

/// Models what a trace tells.
pub(super) fn replay(job: &ModelJob, trace: &Path) -> Result<ModelledRun, Failure> {
    let mut listeners = Listeners { job, processes: BTreeMap::new() };
    let (replayed, ()) = Recorded { path: trace.to_owned() }
        .play(&mut listeners)
        .map_err(|error| Failure::new(ERROR, error.to_string()))?;
    let mut run = ModelledRun::of(None, &listeners.processes, &job.machine);
    if !replayed.broken.is_empty() {
        let streams = match replayed.broken.len() {
            1 => "The stream of a thread breaks".to_owned(),
            many => format!("The streams of {many} threads break"),
        };
        run.damage.push(format!("{streams} off: a part of the trace is missing or damaged."));
    }
    if replayed.skipped_bytes > 0 {
        run.damage.push(format!(
            "{} bytes of the trace could not be read: it is cut short or damaged, and what they told \
             is in no count.",
            replayed.skipped_bytes
        ));
    }
    Ok(run)
}

struct Listeners<'a> {
    job: &'a ModelJob,
    processes: BTreeMap<ProcessKey, ProcessFile>,
}

impl Listeners<'_> {
    fn process(&mut self, key: ProcessKey) -> &mut ProcessFile {
        self.processes.entry(key).or_insert_with(|| ProcessFile::empty(key))
    }
}

impl Audience for Listeners<'_> {
    type Core = Core;

    fn thread(&mut self, _: ProcessKey, thread: u32) -> Core {
        Core(core_of(self.job, thread))
    }

    fn record(&mut self, process: ProcessKey, record: &ProcessRecord) {
        record.encode(&mut self.process(process).records);
    }

    fn ended(&mut self, process: ProcessKey, thread: u32, mut core: Core) {
        core.0.settle_all();
        let account = ModelledThread::of(core.0.as_ref());
        self.process(process).modelled.insert(thread, account);
    }
}

/// The core that a job asks for, for a thread.
pub(crate) fn core_of(job: &ModelJob, thread: u32) -> Box<dyn Accounting> {
    let (machine, settings) = (&job.machine, job.settings);
    match job.core {
        // Without a core there is nothing to report; the fast one stands in.
        CoreAsk::Fast | CoreAsk::Warm | CoreAsk::Interrupts(_) => {
            Box::new(FastCore::new(machine, settings))
        }
        CoreAsk::Reference => Box::new(ReferenceCore::new(machine, settings)),
        CoreAsk::Sampled { error_ppm, seed } => {
            let seed = seed.wrapping_add(u64::from(thread) << 32);
            let plan = Plan { error: f64::from(error_ppm) / 1e6, seed, ..Plan::default() };
            Box::new(SampledCore::new(machine, settings, plan))
        }
    }
}

/// Whichever core was asked for.
struct Core(Box<dyn Accounting>);

impl CoreListener for Core {
    fn translated(&mut self, id: BlockId, block: &StaticBlock) {
        self.0.translated(id, block);
    }

    fn executed(&mut self, id: BlockId, ran: u16, accesses: &[Access]) {
        self.0.executed(id, ran, accesses);
    }

    fn continued(&mut self, id: BlockId, accesses: &[Access]) {
        self.0.continued(id, accesses);
    }

    fn interrupted(&mut self) {
        self.0.interrupted();
    }

    fn system_call(&mut self, number: u64) {
        self.0.system_call(number);
    }
}
