//! The chain of callers behind a sample.
//!
//! ```text
//! ip u64 | pid u32 tid u32 | time u64 | cpu u32 reserved u32 | n u64 | n × u64
//! ```
//! Among the addresses stand markers that say in which mode the next ones are.

/// The kernel's marker for "the following are user addresses"; the others are above -4096 too.
const MARKERS_FROM: u64 = -4096_i64 as u64;

/// Callers, innermost first, the sampled address included, from a sample that was asked to carry
/// them (header included); none if the bytes are too few for what they say.
pub fn parse_chain(bytes: &[u8]) -> Option<Vec<u64>> {
    const HEADER: usize = 8;
    const FIXED: usize = 32;
    let word = |place: usize| {
        let bytes = bytes.get(place..place + 8)?;
        Some(u64::from_ne_bytes(bytes.try_into().ok()?))
    };
    let count = usize::try_from(word(HEADER + FIXED)?).ok()?;
    let from = HEADER + FIXED + 8;
    let end = from.checked_add(count.checked_mul(8)?)?;
    let chain = bytes.get(from..end)?;
    let addresses = chain.chunks_exact(8).filter_map(|word| word.try_into().ok());
    Some(addresses.map(u64::from_ne_bytes).filter(|&address| address < MARKERS_FROM).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(chain: &[u64], claimed: u64) -> Vec<u8> {
        let words = [0, 0x10, 7, 99, 1, claimed];
        words.iter().chain(chain).flat_map(|word| word.to_ne_bytes()).collect()
    }

    #[test]
    fn markers_are_left_out_and_the_order_is_kept() {
        let bytes = sample(&[-128_i64 as u64, 0x10, 0x20, -512_i64 as u64, 0x30], 5);
        assert_eq!(parse_chain(&bytes), Some(vec![0x10, 0x20, 0x30]));
        assert_eq!(parse_chain(&sample(&[], 0)), Some(vec![]));
    }

    #[test]
    fn a_length_that_lies_gives_none() {
        for claimed in [3, 1 << 32, u64::MAX, u64::MAX / 8 + 1] {
            assert_eq!(parse_chain(&sample(&[1, 2], claimed)), None, "{claimed}");
        }
        let whole = sample(&[1, 2], 2);
        for end in 0..whole.len() {
            assert_eq!(parse_chain(&whole[..end]), None, "cut at {end}");
        }
    }
}
