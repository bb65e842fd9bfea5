//! `whither import`: recordings of other tools and machines into the database.
//!
//! ```text
//! perf.data ─► recording: items in order ─► Placer: the recording's own maps ─► Profile ─► epoch
//! ```

mod other_database;
mod view;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use collect::{KernelLayout, Placer};
use recording::{Item, Outcome, read_file, read_pipe};
use store::{Facts, Span};
use vocab::{Count, Epoch, Profile};

use crate::cli::ImportJob;
use crate::database::{Keeping, Kept, Periods, keep, now_unix_ns, take_item};
use crate::failure::{ERROR, Failure};
use crate::output::Output;
use crate::progress::Progress;

/// Imports, and says what was found.
pub(crate) fn import(job: &ImportJob, output: &Output) -> Result<u8, Failure> {
    match &job.file {
        Some(path) if path.is_dir() => other_database::import(job, path, output),
        _ => import_recording(job, output),
    }
}

/// A recording that was read.
struct Read {
    name: String,
    profile: Profile,
    outcome: Outcome,
    span: Span,
    periods: BTreeMap<String, u64>,
}

fn import_recording(job: &ImportJob, output: &Output) -> Result<u8, Failure> {
    let bar = Progress::clock("reading the recording", !output.json);
    let mut read = match &job.file {
        Some(path) => from_file(path)?,
        None => from_stdin(),
    };
    drop(bar);
    let damage = read.outcome.damage.take();
    let told = |kept: String| {
        let failed = |damage| Failure::new(ERROR, format!("{}: {damage}", read.name)).kept(kept);
        damage.map_or(Ok(0), |damage| Err(failed(damage)))
    };
    if read.profile.tally.taken() == Count::ZERO {
        let nothing = format!("{}: it holds no samples", read.name);
        return told("it held no samples before that".into())
            .and_then(|_| Err(Failure::new(ERROR, nothing)));
    }
    let kept = stored(job, &read)?;
    output.write(&view::view(&read, &kept))?;
    let before = read.profile.tally.taken();
    told(format!("the {before} samples before that are in epoch {}", kept.epoch))
}

fn stored(job: &ImportJob, read: &Read) -> Result<Kept, Failure> {
    let recorded = read.outcome.host.as_deref();
    keep(
        Keeping {
            database: &job.database,
            host: job.host.as_deref().or(recorded).unwrap_or("unknown"),
            writer: "import",
            facts: Facts {
                origin: format!("import {}", read.name),
                periods: read.periods.clone(),
                ..Facts::default()
            },
            span: read.span,
            status: ERROR,
        },
        &read.profile,
    )
}

fn from_file(path: &Path) -> Result<Read, Failure> {
    let cannot = |error: std::io::Error| {
        Failure::new(ERROR, format!("cannot read {}: {error}", path.display()))
    };
    let file = File::open(path).map_err(cannot)?;
    // The recording's clock counts from the boot of its machine; the file knows when it ended.
    let ended = file.metadata().and_then(|metadata| metadata.modified()).ok();
    let ended = ended.and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok());
    let mut placing = Placing::new();
    let outcome = read_file(BufReader::new(file), |item| placing.take(item));
    let ended_ns = ended.map_or_else(now_unix_ns, |time| time.as_nanos() as u64);
    let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
    Ok(placing.finish(name, outcome, ended_ns))
}

fn from_stdin() -> Read {
    let mut placing = Placing::new();
    let outcome = read_pipe(std::io::stdin().lock(), |item| placing.take(item));
    placing.finish("standard input".into(), outcome, now_unix_ns())
}

/// Items on their way into a profile.
struct Placing {
    placer: Placer,
    periods: Periods,
    first_ns: Option<u64>,
    last_ns: u64,
}

impl Placing {
    fn new() -> Placing {
        let epoch = Epoch { host: String::new(), began_unix_ns: 0 };
        let placer = Placer::new(epoch, Vec::new(), KernelLayout::default()).apart();
        Placing { placer, periods: Periods::default(), first_ns: None, last_ns: 0 }
    }

    fn take(&mut self, item: Item) {
        if item.is_sample() {
            self.first_ns.get_or_insert(item.time_ns);
            self.last_ns = self.last_ns.max(item.time_ns);
        }
        self.periods.take(&item);
        take_item(&mut self.placer, item);
    }

    fn finish(mut self, name: String, outcome: Outcome, ended_ns: u64) -> Read {
        self.placer.take_build_ids(outcome.build_ids.iter().map(|(path, id)| (path.as_str(), *id)));
        let mut profile = self.placer.finish();
        profile.events = outcome.events.iter().map(|recorded| recorded.event.clone()).collect();
        let took_ns = self.last_ns.saturating_sub(self.first_ns.unwrap_or(0));
        let span = Span { from_unix_ns: ended_ns.saturating_sub(took_ns), to_unix_ns: ended_ns };
        let periods = self.periods.of(&outcome.events);
        Read { name, profile, outcome, span, periods }
    }
}
