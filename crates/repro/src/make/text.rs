//! Markov text, and Markov text with a program's bytes behind it.

use super::rng::Rng;

const ONSETS: &[&str] = &[
    "b", "br", "c", "ch", "d", "dr", "f", "g", "gr", "h", "l", "m", "n", "p", "pr", "r", "s", "st",
    "t", "th", "tr", "v", "w", "wh",
];
const NUCLEI: &[&str] = &["a", "e", "i", "o", "u", "ea", "ou", "ai"];
const CODAS: &[&str] = &["", "", "", "n", "r", "s", "t", "l", "nd", "st", "ng", "ck"];

const VOCABULARY: u64 = 4096;
const FOLLOWERS: u64 = 24;

fn word(rng: &mut Rng) -> String {
    let syllables = 1 + rng.ranked(4);
    let mut word = String::new();
    for _ in 0..syllables {
        word.push_str(rng.pick(ONSETS));
        word.push_str(rng.pick(NUCLEI));
        word.push_str(rng.pick(CODAS));
    }
    word
}

/// `bytes` bytes of text from a first-order Markov chain over 4,096 invented words: each word has
/// 24 likely followers, so the text has the repeats a compressor lives on.
pub(super) fn markov(seed: u64, bytes: u64) -> Vec<u8> {
    let mut rng = Rng::new(seed);
    let words: Vec<String> = (0..VOCABULARY).map(|_| word(&mut rng)).collect();
    let follows: Vec<u64> = (0..VOCABULARY * FOLLOWERS).map(|_| rng.ranked(VOCABULARY)).collect();
    let target = bytes as usize;
    let mut out = Vec::with_capacity(target + 32);
    let (mut at, mut in_sentence, mut column) = (0_u64, 0_u64, 0_usize);
    while out.len() < target {
        let slot = at * FOLLOWERS + rng.ranked(FOLLOWERS);
        at = follows.get(slot as usize).copied().unwrap_or(0);
        let text = words.get(at as usize).map_or("", String::as_str);
        let start = out.len();
        out.extend_from_slice(text.as_bytes());
        if in_sentence == 0
            && let Some(first) = out.get_mut(start)
        {
            first.make_ascii_uppercase();
        }
        in_sentence += 1;
        column += text.len() + 1;
        if in_sentence > 4 && rng.one_in(9) {
            out.push(b'.');
            in_sentence = 0;
        }
        if column > 76 {
            out.push(b'\n');
            column = 0;
        } else {
            out.push(b' ');
        }
    }
    out.truncate(target);
    out
}

/// Half Markov text, half bytes of `binary` from a third of it on, round and round if it is short.
/// A third in there is code; its first pages are tables of symbols, which compress like nothing
/// else.
pub(super) fn with_binary(seed: u64, bytes: u64, binary: &[u8]) -> Vec<u8> {
    let mut out = markov(seed, bytes / 2);
    let rest = (bytes - bytes / 2) as usize;
    out.extend(binary.iter().copied().cycle().skip(binary.len() / 3).take(rest));
    out
}
