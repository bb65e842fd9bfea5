//! The code of an image: its file, or what a trace holds of it.
//!
//! A trace carries the bytes of every block that ran, so a recorded program can be examined where
//! its file is not at hand. Its procedures begin where calls lead, and code that never ran is not
//! in them.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use image::{Binary, Callees, CodePart, Flow, FlowGraph, Procedure, Surroundings};
use vocab::Offset;

/// Where code is read from.
#[derive(Debug)]
pub(super) enum Source {
    /// The image's file.
    File(Box<Binary>, Vec<u8>),
    /// Blocks that ran.
    Trace(Traced),
}

impl Source {
    /// The virtual address of an offset; of a trace they are the same.
    pub(super) fn address_of(&self, offset: u64) -> Option<u64> {
        match self {
            Source::File(binary, _) => binary.address_of(Offset(offset)),
            Source::Trace(_) => Some(offset),
        }
    }

    /// Its procedures. Parts that were moved away come last, with the procedure that they belong
    /// to they have been seen by then.
    pub(super) fn procedures(&self) -> Procedures<'_> {
        match self {
            Source::File(binary, bytes) => {
                let is_part = |p: &&Procedure| {
                    p.raw_name.as_deref().is_some_and(|name| name.ends_with(".cold"))
                };
                let list = binary.procedures();
                let (parts, mut all): (Vec<_>, Vec<_>) = list.iter().partition(is_part);
                all.extend(parts);
                Procedures::File(Callees::new(binary, bytes), all)
            }
            Source::Trace(traced) => Procedures::Trace(traced),
        }
    }
}

/// The procedures of an image.
pub(super) enum Procedures<'a> {
    File(Callees<'a>, Vec<&'a Procedure>),
    Trace(&'a Traced),
}

impl<'a> Procedures<'a> {
    pub(super) fn count(&self) -> usize {
        match self {
            Procedures::File(_, list) => list.len(),
            Procedures::Trace(traced) => traced.procedures.len(),
        }
    }

    /// Its offsets.
    pub(super) fn range(&self, k: usize) -> Range<u64> {
        match self {
            Procedures::File(_, list) => {
                list.get(k).map_or(0..0, |p| p.start.0..p.start.0 + p.len_bytes())
            }
            Procedures::Trace(traced) => traced.procedures.get(k).cloned().unwrap_or(0..0),
        }
    }

    pub(super) fn name(&self, k: usize) -> String {
        match self {
            Procedures::File(_, list) => list.get(k).map_or(String::new(), |p| p.name("")),
            Procedures::Trace(_) => format!("{:#x}", self.range(k).start),
        }
    }

    pub(super) fn flow(&self, k: usize) -> Option<(FlowGraph, Vec<CodePart<'a>>)> {
        match self {
            Procedures::File(callees, list) => callees.flow_and_parts_of(list.get(k)?),
            Procedures::Trace(traced) => {
                let parts = traced.parts(&self.range(k));
                Some((FlowGraph::build(&parts, &Anywhere), parts))
            }
        }
    }
}

/// Code that ran.
#[derive(Debug)]
pub(super) struct Traced {
    /// Stretches without a gap, by offset.
    stretches: BTreeMap<u64, Vec<u8>>,
    procedures: Vec<Range<u64>>,
}

impl Traced {
    /// From instructions by offset.
    pub(super) fn new(code: &[(u64, Vec<u8>)]) -> Traced {
        let mut stretches: Vec<(u64, Vec<u8>)> = Vec::new();
        for (offset, bytes) in code {
            match stretches.last_mut() {
                Some((start, held)) if *start + held.len() as u64 == *offset => {
                    held.extend_from_slice(bytes);
                }
                _ => stretches.push((*offset, bytes.clone())),
            }
        }
        let mut traced =
            Traced { stretches: stretches.into_iter().collect(), procedures: Vec::new() };
        traced.procedures = traced.called();
        traced
    }

    /// From one place that calls lead to, to the next.
    fn called(&self) -> Vec<Range<u64>> {
        let Some((&first, _)) = self.stretches.first_key_value() else { return Vec::new() };
        let Some((&last, held)) = self.stretches.last_key_value() else { return Vec::new() };
        let end = last + held.len() as u64;
        let mut starts = BTreeSet::from([first, end]);
        for (&address, code) in &self.stretches {
            let graph = FlowGraph::build(&[CodePart { address, code }], &Anywhere);
            let calls = graph.steps.iter().filter(|step| step.flow == Flow::Call);
            let inside =
                calls.filter_map(|step| step.target).filter(|to| (first..end).contains(to));
            starts.extend(inside);
        }
        let starts: Vec<u64> = starts.into_iter().collect();
        starts.windows(2).map(|pair| pair[0]..pair[1]).collect()
    }

    fn parts(&self, range: &Range<u64>) -> Vec<CodePart<'_>> {
        let cut = |(&start, held): (&u64, &'_ Vec<u8>)| {
            let end = (start + held.len() as u64).min(range.end);
            let from = start.max(range.start);
            (from < end).then(|| ((from - start) as usize, (end - start) as usize, from))
        };
        let before = self.stretches.range(..range.start).next_back();
        let inside = self.stretches.range(range.clone());
        before
            .into_iter()
            .chain(inside)
            .filter_map(|held| {
                let (from, end, address) = cut(held)?;
                Some(CodePart { address, code: held.1.get(from..end)? })
            })
            .collect()
    }
}

/// Nothing is known beyond the code: no table can be read, and every call comes back.
struct Anywhere;

impl Surroundings for Anywhere {
    fn data(&self, _: u64, _: usize) -> Option<&[u8]> {
        None
    }

    fn returns(&self, _: u64) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_that_ran_is_cut_where_calls_lead() {
        // 0: call 8; 5: ret; a gap; 8: nop; 9: nop; a: ret
        let code = vec![
            (0, vec![0xe8, 3, 0, 0, 0]),
            (5, vec![0xc3]),
            (8, vec![0x90]),
            (9, vec![0x90]),
            (10, vec![0xc3]),
        ];
        let traced = Traced::new(&code);
        assert_eq!(traced.procedures, [0..8, 8..11]);
        let source = Source::Trace(traced);
        let procedures = source.procedures();
        assert_eq!((procedures.count(), procedures.name(1)), (2, "0x8".to_owned()));
        let (graph, parts) = procedures.flow(1).unwrap();
        assert_eq!((parts.len(), graph.blocks.len(), graph.steps.len()), (1, 1, 3));
        assert!(Traced::new(&[]).procedures.is_empty());
    }
}
