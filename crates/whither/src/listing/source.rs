//! Source files, read when a line of them is wanted.

use std::collections::HashMap;
use std::fs;
use std::time::SystemTime;

/// Larger files are not source that anyone reads.
const FILE_BYTES_MAX: u64 = 16 << 20;

/// One source file.
#[derive(Clone, Debug, Default)]
pub(crate) struct Source {
    lines: Vec<String>,
    changed: Option<SystemTime>,
}

impl Source {
    /// A line by its number from 1, without the space around it.
    pub(crate) fn line(&self, number: u32) -> Option<&str> {
        self.lines.get((number as usize).checked_sub(1)?).map(String::as_str)
    }
}

/// Every file that was looked at.
#[derive(Debug, Default)]
pub(crate) struct Sources(HashMap<String, Option<Source>>);

impl Sources {
    /// The file, unless it is not there. The path is untrusted: it comes from debugging
    /// information, so that only plain files of a bearable size are read.
    pub(crate) fn get(&mut self, path: &str) -> Option<&Source> {
        if !self.0.contains_key(path) {
            self.0.insert(path.to_owned(), read(path));
        }
        self.0.get(path).and_then(Option::as_ref)
    }

    /// Files that were changed after an image was made: what they say may not be what ran.
    pub(crate) fn newer_than(&self, made: SystemTime) -> Vec<&str> {
        let is_newer = |source: &Source| source.changed.is_some_and(|changed| changed > made);
        let newer = self.0.iter().filter(|(_, source)| source.as_ref().is_some_and(is_newer));
        let mut newer: Vec<&str> = newer.map(|(path, _)| path.as_str()).collect();
        newer.sort_unstable();
        newer
    }
}

fn read(path: &str) -> Option<Source> {
    let facts = fs::metadata(path).ok()?;
    if !facts.is_file() || facts.len() > FILE_BYTES_MAX {
        return None;
    }
    let bytes = fs::read(path).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    let lines = text.lines().map(|line| line.trim_end().replace('\t', "    "));
    Some(Source { lines: lines.collect(), changed: facts.modified().ok() })
}
