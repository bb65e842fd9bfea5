//! What is run: a program of the suite at one size, or any other command.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::suite::Check;

/// Where the suite's programs are looked for; nothing of the caller's environment reaches them,
/// because its size moves instruction counts.
const PATH: &str = "/usr/bin:/bin:/usr/games";
const ENVIRONMENT: [(&str, &str); 4] =
    [("PATH", PATH), ("LC_ALL", "C"), ("TZ", "UTC"), ("HOME", "/nonexistent")];

/// Something to run.
#[derive(Debug, Clone)]
pub struct Task {
    /// Its name in tables and messages.
    pub name: String,
    /// Program and arguments.
    pub argv: Vec<String>,
    /// The file its standard input comes from, relative to the directory.
    pub stdin: Option<String>,
    /// For a server: what is run against it.
    pub clients: Vec<Vec<String>>,
    /// Where it runs.
    pub directory: PathBuf,
    /// Environment beside the fixed one; none at all: the caller's own environment.
    pub environment: Option<BTreeMap<String, String>>,
    /// How its output is checked.
    pub check: Option<Check>,
    /// The recorded sha256 of its output.
    pub expected: Option<String>,
    /// What it stresses, for the table.
    pub stresses: String,
    /// sha256 of its inputs by file.
    pub inputs: BTreeMap<String, String>,
    /// Versions of its packages.
    pub versions: BTreeMap<String, String>,
}

impl Task {
    /// Any other command, run in the caller's directory and environment, unchecked.
    ///
    /// # Errors
    ///
    /// The text has no word in it, or a quote is not closed.
    pub fn from_command(text: &str, directory: &Path) -> Result<Task, String> {
        let argv = split_words(text)?;
        let Some(program) = argv.first() else {
            return Err("--cmd is empty: give a program and its arguments".to_owned());
        };
        let name = Path::new(program)
            .file_name()
            .map_or_else(|| program.clone(), |name| name.to_string_lossy().into_owned());
        Ok(Task {
            name,
            argv,
            stdin: None,
            clients: Vec::new(),
            directory: directory.to_owned(),
            environment: None,
            check: None,
            expected: None,
            stresses: String::new(),
            inputs: BTreeMap::new(),
            versions: BTreeMap::new(),
        })
    }

    /// The command with its program as a path: tools such as qemu do not search for it.
    pub(super) fn command(&self) -> Result<Vec<String>, String> {
        let Some((program, arguments)) = self.argv.split_first() else {
            return Err(format!("{}: the command is empty", self.name));
        };
        let path = self
            .locate(program)
            .ok_or_else(|| format!("{}: {program} is not installed", self.name))?;
        let mut argv = vec![path.to_string_lossy().into_owned()];
        argv.extend(arguments.iter().cloned());
        Ok(argv)
    }

    /// The sha256 of the program itself: its version where no package has one.
    pub fn executable_sha256(&self) -> Option<String> {
        let path = self.locate(self.argv.first()?)?;
        let bytes = std::fs::read(self.directory.join(path)).ok()?;
        Some(super::sha256_hex(&bytes))
    }

    fn locate(&self, program: &str) -> Option<PathBuf> {
        if program.starts_with('/') {
            let path = PathBuf::from(program);
            return path.is_file().then_some(path);
        }
        if program.contains('/') {
            // Kept relative: the path's length is on the program's stack.
            return self.directory.join(program).is_file().then(|| PathBuf::from(program));
        }
        let search = match &self.environment {
            Some(_) => PATH.to_owned(),
            None => std::env::var("PATH").unwrap_or_else(|_| PATH.to_owned()),
        };
        search.split(':').map(|d| Path::new(d).join(program)).find(|path| path.is_file())
    }

    /// Gives `command` the task's directory and environment.
    pub(super) fn surround(&self, command: &mut Command) {
        command.current_dir(&self.directory);
        if let Some(own) = &self.environment {
            command.env_clear().envs(ENVIRONMENT).envs(own);
        }
    }
}

/// Splits a command line at blanks; single and double quotes hold words together.
///
/// # Errors
///
/// A quote is not closed.
pub fn split_words(text: &str) -> Result<Vec<String>, String> {
    let (mut words, mut word, mut quote, mut open) = (Vec::new(), String::new(), None, false);
    for c in text.chars() {
        match (quote, c) {
            (Some(q), c) if c == q => quote = None,
            (Some(_), c) => word.push(c),
            (None, '\'' | '"') => {
                quote = Some(c);
                open = true;
            }
            (None, c) if c.is_whitespace() => {
                if open || !word.is_empty() {
                    words.push(std::mem::take(&mut word));
                }
                open = false;
            }
            (None, c) => word.push(c),
        }
    }
    if quote.is_some() {
        return Err(format!("a quote is not closed in `{text}`"));
    }
    if open || !word.is_empty() {
        words.push(word);
    }
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_split_at_blanks_and_quotes_hold_them_together() {
        let words = split_words("  sh -c 'echo  a' \"\" x\"y z\" ").unwrap();
        assert_eq!(words, ["sh", "-c", "echo  a", "", "xy z"]);
        assert_eq!(split_words("a 'b").unwrap_err(), "a quote is not closed in `a 'b`");
        assert!(split_words("   ").unwrap().is_empty());
    }
}
