//! Chunks: packed, checked, found again behind damage.

use std::io::{self, Read};

use crate::results::ProcessKey;

/// What a trace file begins with; the last byte is the version.
pub const FILE_HEADER: [u8; 8] = *b"WHTRACE\x01";
/// What a chunk begins with.
const MAGIC: [u8; 8] = *b"WHCHUNK\x01";
/// How long a chunk's header is.
pub const HEADER_BYTES: usize = 56;
/// No chunk holds more, so that damage cannot make a reader allocate without bound.
const MOST_BYTES: usize = 1 << 24;

/// Whether a file that begins with these bytes is a trace of this version.
pub fn is_trace(start: &[u8]) -> bool {
    start.starts_with(&FILE_HEADER)
}

/// What a chunk is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ChunkKind {
    /// Whom the process was forked from.
    Began,
    /// What is said about the process; the sequence is the number of bytes before.
    Records,
    /// What a thread ran; the sequence counts the thread's chunks.
    Thread(u32),
}

/// A piece of a trace.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TraceChunk {
    /// What it is about.
    pub kind: ChunkKind,
    /// The process.
    pub process: ProcessKey,
    /// Its place among the chunks of its kind.
    pub sequence: u64,
    /// What it holds, unpacked.
    pub payload: Vec<u8>,
}

/// Folds bytes into a checksum. Damage is by accident here, so speed and spread are enough.
fn checksum(bytes: &[u8]) -> u64 {
    let mix =
        |state: u64, word: u64| (state ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(31);
    let words = bytes.chunks_exact(8);
    let rest = words.remainder().iter().fold(1u64, |word, byte| word << 8 | u64::from(*byte));
    let whole = words.fold(bytes.len() as u64, |state, chunk| {
        mix(state, chunk.first_chunk().map_or(0, |word| u64::from_le_bytes(*word)))
    });
    mix(whole, rest)
}

impl TraceChunk {
    /// The chunk as it is in a file.
    pub fn encode(&self) -> Vec<u8> {
        let packed = lz4_flex::block::compress(&self.payload);
        let (kind, thread) = match self.kind {
            ChunkKind::Began => (1u32, 0),
            ChunkKind::Records => (2, 0),
            ChunkKind::Thread(thread) => (3, thread),
        };
        let mut out = Vec::with_capacity(HEADER_BYTES + packed.len());
        out.extend(MAGIC);
        out.extend(kind.to_le_bytes());
        out.extend(thread.to_le_bytes());
        out.extend(self.process.to_word().to_le_bytes());
        out.extend(self.sequence.to_le_bytes());
        out.extend((self.payload.len() as u32).to_le_bytes());
        out.extend((packed.len() as u32).to_le_bytes());
        out.extend(checksum(&packed).to_le_bytes());
        out.extend(checksum(&out).to_le_bytes());
        out.extend(packed);
        out
    }
}

/// A header that was read: the chunk without its payload, and the payload's lengths and checksum.
struct Header {
    chunk: TraceChunk,
    raw: usize,
    packed: usize,
    check: u64,
}

fn word(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..)?.first_chunk().map(|word| u64::from_le_bytes(*word))
}

fn parse(bytes: &[u8]) -> Option<Header> {
    let (checked, _) = bytes.split_at_checked(HEADER_BYTES - 8)?;
    if !bytes.starts_with(&MAGIC) || word(bytes, HEADER_BYTES - 8)? != checksum(checked) {
        return None;
    }
    let (kind, lengths) = (word(bytes, 8)?, word(bytes, 32)?);
    let chunk = TraceChunk {
        kind: match kind as u32 {
            1 => ChunkKind::Began,
            2 => ChunkKind::Records,
            3 => ChunkKind::Thread((kind >> 32) as u32),
            _ => return None,
        },
        process: ProcessKey::from_word(word(bytes, 16)?),
        sequence: word(bytes, 24)?,
        payload: Vec::new(),
    };
    let (raw, packed) = (lengths as u32 as usize, (lengths >> 32) as usize);
    let is_sane = raw <= MOST_BYTES && packed <= MOST_BYTES;
    is_sane.then_some(Header { chunk, raw, packed, check: word(bytes, 40)? })
}

/// Reads the chunks of a trace, from its beginning or from anywhere.
#[derive(Debug)]
pub struct ChunkReader<R> {
    input: R,
    buffer: Vec<u8>,
    /// How much of the buffer was used.
    at: usize,
    is_at_end: bool,
    /// Bytes that belong to no whole chunk: a tail cut short, or damage.
    pub skipped_bytes: u64,
}

impl<R: Read> ChunkReader<R> {
    /// Reads from an input that is past the file's header.
    pub fn new(input: R) -> ChunkReader<R> {
        ChunkReader { input, buffer: Vec::new(), at: 0, is_at_end: false, skipped_bytes: 0 }
    }

    /// Makes sure that `len` bytes are in the buffer; fewer only at the end.
    fn fill(&mut self, len: usize) -> io::Result<&[u8]> {
        const READ_BYTES: usize = 1 << 16;
        while self.buffer.len() - self.at < len && !self.is_at_end {
            self.buffer.drain(..self.at);
            self.at = 0;
            let known = self.buffer.len();
            let wanted = (len - known).max(READ_BYTES) as u64;
            let read = self.input.by_ref().take(wanted).read_to_end(&mut self.buffer)?;
            self.is_at_end = read < wanted as usize;
        }
        Ok(self.buffer.get(self.at..).unwrap_or_default())
    }

    /// The next whole chunk, or `None` at the end.
    pub fn next_chunk(&mut self) -> io::Result<Option<TraceChunk>> {
        loop {
            let bytes = self.fill(HEADER_BYTES)?;
            if bytes.is_empty() {
                return Ok(None);
            }
            let Some(mut header) = parse(bytes) else {
                self.skip_damage();
                continue;
            };
            let rest = self.fill(HEADER_BYTES + header.packed)?;
            let packed = rest.get(HEADER_BYTES..HEADER_BYTES + header.packed);
            match packed.filter(|packed| checksum(packed) == header.check) {
                Some(packed) => {
                    let Ok(payload) = lz4_flex::block::decompress(packed, header.raw) else {
                        self.skip_damage();
                        continue;
                    };
                    header.chunk.payload = payload;
                    self.at += HEADER_BYTES + header.packed;
                    return Ok(Some(header.chunk));
                }
                None => self.skip_damage(),
            }
        }
    }

    /// Goes on to the next place where a chunk may begin.
    fn skip_damage(&mut self) {
        let rest = self.buffer.get(self.at..).unwrap_or_default();
        let next = rest.iter().skip(1).position(|byte| *byte == MAGIC[0]);
        let skipped = next.map_or(rest.len(), |next| next + 1);
        self.at += skipped;
        self.skipped_bytes += skipped as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunk(sequence: u64, payload: &[u8]) -> TraceChunk {
        let process = ProcessKey { pid: 7, sequence: 1 };
        TraceChunk { kind: ChunkKind::Thread(3), process, sequence, payload: payload.into() }
    }

    fn read(bytes: &[u8]) -> (Vec<TraceChunk>, u64) {
        let mut reader = ChunkReader::new(bytes);
        let mut all = Vec::new();
        while let Some(chunk) = reader.next_chunk().unwrap() {
            all.push(chunk);
        }
        (all, reader.skipped_bytes)
    }

    #[test]
    fn a_tail_cut_anywhere_loses_only_the_last_chunk() {
        let chunks = [chunk(0, &[1; 1000]), chunk(1, b""), chunk(2, b"WHCHUNK\x01 in between")];
        let bytes: Vec<u8> = chunks.iter().flat_map(TraceChunk::encode).collect();
        let last = chunks[2].encode().len();
        assert_eq!(read(&bytes), (chunks.to_vec(), 0));
        for cut in 1..last {
            let (all, skipped) = read(&bytes[..bytes.len() - cut]);
            assert_eq!(all, chunks[..2]);
            assert_eq!(skipped, (last - cut) as u64);
        }
    }

    #[test]
    fn damage_in_one_chunk_leaves_the_others() {
        let chunks = [chunk(0, b"first"), chunk(1, b"second"), chunk(2, b"third")];
        let bytes: Vec<u8> = chunks.iter().flat_map(TraceChunk::encode).collect();
        let (start, end) =
            (chunks[0].encode().len(), chunks[0].encode().len() + chunks[1].encode().len());
        for at in start..end {
            let mut bad = bytes.clone();
            bad[at] ^= 0x40;
            assert_eq!(read(&bad).0, [chunks[0].clone(), chunks[2].clone()], "at {at}");
        }
    }
}
