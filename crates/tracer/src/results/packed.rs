//! Results of a process that has ended, packed.
//!
//! Rows are mostly zeros, and they lie in memory: a build that runs a compiler hundreds of times
//! would fill it. The file that they came from stays, empty, so that its name is not given again.
//!
//! ```text
//! 71.0.results: | header | chunk | chunk | ...      71.0.packed: | header | len, packed | len, packed | ...
//! ```

use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use super::layout::{CHUNK_BYTES, CHUNK_HEADER_BYTES, HEADER_BYTES, chunk, header};
use super::read::word;

/// The most that a packed chunk takes: what cannot be packed grows by one part in 255 and a little.
const PACKED_MAX: usize = CHUNK_BYTES + CHUNK_BYTES / 255 + 64;

/// Where the packed form of a results file lies.
fn packed_path(path: &Path) -> PathBuf {
    path.with_extension("packed")
}

/// Packs a results file whose process has ended.
///
/// # Errors
///
/// The file cannot be read, or there is no room; it is left as it was.
pub(crate) fn pack(path: &Path) -> io::Result<()> {
    let unfinished = path.with_extension("packing");
    let packed = write_packed(path, &unfinished);
    if packed.is_err() {
        let _ = fs::remove_file(&unfinished);
        return packed;
    }
    fs::rename(&unfinished, packed_path(path))?;
    File::options().write(true).open(path)?.set_len(HEADER_BYTES as u64)
}

fn write_packed(path: &Path, to: &Path) -> io::Result<()> {
    let (head, mut chunks) = Chunks::open_plain(path)?;
    let mut out = BufWriter::new(File::create(to)?);
    out.write_all(&head)?;
    while let Some(bytes) = chunks.next(|_| true)? {
        let packed = lz4_flex::block::compress(bytes);
        out.write_all(&(packed.len() as u32).to_le_bytes())?;
        out.write_all(&packed)?;
    }
    out.flush()
}

/// The chunks of a results file, packed or not, one after the other.
pub(super) struct Chunks {
    from: From,
    left: u64,
    bytes: Vec<u8>,
}

enum From {
    Plain(File, u64),
    Packed(BufReader<File>),
}

impl Chunks {
    /// The header of a results file, and its chunks.
    pub(super) fn open(path: &Path) -> io::Result<([u8; HEADER_BYTES], Chunks)> {
        let Ok(file) = File::open(packed_path(path)) else { return Chunks::open_plain(path) };
        let mut reader = BufReader::new(file);
        let mut head = [0; HEADER_BYTES];
        reader.read_exact(&mut head)?;
        let left = word(&head, header::CHUNKS);
        Ok((head, Chunks { from: From::Packed(reader), left, bytes: vec![0; CHUNK_BYTES] }))
    }

    fn open_plain(path: &Path) -> io::Result<([u8; HEADER_BYTES], Chunks)> {
        let file = File::open(path)?;
        let room = file.metadata()?.len().saturating_sub(HEADER_BYTES as u64) / CHUNK_BYTES as u64;
        let mut head = [0; HEADER_BYTES];
        file.read_exact_at(&mut head, 0)?;
        let left = word(&head, header::CHUNKS).min(room);
        let from = From::Plain(file, HEADER_BYTES as u64);
        Ok((head, Chunks { from, left, bytes: vec![0; CHUNK_BYTES] }))
    }

    /// The next chunk whose kind is wanted; none after the last, and none where packed ones end early.
    pub(super) fn next(&mut self, is_wanted: fn(u64) -> bool) -> io::Result<Option<&[u8]>> {
        while let Some(left) = self.left.checked_sub(1) {
            self.left = left;
            let Chunks { from, bytes, .. } = self;
            let is_there = match from {
                From::Plain(file, at) => read_plain(file, at, bytes, is_wanted).map(|()| true),
                From::Packed(reader) => read_packed(reader, bytes),
            };
            if !is_there? {
                break;
            }
            if is_wanted(word(bytes, chunk::KIND)) {
                return Ok(Some(&self.bytes));
            }
        }
        Ok(None)
    }
}

/// Reads a chunk, of one that is not wanted no more than what says so.
fn read_plain(
    file: &File,
    at: &mut u64,
    bytes: &mut [u8],
    is_wanted: fn(u64) -> bool,
) -> io::Result<()> {
    let start = *at;
    *at += CHUNK_BYTES as u64;
    let (head, rest) = bytes.split_at_mut(CHUNK_HEADER_BYTES);
    file.read_exact_at(head, start)?;
    match is_wanted(word(head, chunk::KIND)) {
        true => file.read_exact_at(rest, start + CHUNK_HEADER_BYTES as u64),
        false => Ok(()),
    }
}

/// Reads a packed chunk; whether there was one.
fn read_packed(reader: &mut impl Read, bytes: &mut Vec<u8>) -> io::Result<bool> {
    let mut len = [0; 4];
    match reader.read_exact(&mut len) {
        Err(why) if why.kind() == io::ErrorKind::UnexpectedEof => return Ok(false),
        read => read?,
    }
    let damaged = || io::Error::new(io::ErrorKind::InvalidData, "what was packed is damaged");
    let len = u32::from_le_bytes(len) as usize;
    if len > PACKED_MAX {
        return Err(damaged());
    }
    let mut packed = vec![0; len];
    reader.read_exact(&mut packed)?;
    *bytes = lz4_flex::block::decompress(&packed, CHUNK_BYTES).map_err(|_| damaged())?;
    match bytes.len() {
        CHUNK_BYTES => Ok(true),
        _ => Err(damaged()),
    }
}
