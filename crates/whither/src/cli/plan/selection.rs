//! Which part of which database, checked and completed.

use std::path::PathBuf;

use super::database::database;
use super::time::parse_time;
use crate::cli::arguments::SelectionArguments;
use crate::failure::{Failure, USAGE};

/// Which part of which database.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Selection {
    pub(crate) database: PathBuf,
    pub(crate) epoch: Option<EpochChoice>,
    pub(crate) host: Option<String>,
    pub(crate) image: Option<String>,
    pub(crate) event: Option<String>,
    pub(crate) since_unix_ns: u64,
    pub(crate) until_unix_ns: u64,
    pub(crate) modelled: bool,
}

/// Which epochs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum EpochChoice {
    /// From the first number to the last, both included.
    Numbers(u64, u64),
    /// The newest of each host.
    Last,
}

/// `named` is a database that stands among other words.
pub(super) fn selection(
    asked: SelectionArguments,
    named: Option<PathBuf>,
) -> Result<Selection, Failure> {
    Ok(Selection {
        database: database(asked.db.or(named))?,
        epoch: asked.epoch.as_deref().map(epochs).transpose()?,
        host: asked.host,
        image: asked.image,
        event: asked.event,
        since_unix_ns: asked.since.as_deref().map_or(Ok(0), parse_time)?,
        until_unix_ns: asked.until.as_deref().map_or(Ok(u64::MAX), parse_time)?,
        modelled: asked.modelled,
    })
}

/// `7`, `7-9` or `last`.
pub(super) fn epochs(text: &str) -> Result<EpochChoice, Failure> {
    if text == "last" {
        return Ok(EpochChoice::Last);
    }
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    match (first.parse(), last.parse()) {
        (Ok(first), Ok(last)) if first <= last => Ok(EpochChoice::Numbers(first, last)),
        _ => Err(Failure::new(USAGE, format!("'{text}' is no epoch"))
            .remedy("give a number, two like 7-9, or last; `whither prof by epoch` lists them")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn epochs_are_a_number_a_range_or_the_last() {
        assert_eq!(epochs("7"), Ok(EpochChoice::Numbers(7, 7)));
        assert_eq!(epochs("7-9"), Ok(EpochChoice::Numbers(7, 9)));
        assert_eq!(epochs("last"), Ok(EpochChoice::Last));
        for odd in ["", "x", "9-7", "-3", "1-2-3"] {
            assert_eq!(epochs(odd).unwrap_err().status, USAGE, "{odd}");
        }
    }
}
