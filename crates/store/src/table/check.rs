//! Checksums: Parquet has them for pages, and the crate does not write them.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;

use parquet::file::metadata::{ParquetMetaData, RowGroupMetaData};
use twox_hash::XxHash64;

use crate::manifest::Checks;

/// Bytes read at a time.
const STEP: u64 = 256 << 10;

/// The checksum of a range of a file, in hexadecimal.
pub(crate) fn hash_range(file: &File, range: Range<u64>) -> io::Result<String> {
    let mut hash = XxHash64::with_seed(0);
    let mut at = range.start;
    let mut buffer = vec![0; STEP.min(range.end.saturating_sub(at)) as usize];
    while at < range.end {
        let length = STEP.min(range.end - at) as usize;
        let Some(part) = buffer.get_mut(..length) else { break };
        file.read_exact_at(part, at)?;
        std::hash::Hasher::write(&mut hash, part);
        at += length as u64;
    }
    Ok(format!("{:016x}", std::hash::Hasher::finish(&hash)))
}

/// The ranges of column chunks, row group after row group.
pub(crate) fn chunks(metadata: &ParquetMetaData) -> impl Iterator<Item = Range<u64>> {
    metadata.row_groups().iter().flat_map(RowGroupMetaData::columns).map(|column| {
        let (start, length) = column.byte_range();
        start..start.saturating_add(length)
    })
}

/// The checksums of a file that was just written.
pub(crate) fn checks_of(
    file: &File,
    metadata: &ParquetMetaData,
    length: u64,
) -> io::Result<Checks> {
    let footer_at = chunks(metadata).map(|range| range.end).max().unwrap_or(0);
    let ranges = chunks(metadata).chain(std::iter::once(footer_at..length));
    let xxh64 = ranges.map(|range| hash_range(file, range)).collect::<io::Result<_>>()?;
    Ok(Checks { footer_at, xxh64 })
}
