//! Block counts as pixie left them: how often every block ran, here estimated from samples.
//!
//! ```text
//! # image  procedure  offset  instructions  runs  confidence
//! /usr/bin/gzip  deflate_slow  0x4f50  12  40123  high
//! ```

use vocab::Count;

use super::Exported;
use crate::cli::ExportJob;
use crate::examined::{Examiner, word};
use crate::failure::Failure;
use crate::sampled::Sampled;

pub(super) fn pixie(job: &ExportJob, sampled: &mut Sampled) -> Result<Exported, Failure> {
    let times = sampled.procedures(false);
    let sampled = &*sampled;
    let examiner = Examiner::new(sampled, job.machine.as_deref())?;
    let mut text = "# image\tprocedure\toffset\tinstructions\truns\tconfidence\n".to_owned();
    let mut told = Count::ZERO;
    let mut around = None;
    for time in &times {
        if around.as_ref().is_none_or(|(image, _)| *image != time.image) {
            around = examiner.callees(time.image).ok().map(|callees| (time.image, callees));
        }
        let Some((_, callees)) = &around else { continue };
        let Ok(examined) = examiner.examine(time, callees) else { continue };
        told += time.count;
        let path = sampled.image(time.image).map_or("?", |image| image.path.as_str());
        let name = sampled.name(time);
        for block in &examined.report.blocks {
            let offset = callees.1.offset_of(block.address).map_or(block.address, |o| o.0);
            text.push_str(&format!(
                "{}\t{}\t{offset:#x}\t{}\t{:.0}\t{}\n",
                show::clean(path),
                show::clean(&name),
                block.instructions,
                block.frequency.value,
                word(block.confidence)
            ));
        }
    }
    let mut exported = Exported::text(text, told);
    if !examiner.knows_period {
        exported.notes.push("how often it was sampled is not known: runs are in samples".into());
    }
    exported.notes.push("runs are estimates: `whither count` counts exactly".into());
    Ok(exported)
}
