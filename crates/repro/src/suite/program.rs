//! One program of the suite.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::{SuiteError, sentence};
use crate::make;
use crate::run::known_stripper;

/// How big a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Size {
    /// A look: well under a second.
    Quick,
    /// What figures are judged at: at most 10^9 instructions.
    Standard,
    /// A second or more.
    Full,
}

impl Size {
    /// Every size.
    pub const ALL: [Size; 3] = [Size::Quick, Size::Standard, Size::Full];

    /// As written in the data and in reports.
    pub fn name(self) -> &'static str {
        match self {
            Size::Quick => "quick",
            Size::Standard => "standard",
            Size::Full => "full",
        }
    }
}

/// A program, its inputs, and how it runs at each size.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Program {
    /// Its name in every table.
    pub name: String,
    /// The papers' program it stands for.
    pub stands_for: String,
    /// What part of a core it stresses.
    pub stresses: String,
    /// Debian packages it needs; their versions are recorded beside results.
    pub packages: Vec<String>,
    /// Environment beside the fixed one.
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
    /// What to make before it can run.
    #[serde(default)]
    pub input: Vec<Input>,
    /// How it runs.
    pub size: Sizes,
}

/// One input and the recipe that makes it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// The file or directory, relative to the program's own.
    pub file: String,
    /// A recipe's name.
    pub recipe: String,
    /// The recipe's seed.
    #[serde(default)]
    pub seed: u64,
    /// The recipe's amount.
    #[serde(default)]
    pub amount: u64,
    /// What the recipe starts from.
    #[serde(default)]
    pub from: Vec<String>,
    /// Packages whose version decides the bytes; none when seed and amount do.
    #[serde(default)]
    pub depends: Vec<String>,
    /// The sizes that use it; all when empty.
    #[serde(default)]
    pub sizes: Vec<String>,
}

/// The three sizes.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sizes {
    /// See [`Size::Quick`].
    pub quick: SizeSpec,
    /// See [`Size::Standard`].
    pub standard: SizeSpec,
    /// See [`Size::Full`].
    pub full: SizeSpec,
}

/// How a program runs at one size.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SizeSpec {
    /// The command; `{port}` becomes a free port of the loopback.
    pub command: Vec<String>,
    /// The file its standard input comes from.
    pub stdin: Option<String>,
    /// For a server: what is run against it, in order; the last one makes it end.
    #[serde(default)]
    pub client: Vec<Vec<String>>,
    /// How the output is checked.
    pub check: Check,
}

/// How an output is checked.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Check {
    /// `stdout`, `stderr`, `client` (what the clients print), or files by name, where one `*`
    /// stands for anything. Its sha256 is in the lock.
    pub of: String,
    /// Strippers applied first, in order.
    #[serde(default)]
    pub strip: Vec<String>,
    /// A line that must be there, instead of a sha256 of everything.
    pub line: Option<String>,
}

impl Program {
    /// Parses one file's text; `file` is for messages.
    ///
    /// # Errors
    ///
    /// The first thing that is not as the schema says: an unknown key, recipe, stripper or size.
    pub fn parse(file: &str, text: &str) -> Result<Program, SuiteError> {
        let program: Program = toml::from_str(text)
            .map_err(|e| SuiteError::Schema(file.to_owned(), sentence(text, &e)))?;
        program.check().map_err(|what| SuiteError::Schema(file.to_owned(), what))?;
        Ok(program)
    }

    /// How it runs at `size`.
    pub fn at(&self, size: Size) -> &SizeSpec {
        match size {
            Size::Quick => &self.size.quick,
            Size::Standard => &self.size.standard,
            Size::Full => &self.size.full,
        }
    }

    /// The inputs that a run at `size` needs.
    pub fn inputs_at(&self, size: Size) -> impl Iterator<Item = &Input> {
        self.input.iter().filter(move |input| {
            input.sizes.is_empty() || input.sizes.iter().any(|s| s == size.name())
        })
    }

    fn check(&self) -> Result<(), String> {
        if self.name.is_empty() || !plain(&self.name) {
            return Err(format!("name `{}` is not letters, digits and hyphens", self.name));
        }
        for input in &self.input {
            if make::recipe(&input.recipe).is_none() {
                return Err(format!(
                    "input {}: no recipe is called `{}`",
                    input.file, input.recipe
                ));
            }
            if !inside(&input.file) {
                return Err(format!("input {}: it must stay inside the directory", input.file));
            }
            if let Some(odd) = input.sizes.iter().find(|s| Size::ALL.iter().all(|k| k.name() != *s))
            {
                return Err(format!("input {}: no size is called `{odd}`", input.file));
            }
        }
        for size in Size::ALL {
            let spec = self.at(size);
            if spec.command.is_empty() {
                return Err(format!("size {}: the command is empty", size.name()));
            }
            if let Some(odd) = spec.check.strip.iter().find(|s| !known_stripper(s)) {
                return Err(format!("size {}: no stripper is called `{odd}`", size.name()));
            }
            if !inside(&spec.check.of) {
                return Err(format!("size {}: check `of` must stay inside", size.name()));
            }
        }
        Ok(())
    }
}

fn plain(name: &str) -> bool {
    name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
}

/// Whether a relative path stays where it is put.
fn inside(path: &str) -> bool {
    !path.is_empty()
        && std::path::Path::new(path)
            .components()
            .all(|part| matches!(part, std::path::Component::Normal(_)))
}
