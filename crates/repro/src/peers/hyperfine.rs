//! hyperfine: timing by repetition, no sampling.

use std::path::Path;

use super::Peer;
use crate::context::Context;
use crate::machine::version_of;
use crate::run::Wrap;

/// hyperfine, one run without a shell: what the tool itself adds.
#[derive(Debug, Clone, Copy)]
pub(super) struct Hyperfine;

impl Peer for Hyperfine {
    fn name(&self) -> &'static str {
        "hyperfine"
    }

    fn version(&self, _: &Context) -> Result<String, String> {
        version_of("hyperfine", &["--version"])
            .map_err(|why| format!("{why}; install the package hyperfine"))
    }

    fn wrap(&self, _: &Context, _: &Path) -> Result<Wrap, String> {
        let words = ["/usr/bin/hyperfine", "-N", "--runs", "1", "--style", "none"];
        Ok(Wrap { words: words.map(str::to_owned).to_vec(), joined: true })
    }
}
