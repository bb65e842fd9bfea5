//! English sentences for a parser, from a small seeded grammar.

use super::rng::Rng;

const NOUNS: &[&str] = &[
    "engineer", "river", "teacher", "garden", "machine", "letter", "village", "answer", "window",
    "student", "bridge", "doctor", "paper", "forest", "captain", "story", "market", "question",
];
const ADJECTIVES: &[&str] = &[
    "old", "careful", "small", "bright", "strange", "quiet", "useful", "broken", "famous", "cold",
];
const VERBS: &[&str] = &[
    "saw",
    "found",
    "described",
    "followed",
    "repaired",
    "remembered",
    "watched",
    "carried",
    "bought",
    "painted",
    "admired",
];
const SAYING: &[&str] = &["said", "thought", "believed", "knew", "hoped"];
const PLACES: &[&str] = &["near", "behind", "beside", "under", "in", "with", "from"];
const ADVERBS: &[&str] = &["quickly", "often", "never", "slowly", "yesterday", "again"];

fn noun_phrase(rng: &mut Rng, depth: u64, out: &mut Vec<&'static str>) {
    out.push(rng.pick(&["the", "the", "a", "every"]));
    if rng.one_in(2) {
        out.push(rng.pick(ADJECTIVES));
    }
    out.push(rng.pick(NOUNS));
    if depth > 0 && rng.one_in(3) {
        out.push(rng.pick(PLACES));
        noun_phrase(rng, depth - 1, out);
    }
    if depth > 0 && rng.one_in(5) {
        out.push("that");
        verb_phrase(rng, depth - 1, out);
    }
}

fn verb_phrase(rng: &mut Rng, depth: u64, out: &mut Vec<&'static str>) {
    out.push(rng.pick(VERBS));
    noun_phrase(rng, depth, out);
    if rng.one_in(3) {
        out.push(rng.pick(ADVERBS));
    }
}

fn clause(rng: &mut Rng, depth: u64, out: &mut Vec<&'static str>) {
    noun_phrase(rng, depth, out);
    if depth > 0 && rng.one_in(4) {
        out.push(rng.pick(SAYING));
        out.push("that");
        clause(rng, depth - 1, out);
    } else {
        verb_phrase(rng, depth, out);
    }
    if depth > 1 && rng.one_in(3) {
        out.push(rng.pick(&["and", "but", "because", "while"]));
        clause(rng, depth - 1, out);
    }
}

/// Parsing grows faster than a sentence does; longer ones would be the whole benchmark.
const LONGEST: usize = 18;

/// `count` sentences, one a line.
pub(super) fn lines(seed: u64, count: u64) -> Vec<u8> {
    let mut rng = Rng::new(seed);
    let mut out = String::new();
    for _ in 0..count {
        let mut words = Vec::new();
        while words.is_empty() || words.len() > LONGEST {
            words.clear();
            clause(&mut rng, 2, &mut words);
        }
        let mut line = words.join(" ");
        if let Some(first) = line.get_mut(..1) {
            first.make_ascii_uppercase();
        }
        out.push_str(&line);
        out.push_str(".\n");
    }
    out.into_bytes()
}
