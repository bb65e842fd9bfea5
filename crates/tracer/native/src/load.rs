//! Putting a program into memory as the kernel would.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::space::{Layout, PAGE, Space};
use crate::{guest, stack};

/// What the first instruction finds.
pub(crate) struct Loaded {
    pub(crate) pc: u64,
    pub(crate) rsp: u64,
}

/// The header of an ELF file, as far as loading needs it.
struct Elf {
    file: File,
    is_fixed: bool,
    entry: u64,
    headers_at: u64,
    segments: Vec<Segment>,
    interpreter: Option<PathBuf>,
}

/// A part of the file that is mapped.
#[derive(Clone, Copy)]
struct Segment {
    flags: u32,
    offset: u64,
    address: u64,
    file_bytes: u64,
    bytes: u64,
}

/// Why a program cannot be loaded, for a person.
pub(crate) type Problem = String;

impl Elf {
    fn read(path: &Path) -> Result<Elf, Problem> {
        let damaged = || format!("{} is a damaged ELF file", path.display());
        let file =
            File::open(path).map_err(|why| format!("{} cannot be read: {why}", path.display()))?;
        let mut header = [0; 64];
        file.read_exact_at(&mut header, 0).map_err(|_| damaged())?;
        let headers_at = u64_at(&header, 32).ok_or_else(damaged)?;
        let count = u16_at(&header, 56).ok_or_else(damaged)?;
        let mut table = vec![0; usize::from(count) * 56];
        file.read_exact_at(&mut table, headers_at).map_err(|_| damaged())?;
        let mut elf = Elf {
            file,
            is_fixed: u16_at(&header, 16) == Some(2),
            entry: u64_at(&header, 24).ok_or_else(damaged)?,
            headers_at,
            segments: Vec::new(),
            interpreter: None,
        };
        for row in table.chunks_exact(56) {
            elf.add(row).ok_or_else(damaged)?;
        }
        if elf.segments.is_empty() { Err(damaged()) } else { Ok(elf) }
    }

    /// One row of the table of program headers.
    fn add(&mut self, row: &[u8]) -> Option<()> {
        let (kind, flags) = (u32_at(row, 0)?, u32_at(row, 4)?);
        let word = |at| u64_at(row, at);
        let segment = Segment {
            flags,
            offset: word(8)?,
            address: word(16)?,
            file_bytes: word(32)?,
            bytes: word(40)?,
        };
        match kind {
            1 if segment.bytes > 0 => self.segments.push(segment),
            3 => {
                let mut name = vec![0; usize::try_from(segment.file_bytes).ok()?.min(4096)];
                self.file.read_exact_at(&mut name, segment.offset).ok()?;
                let end = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
                self.interpreter = Some(PathBuf::from(OsStr::from_bytes(name.get(..end)?)));
            }
            _ => {}
        }
        Some(())
    }

    /// The first address and the first after the last, as the file has them.
    fn span(&self) -> Option<(u64, u64)> {
        let start = self.segments.iter().map(|segment| segment.address & !(PAGE - 1)).min()?;
        let ends = self.segments.iter().map(|segment| segment.address.checked_add(segment.bytes));
        let end = ends.collect::<Option<Vec<_>>>()?.into_iter().max()?;
        Some((start, end.checked_next_multiple_of(PAGE)?))
    }

    /// Where the table of program headers is, relative to the file's addresses.
    fn headers_address(&self) -> u64 {
        let holds = |segment: &&Segment| {
            (segment.offset..segment.offset.saturating_add(segment.file_bytes))
                .contains(&self.headers_at)
        };
        let segment = self.segments.iter().find(holds);
        segment.map_or(0, |segment| segment.address + (self.headers_at - segment.offset))
    }

    /// Maps the file; `bias` is what is added to its addresses.
    fn map(&self, space: &mut Space, bias: u64) -> Option<()> {
        for segment in &self.segments {
            let protection = [(4, libc::PROT_READ), (2, libc::PROT_WRITE), (1, libc::PROT_EXEC)]
                .iter()
                .filter(|(bit, _)| segment.flags & bit != 0)
                .fold(0, |all, (_, protection)| all | protection);
            let address = segment.address.wrapping_add(bias);
            let start = address & !(PAGE - 1);
            let before = address - start;
            let file_end = address + segment.file_bytes;
            let end = (address + segment.bytes).next_multiple_of(PAGE);
            let mapped = file_end.next_multiple_of(PAGE);
            if segment.file_bytes > 0 {
                let offset = segment.offset.checked_sub(before)?;
                map(start, mapped - start, protection, Some((&self.file, offset)))?;
            }
            let zeros = if segment.file_bytes > 0 { mapped } else { start };
            if end > zeros {
                map(zeros, end - zeros, protection, None)?;
            }
            // What is behind the file's bytes in their last page is zero too.
            if segment.bytes > segment.file_bytes
                && mapped > file_end
                && protection & libc::PROT_WRITE != 0
            {
                guest::write(file_end, &vec![0; (mapped - file_end) as usize]);
            }
            space.add(start, end.max(mapped), protection);
        }
        Some(())
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

/// Maps a file or nothing at an address.
pub(crate) fn map(start: u64, len: u64, protection: i32, file: Option<(&File, u64)>) -> Option<()> {
    let (descriptor, offset, kind) = match file {
        Some((file, offset)) => (file.as_raw_fd(), i64::try_from(offset).ok()?, 0),
        None => (-1, 0, libc::MAP_ANONYMOUS),
    };
    let flags = libc::MAP_PRIVATE | libc::MAP_FIXED | kind;
    // SAFETY: an address that was chosen free of anything of ours.
    let found =
        unsafe { libc::mmap(start as *mut _, len as usize, protection, flags, descriptor, offset) };
    (found as u64 == start).then_some(())
}

/// What a program is started with.
pub(crate) struct Start {
    pub(crate) executable: PathBuf,
    /// Its name first.
    pub(crate) arguments: Vec<OsString>,
    pub(crate) environment: Vec<OsString>,
    /// Sixteen bytes that the kernel makes up.
    pub(crate) random: [u8; 16],
}

/// Loads a program and what interprets it.
pub(crate) fn load(start: &Start, space: &mut Space) -> Result<Loaded, Problem> {
    let no_room = || format!("{} finds no room in memory", start.executable.display());
    let elf = Elf::read(&start.executable)?;
    let (first, end) = elf.span().ok_or_else(no_room)?;
    let bias = if elf.is_fixed { 0 } else { space.layout.program.wrapping_sub(first) };
    elf.map(space, bias).ok_or_else(no_room)?;
    space.break_start = end.wrapping_add(bias);
    space.break_now = space.break_start;
    let entry = elf.entry.wrapping_add(bias);
    let (pc, base) = match &elf.interpreter {
        None => (entry, 0),
        Some(path) => {
            let linker = Elf::read(path)?;
            let (first, end) = linker.span().ok_or_else(no_room)?;
            let place = space.place(end - first, true).ok_or_else(no_room)?;
            let bias = place.wrapping_sub(first);
            linker.map(space, bias).ok_or_else(no_room)?;
            (linker.entry.wrapping_add(bias), bias)
        }
    };
    let facts = [
        (libc::AT_PHDR, elf.headers_address().wrapping_add(bias)),
        (libc::AT_PHENT, 56),
        (libc::AT_PHNUM, headers(&elf)),
        (libc::AT_BASE, base),
        (libc::AT_ENTRY, entry),
    ];
    let rsp = stack::make(start, space, &facts).ok_or_else(no_room)?;
    Ok(Loaded { pc, rsp })
}

fn headers(elf: &Elf) -> u64 {
    let mut count = [0; 2];
    let read = elf.file.read_exact_at(&mut count, 56);
    read.map_or(0, |()| u64::from(u16::from_le_bytes(count)))
}

/// Where a program of this kind and all that belongs to it is put.
pub(crate) fn layout(path: &Path) -> Result<Layout, Problem> {
    let elf = Elf::read(path)?;
    let end = elf.span().filter(|_| elf.is_fixed).map(|(_, end)| end);
    Ok(Layout::new(end))
}
