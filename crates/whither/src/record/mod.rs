//! `whither record`: samples of a program, of processes or of the machine, into the database.
//!
//! ```text
//! rings, one an event and CPU ─► Live: in order ─► Placer ─► Profile ─► one epoch
//! ```

mod attach;
mod follow;
mod modelled;
mod view;

use collect::Placer;
use perf::Rate;
use recording::Live;
use store::{Facts, Span};
use vocab::{Count, Epoch, Event, Profile};

use crate::cli::{RecordJob, Who};
use crate::database::{Keeping, Kept, agreed, host_name, keep, note_facts, now_unix_ns};
use crate::failure::{Failure, RUN_FAILED, passed_on};
use crate::output::Output;
use crate::run::{Sampling, choose_for, kernel_layout};
use follow::Collection;

/// What was recorded.
struct Recorded {
    command: String,
    profile: Profile,
    ended: Option<perf::Ended>,
    span: Span,
}

/// Records, stores, and says so; returns the program's own status.
pub(crate) fn record(job: &RecordJob, output: &Output) -> Result<u8, Failure> {
    if let Some(modelled) = &job.modelled {
        return modelled::record(job, modelled, output);
    }
    let samplings = samplings(job)?;
    let events: Vec<Event> = samplings.iter().map(|s| s.request.event.clone()).collect();
    let epoch = Epoch { host: host_name(), began_unix_ns: now_unix_ns() };
    let placer = Placer::new(epoch, events.clone(), kernel_layout()).apart();
    let collection =
        Collection { samplers: Vec::new(), live: Live::new(&events, job.chains), placer };
    let recorded = match &job.who {
        Who::Program => follow::program(job, &samplings, collection)?,
        Who::Processes(_) | Who::Threads(_) | Who::Machine => {
            attach::attached(job, &samplings, collection)?
        }
    };
    let status = recorded.ended.map_or(0, |ended| passed_on(ended.code(), ended.signal()));
    let rates: Vec<String> = samplings.iter().map(rate).collect();
    let periods = samplings
        .iter()
        .filter_map(|sampling| Some((sampling.request.event.name.as_str(), sampling.period()?)));
    let facts = Facts {
        origin: format!("record {} ({})", recorded.command, rates.join(", ")),
        periods: agreed(periods),
        ..Facts::default()
    };
    let kept = store(job, &recorded, facts)?;
    output.write(&view::view(&recorded, &kept, &rates))?;
    Ok(status)
}

/// One for each event that was asked for; or the best that there is.
fn samplings(job: &RecordJob) -> Result<Vec<Sampling>, Failure> {
    if job.events.is_empty() {
        return Ok(vec![choose_for(None, job.rate)?]);
    }
    job.events.iter().map(|event| choose_for(Some(event), job.rate)).collect()
}

fn rate(sampling: &Sampling) -> String {
    let name = &sampling.request.event.name;
    match sampling.request.rate {
        Rate::Hertz(hertz) => format!("{name} at {hertz} Hz"),
        Rate::Period(period) => format!("{name} every {period}"),
    }
}

fn store(job: &RecordJob, recorded: &Recorded, facts: Facts) -> Result<Kept, Failure> {
    if recorded.profile.tally.taken() == Count::ZERO {
        return Err(Failure::new(RUN_FAILED, "no samples came")
            .kept("nothing was stored")
            .remedy("it may have run too short a time: ask for more with -F"));
    }
    keep(
        Keeping {
            database: &job.database,
            host: &recorded.profile.epoch.host,
            writer: "record",
            facts,
            span: recorded.span,
            status: RUN_FAILED,
        },
        &recorded.profile,
    )
}

impl Recorded {
    fn new(command: String, mut profile: Profile, ended: Option<perf::Ended>) -> Recorded {
        note_facts(&mut profile);
        let span = Span { from_unix_ns: profile.epoch.began_unix_ns, to_unix_ns: now_unix_ns() };
        Recorded { command, profile, ended, span }
    }
}
