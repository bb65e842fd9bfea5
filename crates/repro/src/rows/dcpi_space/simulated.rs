//! A simulated week of a busy machine, for the space that a database takes.
//!
//! Four CPUs are sampled 997 times a second for seven days. Images share the samples by Zipf's law,
//! and so do the instructions of an image, in random places; real programs keep hot instructions
//! together, which packs better, so the figure errs on the large side. The second event happens a
//! tenth as often and at other instructions' expense.

use vocab::{
    BuildId, Count, Epoch, Event, EventCode, EventId, Image, ImageKind, Mode, Offset, Profile,
    Source, Spot,
};

use crate::make::Rng;

/// Images, as the paper's machine had.
const IMAGES: u64 = 600;
/// Samples of the first event: four CPUs, 997 a second, seven days.
const SAMPLES: f64 = 4.0 * 997.0 * 7.0 * 86_400.0;
/// Of these, how many the second event has.
const SECOND_EVENT: f64 = 0.1;
/// The exponent of Zipf's law over the instructions of an image: steep, so that most of a large
/// image is never sampled and offsets lie far apart.
const EXPONENT: f64 = 1.9;
/// Instructions of the largest image; the n-th has a share by its rank's square root.
const LARGEST: f64 = 250_000.0;

/// What is sampled.
#[derive(Debug)]
pub(super) struct Week {
    seed: u64,
    images: Vec<Vec<u64>>,
    shares: Vec<f64>,
    scale: f64,
}

impl Week {
    /// The week of a seed; `scale` below 1 has fewer samples and smaller images.
    pub(super) fn new(seed: u64, scale: f64) -> Week {
        let mut rng = Rng::new(seed);
        let size = |rank: u64| (LARGEST * scale / (rank as f64).sqrt()).max(50.0) as usize;
        let images = (1..=IMAGES).map(|rank| offsets(&mut rng, size(rank))).collect();
        let weights: Vec<f64> = (1..=IMAGES).map(|rank| 1.0 / rank as f64).collect();
        let whole: f64 = weights.iter().sum();
        Week { seed, images, shares: weights.iter().map(|w| w / whole).collect(), scale }
    }

    /// The counts of one part of `parts` equal parts of the week.
    pub(super) fn part(&self, part: u64, parts: u64) -> Profile {
        let epoch = Epoch { host: "simulated".into(), began_unix_ns: 0 };
        let mut profile = Profile::empty(epoch, Source::Measured, events());
        let mut rng = Rng::new(self.seed ^ (part + 1).wrapping_mul(0x9e37_79b9));
        for (place, offsets) in (0..).zip(&self.images) {
            let image = profile.image_id(&image(place));
            let share = self.shares.get(place as usize).copied().unwrap_or(0.0);
            let all = SAMPLES * self.scale * share / parts as f64;
            for (event, samples) in [(EventId(0), all), (EventId(1), all * SECOND_EVENT)] {
                let harmonic: f64 =
                    (1..=offsets.len()).map(|rank| (rank as f64).powf(-EXPONENT)).sum();
                // The second event's ranking is the first one's backwards.
                let step = |rank: usize| match event.0 {
                    0 => rank,
                    _ => offsets.len() - 1 - rank,
                };
                for rank in 0..offsets.len() {
                    let mean = samples / harmonic / ((rank + 1) as f64).powf(EXPONENT);
                    let count = poisson(&mut rng, mean);
                    if let (true, Some(&offset)) = (count > 0, offsets.get(step(rank))) {
                        let spot = Spot { image, event, offset: Offset(offset) };
                        profile.store(spot, Count(count));
                    }
                }
            }
        }
        profile.tally.entries = Some(profile.tally.taken());
        profile
    }
}

fn events() -> Vec<Event> {
    let event = |name: &str, config| Event {
        name: name.into(),
        code: EventCode::new(0, config),
        mode: Mode::Both,
    };
    vec![event("cycles", 0), event("imiss", 1)]
}

fn image(place: u64) -> Image {
    let mut rng = Rng::new(place);
    let id: Vec<u8> = (0..20).map(|_| rng.below(256) as u8).collect();
    let path = format!("/usr/lib/x86_64-linux-gnu/lib{:06x}.so.{place}", rng.below(1 << 24));
    Image { kind: ImageKind::File, path, build_id: BuildId::new(&id) }
}

/// Where instructions begin, in random order. Lengths are those of x86-64: 1 to 8 bytes.
fn offsets(rng: &mut Rng, count: usize) -> Vec<u64> {
    let mut at = 0x1000;
    let mut offsets: Vec<u64> = Vec::with_capacity(count);
    for _ in 0..count {
        offsets.push(at);
        at += 1 + rng.below(4) + rng.below(5);
    }
    for last in (1..offsets.len()).rev() {
        offsets.swap(last, rng.below(last as u64 + 1) as usize);
    }
    offsets
}

/// A Poisson number: by products of uniforms for small means, by the normal for large ones, where
/// the two cannot be told apart.
fn poisson(rng: &mut Rng, mean: f64) -> u64 {
    let mut uniform = || (rng.bits() >> 11) as f64 / (1_u64 << 53) as f64;
    // Most are 0, and 1 − mean is below the chance of that.
    let first = uniform();
    if first < 1.0 - mean {
        return 0;
    }
    if mean < 30.0 {
        let limit = (-mean).exp();
        let (mut count, mut product) = (0, first);
        while product > limit {
            count += 1;
            product *= uniform();
        }
        return count;
    }
    let normal =
        (-2.0 * uniform().max(1e-300).ln()).sqrt() * (std::f64::consts::TAU * uniform()).cos();
    (mean + mean.sqrt() * normal).round().max(0.0) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_week_follows_from_its_seed_and_has_the_samples_it_should() {
        let (one, same) = (Week::new(7, 0.005).part(0, 7), Week::new(7, 0.005).part(0, 7));
        assert_eq!(one, same);
        assert_ne!(one, Week::new(8, 0.005).part(0, 7));
        let expected = SAMPLES * 0.005 / 7.0 * (1.0 + SECOND_EVENT);
        let off = (one.tally.stored.as_f64() - expected).abs() / expected.sqrt();
        assert!(off < 5.0, "{off} standard deviations");
        assert_eq!(one.images.len() as u64, IMAGES);
    }
}
