//! Inputs made from seeds: one file a recipe, named in the suite's data.
//!
//! ```text
//! pure recipe    seed, amount                  -> bytes     the same everywhere, for ever
//! system recipe  seed, amount, the machine's   -> bytes     the same for the same package
//!                installed files                            versions; the lock says which
//! ```
//!
//! Not for: deciding sizes (the suite's data does) or where files go (`prepare` does).

mod algebra;
mod circuit;
mod load;
mod network;
mod pod;
pub(crate) mod rng;
mod scene;
mod sentences;
mod sources;
mod sql;
mod system;
mod text;

use std::path::Path;

pub use rng::Rng;

/// One file a recipe made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Made {
    /// Where it goes, relative to the program's directory.
    pub path: String,
    /// What is in it.
    pub bytes: Vec<u8>,
}

/// What a recipe is asked for.
#[derive(Debug, Clone, Copy)]
pub struct Ask<'a> {
    /// The file, or for a recipe of several files the directory, to make.
    pub file: &'a str,
    /// The seed of everything random.
    pub seed: u64,
    /// How much: bytes, rows, sentences, nodes; each recipe says which.
    pub amount: u64,
    /// The files it starts from, for recipes that start from some.
    pub from: &'a [String],
}

/// How a recipe makes its files.
#[derive(Clone, Copy)]
pub enum Recipe {
    /// One file from seed and amount alone.
    Pure(fn(u64, u64) -> Vec<u8>),
    /// Several files from seed and amount alone, under a directory.
    Files(fn(u64, u64, &str) -> Vec<Made>),
    /// From the machine's files or programs, in a scratch directory; `Place` says where.
    System(fn(&Ask<'_>, &Place<'_>) -> Result<Vec<u8>, String>),
}

/// Where a system recipe may work.
#[derive(Debug, Clone, Copy)]
pub struct Place<'a> {
    /// The suite's data, for sources kept there.
    pub data: &'a Path,
    /// An empty directory to work in.
    pub scratch: &'a Path,
}

/// Every recipe by the name the suite's data uses.
pub const RECIPES: &[(&str, Recipe)] = &[
    ("markov-text", Recipe::Pure(text::markov)),
    ("pod", Recipe::Pure(pod::module)),
    ("gap-program", Recipe::Pure(algebra::gap)),
    ("sentences", Recipe::Pure(sentences::lines)),
    ("scene", Recipe::Pure(scene::povray)),
    ("sql", Recipe::Pure(sql::script)),
    ("dimacs", Recipe::Pure(network::dimacs)),
    ("verilog", Recipe::Pure(circuit::verilog)),
    ("redis-load", Recipe::Pure(load::resp)),
    ("c-files", Recipe::Files(sources::c_files)),
    ("text-and-binary", Recipe::System(system::text_and_binary)),
    ("preprocessed", Recipe::System(system::preprocessed)),
    ("gap-workspace", Recipe::System(system::gap_workspace)),
    ("blif", Recipe::System(system::blif)),
    ("c-program", Recipe::System(system::c_program)),
];

/// The recipe called `name`.
pub fn recipe(name: &str) -> Option<Recipe> {
    RECIPES.iter().find(|(known, _)| *known == name).map(|(_, recipe)| *recipe)
}

/// Makes what `ask` asks of `recipe`.
///
/// # Errors
///
/// A system recipe's program or file is missing or failed; the sentence says which.
pub fn make(recipe: Recipe, ask: &Ask<'_>, place: &Place<'_>) -> Result<Vec<Made>, String> {
    let one = |bytes| vec![Made { path: ask.file.to_owned(), bytes }];
    match recipe {
        Recipe::Pure(make) => Ok(one(make(ask.seed, ask.amount))),
        Recipe::Files(make) => Ok(make(ask.seed, ask.amount, ask.file)),
        Recipe::System(make) => make(ask, place).map(one),
    }
}
