//! What is mapped where in one process.

use std::collections::BTreeMap;

use vocab::{ImageId, Offset, Pc};

/// A stretch of an image in memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Stretch {
    end: u64,
    image: ImageId,
    /// The image's offset at the start of the stretch.
    offset: u64,
}

/// The stretches of one process; they never overlap.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Space {
    by_start: BTreeMap<u64, Stretch>,
}

impl Space {
    /// Maps a stretch over whatever was there. The kernel does not report what is unmapped, so
    /// the newest mapping wins.
    ///
    /// ```text
    /// before  |--------- a ---------|
    /// map b         |--- b ---|
    /// after   |- a -|--- b ---|- a -|
    /// ```
    pub(crate) fn map(&mut self, start: Pc, length: u64, image: ImageId, offset: Offset) {
        let (start, end) = (start.0, start.0.saturating_add(length));
        if start == end {
            return;
        }
        let touched: Vec<u64> = self
            .by_start
            .range(..end)
            .rev()
            .take_while(|(_, stretch)| stretch.end > start)
            .map(|(&begin, _)| begin)
            .collect();
        for begin in touched {
            let Some(old) = self.by_start.remove(&begin) else { continue };
            if begin < start {
                self.by_start.insert(begin, Stretch { end: start, ..old });
            }
            if old.end > end {
                let offset = old.offset.wrapping_add(end - begin);
                self.by_start.insert(end, Stretch { offset, ..old });
            }
        }
        self.by_start.insert(start, Stretch { end, image, offset: offset.0 });
    }

    /// Whether nothing is mapped.
    pub(crate) fn is_empty(&self) -> bool {
        self.by_start.is_empty()
    }

    /// The images that are mapped, some of them more than once.
    pub(crate) fn images(&self) -> impl Iterator<Item = ImageId> {
        self.by_start.values().map(|stretch| stretch.image)
    }

    /// The same with other numbers for its images.
    pub(crate) fn with_images(&self, rename: impl Fn(ImageId) -> ImageId) -> Space {
        let renamed = |(&start, stretch): (&u64, &Stretch)| {
            (start, Stretch { image: rename(stretch.image), ..*stretch })
        };
        Space { by_start: self.by_start.iter().map(renamed).collect() }
    }

    /// Where an address falls.
    pub(crate) fn find(&self, pc: Pc) -> Option<(ImageId, Offset)> {
        let (start, stretch) = self.by_start.range(..=pc.0).next_back()?;
        (pc.0 < stretch.end)
            .then(|| (stretch.image, Offset(stretch.offset.wrapping_add(pc.0 - start))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_mapping_splits_the_old_one_and_keeps_its_offsets() {
        let mut space = Space::default();
        space.map(Pc(0x1000), 0x3000, ImageId(0), Offset(0x100));
        space.map(Pc(0x2000), 0x1000, ImageId(1), Offset(0));
        assert_eq!(space.find(Pc(0x1fff)), Some((ImageId(0), Offset(0x10ff))));
        assert_eq!(space.find(Pc(0x2000)), Some((ImageId(1), Offset(0))));
        assert_eq!(space.find(Pc(0x3000)), Some((ImageId(0), Offset(0x2100))));
        assert_eq!(space.find(Pc(0x4000)), None);
        assert_eq!(space.find(Pc(0xfff)), None);
    }

    /// Against the slow way: an array with one entry an address.
    #[test]
    fn random_mappings_agree_with_one_entry_per_address() {
        let mut seed = 7_u64;
        let mut next = |below: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) % below
        };
        let mut space = Space::default();
        let mut truth = [None; 256];
        for image in 0..500 {
            let (start, length) = (next(256), next(40));
            let length = length.min(256 - start);
            let offset = next(1000);
            space.map(Pc(start), length, ImageId(image), Offset(offset));
            for place in 0..length {
                truth[(start + place) as usize] = Some((ImageId(image), Offset(offset + place)));
            }
            for (pc, &expected) in truth.iter().enumerate() {
                assert_eq!(space.find(Pc(pc as u64)), expected);
            }
        }
    }

    #[test]
    fn a_mapping_at_the_top_of_memory_does_not_overflow() {
        let mut space = Space::default();
        space.map(Pc(u64::MAX - 10), u64::MAX, ImageId(0), Offset(u64::MAX));
        assert!(space.find(Pc(u64::MAX - 1)).is_some());
    }
}
