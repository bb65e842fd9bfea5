//! A procedure's code with its samples and the source that it comes from: the same lines for `run`,
//! `annotate` and `calc`.
//!
//! ```text
//!  share  samples   offset  instruction
//!                           copy.c:12  for (i = 0; i < n; i++)
//! 14.2 %      212   0x1139  mov rax,[rdi+rcx*8]
//! ```

pub(crate) mod bubbles;
mod choose;
mod rows;
mod source;

use std::collections::BTreeMap;

use image::{Binary, DebugInfo, FlowGraph, Lines, Procedure, Syntax};
use vocab::{Count, Offset};

pub(crate) use choose::choose;
pub(crate) use rows::{
    CodeTable, aside, columns, columns_with_stalls, exact_columns, exact_rows, rows,
};
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
    /// Instructions directly before it that were let go.
    pub(crate) gone: usize,
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

impl Listing {
    /// The place in the file of an instruction; its address where that is not known.
    pub(crate) fn offset_of(&self, address: u64) -> Offset {
        let place = self.lines.binary_search_by_key(&address, |line| line.address).ok();
        place.and_then(|place| self.lines.get(place)).map_or(Offset(address), |line| line.offset)
    }

    /// Lets go of what the text form does not show: thousands of procedures would fill the memory.
    /// The last instruction stays, so that a gap before the end is still known.
    pub(crate) fn keep_shown(&mut self) {
        let last = self.lines.len().saturating_sub(1);
        let (mut gone, mut place) = (0, 0);
        self.lines.retain_mut(|line| {
            let is_kept = line.shown || place == last;
            place += 1;
            match is_kept {
                true => line.gone = std::mem::take(&mut gone),
                false => gone += 1,
            }
            is_kept
        });
        self.lines.shrink_to_fit();
    }
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
                gone: 0,
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
        let hidden = self.hidden(graph, &whole, offsets);
        if !hidden.is_empty() {
            whole.lines.extend(hidden);
            whole.lines.sort_by_key(|line| line.address);
        }
        Ok(whole)
    }

    /// Instructions that a branch finds in the middle of others: the linear listing passes over
    /// them.
    fn hidden(
        &self,
        graph: &FlowGraph,
        listed: &Listing,
        offsets: &BTreeMap<Offset, Count>,
    ) -> Vec<CodeLine> {
        let is_listed =
            |at: u64| listed.lines.binary_search_by_key(&at, |line| line.address).is_ok();
        let end = listed.lines.last().map_or(0, |line| line.address);
        let wanted = |step: &&image::Step| step.address < end && !is_listed(step.address);
        let line = |step: &image::Step| {
            let start = self.binary.offset_of(step.address)?;
            let end = Offset(start.0 + u64::from(step.len_bytes));
            let alone = Procedure { start, end, ..self.binary.procedures().find(start)?.clone() };
            self.listing(&alone, offsets).ok()?.lines.into_iter().next()
        };
        let found = graph.steps.iter().filter(wanted).filter_map(line);
        // Its samples are with the instruction around it too, whose bytes they fall on.
        found.map(|line| CodeLine { count: Count::ZERO, ..line }).collect()
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

/// A procedure's name in a table; code that lies in none is named after its image.
pub(crate) fn procedure_name(procedure: Option<&Procedure>, image: &str) -> String {
    match procedure {
        Some(procedure) => procedure.name(image),
        None => format!("{image} (no known procedure)"),
    }
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
