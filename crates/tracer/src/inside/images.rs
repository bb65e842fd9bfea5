//! Which files lie where in the program.
//!
//! An engine loads the program and its interpreter itself, so those are read from the kernel's list;
//! what the program maps later is known from its system calls. Engines drop the execute permission of
//! what they map for the program, so the kernel's list cannot tell code from data, and need not: only
//! where the bytes came from matters.

use std::fs;
use std::path::PathBuf;
use std::sync::OnceLock;

use super::Process;
use crate::record::{ImageMap, ProcessRecord};

/// The engine's own files are above this address, the program's below.
const PROGRAM_END: u64 = 0x5000_0000_0000;

const PROT_EXEC: u64 = libc::PROT_EXEC as u64;
const MAP_ANONYMOUS: u64 = libc::MAP_ANONYMOUS as u64;

/// The file that runs. A process that becomes another is a new one of ours too.
static PROGRAM: OnceLock<String> = OnceLock::new();

/// The path of the program's file, once it is known.
pub fn program() -> Option<&'static str> {
    PROGRAM.get().map(String::as_str)
}

/// Records what the engine mapped for the program before its first instruction, and the file that
/// runs, where the engine can say it.
pub fn record_first(process: &mut Process, program: Option<String>) {
    let maps = kernel_list();
    process.program = program.clone().map(PathBuf::from);
    process.has_images = true;
    if let Some(path) = program.or_else(|| maps.first().map(|map| map.path.clone())) {
        let _ = PROGRAM.set(path.clone());
        process.record(&ProcessRecord::Program { path });
    }
    maps.into_iter().for_each(|map| add(process, map));
}

/// The program's files in the kernel's list of this process's maps.
fn kernel_list() -> Vec<ImageMap> {
    let text = fs::read("/proc/self/maps").unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    text.lines().filter_map(parse).filter(|map| map.end <= PROGRAM_END).collect()
}

/// A line such as `4000000000-4000001000 r--p 00000000 fe:00 12345    /usr/bin/gzip`.
fn parse(line: &str) -> Option<ImageMap> {
    let (range, rest) = line.split_once(' ')?;
    let (start, end) = range.split_once('-')?;
    let offset = rest.split(' ').nth(1)?;
    let path = line.get(line.find('/')?..)?;
    let number = |digits| u64::from_str_radix(digits, 16).ok();
    Some(ImageMap {
        start: number(start)?,
        end: number(end)?,
        file_offset: number(offset)?,
        path: path.into(),
    })
}

fn add(process: &mut Process, map: ImageMap) {
    remove(process, map.start, map.end);
    process.record(&ProcessRecord::Mapped(map.clone()));
    process.maps.push(map);
}

/// Says that a range holds none of the recorded files, if it held any.
fn remove(process: &mut Process, start: u64, end: u64) {
    if !process.maps.iter().any(|map| map.start < end && start < map.end) {
        return;
    }
    process.record(&ProcessRecord::Unmapped { start, end });
    process.blocks.forget(start, end);
    let keep = |map: &ImageMap| {
        let before = ImageMap { end: map.end.min(start), ..map.clone() };
        let cut = end.saturating_sub(map.start);
        let after = ImageMap {
            start: map.start.max(end),
            file_offset: map.file_offset.saturating_add(cut),
            ..map.clone()
        };
        [before, after].into_iter().filter(|piece| piece.start < piece.end)
    };
    process.maps = process.maps.iter().flat_map(keep).collect();
}

/// The program mapped something at `start`.
pub fn on_mapped(process: &mut Process, start: u64, arguments: &[u64; 6]) {
    let [_, len, protection, flags, descriptor, file_offset] = *arguments;
    let end = start.saturating_add(len.next_multiple_of(4096));
    let is_code = protection & PROT_EXEC != 0 && flags & MAP_ANONYMOUS == 0;
    let link = format!("/proc/self/fd/{}", descriptor as i32);
    let path = if is_code { fs::read_link(link).ok() } else { None };
    match path {
        Some(path) => {
            let path = path.to_string_lossy().into_owned();
            add(process, ImageMap { start, end, file_offset, path });
        }
        None => remove(process, start, end),
    }
}

/// The program unmapped a range, or moved it away.
pub fn on_unmapped(process: &mut Process, start: u64, len: u64) {
    remove(process, start, start.saturating_add(len.next_multiple_of(4096)));
}

/// The program made a range executable that it had mapped before.
pub fn on_protected(process: &mut Process, start: u64, len: u64, protection: u64) {
    if protection & PROT_EXEC == 0 {
        return;
    }
    let end = start.saturating_add(len);
    for map in kernel_list() {
        let is_known =
            process.maps.iter().any(|known| known.start <= map.start && map.end <= known.end);
        if map.start < end && start < map.end && !is_known {
            add(process, map);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_lines_of_files_are_maps() {
        let line = "4000001000-4000003000 r-xp 00001000 fe:00 12345    /usr/bin/a b";
        let map = parse(line).unwrap();
        assert_eq!((map.start, map.end), (0x40_0000_1000, 0x40_0000_3000));
        assert_eq!((map.file_offset, map.path.as_str()), (0x1000, "/usr/bin/a b"));
        for line in ["", "4000-5000 rw-p 00000000 00:00 0 [heap]", "4000 r--p 0 fe:00 1 /a"] {
            assert!(parse(line).is_none(), "{line}");
        }
    }
}
