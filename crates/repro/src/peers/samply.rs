//! samply: a sampling profiler in user space.

use std::path::Path;

use super::{Peer, file, words};
use crate::context::Context;
use crate::machine::version_of;
use crate::run::Wrap;

/// samply at its default rate, saving only.
#[derive(Debug, Clone, Copy)]
pub(super) struct Samply;

impl Peer for Samply {
    fn name(&self) -> &'static str {
        "samply"
    }

    fn version(&self, _: &Context) -> Result<String, String> {
        version_of("samply", &["--version"])
            .map_err(|why| format!("{why}; `cargo install samply` builds it, which takes minutes"))
    }

    fn wrap(&self, _: &Context, scratch: &Path) -> Result<Wrap, String> {
        let search = std::env::var("PATH").unwrap_or_default();
        let path = search.split(':').map(|d| Path::new(d).join("samply")).find(|p| p.is_file());
        let path = path.ok_or("samply is not on the path")?;
        let out = file(scratch, "samply.json.gz");
        Ok(words(&[&path.to_string_lossy(), "record", "--save-only", "-o", &out, "--"]))
    }
}
