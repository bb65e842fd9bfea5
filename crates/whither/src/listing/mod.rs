//! A procedure's code with its samples and the source that it comes from: the same lines for `run`,
//! `annotate` and `calc`.
//!
//! ```text
//!  share  samples   offset  instruction
//!                           copy.c:12  for (i = 0; i < n; i++)
//! 14.2 %      212   0x1139  mov rax,[rdi+rcx*8]
//! ```

mod choose;
mod rows;
mod source;

use std::collections::BTreeMap;

use image::{Binary, DebugInfo, FlowGraph, Lines, Procedure, Syntax};
use vocab::{Count, Offset};

pub(crate) use choose::choose;
pub(crate) use rows::{CodeTable, aside, columns, exact_columns, exact_rows, rows};
pub(crate) use source::Sources;

/// One instruction with its samples.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct CodeLine {
    pub(crate) offset: Offset,
    /// Its virtual address.
    pub(crate) address: u64,
    pub(crate) text: String,
    pub(crate) count: Count,
    /// Whether the text form shows it.
    pub(crate) shown: bool,
    pub(crate) from: Option<FromLine>,
}

/// Where an instruction comes from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct FromLine {
    /// The file's place in [`Listing::files`].
    pub(crate) file: u32,
    pub(crate) line: u32,
    /// What was inlined here, the innermost first; empty in the procedure's own code.
    pub(crate) inlined: Vec<String>,
}

/// A procedure's code.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Listing {
    pub(crate) lines: Vec<CodeLine>,
    pub(crate) files: Vec<String>,
    /// Bytes that are no instruction, and bytes beyond the longest listing.
    pub(crate) bad_bytes: u64,
    pub(crate) left_out_bytes: u64,
}

/// What a listing is made from.
pub(crate) struct Code<'a> {
    pub(crate) binary: &'a Binary,
    pub(crate) bytes: &'a [u8],
    pub(crate) syntax: Syntax,
    /// The image's name in the text of instructions.
    pub(crate) image: &'a str,
    /// Lines and inlined calls, where the image or its debug file has them.
    pub(crate) debug: Option<&'a DebugInfo<'a>>,
}

impl Code<'_> {
    /// The instructions of a procedure, with the samples that fall on their bytes.
    pub(crate) fn listing(
        &self,
        procedure: &Procedure,
        offsets: &BTreeMap<Offset, Count>,
    ) -> Result<Listing, String> {
        let listed = self
            .binary
            .disassemble(self.bytes, procedure, self.syntax, self.image)
            .map_err(|error| error.to_string())?;
        let lines = self.source_lines(procedure);
        let line = |i: image::Instruction| {
            let offset = self.binary.offset_of(i.address).unwrap_or_default();
            CodeLine {
                offset,
                address: i.address,
                count: samples_of(offsets, offset, u64::from(i.len_bytes)),
                shown: false,
                from: from_line(&lines, i.address),
                text: i.text,
            }
        };
        Ok(Listing {
            lines: listed.instructions.into_iter().map(line).collect(),
            bad_bytes: listed.bad_bytes,
            left_out_bytes: listed.left_out_bytes,
            files: lines.files,
        })
    }

    /// The same for a procedure whose unlikely part was moved away: every part of its flow.
    pub(crate) fn flow_listing(
        &self,
        graph: &FlowGraph,
        offsets: &BTreeMap<Offset, Count>,
    ) -> Result<Listing, String> {
        let mut whole = Listing::default();
        let mut reached: Option<Offset> = None;
        for step in &graph.steps {
            let Some(offset) = self.binary.offset_of(step.address) else { continue };
            if reached.is_some_and(|reached| offset < reached) {
                continue;
            }
            let Some(procedure) = self.binary.procedures().find(offset) else { continue };
            reached = Some(procedure.end);
            let mut part = self.listing(procedure, offsets)?;
            // Each part has files of its own.
            let shift = whole.files.len() as u32;
            let froms = part.lines.iter_mut().filter_map(|line| line.from.as_mut());
            froms.for_each(|from| from.file += shift);
            whole.lines.append(&mut part.lines);
            whole.files.append(&mut part.files);
            whole.bad_bytes += part.bad_bytes;
            whole.left_out_bytes += part.left_out_bytes;
        }
        Ok(whole)
    }

    /// What DWARF says of a procedure.
    pub(crate) fn source_lines(&self, procedure: &Procedure) -> Lines {
        let extent = self.binary.address_of(procedure.start);
        match (self.debug, extent) {
            (Some(debug), Some(start)) => debug.lines_of(&[(start, start + procedure.len_bytes())]),
            _ => Lines::default(),
        }
    }
}

fn from_line(lines: &Lines, address: u64) -> Option<FromLine> {
    let row = lines.row_at(address)?;
    let inlined = lines.chain(lines.inline_at(address));
    let inlined = inlined.map(|call| image::demangle(&call.name).into_owned()).collect();
    Some(FromLine { file: row.file, line: row.line, inlined })
}

/// All samples that fall on the bytes of an instruction.
pub(crate) fn samples_of(offsets: &BTreeMap<Offset, Count>, start: Offset, length: u64) -> Count {
    let end = Offset(start.0.saturating_add(length));
    offsets.range(start..end).map(|(_, &count)| count).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_inside_an_instruction_belongs_to_it() {
        let offsets = BTreeMap::from([
            (Offset(10), Count(2)),
            (Offset(12), Count(3)),
            (Offset(13), Count(5)),
        ]);
        assert_eq!(samples_of(&offsets, Offset(10), 3), Count(5));
        assert_eq!(samples_of(&offsets, Offset(13), 1), Count(5));
    }
}
