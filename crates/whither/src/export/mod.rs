//! `whither export`: samples in the forms that other tools read.
//!
//! ```text
//! Sampled ─► Stacks: places, outermost first, with counts ─┬─► folded, SVG flame graph
//!         │                                                 ├─► pprof
//!         │                                                 └─► Firefox profile
//!         └─► examined procedures ─► block counts as pixie has them; LLVM's sample profile
//! ```

mod firefox;
mod folded;
mod llvm;
mod pixie;
mod pprof;
mod stacks;
mod symbols;
mod wire;

use std::io::Write;

use show::{Body, Cell, Fact, Schema, Section, View};
use vocab::Count;

use crate::cli::{ExportFormat, ExportJob};
use crate::failure::{ERROR, Failure};
use crate::output::Output;
use crate::sampled::Sampled;
use stacks::Stacks;

/// What was written, and what could not be.
struct Exported {
    bytes: Vec<u8>,
    /// Samples that are in it.
    samples: Count,
    notes: Vec<String>,
}

impl Exported {
    fn text(text: String, samples: Count) -> Exported {
        Exported { bytes: text.into_bytes(), samples, notes: Vec::new() }
    }
}

/// Reads, converts, writes.
pub(crate) fn export(job: &ExportJob, output: &Output) -> Result<u8, Failure> {
    let mut sampled = Sampled::load(&job.selection)?;
    sampled.need_all();
    let exported = match job.format {
        ExportFormat::Folded => folded::folded(&sampled, &Stacks::of(&sampled)),
        ExportFormat::Flamegraph => folded::flame(&sampled, &Stacks::of(&sampled)),
        ExportFormat::Pprof => pprof::pprof(&sampled, &Stacks::of(&sampled))?,
        ExportFormat::Firefox => firefox::firefox(&sampled, &Stacks::of(&sampled)),
        ExportFormat::Pixie => pixie::pixie(job, &mut sampled)?,
        ExportFormat::Llvm => llvm::llvm(job, &mut sampled)?,
    };
    match &job.output {
        Some(path) => {
            std::fs::write(path, &exported.bytes).map_err(|error| {
                Failure::new(ERROR, format!("cannot write {}: {error}", path.display()))
                    .remedy("name another file with -o")
            })?;
            output.write(&view(job, &path.display().to_string(), &sampled, &exported))?;
        }
        None => to_stdout(job, output, &exported.bytes)?,
    }
    sampled.finish()
}

fn to_stdout(job: &ExportJob, output: &Output, bytes: &[u8]) -> Result<(), Failure> {
    if job.format == ExportFormat::Pprof && output.is_terminal() {
        return Err(Failure::new(ERROR, "pprof's form is not for terminals")
            .remedy("name a file with -o, such as profile.pb.gz"));
    }
    match std::io::stdout().write_all(bytes) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Failure::new(ERROR, format!("cannot write: {error}")))
        }
        _ => Ok(()),
    }
}

fn view(job: &ExportJob, path: &str, sampled: &Sampled, exported: &Exported) -> View {
    let facts = vec![
        Fact::new("format", "format", Cell::text(job.format.word())),
        Fact::new("file", "file", Cell::text(path)),
        Fact::new("bytes", "bytes", Cell::Count(Count(exported.bytes.len() as u64))),
        Fact::new("event", "event", Cell::text(sampled.event_name())),
        Fact::new("samples", "samples in it", Cell::Count(exported.samples)),
        Fact::new("stored", "of", Cell::Count(sampled.whole())),
    ];
    let section =
        |key, title: &str, body| Section { key, title: title.into(), caption: String::new(), body };
    let mut notes = exported.notes.clone();
    notes.extend(sampled.notes());
    View {
        schema: Schema { name: "export", version: 1 },
        title: format!("whither export: {path}"),
        sections: vec![
            section("exported", "", Body::Facts(facts)),
            section("notes", "WHAT IS NOT IN IT", Body::Prose(notes)),
        ],
    }
}
