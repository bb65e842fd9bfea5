//! `whither measure`, checked and completed.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use metrology::Coverage;
use tracer::modelled::CoreAsk;

use super::engine::engine_choice;
use super::model::sampled;
use super::{ModelJob, event_table, set_named};
use crate::cli::arguments::{MeasureArguments, VaryArgument};
use crate::failure::{Failure, USAGE};
use crate::measure::Quantity;

/// A measurement, with every name resolved.
#[derive(Debug)]
pub(crate) struct MeasureJob {
    /// One command, or two to compare; none is empty.
    pub(crate) commands: Vec<Vec<OsString>>,
    /// What was named; none: what suits the machine.
    pub(crate) asked: Option<Vec<Quantity>>,
    pub(crate) measurand: Option<Quantity>,
    /// Relative standard uncertainty.
    pub(crate) uncertainty: f64,
    pub(crate) coverage: Coverage,
    /// A fixed number of runs.
    pub(crate) runs: Option<u64>,
    pub(crate) max_runs: u64,
    pub(crate) max_time: Duration,
    pub(crate) varies: Varies,
    pub(crate) warm_up: WarmUp,
    /// On which modelled core; none: on the machine. Its program is filled in per command.
    pub(crate) model: Option<ModelJob>,
    /// Events at a time.
    pub(crate) counters: Option<usize>,
    pub(crate) input: Option<PathBuf>,
    pub(crate) shows_output: bool,
    pub(crate) ignores_failure: bool,
    /// By how much B may be slower, as a share.
    pub(crate) fail_above: Option<f64>,
    pub(crate) seed: u64,
}

/// What is drawn anew.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Varies {
    pub(crate) environment: bool,
    pub(crate) layout: bool,
    pub(crate) order: bool,
}

/// Which first runs are left out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum WarmUp {
    Detected,
    Fixed(u64),
}

pub(super) fn measure_job(measure: MeasureArguments) -> Result<MeasureJob, Failure> {
    let commands = match measure.compare.is_empty() {
        true => vec![measure.program.clone()],
        false => measure.compare.iter().map(|text| words(text)).collect::<Result<_, _>>()?,
    };
    let is_modelled = measure.machine.is_some();
    let named = |names: &[String]| -> Result<Vec<Quantity>, Failure> {
        let table = event_table(USAGE)?;
        names.iter().map(|name| Quantity::named(name.trim(), &table, is_modelled)).collect()
    };
    let asked = match (&measure.set, measure.event.is_empty()) {
        (Some(set), _) => Some(named(&set_named(set, USAGE)?.events)?),
        (None, false) => Some(named(&measure.event)?),
        (None, true) => None,
    };
    let measurand = match &measure.measurand {
        Some(name) => named(std::slice::from_ref(name))?.pop(),
        None => None,
    };
    let model = match &measure.machine {
        Some(machine) => Some(model(machine, &measure)?),
        None => None,
    };
    let varies = |what| measure.vary.contains(&what);
    let coverage = percent(&measure.coverage, "coverage", 50.0..=99.9)?;
    Ok(MeasureJob {
        commands,
        asked,
        measurand,
        uncertainty: percent(&measure.uncertainty, "uncertainty", 0.0001..=50.0)?,
        coverage: Coverage::new(coverage).unwrap_or(Coverage::P95),
        runs: measure.runs,
        max_runs: measure.max_runs,
        max_time: time(&measure.max_time)?,
        varies: Varies {
            environment: varies(VaryArgument::Env),
            // An engine lays everything where it always does.
            layout: varies(VaryArgument::Aslr) && !is_modelled,
            order: varies(VaryArgument::Order),
        },
        warm_up: warm_up(&measure.warmup)?,
        model,
        counters: measure.counters.map(|n| n as usize),
        input: measure.input,
        shows_output: measure.show_output,
        ignores_failure: measure.ignore_failure,
        fail_above: measure
            .fail_above
            .map(|text| percent(&text, "limit", 0.0..=1000.0))
            .transpose()?,
        seed: measure.seed,
    })
}

fn model(machine: &str, asked: &MeasureArguments) -> Result<ModelJob, Failure> {
    let usage = |failure: Failure| Failure { status: USAGE, ..failure };
    let engine = engine_choice(&asked.engine).map_err(usage)?;
    let mut model = ModelJob::plain(Vec::new(), Some(machine), engine).map_err(usage)?;
    model.core = if asked.full { CoreAsk::Fast } else { sampled(None, asked.seed)? };
    model.drops_output = !asked.show_output;
    Ok(model)
}

/// `2%` or `2`, as a share.
pub(super) fn percent(
    text: &str,
    what: &str,
    allowed: std::ops::RangeInclusive<f64>,
) -> Result<f64, Failure> {
    let digits = text.strip_suffix('%').unwrap_or(text).trim();
    let number = digits.parse::<f64>().ok().filter(|number| allowed.contains(number));
    number.map(|number| number / 100.0).ok_or_else(|| {
        let (low, high) = (allowed.start(), allowed.end());
        Failure::new(USAGE, format!("'{text}' is no {what}"))
            .remedy(format!("give a percentage from {low} to {high}"))
    })
}

/// `90`, `90s`, `1.5m`, `1h`, `500ms`.
fn time(text: &str) -> Result<Duration, Failure> {
    let units = [("ms", 1e-3), ("s", 1.0), ("m", 60.0), ("h", 3600.0), ("", 1.0)];
    let read = |(unit, factor): (&str, f64)| {
        let seconds = text.strip_suffix(unit)?.trim().parse::<f64>().ok()? * factor;
        (seconds > 0.0 && seconds < 1e9).then(|| Duration::from_secs_f64(seconds))
    };
    units.into_iter().find_map(read).ok_or_else(|| {
        Failure::new(USAGE, format!("'{text}' is no time")).remedy("write 30s, 5m or 1h")
    })
}

fn warm_up(text: &str) -> Result<WarmUp, Failure> {
    match text {
        "auto" => Ok(WarmUp::Detected),
        number => number.parse().map(WarmUp::Fixed).map_err(|_| {
            Failure::new(USAGE, format!("'{text}' is no number of runs to leave out"))
                .remedy("give a number, or auto")
        }),
    }
}

/// A command line as a shell divides it: blanks, quotes and backslashes, nothing else.
fn words(text: &str) -> Result<Vec<OsString>, Failure> {
    let (mut words, mut word, mut is_open) = (Vec::new(), String::new(), false);
    let mut quote = None;
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match (quote, letter) {
            (Some(closing), letter) if letter == closing => quote = None,
            (Some('"') | None, '\\') => word.extend(letters.next()),
            (Some(_), letter) => word.push(letter),
            (None, '\'' | '"') => {
                quote = Some(letter);
                is_open = true;
            }
            (None, letter) if letter.is_whitespace() => {
                if is_open || !word.is_empty() {
                    words.push(OsString::from(std::mem::take(&mut word)));
                }
                is_open = false;
            }
            (None, letter) => word.push(letter),
        }
    }
    if quote.is_some() {
        return Err(Failure::new(USAGE, format!("a quote is not closed in '{text}'")));
    }
    if is_open || !word.is_empty() {
        words.push(OsString::from(word));
    }
    if words.is_empty() {
        return Err(Failure::new(USAGE, "a command to compare is empty")
            .remedy("write --compare 'A ARGS' 'B ARGS'"));
    }
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_divided_as_a_shell_would() {
        let divided = words(r#"sh -c 'echo "a  b"' x\ y """#).unwrap();
        assert_eq!(divided, ["sh", "-c", "echo \"a  b\"", "x y", ""]);
        assert!(words("a 'b").unwrap_err().what.contains("not closed"));
        assert_eq!(words("  ").unwrap_err().status, USAGE);
    }

    #[test]
    fn times_and_percentages_have_units() {
        assert_eq!(time("1.5m").unwrap(), Duration::from_secs(90));
        assert_eq!(time("500ms").unwrap(), Duration::from_millis(500));
        assert_eq!(time("7").unwrap(), Duration::from_secs(7));
        assert!(time("soon").is_err() && time("-1s").is_err());
        assert_eq!(percent("2%", "x", 0.0..=50.0).unwrap(), 0.02);
        assert!(percent("0", "x", 0.1..=50.0).is_err() && percent("x", "x", 0.0..=5.0).is_err());
        assert_eq!(warm_up("3").unwrap(), WarmUp::Fixed(3));
        assert!(warm_up("some").is_err());
    }
}
