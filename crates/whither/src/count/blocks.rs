//! Blocks as they ran: instructions that follow each other and ran equally often.

use analyse::ProcedureTime;
use image::Callees;
use vocab::{Count, ImageId, Offset, Profile};

use crate::run::Images;

/// A block of a procedure.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct BlockRuns {
    /// The procedure's place in the list of procedures.
    pub(super) row: usize,
    pub(super) image: ImageId,
    pub(super) offset: Offset,
    pub(super) instructions: u64,
    pub(super) runs: Count,
}

/// The blocks of every procedure that ran, most runs first. A block ran as often as its first
/// instruction did.
pub(super) fn blocks(
    profile: &Profile,
    images: &Images,
    times: &[ProcedureTime],
) -> Vec<BlockRuns> {
    let mut found = Vec::new();
    for id in (0..profile.images.len() as u32).map(ImageId) {
        let Some((binary, bytes)) = images.code(id) else { continue };
        let callees = Callees::new(binary, bytes);
        for (row, time) in times.iter().enumerate().filter(|(_, time)| time.image == id) {
            let graph = time.procedure.as_ref().and_then(|p| callees.flow_of(p));
            let Some(graph) = graph else { continue };
            for block in &graph.blocks {
                let first = graph.steps.get(block.first);
                let offset = first.and_then(|step| binary.offset_of(step.address));
                let runs = offset.and_then(|offset| time.offsets.get(&offset)).copied();
                if let (Some(offset), Some(runs)) = (offset, runs) {
                    let instructions = (block.end - block.first) as u64;
                    found.push(BlockRuns { row, image: id, offset, instructions, runs });
                }
            }
        }
    }
    found.sort_by_key(|block| std::cmp::Reverse(block.runs.0.saturating_mul(block.instructions)));
    found
}
