//! One value, as a person reads it.

use metrology::{Coverage, Interval, share};
use vocab::Count;

use crate::clean;

/// What a number is of; decides how it is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unit {
    /// A part of one, written as a percentage.
    Share,
    /// Time in seconds.
    Seconds,
    /// How many times as much.
    Ratio,
    /// Hertz.
    Hertz,
    /// A number of things.
    Number,
    /// A large number of things, whole.
    Count,
}

/// One value. What was not counted is never written as 0.
#[derive(Clone, Debug)]
pub enum Cell {
    /// Text, possibly from outside; it is cleaned when rendered.
    Text(String),
    /// Text that is a key word in JSON and something longer in text.
    Word {
        /// In JSON.
        key: &'static str,
        /// In text.
        text: String,
    },
    /// An exact count.
    Count(Count),
    /// A number that names something, as a process: no quantity, so that its digits are not grouped.
    Id(u64),
    /// An address or offset.
    Hex(u64),
    /// A number that is exact, or whose uncertainty stands elsewhere in the view.
    Number(f64, Unit),
    /// An estimate with its interval.
    Estimate(f64, Interval, Unit),
    /// An estimate whose interval reaches nothing: text says no more than that it is `at most` the
    /// upper end. In JSON an estimate like any other.
    AtMost(f64, Interval, Unit),
    /// An estimate without an upper end: text says that it is `at least` the lower one.
    AtLeast(f64, Interval, Unit),
    /// Something that could not be counted, and why.
    NotCounted(String),
    /// Yes or no.
    Flag(bool),
    /// Nothing belongs here.
    Empty,
}

impl Cell {
    /// Text from anything that becomes a string.
    pub fn text(text: impl Into<String>) -> Cell {
        Cell::Text(text.into())
    }

    /// So many samples of so many, with what that leaves open at 95 %.
    pub fn share_of(count: Count, whole: Count) -> Cell {
        match share(count.0, whole.0, Coverage::P95) {
            Some((value, interval)) => Cell::Estimate(value, interval, Unit::Share),
            None => Cell::NotCounted("no samples".into()),
        }
    }

    /// As a person reads it.
    pub fn to_text(&self) -> String {
        match self {
            Cell::Text(text) | Cell::Word { text, .. } => clean(text).into_owned(),
            Cell::Count(count) => group_digits(count.0),
            Cell::Id(number) => number.to_string(),
            Cell::Hex(value) => format!("{value:#x}"),
            Cell::Number(value, unit) => number(*value, *unit),
            Cell::Estimate(value, interval, unit) => estimate(*value, *interval, *unit),
            Cell::AtMost(_, interval, unit) => format!("at most {}", number(interval.high, *unit)),
            Cell::AtLeast(_, interval, unit) => format!("at least {}", number(interval.low, *unit)),
            Cell::NotCounted(why) => format!("not counted: {}", clean(why)),
            Cell::Flag(flag) => if *flag { "yes" } else { "no" }.to_owned(),
            Cell::Empty => String::new(),
        }
    }
}

/// 1234567 → `1,234,567`.
fn group_digits(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (place, digit) in digits.char_indices() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Seconds in the unit that leaves three significant digits.
pub fn duration(seconds: f64) -> String {
    let (factor, unit) = match seconds.abs() {
        s if s >= 1.0 || s == 0.0 => (1.0, "s"),
        s if s >= 1e-3 => (1e3, "ms"),
        s if s >= 1e-6 => (1e6, "µs"),
        _ => (1e9, "ns"),
    };
    let value = seconds * factor;
    let places = if value.abs() >= 100.0 { 0 } else { usize::from(value.abs() < 10.0) + 1 };
    format!("{value:.places$} {unit}")
}

/// A share in percent, as it is rounded; what rounds to nothing has no sign.
fn percents(value: f64) -> f64 {
    let rounded = (1000.0 * value).round() / 10.0;
    if rounded == 0.0 { 0.0 } else { rounded }
}

fn number(value: f64, unit: Unit) -> String {
    match unit {
        Unit::Share => format!("{:.1} %", percents(value)),
        Unit::Seconds => duration(value),
        Unit::Ratio => format!("{value:.2}×"),
        Unit::Hertz => format!("{value:.0} Hz"),
        Unit::Count => group_digits(value.max(0.0).round() as u64),
        Unit::Number if value.fract() == 0.0 && value.abs() < 1e15 => format!("{value:.0}"),
        Unit::Number => format!("{value:.3}"),
    }
}

/// The ± is half the interval; its digits follow the value's. An interval without an end leaves
/// a question mark: too little was seen to say.
fn estimate(value: f64, interval: Interval, unit: Unit) -> String {
    let half = interval.half_width();
    if !half.is_finite() {
        return format!("{} ± ?", number(value, unit));
    }
    match unit {
        Unit::Share => format!("{:.1} % ±{:4.1}", percents(value), 100.0 * half),
        Unit::Seconds => format!("{} ± {}", duration(value), duration(half)),
        Unit::Ratio => format!("{value:.2}× ±{half:.2}"),
        Unit::Hertz => format!("{value:.0} ± {half:.0} Hz"),
        Unit::Number => format!("{value:.3} ± {half:.3}"),
        Unit::Count => {
            let relative = 100.0 * half / value.abs().max(f64::MIN_POSITIVE);
            match relative {
                // Such a percentage tells nobody anything.
                r if r >= 1000.0 => format!("{} ± {}", number(value, unit), number(half, unit)),
                r => format!("{} ±{r:4.1} %", number(value, unit)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_grouped_by_thousands() {
        let grouped = [0, 999, 1000, 1_234_567].map(group_digits);
        assert_eq!(grouped, ["0", "999", "1,000", "1,234,567"]);
    }

    #[test]
    fn durations_keep_three_digits() {
        let written = [0.0, 1.5, 12.34, 123.4, 0.0123, 4.5e-7].map(duration);
        assert_eq!(written, ["0.00 s", "1.50 s", "12.3 s", "123 s", "12.3 ms", "450 ns"]);
    }

    #[test]
    fn a_share_carries_its_half_width() {
        let (value, interval) = share(400, 1000, Coverage::P95).unwrap();
        let cell = Cell::Estimate(value, interval, Unit::Share);
        assert_eq!(cell.to_text(), "40.0 % ± 3.0");
    }

    #[test]
    fn what_rounds_to_nothing_has_no_sign_and_wild_guesses_have_no_percentage() {
        assert_eq!(Cell::Number(-0.0001, Unit::Share).to_text(), "0.0 %");
        assert_eq!(Cell::Number(-0.043, Unit::Share).to_text(), "-4.3 %");
        let interval = Interval { low: -7000.0, high: 7002.0, coverage: Coverage::P95 };
        assert_eq!(Cell::Estimate(1.0, interval, Unit::Count).to_text(), "1 ± 7,001");
    }

    #[test]
    fn what_only_bounds_is_written_as_a_bound() {
        let interval = Interval { low: -700.0, high: 1200.4, coverage: Coverage::P95 };
        assert_eq!(Cell::AtMost(250.0, interval, Unit::Count).to_text(), "at most 1,200");
        let interval = Interval { low: 0.25, high: f64::INFINITY, coverage: Coverage::P95 };
        assert_eq!(Cell::AtLeast(3.0, interval, Unit::Number).to_text(), "at least 0.250");
    }

    #[test]
    fn an_interval_without_an_end_is_a_question() {
        let interval = Interval { low: 5.0, high: f64::INFINITY, coverage: Coverage::P95 };
        assert_eq!(Cell::Estimate(1234.0, interval, Unit::Count).to_text(), "1,234 ± ?");
    }

    #[test]
    fn what_was_not_counted_is_never_zero() {
        assert_eq!(Cell::NotCounted("no PMU".into()).to_text(), "not counted: no PMU");
    }
}
