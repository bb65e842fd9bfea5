//! Compressed records: one zstd stream cut into pieces, whose content is records, themselves cut
//! wherever it happened to be full.

use zstd::stream::raw::{Decoder, InBuffer, Operation, OutBuffer};

use crate::RecordingError;

/// The most that may wait for the rest of its record: a record has at most 64 KiB, and one piece
/// unpacks to what perf's buffers held. A stream that unpacks to more is a trap.
const MOST_WAITING: usize = 64 << 20;

/// The stream so far.
pub(crate) struct Unpacker {
    decoder: Decoder<'static>,
    waiting: Vec<u8>,
}

impl Unpacker {
    pub(crate) fn new() -> Result<Unpacker, RecordingError> {
        let decoder = Decoder::new().map_err(|e| RecordingError::Compressed(e.to_string()))?;
        Ok(Unpacker { decoder, waiting: Vec::new() })
    }

    /// Unpacks one piece; whole records can then be taken from the front.
    pub(crate) fn push(&mut self, piece: &[u8]) -> Result<(), RecordingError> {
        let mut input = InBuffer::around(piece);
        let mut room = vec![0; 128 << 10];
        loop {
            let mut output = OutBuffer::around(room.as_mut_slice());
            self.decoder
                .run(&mut input, &mut output)
                .map_err(|error| RecordingError::Compressed(error.to_string()))?;
            let produced = output.as_slice().len();
            self.waiting.extend_from_slice(output.as_slice());
            if self.waiting.len() > MOST_WAITING {
                return Err(RecordingError::Compressed("they unpack to too much".into()));
            }
            if input.pos() == piece.len() && produced < room.len() {
                return Ok(());
            }
        }
    }

    /// The records that are whole, taken away.
    pub(crate) fn take_whole(&mut self) -> Vec<Vec<u8>> {
        let mut records = Vec::new();
        let mut at = 0;
        while let Some(size) = self.size_at(at) {
            let Some(record) = self.waiting.get(at..at + size) else { break };
            records.push(record.to_vec());
            at += size;
        }
        self.waiting.drain(..at);
        records
    }

    /// A size below a header's is handed on as a header alone: the reader will refuse it.
    fn size_at(&self, at: usize) -> Option<usize> {
        let size = self.waiting.get(at + 6..at + 8)?;
        let size = u16::from_le_bytes(size.try_into().ok()?);
        Some(usize::from(size).max(8))
    }
}
