//! The work directory: where inputs, scratch files and kept measurements live, outside git.
//!
//! ```text
//! WORK/programs/NAME/   inputs and output files; the program's directory
//! WORK/streams/         stdout and stderr of the run under way
//! WORK/scratch/         emptied before each recipe
//! WORK/kept/            finished measurements
//! ```

use std::fs;
use std::path::{Path, PathBuf};

use crate::make::{self, Ask, Made, Place};
use crate::packages::Packages;
use crate::run::{Task, digest_of};
use crate::suite::{Input, Program, Size, Suite, What};

/// The work directory.
#[derive(Debug, Clone)]
pub struct Work {
    root: PathBuf,
}

impl Work {
    /// The one at `root`, which is made when something is put there.
    pub fn new(root: PathBuf) -> Work {
        Work { root }
    }

    /// A program's own directory.
    pub fn program(&self, name: &str) -> PathBuf {
        self.root.join("programs").join(name)
    }

    /// Where finished measurements are kept.
    pub fn kept(&self) -> PathBuf {
        self.root.join("kept")
    }

    /// A directory for a run's streams, emptied. Runs of different processes do not meet there.
    ///
    /// # Errors
    ///
    /// It cannot be made.
    pub fn streams(&self) -> Result<PathBuf, String> {
        emptied(&self.root.join("streams").join(std::process::id().to_string()))
    }

    /// Removes what this process left in `streams` and `scratch`.
    pub fn tidy(&self) {
        for name in ["streams", "scratch"] {
            // Nothing depends on it; the next run empties its own.
            let _ = fs::remove_dir_all(self.root.join(name).join(std::process::id().to_string()));
        }
    }

    /// Makes one input in memory.
    ///
    /// # Errors
    ///
    /// The recipe's sentence.
    pub fn make(&self, suite: &Suite, input: &Input) -> Result<Vec<Made>, String> {
        let recipe = make::recipe(&input.recipe)
            .ok_or_else(|| format!("no recipe is called `{}`", input.recipe))?;
        let scratch = emptied(&self.root.join("scratch").join(std::process::id().to_string()))?;
        let ask =
            Ask { file: &input.file, seed: input.seed, amount: input.amount, from: &input.from };
        make::make(recipe, &ask, &Place { data: &suite.data, scratch: &scratch })
    }

    /// The sha256 of an input as it lies in the work directory; none when it is not there.
    pub fn digest(&self, program: &str, file: &str) -> Option<String> {
        let directory = self.program(program);
        let path = directory.join(file);
        let names = if path.is_dir() { files_under(&path, file) } else { vec![file.to_owned()] };
        let read = |name: String| fs::read(directory.join(&name)).ok().map(|bytes| (name, bytes));
        let files: Option<Vec<_>> = names.into_iter().map(read).collect();
        files.filter(|files| !files.is_empty()).map(|files| digest_of(&files))
    }

    /// The task of `program` at `size`, with its inputs hashed as they lie there.
    ///
    /// # Errors
    ///
    /// A package or an input is missing.
    pub fn task(
        &self,
        suite: &Suite,
        packages: &Packages,
        program: &Program,
        size: Size,
    ) -> Result<Task, String> {
        if let Some(package) = program.packages.iter().find(|p| packages.version(p).is_none()) {
            return Err(format!(
                "{}: package {package} is not installed; `repro prepare` installs it",
                program.name
            ));
        }
        let mut inputs = std::collections::BTreeMap::new();
        for input in program.inputs_at(size) {
            let hash = self.digest(&program.name, &input.file).ok_or_else(|| {
                format!(
                    "{}: {} is not made yet; `repro prepare` makes it",
                    program.name, input.file
                )
            })?;
            inputs.insert(input.file.clone(), hash);
        }
        let spec = program.at(size);
        let versions = packages.versions(&program.packages);
        let what = What::Output(size.name().to_owned());
        let expected = suite.lock.find(&program.name, &what, &versions).map(str::to_owned);
        Ok(Task {
            name: program.name.clone(),
            argv: spec.command.clone(),
            stdin: spec.stdin.clone(),
            clients: spec.client.clone(),
            directory: self.program(&program.name),
            environment: Some(program.environment.clone()),
            check: Some(spec.check.clone()),
            expected,
            stresses: program.stresses.clone(),
            inputs,
            versions,
        })
    }
}

/// The hash a recipe's files will have in the work directory.
pub fn digest_made(made: &[Made]) -> String {
    let mut files: Vec<_> = made.iter().map(|m| (m.path.clone(), m.bytes.clone())).collect();
    files.sort();
    digest_of(&files)
}

/// Puts a recipe's files under `directory`; each appears whole or not at all. A file that is
/// there already with the same bytes is left alone.
///
/// # Errors
///
/// A file cannot be written.
pub fn put(directory: &Path, made: &[Made]) -> Result<(), String> {
    for file in made {
        let path = directory.join(&file.path);
        let wrong = |e: std::io::Error| format!("{}: {e}", path.display());
        if fs::read(&path).is_ok_and(|bytes| bytes == file.bytes) {
            date(&path).map_err(wrong)?;
            continue;
        }
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(wrong)?;
        }
        let partial = path.with_extension("partial");
        fs::write(&partial, &file.bytes).map_err(wrong)?;
        if file.bytes.starts_with(b"\x7fELF") {
            executable(&partial).map_err(wrong)?;
        }
        date(&partial).map_err(wrong)?;
        fs::rename(&partial, &path).map_err(wrong)?;
    }
    Ok(())
}

/// Inputs all carry one date: gzip writes its input's into its output.
fn date(path: &Path) -> std::io::Result<()> {
    let year_2000 = std::time::UNIX_EPOCH + std::time::Duration::from_secs(946_684_800);
    fs::File::options().append(true).open(path)?.set_modified(year_2000)
}

fn executable(path: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755))
}

fn files_under(path: &Path, prefix: &str) -> Vec<String> {
    let Ok(entries) = fs::read_dir(path) else { return Vec::new() };
    let mut names: Vec<String> = entries
        .filter_map(std::result::Result::ok)
        .map(|entry| format!("{prefix}/{}", entry.file_name().to_string_lossy()))
        .collect();
    names.sort();
    names
}

fn emptied(path: &Path) -> Result<PathBuf, String> {
    let wrong = |e: std::io::Error| format!("{}: {e}", path.display());
    if path.exists() {
        fs::remove_dir_all(path).map_err(wrong)?;
    }
    fs::create_dir_all(path).map_err(wrong)?;
    Ok(path.to_owned())
}
