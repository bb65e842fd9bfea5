//! Which files lie where in the program.
//!
//! QEMU loads the program and its interpreter itself, so those are read from the kernel's list; what
//! the program maps later is known from its system calls. QEMU drops the execute permission of what
//! it maps for the program, so the kernel's list cannot tell code from data, and need not: only
//! where the bytes came from matters.

use std::fs;

use tracer::record::{ImageMap, ProcessRecord};

use crate::process::Process;

/// QEMU's own files are above this address, the program's below.
const PROGRAM_END: u64 = 0x5000_0000_0000;

const PROT_EXEC: u64 = libc::PROT_EXEC as u64;
const MAP_ANONYMOUS: u64 = libc::MAP_ANONYMOUS as u64;

/// Records what QEMU mapped for the program before its first instruction.
pub(crate) fn record_first(process: &mut Process) {
    let maps = kernel_list();
    if let Some(path) = program_path().or_else(|| maps.first().map(|map| map.path.clone())) {
        process.record(&ProcessRecord::Program { path });
    }
    maps.into_iter().for_each(|map| add(process, map));
}

/// The file that runs, where QEMU says it.
pub(crate) fn program_path() -> Option<String> {
    let name = c"qemu_plugin_path_to_binary";
    // SAFETY: looks up a symbol by a C string; without it we do without.
    let symbol = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    if symbol.is_null() {
        return None;
    }
    type PathToBinary = extern "C" fn() -> *const std::ffi::c_char;
    // SAFETY: QEMU's documentation gives the symbol this type.
    let path_to_binary: PathToBinary = unsafe { std::mem::transmute(symbol) };
    let path = path_to_binary();
    // SAFETY: a C string that is ours, or null.
    (!path.is_null()).then(|| unsafe { std::ffi::CStr::from_ptr(path) }.to_string_lossy().into())
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
pub(crate) fn on_mapped(process: &mut Process, start: u64, arguments: &[u64; 6]) {
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
pub(crate) fn on_unmapped(process: &mut Process, start: u64, len: u64) {
    remove(process, start, start.saturating_add(len.next_multiple_of(4096)));
}

/// The program made a range executable that it had mapped before.
pub(crate) fn on_protected(process: &mut Process, start: u64, len: u64, protection: u64) {
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
