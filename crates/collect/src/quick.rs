//! A hash that costs two instructions, for keys that the kernel gives out by the ten thousand.
//!
//! It does not withstand somebody who chooses keys to collide: such a program would slow down the
//! placing of its own samples, a few thousand a second at most.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A map over small keys.
pub type QuickMap<K, V> = HashMap<K, V, BuildHasherDefault<QuickHasher>>;

/// Rotates, mixes in, multiplies.
#[derive(Clone, Copy, Debug, Default)]
pub struct QuickHasher(u64);

impl Hasher for QuickHasher {
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    fn write_u16(&mut self, value: u16) {
        self.write_u64(u64::from(value));
    }

    fn write_u32(&mut self, value: u32) {
        self.write_u64(u64::from(value));
    }

    fn write_u64(&mut self, value: u64) {
        self.0 = (self.0.rotate_left(23) ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn finish(&self) -> u64 {
        // The map takes the low bits, and the product's best are its high ones.
        self.0 ^ self.0 >> 32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;
    use std::hash::Hash;

    #[test]
    fn neighbouring_keys_spread_over_the_low_bits() {
        let bucket = |key: (u32, u64, u16)| {
            let mut hasher = QuickHasher::default();
            key.hash(&mut hasher);
            hasher.finish() & 0xfff
        };
        let used: HashSet<u64> =
            (0..4096).map(|n| bucket((n % 7, 0x40_0000 + u64::from(n) * 4, 0))).collect();
        // 4096 keys thrown at random into 4096 buckets leave 37 % of them empty.
        assert!(used.len() > 2200, "{}", used.len());
    }
}
