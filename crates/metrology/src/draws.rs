//! Numbers that look random and follow from a seed.
//!
//! For bootstraps, shuffles and the simulations that show coverage. Not for secrets.

use std::f64::consts::TAU;

/// A stream of numbers that a seed decides (splitmix64).
#[derive(Clone, Debug)]
pub struct Draws(u64);

impl Draws {
    /// The stream of a seed. Streams of different seeds are unrelated.
    pub fn new(seed: u64) -> Draws {
        Draws(seed)
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Strictly between 0 and 1.
    pub fn uniform(&mut self) -> f64 {
        ((self.bits() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
    }

    /// In `0..n`; 0 where `n` is 0.
    pub fn below(&mut self, n: usize) -> usize {
        ((u128::from(self.bits()) * n as u128) >> 64) as usize
    }

    /// Standard normal (Box and Muller; the second of the pair is dropped).
    pub fn normal(&mut self) -> f64 {
        (-2.0 * self.uniform().ln()).sqrt() * (TAU * self.uniform()).cos()
    }

    /// Puts things in a random order.
    pub fn shuffle<T>(&mut self, things: &mut [T]) {
        for last in (1..things.len()).rev() {
            things.swap(last, self.below(last + 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stream_is_the_published_one() {
        // The first output of splitmix64 for seed 1234567.
        assert_eq!(Draws::new(1_234_567).bits(), 6_457_827_717_110_365_317);
    }

    #[test]
    fn normals_have_the_moments_of_a_normal() {
        let mut draws = Draws::new(3);
        let all: Vec<f64> = (0..100_000).map(|_| draws.normal()).collect();
        let moment = |k: i32| all.iter().map(|x| x.powi(k)).sum::<f64>() / all.len() as f64;
        // Five standard errors of each: √(1, 2, 15, 96 / 10⁵).
        assert!(moment(1).abs() < 0.016 && (moment(2) - 1.0).abs() < 0.023);
        assert!(moment(3).abs() < 0.062 && (moment(4) - 3.0).abs() < 0.16);
    }

    #[test]
    fn a_shuffle_keeps_everything() {
        let mut things: Vec<usize> = (0..50).collect();
        Draws::new(9).shuffle(&mut things);
        assert_ne!(things, (0..50).collect::<Vec<_>>());
        things.sort_unstable();
        assert_eq!(things, (0..50).collect::<Vec<_>>());
        assert_eq!(Draws::new(1).below(0), 0);
    }
}
