//! Checking what a run left: the sha256 of an output, or a line in it.

use std::fs;
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use super::{Task, strip};

/// A sha256 under way.
#[derive(Debug, Default)]
pub struct Digest(Sha256);

impl Digest {
    /// Adds bytes.
    pub fn add(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The hash in hexadecimal.
    pub fn hex(self) -> String {
        self.0.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// The sha256 of `bytes` in hexadecimal.
pub fn sha256_hex(bytes: &[u8]) -> String {
    let mut digest = Digest::default();
    digest.add(bytes);
    digest.hex()
}

/// The sha256 of one file, or of several: then of their hashes and names in order, so that
/// neither can change unseen.
pub fn digest_of(files: &[(String, Vec<u8>)]) -> String {
    if let [(_, bytes)] = files {
        return sha256_hex(bytes);
    }
    let mut digest = Digest::default();
    for (name, bytes) in files {
        digest.add(format!("{}  {name}\n", sha256_hex(bytes)).as_bytes());
    }
    digest.hex()
}

/// Removes output files of an earlier run, so that they cannot pass for this one's.
pub(super) fn clear_outputs(task: &Task) -> Result<(), String> {
    let Some(check) = &task.check else { return Ok(()) };
    if is_stream(&check.of) {
        return Ok(());
    }
    for path in matching(&task.directory, &check.of) {
        fs::remove_file(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    }
    Ok(())
}

/// Checks the output of a run; its sha256 when that is what is checked.
pub(super) fn check(task: &Task, streams: &Path) -> Result<Option<String>, String> {
    let Some(check) = &task.check else { return Ok(None) };
    let mut files = outputs(task, streams)?;
    for with in &check.strip {
        if let Some((stripper, argument)) = strip::find(with) {
            for (_, bytes) in &mut files {
                *bytes = stripper(argument, bytes);
            }
        }
    }
    if let Some(line) = &check.line {
        let found = files.iter().any(|(_, bytes)| {
            bytes.split(|&b| b == b'\n').any(|have| have.trim_ascii() == line.as_bytes())
        });
        return if found {
            Ok(None)
        } else {
            Err(format!("{} did not print the line `{line}`", task.name))
        };
    }
    let hash = digest_of(&files);
    match &task.expected {
        Some(expected) if *expected != hash => Err(format!(
            "{} made another output than the recorded one (sha256 {} instead of {})",
            task.name,
            short(&hash),
            short(expected)
        )),
        _ => Ok(Some(hash)),
    }
}

fn outputs(task: &Task, streams: &Path) -> Result<Vec<(String, Vec<u8>)>, String> {
    let of = task.check.as_ref().map_or("stdout", |check| check.of.as_str());
    let paths = if is_stream(of) { vec![streams.join(of)] } else { matching(&task.directory, of) };
    if paths.is_empty() {
        return Err(format!("{} wrote no file {of}", task.name));
    }
    paths
        .into_iter()
        .map(|path| {
            let name = path.file_name().map_or(String::new(), |n| n.to_string_lossy().into_owned());
            let bytes = fs::read(&path).map_err(|e| format!("{}: {name}: {e}", task.name))?;
            Ok((name, bytes))
        })
        .collect()
}

fn is_stream(of: &str) -> bool {
    matches!(of, "stdout" | "stderr" | "client")
}

/// The files in `directory` that `pattern` names, sorted; one `*` stands for anything.
fn matching(directory: &Path, pattern: &str) -> Vec<PathBuf> {
    let Some((front, back)) = pattern.split_once('*') else {
        let path = directory.join(pattern);
        return if path.is_file() { vec![path] } else { Vec::new() };
    };
    let Ok(entries) = fs::read_dir(directory) else { return Vec::new() };
    let mut paths: Vec<PathBuf> = entries
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .filter(|path| {
            path.is_file()
                && path.file_name().is_some_and(|name| {
                    let name = name.to_string_lossy();
                    name.len() >= front.len() + back.len()
                        && name.starts_with(front)
                        && name.ends_with(back)
                })
        })
        .collect();
    paths.sort();
    paths
}

/// The first twelve digits: enough to tell two apart in a sentence.
fn short(hash: &str) -> &str {
    hash.get(..12).unwrap_or(hash)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_the_standards_own() {
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(sha256_hex(b"abc"), abc);
        assert_eq!(digest_of(&[("x".to_owned(), b"abc".to_vec())]), abc);
    }

    #[test]
    fn several_files_hash_by_name_and_content() {
        let two = |a: &str, b: &str| {
            digest_of(&[(a.to_owned(), b"1".to_vec()), (b.to_owned(), b"2".to_vec())])
        };
        assert_ne!(two("a", "b"), two("a", "c"));
    }
}
