//! Names and lines of places, each looked up once.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use image::{DebugInfo, Procedure};
use vocab::{ImageId, Offset, Place};

use super::stacks::Stacks;
use crate::listing::Code;
use crate::sampled::Sampled;

/// One frame of the source: several stand behind a place where calls were inlined.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Frame {
    /// As its author wrote it.
    pub(super) name: String,
    /// As the linker wrote it.
    pub(super) raw_name: String,
    pub(super) file: String,
    pub(super) line: u32,
}

/// What a place is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Symbol {
    /// The innermost first; never empty.
    pub(super) frames: Vec<Frame>,
    /// The virtual address, or the offset where that is not known.
    pub(super) address: u64,
}

/// Every place of the stacks.
pub(super) fn symbols(sampled: &Sampled, stacks: &Stacks) -> HashMap<Place, Symbol> {
    let places: BTreeSet<Place> =
        stacks.list.iter().flat_map(|(stack, _)| stack.iter().copied().flatten()).collect();
    let mut by_image: BTreeMap<ImageId, Vec<Offset>> = BTreeMap::new();
    for place in places {
        by_image.entry(place.image).or_default().push(place.offset);
    }
    let mut found = HashMap::new();
    for (image, offsets) in by_image {
        of_image(sampled, image, &offsets, &mut found);
    }
    found
}

/// Offsets rise, so that those of one procedure stand together.
fn of_image(
    sampled: &Sampled,
    image: ImageId,
    offsets: &[Offset],
    found: &mut HashMap<Place, Symbol>,
) {
    let known = sampled.images().procedures().get(&image);
    let procedure = |offset: Offset| known.and_then(|known| known.find(offset));
    let debug_bytes = sampled.images().debug_bytes(image);
    let debug = debug_bytes.as_deref().and_then(DebugInfo::read);
    let short = sampled.image_name(image);
    let code = sampled.images().code(image).map(|(binary, bytes)| Code {
        binary,
        bytes,
        syntax: image::Syntax::Intel,
        image: short,
        debug: debug.as_ref(),
    });
    let same =
        |a: &Offset, b: &Offset| procedure(*a).map(|p| p.start) == procedure(*b).map(|p| p.start);
    for group in offsets.chunk_by(same) {
        let held = group.first().and_then(|&offset| procedure(offset));
        let lines = held.zip(code.as_ref()).map(|(held, code)| code.source_lines(held));
        let lines = lines.unwrap_or_default();
        for &offset in group {
            let address = code.as_ref().and_then(|code| code.binary.address_of(offset));
            let address = address.unwrap_or(offset.0);
            let outer = outermost(held, short, offset);
            let frames = frames(&lines, address, outer);
            found.insert(Place { image, offset }, Symbol { frames, address });
        }
    }
}

/// (name, raw name) of a procedure.
fn outermost(procedure: Option<&Procedure>, image: &str, offset: Offset) -> (String, String) {
    match procedure {
        Some(procedure) => {
            let name = procedure.name(image);
            let raw = procedure.raw_name.as_deref().map_or_else(|| name.clone(), str::to_owned);
            (name, raw)
        }
        None => {
            let name = format!("{image}{offset}");
            (name.clone(), name)
        }
    }
}

/// The innermost first: the line of each frame is the one on which the next inner was called.
fn frames(lines: &image::Lines, address: u64, outer: (String, String)) -> Vec<Frame> {
    let row = lines.row_at(address);
    let mut file = row.map_or(String::new(), |row| lines.file(row.file).to_owned());
    let mut line = row.map_or(0, |row| row.line);
    let mut frames = Vec::new();
    for call in lines.chain(lines.inline_at(address)) {
        frames.push(Frame {
            name: image::demangle(&call.name).into_owned(),
            raw_name: call.name.clone(),
            file: std::mem::take(&mut file),
            line,
        });
        file = call.call_file.map_or(String::new(), |number| lines.file(number).to_owned());
        line = call.call_line;
    }
    frames.push(Frame { name: outer.0, raw_name: outer.1, file, line });
    frames
}
