//! The generator behind every input: splitmix64.
//!
//! Written here, not taken from a crate, because the bytes of the suite must never change with a
//! dependency's version. Only integers come out: floating-point libraries differ in the last bit.

/// A seeded stream of numbers.
#[derive(Debug, Clone)]
pub struct Rng(u64);

impl Rng {
    /// The stream of `seed`. Streams of different seeds are unrelated.
    pub fn new(seed: u64) -> Self {
        Rng(seed)
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number in `0..n`; 0 when `n` is 0. The bias is below n / 2^64.
    pub fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(n)) >> 64) as u64
    }

    /// A number in `low..=high`.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high.saturating_sub(low) + 1)
    }

    /// True once in `n` times.
    pub fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    /// One of `choices`; the empty string of none.
    pub fn pick<'a>(&mut self, choices: &[&'a str]) -> &'a str {
        choices.get(self.below(choices.len() as u64) as usize).copied().unwrap_or("")
    }

    /// A number in `0..n` that favours small ones: a word's rank in a text.
    pub fn ranked(&mut self, n: u64) -> u64 {
        let a = self.below(n);
        let b = self.below(a + 1);
        self.below(b + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::Rng;

    #[test]
    fn matches_the_published_splitmix64_stream() {
        // First outputs for seed 1234567 of the public-domain reference implementation.
        let mut rng = Rng::new(1_234_567);
        assert_eq!(rng.bits(), 6_457_827_717_110_365_317);
        assert_eq!(rng.bits(), 3_203_168_211_198_807_973);
        assert_eq!(rng.bits(), 9_817_491_932_198_370_423);
    }

    #[test]
    fn below_and_between_keep_their_bounds() {
        let mut rng = Rng::new(7);
        for n in 1..200 {
            assert!(rng.below(n) < n);
            assert!(rng.ranked(n) < n);
            let x = rng.between(n, 2 * n);
            assert!((n..=2 * n).contains(&x));
        }
        assert_eq!(rng.below(0), 0);
        assert_eq!(rng.pick(&[]), "");
    }
}
