//! Our own `whither run` and `whither model`, found beside this executable.

use std::path::Path;

use tracer::launch::EngineChoice;

use super::{Peer, file, words};
use crate::context::Context;
use crate::machine::version_of;
use crate::run::{Wrap, sha256_hex};

/// `whither run` with its defaults.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ours;

/// `whither model` with these options, its report in the file `report` as JSON.
///
/// # Errors
///
/// whither is not beside this executable.
pub fn modelled(context: &Context, options: &[&str], scratch: &Path) -> Result<Wrap, String> {
    let (binary, report) = (binary(context)?, file(scratch, "report"));
    // Named, because programs are run without our environment, where the choice may be made.
    let engine = match EngineChoice::best() {
        EngineChoice::Qemu(_) => "qemu",
        _ => "native",
    };
    let mut all = vec![binary.as_str(), "model", "--engine", engine, "--json", "-o", &report];
    all.extend(options);
    all.push("--");
    Ok(words(&all))
}

/// What tells one build of whither from another.
///
/// # Errors
///
/// whither is not beside this executable.
pub fn our_version(context: &Context) -> Result<String, String> {
    Ours.version(context)
}

pub(crate) fn binary(context: &Context) -> Result<String, String> {
    let path = context.beside.as_ref().map(|directory| directory.join("whither"));
    path.filter(|path| path.is_file()).map(|path| path.to_string_lossy().into_owned()).ok_or_else(
        || "whither is not built beside repro; `cargo build -p whither` does".to_owned(),
    )
}

impl Peer for Ours {
    fn name(&self) -> &'static str {
        "whither run"
    }

    fn version(&self, context: &Context) -> Result<String, String> {
        let path = binary(context)?;
        let version = version_of(&path, &["--version"])?;
        // The version changes seldom while the code changes daily: the binary tells them apart.
        let hash = std::fs::read(&path).map(|bytes| sha256_hex(&bytes));
        let hash = hash.map_err(|e| format!("whither cannot be read: {e}"))?;
        Ok(format!("{version} ({})", hash.get(..8).unwrap_or(&hash)))
    }

    fn wrap(&self, context: &Context, scratch: &Path) -> Result<Wrap, String> {
        Ok(words(&[&binary(context)?, "run", "-o", &file(scratch, "report"), "--"]))
    }
}
