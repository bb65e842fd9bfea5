//! The head of an ELF file: where its parts are loaded and what identifies it, without reading the
//! rest. A daemon meets images of a hundred megabytes and must stay small.

use std::fs::File;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use vocab::{BuildId, ImageFacts, Loaded, Pid};

/// What the head says.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Head {
    pub(super) build_id: Option<BuildId>,
    pub(super) facts: ImageFacts,
}

const PROGRAM_HEADERS: u64 = 128;
const NOTE_BYTES: u64 = 64 * 1024;
const PT_LOAD: u32 = 1;
const PT_NOTE: u32 = 4;
const NT_GNU_BUILD_ID: u32 = 3;

/// The file of an image as a process saw it: through the process's own root, since it may live in
/// another mount namespace; from here where the process is gone.
pub(super) fn open(pid: Pid, path: &str) -> Option<File> {
    let below_root = path.strip_prefix('/')?;
    let theirs = PathBuf::from(format!("/proc/{}/root", pid.0)).join(below_root);
    let open = |path: &Path| File::open(path).ok().filter(is_regular);
    open(&theirs).or_else(|| open(Path::new(path)))
}

/// Anything else may block, or have effects when it is read.
fn is_regular(file: &File) -> bool {
    file.metadata().is_ok_and(|data| data.is_file())
}

/// Reads the head; none if it is no ELF file of 64 bits.
pub(super) fn read(file: &File) -> Option<Head> {
    let size = file.metadata().ok()?.size();
    let mut head = parse(|offset, bytes| file.read_exact_at(bytes, offset).ok())?;
    head.facts.size_bytes = Some(size);
    Some(head)
}

fn parse(read: impl Fn(u64, &mut [u8]) -> Option<()>) -> Option<Head> {
    let mut start = [0; 64];
    read(0, &mut start)?;
    // 64 bits, least significant byte first.
    if start.get(..6)? != b"\x7fELF\x02\x01" {
        return None;
    }
    let (table, size, count) = (u64_at(&start, 32)?, u16_at(&start, 54)?, u16_at(&start, 56)?);
    if size < 56 {
        return None;
    }
    let mut head = Head::default();
    for place in 0..u64::from(count).min(PROGRAM_HEADERS) {
        let mut entry = [0; 56];
        read(table.checked_add(place * u64::from(size))?, &mut entry)?;
        let (offset, address) = (u64_at(&entry, 8)?, u64_at(&entry, 16)?);
        let length = u64_at(&entry, 32)?;
        match u32_at(&entry, 0)? {
            PT_LOAD => head.facts.layout.push(Loaded { address, offset, length }),
            PT_NOTE if head.build_id.is_none() => {
                let mut notes = vec![0; length.min(NOTE_BYTES) as usize];
                if read(offset, &mut notes).is_some() {
                    head.build_id = build_id(&notes);
                }
            }
            _ => {}
        }
    }
    head.facts.layout.sort_unstable();
    Some(head)
}

/// `name length | content length | type | name, padded to 4 | content, padded to 4`
fn build_id(mut notes: &[u8]) -> Option<BuildId> {
    loop {
        let name = u32_at(notes, 0)? as usize;
        let content = u32_at(notes, 4)? as usize;
        let kind = u32_at(notes, 8)?;
        let name_end = 12_usize.checked_add(name)?;
        let from = name_end.checked_next_multiple_of(4)?;
        let end = from.checked_add(content)?;
        if kind == NT_GNU_BUILD_ID && notes.get(12..name_end)? == b"GNU\0" {
            return BuildId::new(notes.get(from..end)?);
        }
        notes = notes.get(end.checked_next_multiple_of(4)?..)?;
    }
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from_bytes(bytes: &[u8]) -> Option<Head> {
        parse(|offset, into| {
            let from = usize::try_from(offset).ok()?;
            into.copy_from_slice(bytes.get(from..from.checked_add(into.len())?)?);
            Some(())
        })
    }

    /// Against the reader that reads everything.
    #[test]
    fn the_head_says_what_the_whole_file_says() {
        for path in ["/bin/sh", "/proc/self/exe"] {
            let bytes = std::fs::read(path).unwrap();
            let whole = image::Binary::parse(&bytes).unwrap();
            let head = read(&File::open(path).unwrap()).unwrap();
            assert_eq!(head.build_id, whole.build_id(), "{path}");
            assert_eq!(head.facts.size_bytes, Some(bytes.len() as u64));
            for loaded in &head.facts.layout {
                let offset = whole.offset_of(loaded.address);
                assert_eq!(offset.map(|o| o.0), (loaded.length > 0).then_some(loaded.offset));
            }
        }
    }

    #[test]
    fn damaged_heads_are_survived() {
        let mut whole = std::fs::read("/bin/sh").unwrap();
        whole.truncate(4096);
        let rounds: u64 =
            std::env::var("WHITHER_FUZZ_ROUNDS").ok().and_then(|n| n.parse().ok()).unwrap_or(500);
        let mut seed = 11_u64;
        let mut next = |below: usize| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) as usize % below
        };
        for _ in 0..rounds {
            let mut bytes = whole.clone();
            for _ in 0..=next(8) {
                let at = next(1024);
                bytes[at] = [0, 1, 0x7f, 0x80, 0xff][next(5)];
            }
            bytes.truncate(next(4096));
            let _ = from_bytes(&bytes);
        }
        assert_eq!(from_bytes(b"#!/bin/sh\n"), None);
    }
}
