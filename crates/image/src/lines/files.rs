//! Source files by number: a unit's numbers become ours as they are met.

use std::collections::HashMap;

use gimli::{Dwarf, LineProgramHeader};

use super::{Slice, Unit};

/// Longer paths are not paths.
const PATH_BYTES_MAX: usize = 4096;

/// From a unit's file numbers to places in a list of paths.
#[derive(Debug, Default)]
pub(super) struct Numbers(HashMap<u32, u32>);

impl Numbers {
    pub(super) fn number(&mut self, of_unit: u32, known: &[String], list: &mut Vec<String>) -> u32 {
        *self.0.entry(of_unit).or_insert_with(|| {
            let path = known.get(of_unit as usize).map_or("?", String::as_str);
            let place = list.iter().position(|held| held == path).unwrap_or_else(|| {
                list.push(path.to_owned());
                list.len() - 1
            });
            place as u32
        })
    }
}

/// The paths of a unit's files, by the unit's own numbers.
pub(super) fn read(
    dwarf: &Dwarf<Slice<'_>>,
    unit: &Unit<'_>,
    header: &LineProgramHeader<Slice<'_>>,
) -> Vec<String> {
    // Until version 4 numbers begin at one, and zero stands for the unit itself.
    let first = u64::from(header.version() <= 4);
    let count = header.file_names().len() as u64;
    let mut paths: Vec<String> = Vec::new();
    if first == 1 {
        paths.push(unit.name.map(|name| name.to_string_lossy().into_owned()).unwrap_or_default());
    }
    paths.extend((first..count + first).map(|number| path(dwarf, unit, header, number)));
    paths
}

fn path(
    dwarf: &Dwarf<Slice<'_>>,
    unit: &Unit<'_>,
    header: &LineProgramHeader<Slice<'_>>,
    number: u64,
) -> String {
    let text = |value| {
        let found = dwarf.attr_string(unit, value).ok();
        found.map(|text| text.to_string_lossy().into_owned()).unwrap_or_default()
    };
    let Some(file) = header.file(number) else { return String::new() };
    let name = text(file.path_name());
    if name.starts_with('/') || name.len() > PATH_BYTES_MAX {
        return cut(name);
    }
    let folder = file.directory(header).map(text).unwrap_or_default();
    let root = unit.comp_dir.map(|root| root.to_string_lossy().into_owned()).unwrap_or_default();
    let parts = match folder.starts_with('/') {
        true => vec![folder, name],
        false => vec![root, folder, name],
    };
    let parts: Vec<&str> =
        parts.iter().map(String::as_str).filter(|part| !part.is_empty()).collect();
    cut(parts.join("/"))
}

fn cut(mut path: String) -> String {
    if path.len() > PATH_BYTES_MAX {
        path = path.chars().take(PATH_BYTES_MAX).collect();
    }
    path
}
