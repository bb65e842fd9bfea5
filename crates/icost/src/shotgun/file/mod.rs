//! Samples as bytes, so that they can be kept and analysed elsewhere (docs/SHOTGUN.md).
//!
//! Numbers are LEB128: seven bits a byte, the lowest first, the highest bit set on all but the
//! last. The bytes may come from anywhere: nothing is believed, and nothing is made room for that
//! the bytes left could not fill.
//!
//! ```text
//! "WHSHOTG\n"  version  machine: length, name
//! instructions  cut
//! signatures: count, each  start  before  length  four instructions a byte
//! detailed:   count, each  pc  around  target + 1, or 0  count, each micro-op's labels
//! code:       count of blocks, each  count, each  pc  length  bytes
//! ```

mod bytes;
mod labels;
#[cfg(test)]
mod tests;

use std::fmt;

use model::monitor::{Bits, DetailedSample, Samples, SignatureSample, Surroundings};
use model::stream::{Code, StaticBlock};

use self::bytes::{Reader, number};
use super::Labels;

const MAGIC: &[u8; 8] = b"WHSHOTG\n";
/// Walks of the page tables, and how many runs an edge spans, came with the second.
const VERSION: u64 = 2;
const OLDEST_VERSION: u64 = 1;
/// Instructions whose bits share a byte.
const PACKED: usize = 4;

/// Samples with all that is needed to analyse them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SampleFile {
    /// The machine that they were taken on.
    pub machine: String,
    /// The samples.
    pub samples: Samples<Labels>,
    /// The code that ran.
    pub code: Vec<StaticBlock>,
}

/// Why bytes are no samples.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FileError {
    /// They begin otherwise.
    Foreign,
    /// They are of another version.
    Version(u64),
    /// They end, or say what cannot be, so many bytes from their start.
    Damaged(usize),
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FileError::Foreign => f.write_str("it does not begin as shotgun samples do"),
            FileError::Version(version) => {
                write!(
                    f,
                    "its samples are of version {version}, and this program reads {OLDEST_VERSION} to {VERSION}"
                )
            }
            FileError::Damaged(at) => write!(f, "its samples are damaged at byte {at}"),
        }
    }
}

impl std::error::Error for FileError {}

impl SampleFile {
    /// Whether bytes begin as samples do.
    pub fn is_one(bytes: &[u8]) -> bool {
        bytes.starts_with(MAGIC)
    }

    /// As bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut to = MAGIC.to_vec();
        number(&mut to, VERSION);
        number(&mut to, self.machine.len() as u64);
        to.extend_from_slice(self.machine.as_bytes());
        number(&mut to, self.samples.instructions);
        number(&mut to, self.samples.cut);
        number(&mut to, self.samples.signatures.len() as u64);
        self.samples.signatures.iter().for_each(|signature| put_signature(&mut to, signature));
        number(&mut to, self.samples.details.len() as u64);
        self.samples.details.iter().for_each(|detail| put_detail(&mut to, detail));
        number(&mut to, self.code.len() as u64);
        self.code.iter().for_each(|block| put_block(&mut to, block));
        to
    }

    /// From bytes.
    ///
    /// # Errors
    ///
    /// They are not such samples.
    pub fn parse(bytes: &[u8]) -> Result<SampleFile, FileError> {
        let rest = bytes.strip_prefix(MAGIC).ok_or(FileError::Foreign)?;
        let mut from = Reader::new(rest);
        let damaged = |from: &Reader<'_>| FileError::Damaged(bytes.len() - from.left());
        let version = match from.number() {
            Some(version @ OLDEST_VERSION..=VERSION) => version,
            Some(version) => return Err(FileError::Version(version)),
            None => return Err(damaged(&from)),
        };
        let found = parse_rest(&mut from, version);
        found.filter(|_| from.left() == 0).ok_or_else(|| damaged(&from))
    }
}

fn parse_rest(from: &mut Reader<'_>, version: u64) -> Option<SampleFile> {
    let len = from.count(1)?;
    let machine = std::str::from_utf8(from.take(len)?).ok()?.to_owned();
    let (instructions, cut) = (from.number()?, from.number()?);
    let signatures = from.list(4, signature)?;
    let details = from.list(4, |from| detail(from, version))?;
    let code = from.list(1, block)?;
    let samples = Samples { signatures, details, instructions, cut, paths: Vec::new() };
    Some(SampleFile { machine, samples, code })
}

fn put_signature(to: &mut Vec<u8>, signature: &SignatureSample) {
    number(to, signature.start);
    number(to, signature.before.0);
    number(to, signature.bits.len() as u64);
    for four in signature.bits.chunks(PACKED) {
        let packed = four.iter().rev().fold(0, |byte, bits| byte << 2 | bits.number());
        to.push(packed);
    }
}

fn signature(from: &mut Reader<'_>) -> Option<SignatureSample> {
    let (start, before) = (from.number()?, surroundings(from)?);
    let count = usize::try_from(from.number()?).ok()?;
    let packed = from.take(count.div_ceil(PACKED))?;
    let each = |byte: u8| (0..PACKED).map(move |k| Bits::from_number(byte >> (2 * k)));
    let bits = packed.iter().flat_map(|&byte| each(byte)).take(count).collect();
    Some(SignatureSample { start, before, bits })
}

fn put_detail(to: &mut Vec<u8>, detail: &DetailedSample<Labels>) {
    number(to, detail.pc);
    number(to, detail.around.0);
    number(to, detail.target.map_or(0, |target| target.wrapping_add(1)));
    number(to, detail.ops.len() as u64);
    detail.ops.iter().for_each(|op| labels::put(to, op));
}

fn detail(from: &mut Reader<'_>, version: u64) -> Option<DetailedSample<Labels>> {
    let (pc, around) = (from.number()?, surroundings(from)?);
    let target = from.number()?.checked_sub(1);
    let ops = from.list(labels::FEWEST_BYTES, |from| labels::get(from, version))?;
    Some(DetailedSample { pc, around, target, ops })
}

fn surroundings(from: &mut Reader<'_>) -> Option<Surroundings> {
    from.number().filter(|&bits| bits <= Surroundings::MASK).map(Surroundings)
}

fn put_block(to: &mut Vec<u8>, block: &StaticBlock) {
    number(to, block.instructions.len() as u64);
    for code in &block.instructions {
        number(to, code.pc);
        to.push(code.len);
        to.extend_from_slice(code.bytes.get(..usize::from(code.len)).unwrap_or_default());
    }
}

fn block(from: &mut Reader<'_>) -> Option<StaticBlock> {
    let instructions: Vec<Code> = from.list(3, code)?;
    (!instructions.is_empty()).then(|| StaticBlock { instructions: instructions.into() })
}

fn code(from: &mut Reader<'_>) -> Option<Code> {
    let pc = from.number()?;
    let len = *from.take(1)?.first()?;
    let held = from.take(usize::from(len))?;
    let mut bytes = [0; 15];
    bytes.get_mut(..held.len())?.copy_from_slice(held);
    (len > 0).then_some(Code { pc, bytes, len })
}
