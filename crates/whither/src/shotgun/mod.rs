//! `whither shotgun`: what fixing this, that or both would save, from sparse samples.
//!
//! ```text
//! program ─► tracer ─► windows: reference core + monitor ─┐
//! kept samples ───────────────────────────────────────────┼─► Taken ─► icost::shotgun ─► View
//! perf.data: branch stacks, load latencies + the images ──┘
//! ```

mod listen;
mod recorded;
mod view;

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use icost::shotgun::{CodeBook, Defaults, Gathered, Question, SampleFile, Shotgun, Tally, analyse};
use icost::{Arbitration, Categories, Category, Fixed, Player, subsets_up_to};
use model::monitor::LENGTH;
use vocab::Source;

use crate::cli::{InputKind, ShotgunJob};
use crate::failure::{ERROR, Failure, RUN_FAILED, passed_on};
use crate::icost::{Answer, Asked};
use crate::output::Output;
use crate::progress::Progress;

/// Samples, wherever they come from.
#[derive(Debug)]
pub(crate) struct Taken {
    /// What was sampled, in words.
    pub(crate) what: String,
    pub(crate) source: Source,
    /// Of each process.
    pub(crate) gathered: Vec<Gathered>,
    /// Instructions that ran, where that is known.
    pub(crate) instructions: Option<u64>,
    /// How the program ended, where one ran.
    pub(crate) exit: Option<ExitStatus>,
    /// Sentences about what is missing.
    pub(crate) lacks: Vec<String>,
}

/// Samples the program, or reads samples, and reports; returns the program's own status.
pub(crate) fn shotgun(job: &ShotgunJob, output: &Output) -> Result<u8, Failure> {
    output.check_file()?;
    let mut taken = match &job.input {
        None => listen::listen(job)?,
        Some(input) => match &input.from {
            InputKind::Samples(file) => from_samples(job, &input.path, file),
            InputKind::Recording => recorded::read(job, &input.path, !output.json)?,
        },
    };
    if taken.gathered.iter().all(|one| one.samples.signatures.is_empty()) {
        return Err(nothing(&taken));
    }
    if let Some(path) = &job.keep {
        keep(job, path, &mut taken)?;
    }
    let bar = Progress::clock("putting fragments together", !output.json);
    let (tally, answer, cpi) = answered(job, &taken.gathered);
    drop(bar);
    if tally.consistent + tally.cut == 0 {
        let what = format!("none of the {} fragments holds together", tally.signatures);
        return Err(Failure::new(status(job), what).remedy("take more detailed samples"));
    }
    output.write(&view::view(job, &taken, &tally, &answer, cpi))?;
    Ok(taken.exit.map_or(0, |exit| passed_on(exit.code(), exit.signal())))
}

fn status(job: &ShotgunJob) -> u8 {
    if job.input.is_some() || job.icost.replay().is_some() { ERROR } else { RUN_FAILED }
}

fn nothing(taken: &Taken) -> Failure {
    let what = match taken.instructions {
        Some(ran) => format!("{ran} instructions ran, too few for a signature of {LENGTH}"),
        None => format!("{}: there are no signatures in it", taken.what),
    };
    Failure::new(RUN_FAILED, what).remedy("give it more to do")
}

fn from_samples(job: &ShotgunJob, path: &std::path::Path, file: &SampleFile) -> Taken {
    let mut code = CodeBook::new(&job.icost.model.machine);
    file.code.iter().for_each(|block| code.add(block));
    let mut lacks = Vec::new();
    if file.machine != job.icost.model.machine.name {
        lacks.push(format!(
            "The samples were taken on {}: their latencies are that machine's.",
            file.machine
        ));
    }
    Taken {
        what: path.display().to_string(),
        source: Source::Modelled,
        instructions: Some(file.samples.instructions),
        gathered: vec![Gathered { process: 0, samples: file.samples.clone(), code }],
        exit: None,
        lacks,
    }
}

/// Keeps the samples of the busiest process.
fn keep(job: &ShotgunJob, path: &std::path::Path, taken: &mut Taken) -> Result<(), Failure> {
    let most = taken.gathered.iter().max_by_key(|one| one.samples.signatures.len());
    let Some(most) = most else { return Ok(()) };
    let file = SampleFile {
        machine: job.icost.model.machine.name.clone(),
        samples: most.samples.clone(),
        code: most.code.blocks().to_vec(),
    };
    std::fs::write(path, file.to_bytes()).map_err(|why| {
        Failure::new(status(job), format!("cannot write {}: {why}", path.display()))
    })?;
    let others = taken.gathered.len() - 1;
    if others > 0 {
        let what = format!("The samples of {others} other processes are not in the file.");
        taken.lacks.push(what);
    }
    Ok(())
}

/// Lanes for singles and pairs, and for every set of the eight.
const PAIRS: usize = 48;
const POWERSET: usize = 256;

fn answered(job: &ShotgunJob, gathered: &[Gathered]) -> (Tally, Answer, Option<f64>) {
    let most = if job.icost.is_powerset { Category::ALL.len() as u32 } else { 2 };
    let mut sets = subsets_up_to(most);
    if !sets.contains(&Categories::ALL) {
        sets.push(Categories::ALL);
    }
    let all = analysed(job, gathered, &sets, Arbitration::Anew);
    let frozen = analysed(job, gathered, &subsets_up_to(1), Arbitration::Frozen);
    let (players, words) =
        Category::ALL.iter().map(|&c| (Player::category(c), c.words().to_owned())).unzip();
    let costs = |found: &Option<Shotgun>| found.as_ref().map(Shotgun::costs).unwrap_or_default();
    let main = Asked { players, words, costs: costs(&all) };
    let answer = Answer { main, frozen: costs(&frozen), finer: None, instructions: None };
    let cpi = all.as_ref().and_then(Shotgun::cycles_per_instruction);
    (all.map(|found| found.tally).unwrap_or_default(), answer, cpi)
}

/// Every process, together.
fn analysed(
    job: &ShotgunJob,
    gathered: &[Gathered],
    sets: &[Categories],
    arbitration: Arbitration,
) -> Option<Shotgun> {
    let machine = &job.icost.model.machine;
    let question = Question {
        fixed: Fixed::of(machine),
        defaults: Defaults::of(machine),
        sets,
        arbitration,
        seed: job.plan.rates.seed,
    };
    let one = |one: &Gathered| match sets.len() <= PAIRS {
        true => analyse::<PAIRS>(&one.samples, &one.code, &question),
        false => analyse::<POWERSET>(&one.samples, &one.code, &question),
    };
    gathered.iter().map(one).reduce(Shotgun::joined)
}
