//! Today, as a machine file spells it.

use std::time::{SystemTime, UNIX_EPOCH};

/// The date in UTC, as `2026-01-31`.
pub(super) fn today() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    spelt(since.as_secs() / 86_400)
}

/// Days since 1970-01-01 as a date: counted in eras of 400 years that begin in March, so that a leap
/// day is the last of its year.
fn spelt(days: u64) -> String {
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_become_dates_leap_years_included() {
        assert_eq!(spelt(0), "1970-01-01");
        assert_eq!(spelt(11_016), "2000-02-29");
        assert_eq!(spelt(19_723), "2024-01-01");
        assert_eq!(spelt(20_772), "2026-11-15");
    }
}
