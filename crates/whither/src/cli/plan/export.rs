//! `whither export`, checked and completed.

use std::path::{Path, PathBuf};

use super::selection::{Selection, selection};
use crate::cli::arguments::{ExportArguments, ExportFormat};
use crate::failure::Failure;

/// What is to be written, and in which form.
#[derive(Debug)]
pub(crate) struct ExportJob {
    pub(crate) selection: Selection,
    pub(crate) format: ExportFormat,
    pub(crate) output: Option<PathBuf>,
    pub(crate) machine: Option<String>,
}

pub(super) fn export_job(asked: ExportArguments) -> Result<ExportJob, Failure> {
    let by_name = asked.output.as_deref().and_then(by_name);
    Ok(ExportJob {
        selection: selection(asked.selection, None)?,
        format: asked.format.or(by_name).unwrap_or(ExportFormat::Folded),
        output: asked.output,
        machine: asked.machine,
    })
}

fn by_name(path: &Path) -> Option<ExportFormat> {
    let name = path.file_name()?.to_str()?;
    let endings = [
        (".pb.gz", ExportFormat::Pprof),
        (".pprof", ExportFormat::Pprof),
        (".folded", ExportFormat::Folded),
        (".json", ExportFormat::Firefox),
        (".svg", ExportFormat::Flamegraph),
        (".pixie", ExportFormat::Pixie),
        (".prof", ExportFormat::Llvm),
        (".afdo", ExportFormat::Llvm),
    ];
    endings.iter().find(|(ending, _)| name.ends_with(ending)).map(|(_, format)| *format)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_form_follows_from_the_files_name() {
        assert_eq!(by_name(Path::new("/x/a.pb.gz")), Some(ExportFormat::Pprof));
        assert_eq!(by_name(Path::new("a.svg")), Some(ExportFormat::Flamegraph));
        assert_eq!(by_name(Path::new("a.gz")), None);
    }
}
