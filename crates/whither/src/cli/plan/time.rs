//! Times as people write them.

use std::time::{SystemTime, UNIX_EPOCH};

use crate::failure::{Failure, USAGE};

/// `2h` (ago), `2026-01-31` or `2026-01-31T12:00[:30]`, in nanoseconds since 1970.
pub(super) fn parse_time(text: &str) -> Result<u64, Failure> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    ago(text, now.as_secs())
        .or_else(|| date(text))
        .map(|s| s.saturating_mul(1_000_000_000))
        .ok_or_else(|| {
            Failure::new(USAGE, format!("'{text}' is no time"))
                .remedy("write 30s, 10m, 2h or 7d for so long ago, or 2026-01-31T12:00 in UTC")
        })
}

fn ago(text: &str, now_s: u64) -> Option<u64> {
    let unit = text.chars().next_back()?;
    let seconds = match unit {
        's' => 1,
        'm' => 60,
        'h' => 3600,
        'd' => 86_400,
        _ => return None,
    };
    let count: u64 = text.strip_suffix(unit)?.parse().ok()?;
    Some(now_s.saturating_sub(count.checked_mul(seconds)?))
}

fn date(text: &str) -> Option<u64> {
    let (day, clock) = text.split_once('T').unwrap_or((text, "00:00"));
    let numbers = |text: &str, between: char| -> Option<Vec<u64>> {
        text.split(between).map(|part| part.parse().ok()).collect()
    };
    let [year, month, day] = numbers(day, '-')?.try_into().ok()?;
    let clock = numbers(clock.trim_end_matches('Z'), ':')?;
    let (hour, minute) = (*clock.first()?, *clock.get(1)?);
    let second = clock.get(2).copied().unwrap_or(0);
    let sound = (1970..10_000).contains(&year)
        && (1..=12).contains(&month)
        && (1..=31).contains(&day)
        && hour < 24
        && minute < 60
        && second < 60
        && clock.len() <= 3;
    sound.then(|| days(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second)
}

/// Days since 1970, with years that begin in March so that the leap day comes last.
fn days(year: u64, month: u64, day: u64) -> u64 {
    let year = if month <= 2 { year - 1 } else { year };
    let month = (month + 9) % 12;
    let leaps = year / 4 - year / 100 + year / 400;
    (year * 365 + leaps + (month * 153 + 2) / 5 + day - 1) - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_seconds_since_1970_and_spans_are_ago() {
        assert_eq!(date("1970-01-01"), Some(0));
        assert_eq!(date("2000-02-29T12:34:56"), Some(951_827_696));
        assert_eq!(date("2026-01-31T00:01Z"), Some(1_769_817_660));
        assert_eq!(ago("2h", 10_000), Some(2_800));
        assert_eq!(ago("9d", 10_000), Some(0));
        for odd in ["", "h", "2026", "2026-13-01", "1969-01-01", "2026-01-01T25:00", "x-y-z"] {
            assert!(ago(odd, 0).is_none() && date(odd).is_none(), "{odd}");
        }
    }
}
