//! `whither prof`, checked and completed.

use std::path::PathBuf;

use clap::ValueEnum;
use pmu::nearest;

use super::database::database;
use super::time::parse_time;
use crate::cli::arguments::{By, ProfArguments};
use crate::failure::{Failure, USAGE};

/// What is to be shown of which database.
#[derive(Debug)]
pub(crate) struct ProfJob {
    pub(crate) database: PathBuf,
    pub(crate) by: By,
    pub(crate) epoch: Option<EpochChoice>,
    pub(crate) host: Option<String>,
    pub(crate) image: Option<String>,
    pub(crate) event: Option<String>,
    pub(crate) since_unix_ns: u64,
    pub(crate) until_unix_ns: u64,
    pub(crate) modelled: bool,
    pub(crate) rows: usize,
}

/// Which epochs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum EpochChoice {
    Number(u64),
    /// The newest of each host.
    Last,
}

pub(super) fn prof_job(prof: ProfArguments) -> Result<ProfJob, Failure> {
    let (named, by) = words(&prof.words)?;
    let epoch = match prof.epoch.as_deref() {
        None => None,
        Some("last") => Some(EpochChoice::Last),
        Some(text) => Some(text.parse().map(EpochChoice::Number).map_err(|_| {
            Failure::new(USAGE, format!("'{text}' is no epoch"))
                .remedy("give a number, or last; `whither prof by epoch` lists them")
        })?),
    };
    Ok(ProfJob {
        database: database(prof.db.or(named))?,
        by,
        epoch,
        host: prof.host,
        image: prof.image,
        event: prof.event,
        since_unix_ns: prof.since.as_deref().map_or(Ok(0), parse_time)?,
        until_unix_ns: prof.until.as_deref().map_or(Ok(u64::MAX), parse_time)?,
        modelled: prof.modelled,
        rows: prof.rows,
    })
}

/// `[DB] [by WHAT]`.
fn words(words: &[String]) -> Result<(Option<PathBuf>, By), Failure> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        [] => Ok((None, By::Procedure)),
        ["by", what] => Ok((None, by(what)?)),
        [db, "by", what] => Ok((Some(PathBuf::from(db)), by(what)?)),
        [db] if *db != "by" => Ok((Some(PathBuf::from(db)), By::Procedure)),
        _ => Err(Failure::new(USAGE, format!("'{}' makes no sense here", words.join(" ")))
            .remedy("write `whither prof [DB] [by image|procedure|process|event|epoch|host]`")),
    }
}

fn by(what: &str) -> Result<By, Failure> {
    By::from_str(what, false).map_err(|_| {
        let all = ["image", "procedure", "process", "event", "epoch", "host"];
        let near = match nearest(what, all) {
            Some(near) => format!("did you mean '{near}'?"),
            None => format!("there are {}", all.join(", ")),
        };
        Failure::new(USAGE, format!("there is no view by '{what}'; {near}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_database_and_by_what_come_in_this_order_or_not_at_all() {
        let parsed = |line: &str| {
            let split: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
            words(&split)
        };
        assert_eq!(parsed(""), Ok((None, By::Procedure)));
        assert_eq!(parsed("by image"), Ok((None, By::Image)));
        assert_eq!(parsed("/db by host"), Ok((Some("/db".into()), By::Host)));
        assert_eq!(parsed("/db"), Ok((Some("/db".into()), By::Procedure)));
        for odd in ["by", "/db by", "image by /db", "by imgae"] {
            assert_eq!(parsed(odd).unwrap_err().status, USAGE, "{odd}");
        }
    }
}
