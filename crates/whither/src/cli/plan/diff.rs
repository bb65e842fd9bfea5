//! `whither diff`, checked and completed.

use std::path::PathBuf;

use super::measure::percent;
use super::selection::{Selection, epochs, selection};
use crate::cli::arguments::DiffArguments;
use crate::failure::{Failure, USAGE};

/// What is to be compared with what.
#[derive(Debug)]
pub(crate) struct DiffJob {
    pub(crate) a: Selection,
    pub(crate) b: Selection,
    /// How the two were called.
    pub(crate) names: [String; 2],
    /// By how much B may take longer, as a share of A.
    pub(crate) fail_above: Option<f64>,
    pub(crate) rows: usize,
}

pub(super) fn diff_job(asked: DiffArguments) -> Result<DiffJob, Failure> {
    if asked.selection.epoch.is_some() {
        return Err(Failure::new(USAGE, "--epoch makes no sense here")
            .remedy("name epochs as A and B: whither diff 3-5 6-8"));
    }
    let common = selection(asked.selection, None)?;
    let fail_above = asked.fail_above.map(|text| percent(&text, "limit", 0.0..=1000.0));
    Ok(DiffJob {
        a: side(&common, &asked.a)?,
        b: side(&common, &asked.b)?,
        names: [asked.a, asked.b],
        fail_above: fail_above.transpose()?,
        rows: asked.rows,
    })
}

/// `7`, `7-9`, `last`, `DIR` or `DIR@7-9`.
fn side(common: &Selection, text: &str) -> Result<Selection, Failure> {
    let mut side = common.clone();
    if let Ok(choice) = epochs(text) {
        side.epoch = Some(choice);
        return Ok(side);
    }
    let (folder, choice) = match text.rsplit_once('@') {
        Some((folder, choice)) => (folder, Some(epochs(choice)?)),
        None => (text, None),
    };
    if !folder.is_empty() {
        side.database = PathBuf::from(folder);
    }
    side.epoch = choice;
    Ok(side)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::EpochChoice;

    #[test]
    fn a_side_is_epochs_a_database_or_both() {
        let common = Selection {
            database: "/db".into(),
            epoch: None,
            host: None,
            image: None,
            event: None,
            since_unix_ns: 0,
            until_unix_ns: u64::MAX,
            modelled: false,
        };
        let parsed = |text| side(&common, text).map(|side| (side.database, side.epoch));
        assert_eq!(parsed("7-9"), Ok(("/db".into(), Some(EpochChoice::Numbers(7, 9)))));
        assert_eq!(parsed("/x"), Ok(("/x".into(), None)));
        assert_eq!(parsed("/x@last"), Ok(("/x".into(), Some(EpochChoice::Last))));
        assert_eq!(parsed("@4"), Ok(("/db".into(), Some(EpochChoice::Numbers(4, 4)))));
        assert_eq!(parsed("/x@four").unwrap_err().status, USAGE);
    }
}
