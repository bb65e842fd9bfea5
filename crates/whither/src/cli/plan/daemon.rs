//! `whither daemon`, checked and completed.

use std::path::PathBuf;
use std::time::Duration;

use pmu::parse_events;
use vocab::Event;

use super::event_table;
use crate::cli::arguments::{
    ConfigArgument, DaemonArguments, DaemonCommand, DaemonStart, DatabaseArgument,
};
use crate::failure::{ERROR, Failure, USAGE};

/// What is asked of the daemon.
#[derive(Debug)]
pub(crate) enum DaemonJob {
    Start(Box<StartJob>),
    /// To the one that runs.
    Ask(Ask, PathBuf),
}

/// What a running daemon can be asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Ask {
    Stop,
    Status,
    Flush,
    Epoch,
}

/// A daemon to be started.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct StartJob {
    pub(crate) database: PathBuf,
    pub(crate) what: What,
    pub(crate) hertz: Option<u64>,
    pub(crate) drain: Duration,
    pub(crate) merge: Duration,
    pub(crate) per_process: bool,
    pub(crate) slice: Option<Duration>,
    /// How old an epoch may become.
    pub(crate) keep_ns: Option<u64>,
    /// How much all epochs of this host may take.
    pub(crate) keep_bytes: Option<u64>,
    pub(crate) chains: bool,
    pub(crate) ring: bool,
    pub(crate) foreground: bool,
    pub(crate) apart: bool,
}

/// What is to be sampled.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum What {
    Config(ConfigArgument),
    Events(Vec<Event>),
}

pub(super) fn daemon_job(arguments: DaemonArguments) -> Result<DaemonJob, Failure> {
    let ask = |ask, database: DatabaseArgument| Ok(DaemonJob::Ask(ask, folder(database)?));
    match arguments.what {
        DaemonCommand::Start(start) => Ok(DaemonJob::Start(Box::new(start_job(*start)?))),
        DaemonCommand::Stop(database) => ask(Ask::Stop, database),
        DaemonCommand::Status(database) => ask(Ask::Status, database),
        DaemonCommand::Flush(database) => ask(Ask::Flush, database),
        DaemonCommand::Epoch(database) => ask(Ask::Epoch, database),
    }
}

fn start_job(start: DaemonStart) -> Result<StartJob, Failure> {
    let what = match &start.events {
        Some(events) => What::Events(
            parse_events(&event_table(ERROR)?, events)
                .map_err(|error| Failure::new(USAGE, error.to_string()))?,
        ),
        None => What::Config(start.config),
    };
    let job = StartJob {
        database: folder(start.database)?,
        what,
        hertz: start.freq,
        drain: duration("--drain", &start.drain)?,
        merge: duration("--merge", &start.merge)?,
        per_process: start.per_process,
        slice: start.slice.map(|slice| duration("--slice", &slice)).transpose()?,
        keep_ns: start.keep_days.map(|days| days * 86_400 * 1_000_000_000),
        keep_bytes: start.keep_mb.map(|mb| mb.saturating_mul(1_000_000)),
        chains: start.call_graph,
        ring: start.ring,
        foreground: start.foreground,
        apart: start.apart,
    };
    if job.merge < job.drain {
        return Err(Failure::new(USAGE, "--merge is shorter than --drain")
            .remedy("what was not drained cannot be merged: give --drain a shorter time"));
    }
    Ok(job)
}

/// The directory, absolute: the daemon leaves the one it was started in.
fn folder(argument: DatabaseArgument) -> Result<PathBuf, Failure> {
    let named = argument.db.or_else(|| std::env::var_os("WHITHER_DB").map(PathBuf::from));
    let folder = named.map_or_else(default_folder, Ok)?;
    std::path::absolute(&folder).map_err(|error| {
        Failure::new(USAGE, format!("{} is no directory: {error}", folder.display()))
    })
}

fn default_folder() -> Result<PathBuf, Failure> {
    if perf::is_root() {
        return Ok(PathBuf::from("/var/lib/whither"));
    }
    let data = std::env::var_os("XDG_DATA_HOME").map(PathBuf::from).filter(|p| p.is_absolute());
    let home = || Some(PathBuf::from(std::env::var_os("HOME")?).join(".local/share"));
    data.or_else(home).map(|data| data.join("whither")).ok_or_else(|| {
        Failure::new(USAGE, "there is no home directory to keep a database in")
            .remedy("name a directory with --db")
    })
}

/// `90`, `90s`, `5m`, `2h`; at least a tenth of a second.
fn duration(flag: &str, text: &str) -> Result<Duration, Failure> {
    let (digits, factor) = match text.char_indices().next_back() {
        Some((at, 's')) => (&text[..at], 1.0),
        Some((at, 'm')) => (&text[..at], 60.0),
        Some((at, 'h')) => (&text[..at], 3600.0),
        _ => (text, 1.0),
    };
    let seconds = digits.parse::<f64>().ok().map(|number| number * factor);
    match seconds.filter(|seconds| (0.1..=86_400.0 * 7.0).contains(seconds)) {
        Some(seconds) => Ok(Duration::from_secs_f64(seconds)),
        None => Err(Failure::new(USAGE, format!("{flag} '{text}' is no time"))
            .remedy("write it as 30s, 5m or 1h: a tenth of a second to a week")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units_and_bounds() {
        let seconds = |text| duration("--drain", text).map(|d| d.as_secs_f64()).ok();
        assert_eq!(seconds("90"), Some(90.0));
        assert_eq!(seconds("0.5s"), Some(0.5));
        assert_eq!(seconds("5m"), Some(300.0));
        assert_eq!(seconds("2h"), Some(7200.0));
        for wrong in ["", "m", "5x", "-3", "0", "nan", "inf", "9999999h", "5 m", "µ"] {
            assert_eq!(seconds(wrong), None, "{wrong}");
        }
    }
}
