//! Recorded hashes of inputs and outputs.
//!
//! What follows from a seed alone is locked for ever. What follows from installed files is locked
//! for the package versions it was recorded with; under other versions it is unknown, not wrong.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::{SuiteError, sentence};

/// What a hash is of.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum What {
    /// An input, by file.
    Input(String),
    /// The checked output at a size.
    Output(String),
}

/// One recorded hash.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    program: String,
    what: What,
    sha256: String,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    versions: BTreeMap<String, String>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    entry: Vec<Entry>,
}

/// What the lock says of a hash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Locked {
    /// It is the recorded one.
    Same,
    /// Another one is recorded for these very versions.
    Differs {
        /// The recorded one.
        recorded: String,
    },
    /// Nothing is recorded for these versions.
    Unknown,
}

/// Every recorded hash.
#[derive(Debug, Default)]
pub struct Lock {
    file: File,
}

const HEADER: &str = "# Recorded sha256 of the suite's inputs and outputs. Written by `repro prepare --write`.\n\
                      # An entry without versions follows from a seed alone and holds everywhere.\n\n";

impl Lock {
    /// Reads a lock; one that does not exist is empty.
    ///
    /// # Errors
    ///
    /// The file cannot be read or is not a lock.
    pub fn read(path: &Path) -> Result<Lock, SuiteError> {
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(e) => return Err(SuiteError::File(path.to_owned(), e)),
        };
        Lock::parse("suite/lock.toml", &text)
    }

    /// Parses a lock's text.
    ///
    /// # Errors
    ///
    /// It is not a lock.
    pub fn parse(file: &str, text: &str) -> Result<Lock, SuiteError> {
        let file = toml::from_str(text)
            .map_err(|e| SuiteError::Schema(file.to_owned(), sentence(text, &e)))?;
        Ok(Lock { file })
    }

    /// What is recorded for `what` of `program` under `versions`, against `sha256`.
    pub fn compare(
        &self,
        program: &str,
        what: &What,
        versions: &BTreeMap<String, String>,
        sha256: &str,
    ) -> Locked {
        let recorded = self.find(program, what, versions);
        match recorded {
            None => Locked::Unknown,
            Some(recorded) if recorded == sha256 => Locked::Same,
            Some(recorded) => Locked::Differs { recorded: recorded.to_owned() },
        }
    }

    /// The recorded hash, if one is.
    pub fn find(
        &self,
        program: &str,
        what: &What,
        versions: &BTreeMap<String, String>,
    ) -> Option<&str> {
        self.file
            .entry
            .iter()
            .find(|e| e.program == program && e.what == *what && e.versions == *versions)
            .map(|entry| entry.sha256.as_str())
    }

    /// Records a hash, in place of an older one for the same versions.
    pub fn record(
        &mut self,
        program: &str,
        what: What,
        versions: BTreeMap<String, String>,
        sha256: String,
    ) {
        let entries = &mut self.file.entry;
        entries.retain(|e| !(e.program == program && e.what == what && e.versions == versions));
        entries.push(Entry { program: program.to_owned(), what, sha256, versions });
        entries.sort_by(|a, b| {
            (&a.program, &a.what, &a.versions).cmp(&(&b.program, &b.what, &b.versions))
        });
    }

    /// Writes the lock.
    ///
    /// # Errors
    ///
    /// The file cannot be written.
    pub fn write(&self, path: &Path) -> Result<(), SuiteError> {
        let body = toml::to_string(&self.file)
            .map_err(|e| SuiteError::Schema("suite/lock.toml".to_owned(), e.to_string()))?;
        std::fs::write(path, format!("{HEADER}{body}"))
            .map_err(|e| SuiteError::File(path.to_owned(), e))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn versions(v: &str) -> BTreeMap<String, String> {
        BTreeMap::from([("gcc".to_owned(), v.to_owned())])
    }

    #[test]
    fn a_hash_is_unknown_not_wrong_under_other_versions() {
        let mut lock = Lock::default();
        let what = What::Input("a".to_owned());
        lock.record("p", what.clone(), versions("12"), "aa".to_owned());
        assert_eq!(lock.compare("p", &what, &versions("12"), "aa"), Locked::Same);
        let differs = Locked::Differs { recorded: "aa".to_owned() };
        assert_eq!(lock.compare("p", &what, &versions("12"), "bb"), differs);
        assert_eq!(lock.compare("p", &what, &versions("13"), "bb"), Locked::Unknown);
    }

    #[test]
    fn what_is_written_reads_back_and_replaces_only_its_like() {
        let mut lock = Lock::default();
        let what = What::Output("quick".to_owned());
        lock.record("p", what.clone(), versions("12"), "aa".to_owned());
        lock.record("p", what.clone(), versions("13"), "bb".to_owned());
        lock.record("p", what.clone(), versions("12"), "cc".to_owned());
        let text = toml::to_string(&lock.file).unwrap();
        let again = Lock::parse("lock", &text).unwrap();
        assert_eq!(again.find("p", &what, &versions("12")), Some("cc"));
        assert_eq!(again.find("p", &what, &versions("13")), Some("bb"));
        assert_eq!(again.file.entry.len(), 2);
    }
}
