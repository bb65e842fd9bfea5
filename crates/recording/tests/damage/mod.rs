//! Seeded damage.

use std::io::Cursor;

use recording::{read_file, read_pipe};

/// Rounds of damage; WHITHER_FUZZ_ROUNDS asks for more.
pub(crate) fn rounds(short: u64) -> u64 {
    let asked = std::env::var("WHITHER_FUZZ_ROUNDS").ok().and_then(|text| text.parse().ok());
    asked.unwrap_or(short)
}

/// Reads the bytes with bytes changed, cut off, and repeated; any end but a panic will do.
pub(crate) fn survives(whole: &[u8], rounds: u64) {
    let mut seed = 11_u64;
    let mut next = |below: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize % below.max(1)
    };
    for _ in 0..rounds {
        let mut bytes = whole.to_vec();
        for _ in 0..1 + next(8) {
            let place = next(bytes.len());
            match next(4) {
                0 => bytes[place] = next(256) as u8,
                1 => bytes[place] = [0, 0x7f, 0x80, 0xff][next(4)],
                2 => bytes.truncate(place.max(16)),
                _ => {
                    let end = (place + next(64)).min(bytes.len());
                    let piece = bytes[place..end].to_vec();
                    let at = next(bytes.len());
                    bytes.splice(at..at, piece);
                }
            }
        }
        let mut items = 0_u64;
        let outcome = read_file(Cursor::new(&bytes), |_| items += 1);
        let said = outcome.damage.map(|damage| damage.to_string()).unwrap_or_default();
        assert!(!said.contains('\n'), "{said}");
        read_pipe(Cursor::new(&bytes), |_| ());
    }
}
