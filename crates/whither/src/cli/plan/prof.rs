//! `whither prof`, checked and completed.

use std::path::PathBuf;

use clap::ValueEnum;
use pmu::nearest;

use super::selection::{Selection, selection};
use crate::cli::arguments::{By, ProfArguments};
use crate::failure::{Failure, USAGE};

/// What is to be shown of which database.
#[derive(Debug)]
pub(crate) struct ProfJob {
    pub(crate) selection: Selection,
    pub(crate) by: By,
    pub(crate) rows: usize,
}

pub(super) fn prof_job(prof: ProfArguments) -> Result<ProfJob, Failure> {
    let (named, by) = words(&prof.words)?;
    Ok(ProfJob { selection: selection(prof.selection, named)?, by, rows: prof.rows })
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
