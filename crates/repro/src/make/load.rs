//! A key-value server's load, in its wire protocol.

use super::rng::Rng;

fn command(parts: &[&str], out: &mut Vec<u8>) {
    out.extend_from_slice(format!("*{}\r\n", parts.len()).as_bytes());
    for part in parts {
        out.extend_from_slice(format!("${}\r\n{part}\r\n", part.len()).as_bytes());
    }
}

/// `count` commands over count / 4 keys: strings, counters, lists, hashes and sorted sets.
pub(super) fn resp(seed: u64, count: u64) -> Vec<u8> {
    let mut rng = Rng::new(seed);
    let mut out = Vec::new();
    let keys = (count / 4).max(1);
    for _ in 0..count {
        let key = rng.ranked(keys);
        let value = rng.below(1_000_000).to_string();
        match rng.below(6) {
            0 => command(&["SET", &format!("s:{key}"), &value], &mut out),
            1 => command(&["GET", &format!("s:{key}")], &mut out),
            2 => command(&["INCRBY", &format!("n:{key}"), &value], &mut out),
            3 => command(&["LPUSH", &format!("l:{}", key % 64), &value], &mut out),
            4 => command(&["HSET", &format!("h:{}", key % 64), &value, "1"], &mut out),
            _ => {
                command(
                    &["ZADD", &format!("z:{}", key % 64), &value, &format!("m{key}")],
                    &mut out,
                );
            }
        }
    }
    out
}
