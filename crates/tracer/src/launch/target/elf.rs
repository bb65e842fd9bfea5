//! What an ELF file says about where it can run.

use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use super::TargetError;

/// Checks an ELF file as far as running it needs, and gives its dynamic linker.
pub(super) fn check(
    path: &Path,
    file: &File,
    start: &[u8],
) -> Result<Option<PathBuf>, TargetError> {
    const EM_X86_64: u16 = 62;
    if !start.starts_with(b"\x7fELF") {
        return Err(TargetError::UnknownFormat(path.into()));
    }
    let malformed = || TargetError::Malformed(path.into());
    let machine = number(start, 18, 2).ok_or_else(malformed)? as u16;
    if machine != EM_X86_64 {
        let narrow = start.get(4) == Some(&1) && machine == 3;
        let other = TargetError::OtherMachine(path.into(), machine);
        return Err(if narrow { TargetError::Narrow(path.into()) } else { other });
    }
    if start.get(4) != Some(&2) {
        return Err(TargetError::Narrow(path.into()));
    }
    let kind = number(start, 16, 2).ok_or_else(malformed)?;
    if !matches!(kind, 2 | 3) {
        return Err(TargetError::UnknownFormat(path.into()));
    }
    let segments = number(start, 32, 8).ok_or_else(malformed)?;
    let count = number(start, 56, 2).ok_or_else(malformed)?;
    let mut table = vec![0; count as usize * 56];
    file.read_exact_at(&mut table, segments).map_err(|_| malformed())?;
    let mut linker = None;
    for segment in table.chunks_exact(56) {
        linker = check_segment(path, file, segment)?.or(linker);
    }
    Ok(linker)
}

/// Checks a segment; if it is the one that names the dynamic linker, gives that.
fn check_segment(path: &Path, file: &File, segment: &[u8]) -> Result<Option<PathBuf>, TargetError> {
    const PT_INTERP: u64 = 3;
    const PT_GNU_PROPERTY: u64 = 0x6474_e553;
    const MOST_BYTES: u64 = 1 << 16;
    let malformed = || TargetError::Malformed(path.into());
    let field = |at, len| number(segment, at, len).ok_or_else(malformed);
    let (kind, offset, len) = (field(0, 4)?, field(8, 8)?, field(32, 8)?.min(MOST_BYTES));
    if kind != PT_INTERP && kind != PT_GNU_PROPERTY {
        return Ok(None);
    }
    let mut bytes = vec![0; len as usize];
    file.read_exact_at(&mut bytes, offset).map_err(|_| malformed())?;
    if kind == PT_GNU_PROPERTY {
        let needs = properties_need_avx512(&bytes);
        return if needs { Err(TargetError::NeedsAvx512(path.into())) } else { Ok(None) };
    }
    let name = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
    let interpreter = PathBuf::from(OsStr::from_bytes(name));
    match interpreter.exists() {
        true => Ok(Some(interpreter)),
        false => Err(TargetError::NoInterpreter(path.into(), interpreter)),
    }
}

/// Whether a `.note.gnu.property` says that the fourth level of x86-64 is needed.
pub(super) fn properties_need_avx512(note: &[u8]) -> bool {
    const X86_ISA_1_NEEDED: u64 = 0xc000_8002;
    const LEVEL_4: u64 = 1 << 3;
    // The name "GNU\0" and the sizes before it take 16 bytes; properties are aligned to 8.
    let mut rest = note.get(16..).unwrap_or_default();
    while let (Some(kind), Some(len)) = (number(rest, 0, 4), number(rest, 4, 4)) {
        if kind == X86_ISA_1_NEEDED {
            return number(rest, 8, 4).is_some_and(|levels| levels & LEVEL_4 != 0);
        }
        let next = 8 + (len as usize).next_multiple_of(8);
        rest = rest.get(next..).unwrap_or_default();
    }
    false
}

/// A little-endian number of up to 8 bytes.
fn number(bytes: &[u8], at: usize, len: usize) -> Option<u64> {
    let field = bytes.get(at..at + len)?;
    Some(field.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte)))
}
