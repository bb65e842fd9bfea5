//! The suite's data: programs, rows and locks, read from TOML.
//!
//! ```text
//! suite/programs/NAME.toml   what runs, on which inputs, how its output is checked
//! suite/lock.toml            sha256 of every input and output, for named package versions
//! suite/rows.toml            the rows to regenerate, the papers' values, the goals
//! suite/tools.toml           packages the rows need, our own programs that are no row
//! suite/kernels, suite/micro C sources of our own programs
//! ```
//!
//! An unknown key is an error that names file and key: a misspelt key must not silently become a
//! default.

mod lock;
mod page;
mod program;
mod tools;

use std::fmt;
use std::path::{Path, PathBuf};

pub use lock::{Lock, Locked, What};
pub use page::{Bound, Page, PageRow};
pub use program::{Check, Input, Program, Size, SizeSpec, Sizes};
pub use tools::{Tool, Tools};

/// What is wrong with the suite's data.
#[derive(Debug)]
pub enum SuiteError {
    /// No directory holds the suite's data.
    NotFound,
    /// A file could not be read or written.
    File(PathBuf, std::io::Error),
    /// A file is not what the schema says; the sentence names the key.
    Schema(String, String),
}

impl fmt::Display for SuiteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SuiteError::NotFound => write!(
                f,
                "no suite/programs directory here or above: run from inside the repository"
            ),
            SuiteError::File(path, error) => write!(f, "{}: {error}", path.display()),
            SuiteError::Schema(file, what) => write!(f, "{file}: {what}"),
        }
    }
}

impl std::error::Error for SuiteError {}

/// Everything under suite/.
#[derive(Debug)]
pub struct Suite {
    /// The directory it came from.
    pub data: PathBuf,
    /// The programs, by name.
    pub programs: Vec<Program>,
    /// Recorded hashes.
    pub lock: Lock,
    /// The rows.
    pub page: Page,
    /// Tools the rows need.
    pub tools: Tools,
}

impl Suite {
    /// Reads the suite under `data`.
    ///
    /// # Errors
    ///
    /// The first file that cannot be read or does not follow the schema.
    pub fn load(data: &Path) -> Result<Suite, SuiteError> {
        let mut files: Vec<PathBuf> = std::fs::read_dir(data.join("programs"))
            .map_err(|e| SuiteError::File(data.join("programs"), e))?
            .filter_map(|entry| entry.ok().map(|entry| entry.path()))
            .filter(|path| path.extension().is_some_and(|extension| extension == "toml"))
            .collect();
        files.sort();
        let mut programs = Vec::new();
        for path in files {
            let program = Program::parse(&named(data, &path), &read(&path)?)?;
            programs.push(program);
        }
        let page_path = data.join("rows.toml");
        let page = Page::parse(&named(data, &page_path), &read(&page_path)?)?;
        let tools_path = data.join("tools.toml");
        let tools = Tools::parse(&named(data, &tools_path), &read(&tools_path)?)?;
        let lock = Lock::read(&data.join("lock.toml"))?;
        Ok(Suite { data: data.to_owned(), programs, lock, page, tools })
    }

    /// The program called `name`.
    pub fn program(&self, name: &str) -> Option<&Program> {
        self.programs.iter().find(|program| program.name == name)
    }
}

/// The suite's data nearest to `start`: itself or a directory above it.
pub fn find_data(start: &Path) -> Option<PathBuf> {
    start.ancestors().map(|above| above.join("suite")).find(|s| s.join("programs").is_dir())
}

fn read(path: &Path) -> Result<String, SuiteError> {
    std::fs::read_to_string(path).map_err(|e| SuiteError::File(path.to_owned(), e))
}

/// A file's name as a message should give it: from suite/ down, without the machine's path.
fn named(data: &Path, path: &Path) -> String {
    let inside = path.strip_prefix(data).unwrap_or(path);
    format!("suite/{}", inside.display())
}

/// One line of a TOML error: what is wrong and in which line, without the excerpt.
fn sentence(text: &str, error: &toml::de::Error) -> String {
    let line =
        error.span().map(|span| 1 + text.get(..span.start).map_or(0, |t| t.matches('\n').count()));
    let message = error.message().replace("unknown field", "unknown key").replace('\n', " ");
    match line {
        Some(line) => format!("line {line}: {message}"),
        None => message,
    }
}
