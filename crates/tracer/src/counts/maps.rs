//! What is mapped where while a process's records are read.

use std::collections::BTreeMap;

use model::stream::StaticBlock;

use super::Place;
use crate::record::ImageMap;

/// What is mapped where while the records are read.
#[derive(Clone, Debug, Default)]
pub struct Maps {
    /// By start: end, offset in the file, image.
    ranges: BTreeMap<u64, (u64, u64, u32)>,
}

impl Maps {
    /// A map begins; its file joins the images.
    pub fn add(&mut self, images: &mut Vec<String>, map: ImageMap) {
        self.remove(map.start, map.end);
        let known = images.iter().position(|path| *path == map.path);
        let image = known.unwrap_or_else(|| {
            images.push(map.path);
            images.len() - 1
        });
        self.ranges.insert(map.start, (map.end, map.file_offset, image as u32));
    }

    /// Nothing is mapped there any more.
    pub fn remove(&mut self, start: u64, end: u64) {
        let touched: Vec<_> = self
            .ranges
            .range(..end)
            .filter(|(_, range)| range.0 > start)
            .map(|(from, range)| (*from, *range))
            .collect();
        for (from, (to, offset, image)) in touched {
            self.ranges.remove(&from);
            if from < start {
                self.ranges.insert(from, (start, offset, image));
            }
            if end < to {
                self.ranges.insert(end, (to, offset.wrapping_add(end - from), image));
            }
        }
    }

    /// Where a block is in a file.
    pub fn place(&self, block: &StaticBlock) -> Option<Place> {
        let pc = block.instructions.first()?.pc;
        let (from, (to, offset, image)) = self.ranges.range(..=pc).next_back()?;
        (pc < *to).then(|| Place { image: *image, offset: offset.wrapping_add(pc - from) })
    }
}
