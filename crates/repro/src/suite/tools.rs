//! What the rows need beside the suite's programs.

use serde::Deserialize;

use super::{Input, SuiteError, sentence};
use crate::make;

/// A package that some row needs.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tool {
    /// The package's name.
    pub name: String,
    /// What needs it.
    pub needed_for: String,
}

/// Packages of tools, and programs of our own that are no row of the suite.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tools {
    /// The packages.
    pub package: Vec<Tool>,
    /// The programs, each in a directory of its own name.
    pub build: Vec<Input>,
}

impl Tools {
    /// Parses the file; `file` is for messages.
    ///
    /// # Errors
    ///
    /// It does not follow the schema, or names an unknown recipe.
    pub fn parse(file: &str, text: &str) -> Result<Tools, SuiteError> {
        let wrong = |what| SuiteError::Schema(file.to_owned(), what);
        let tools: Tools = toml::from_str(text).map_err(|e| wrong(sentence(text, &e)))?;
        match tools.build.iter().find(|build| make::recipe(&build.recipe).is_none()) {
            Some(odd) => Err(wrong(format!("no recipe is called `{}`", odd.recipe))),
            None => Ok(tools),
        }
    }
}
