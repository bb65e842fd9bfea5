//! What a listener wants its launcher to know, of any length, whole at every moment.
//!
//! ```text
//! edition 6: length | part 0 | part 1          the reader takes the latest edition that is whole:
//! edition 7: length | part 0 | (being written)  every part of the same number, as long as it says
//! ```

use std::sync::Arc;

use super::layout::CHUNK_PAYLOAD_BYTES;
use super::write::{Chunk, ResultsFile};

/// How many bytes before the first part say how long the edition is.
const LENGTH_BYTES: usize = 8;

/// Publishes for one thread. Two sets of chunks are used in turn, so that the last edition stays whole
/// while the next is written.
#[derive(Debug)]
pub struct Publisher {
    results: Arc<ResultsFile>,
    thread: u32,
    sets: [Vec<Chunk>; 2],
    edition: u32,
}

/// The number of a part in its set, and of the set.
pub(super) fn part_number(set: usize, part: usize) -> u32 {
    (set as u32) << 31 | part as u32
}

impl Publisher {
    /// A publisher for thread number `thread`.
    pub fn new(results: Arc<ResultsFile>, thread: u32) -> Publisher {
        Publisher { results, thread, sets: [Vec::new(), Vec::new()], edition: 0 }
    }

    /// Publishes an edition; says whether there was room for it.
    pub fn publish(&mut self, bytes: &[u8]) -> bool {
        self.edition = self.edition.wrapping_add(1);
        let set = self.edition as usize % 2;
        let parts = (LENGTH_BYTES + bytes.len()).div_ceil(CHUNK_PAYLOAD_BYTES);
        if !self.make_room(set, parts) {
            return false;
        }
        let mut all = (bytes.len() as u64).to_le_bytes().to_vec();
        all.extend_from_slice(bytes);
        let Some(chunks) = self.sets.get(set) else { return false };
        // First no part counts, then each is filled under the edition's number.
        chunks.iter().for_each(|chunk| chunk.set_used(0));
        let pieces = all.chunks(CHUNK_PAYLOAD_BYTES);
        chunks.iter().zip(pieces).all(|(chunk, piece)| {
            chunk.restart(self.edition);
            chunk.append(piece)
        })
    }

    fn make_room(&mut self, set: usize, parts: usize) -> bool {
        let Some(chunks) = self.sets.get_mut(set) else { return false };
        while chunks.len() < parts {
            let part = part_number(set, chunks.len());
            let Some(chunk) = self.results.published(self.thread, part) else { return false };
            chunks.push(chunk);
        }
        true
    }
}

/// Parts of what a thread published, as they are found.
#[derive(Clone, Debug, Default)]
pub(super) struct Found {
    /// By set and part: the edition and the bytes.
    parts: std::collections::BTreeMap<u32, (u64, Vec<u8>)>,
}

impl Found {
    pub(super) fn add(&mut self, part: u32, edition: u64, bytes: &[u8]) {
        self.parts.insert(part, (edition, bytes.to_vec()));
    }

    /// The latest edition that is whole.
    pub(super) fn latest(&self) -> Option<Vec<u8>> {
        let whole = (0..2).filter_map(|set| self.whole(set));
        whole.max_by_key(|(edition, _)| *edition).map(|(_, bytes)| bytes)
    }

    fn whole(&self, set: usize) -> Option<(u64, Vec<u8>)> {
        let (edition, first) = self.parts.get(&part_number(set, 0))?;
        let len = usize::try_from(u64::from_le_bytes(*first.first_chunk()?)).ok()?;
        let parts = self.parts.range(part_number(set, 0)..=part_number(set, usize::MAX >> 33));
        let same = parts.take_while(|(_, (other, _))| other == edition);
        let all: Vec<u8> = same.flat_map(|(_, (_, bytes))| bytes.iter().copied()).collect();
        let bytes = all.get(LENGTH_BYTES..LENGTH_BYTES.checked_add(len)?)?;
        Some((*edition, bytes.to_vec()))
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Started, read};
    use super::*;

    #[test]
    fn the_latest_whole_edition_is_read_whatever_its_length() {
        let dir = std::env::temp_dir().join(format!("whither-publish-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let file = Arc::new(ResultsFile::create(&dir, 1, Started::default()).unwrap());
        let path = dir.join(file.key().file_name());
        let published = || read(&path).unwrap().published.get(&4).cloned();
        let mut publisher = Publisher::new(file.clone(), 4);
        assert_eq!(published(), None);
        for len in [0, 1, 100, CHUNK_PAYLOAD_BYTES - 8, CHUNK_PAYLOAD_BYTES - 7, 200_000, 3, 70_000]
        {
            let edition: Vec<u8> = (0..len).map(|at| (at * 7 + len) as u8).collect();
            assert!(publisher.publish(&edition));
            assert_eq!(published(), Some(edition));
        }
        // A writer that dies in the middle of an edition leaves the one before.
        let set = (publisher.edition as usize + 1) % 2;
        publisher.sets[set][0].restart(publisher.edition + 1);
        assert_eq!(published().map(|edition| edition.len()), Some(70_000));
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
