//! One execution on the machine, counted from its first instruction to its end.

use std::ffi::{CString, OsString};
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use perf::{Counter, Ended, Held, Refusal, Surroundings};

use super::conditions::Conditions;
use super::quantity::{Kind, Quantity, is_clock};
use super::source::{Doubt, Ending, Execution, open};
use crate::cli::MeasureJob;
use crate::failure::{ERROR, Failure};
use crate::run::{Program, exec_failure, find_program};

/// Timer interrupts a second of CPU time, at most.
const TICKS_MAX_HZ: f64 = 1000.0;

/// A program that was found, ready to be started again and again.
#[derive(Debug)]
pub(super) struct NativeProgram {
    program: Program,
    path: CString,
    arguments: Vec<CString>,
    environment: Vec<CString>,
    input: PathBuf,
    shows_output: bool,
    ignores_failure: bool,
}

impl NativeProgram {
    pub(super) fn find(
        job: &MeasureJob,
        command: &[OsString],
        input: PathBuf,
    ) -> Result<NativeProgram, Failure> {
        let program = find_program(command)?;
        let (path, arguments, environment) = program.for_exec()?;
        Ok(NativeProgram {
            program,
            path,
            arguments,
            environment,
            input,
            shows_output: job.shows_output,
            ignores_failure: job.ignores_failure,
        })
    }

    pub(super) fn shown(&self) -> String {
        self.program.shown()
    }

    pub(super) fn execute(
        &self,
        quantities: &[Quantity],
        measured: &[usize],
        conditions: &Conditions,
    ) -> Result<Execution, Failure> {
        let around = Surroundings {
            input: Some(open(&self.input)?),
            output: self.output()?,
            layout: conditions.layout,
        };
        let held =
            Held::fork_in(&self.path, &self.arguments, &self.environment(conditions), &around)
                .map_err(|error| cannot("start a process", error))?;
        let mut counters: Vec<(usize, Result<Counter, Refusal>)> = Vec::new();
        for &place in measured {
            if let Some(Kind::Counted { event, .. }) = quantities.get(place).map(|q| &q.kind) {
                counters.push((place, Counter::on_exec(event, held.pid())));
            }
        }
        let aside = perf::Bystander::of(held.pid());
        let began = Instant::now();
        let running = held.go().map_err(|failed| exec_failure(&self.program, failed))?;
        let ended = running.wait().map_err(|error| cannot("wait for the program", error))?;
        let elapsed = began.elapsed();
        drop(aside);
        let mut execution = Execution {
            ending: Ending::of(ended.code(), ended.signal(), self.ignores_failure),
            values: vec![None; quantities.len()],
            doubts: vec![Doubt::default(); quantities.len()],
        };
        for &place in measured {
            let time = quantities.get(place).and_then(|q| time_of(&q.kind, elapsed, &ended));
            if let (Some(time), Some(slot)) = (time, execution.values.get_mut(place)) {
                *slot = Some(time);
            }
        }
        for (place, counter) in counters {
            let value = counter.ok().and_then(read);
            if let (Some(quantity), Some(slot)) =
                (quantities.get(place), execution.values.get_mut(place))
            {
                *slot = value.map(|count| scaled(quantity, count));
            }
        }
        doubt(&mut execution, quantities, &ended);
        Ok(execution)
    }

    fn output(&self) -> Result<Option<File>, Failure> {
        if self.shows_output {
            return Ok(None);
        }
        let null = File::options().write(true).open("/dev/null");
        null.map(Some).map_err(|error| cannot("drop the program's output", error))
    }

    fn environment(&self, conditions: &Conditions) -> Vec<CString> {
        let mut environment = self.environment.clone();
        for (name, value) in conditions.added() {
            let assignment = [name.as_bytes(), b"=", value.as_bytes()].concat();
            environment.extend(CString::new(assignment));
        }
        environment
    }
}

fn cannot(what: &str, error: io::Error) -> Failure {
    Failure::new(ERROR, format!("cannot {what}: {error}"))
}

fn time_of(kind: &Kind, elapsed: Duration, ended: &Ended) -> Option<f64> {
    match kind {
        Kind::Wall => Some(elapsed.as_secs_f64()),
        Kind::User => Some(ended.usage.user.as_secs_f64()),
        Kind::System => Some(ended.usage.system.as_secs_f64()),
        Kind::Counted { .. } | Kind::Modelled(_) => None,
    }
}

/// The count, if the event had its counter all the time; groups are small enough for that unless
/// someone else uses the PMU too.
fn read(mut counter: Counter) -> Option<f64> {
    let reading = counter.read().ok()?;
    (reading.running_ns == reading.enabled_ns).then(|| reading.count.as_f64())
}

fn scaled(quantity: &Quantity, count: f64) -> f64 {
    match &quantity.kind {
        Kind::Counted { event, .. } if is_clock(event) => count * 1e-9,
        _ => count,
    }
}

/// What each count may hold in excess: so much per interruption, which are the timer's ticks and
/// the faults, where those were counted.
fn doubt(execution: &mut Execution, quantities: &[Quantity], ended: &Ended) {
    let faults: f64 = quantities
        .iter()
        .zip(&execution.values)
        .filter(|(quantity, _)| matches!(&*quantity.name, "minor-faults" | "major-faults"))
        .filter_map(|(_, value)| *value)
        .sum();
    let cpu_s = (ended.usage.user + ended.usage.system).as_secs_f64();
    for (quantity, doubt) in quantities.iter().zip(&mut execution.doubts) {
        if let Kind::Counted { extra_per_interruption, .. } = quantity.kind {
            doubt.excess = f64::from(extra_per_interruption) * (faults + TICKS_MAX_HZ * cpu_s);
        }
    }
}
