//! Valgrind's cachegrind: caches and branches simulated, every instruction counted.

use std::collections::BTreeSet;
use std::path::Path;

use super::{Peer, file, words};
use crate::context::Context;
use crate::machine::version_of;
use crate::run::Wrap;

/// Cachegrind with caches of a stated size: by default it takes the host's, and the count of
/// misses would change with the machine.
#[derive(Debug, Clone, Copy)]
pub struct Cachegrind;

impl Peer for Cachegrind {
    fn name(&self) -> &'static str {
        "cachegrind"
    }

    fn version(&self, _: &Context) -> Result<String, String> {
        version_of("valgrind", &["--version"])
            .map_err(|why| format!("{why}; install the package valgrind"))
    }

    fn wrap(&self, _: &Context, scratch: &Path) -> Result<Wrap, String> {
        Ok(words(&[
            "/usr/bin/valgrind",
            "--tool=cachegrind",
            "--cache-sim=yes",
            "--branch-sim=yes",
            "--trace-children=yes",
            "--I1=32768,8,64",
            "--D1=32768,8,64",
            "--LL=8388608,16,64",
            "--cachegrind-out-file=/dev/null",
            &format!("--log-file={}", file(scratch, "cachegrind.%p")),
        ]))
    }
}

/// What cachegrind's logs say of a command and its children.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refs {
    /// Instructions executed, all processes together.
    pub instructions: u64,
    /// How many different commands were executed: more than one when the program starts others.
    pub commands: usize,
}

impl Refs {
    /// Reads the logs under `scratch`.
    ///
    /// # Errors
    ///
    /// There is none, or one without a count.
    pub fn read(scratch: &Path) -> Result<Refs, String> {
        let entries = std::fs::read_dir(scratch).map_err(|e| format!("cachegrind's logs: {e}"))?;
        let logs: Vec<String> = entries
            .filter_map(std::result::Result::ok)
            .filter(|entry| entry.file_name().to_string_lossy().starts_with("cachegrind."))
            .filter_map(|entry| std::fs::read_to_string(entry.path()).ok())
            .collect();
        Refs::parse(&logs)
    }

    fn parse(logs: &[String]) -> Result<Refs, String> {
        let (mut instructions, mut commands) = (0_u64, BTreeSet::new());
        for log in logs {
            // A child that only forked and was replaced leaves a log without a count.
            instructions = instructions.saturating_add(count(log).unwrap_or(0));
            commands.extend(log.lines().find_map(|line| line.split_once("Command: ")).map(|c| c.1));
        }
        if instructions == 0 {
            return Err("cachegrind left no instruction count".to_owned());
        }
        Ok(Refs { instructions, commands: commands.len() })
    }
}

/// The number of the line `I refs: 1,234`.
fn count(log: &str) -> Option<u64> {
    log.lines().find_map(|line| {
        let (label, number) = line.split_once("refs:")?;
        let label = label.rsplit("==").next()?.trim();
        (label == "I").then(|| number.trim().replace(',', "").parse().ok())?
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_add_up_over_processes_and_commands_are_told_apart() {
        let log = |command: &str, n: &str| {
            format!(
                "==7== Command: {command}\n==7==\n==7== I   refs:      {n}\n==7== D   refs: 9\n"
            )
        };
        let logs = [log("gcc", "1,234"), log("cc1", "1,000,000"), log("gcc", "6")];
        assert_eq!(Refs::parse(&logs), Ok(Refs { instructions: 1_001_240, commands: 2 }));
        assert!(Refs::parse(&[]).is_err());
        assert!(Refs::parse(&["==1== I refs: x".to_owned()]).is_err());
    }
}
