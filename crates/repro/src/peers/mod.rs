//! The tools others use, one file a tool: is it here, in which version, how does it run a command.
//!
//! A peer that cannot run here says why in a sentence; that sentence takes its place in tables.

mod cachegrind;
mod hyperfine;
mod mca;
mod ours;
mod papi;
mod perf;
mod qemu;
mod samply;

use std::path::Path;

pub use cachegrind::{Cachegrind, Refs};
pub use mca::{Mca, block_throughput};
pub(crate) use ours::binary as our_binary;
pub use ours::{modelled, our_version};
pub(crate) use perf::version as version_of_perf;
pub use qemu::Qemu;

use crate::context::Context;
use crate::run::Wrap;

/// A tool that runs a command.
pub trait Peer {
    /// Its name in tables.
    fn name(&self) -> &'static str;

    /// Its version.
    ///
    /// # Errors
    ///
    /// Why it cannot run here, and what to do about it.
    fn version(&self, context: &Context) -> Result<String, String>;

    /// What to put before a command; files go under `scratch`.
    ///
    /// # Errors
    ///
    /// Why it cannot run here.
    fn wrap(&self, context: &Context, scratch: &Path) -> Result<Wrap, String>;
}

/// Every peer that runs a command, ours first.
pub fn all() -> Vec<Box<dyn Peer>> {
    vec![
        Box::new(ours::Ours),
        Box::new(perf::Stat),
        Box::new(perf::Record),
        Box::new(samply::Samply),
        Box::new(papi::Papi),
        Box::new(hyperfine::Hyperfine),
        Box::new(Qemu),
        Box::new(Cachegrind),
    ]
}

/// A file under `scratch` as a command line needs it.
pub(crate) fn file(scratch: &Path, name: &str) -> String {
    scratch.join(name).to_string_lossy().into_owned()
}

/// Words as a wrap.
pub(crate) fn words(words: &[&str]) -> Wrap {
    Wrap { words: words.iter().map(|&word| word.to_owned()).collect(), joined: false }
}
