//! Tables of measures.

use metrology::{Interval, Method};
use show::{Body, Cell, Column, Row, Section, Table, Tone, Unit};

use super::{Report, count, section};
use crate::measure::derived::relative;
use crate::measure::findings::Direct;
use crate::measure::groups::READINGS_MIN;
use crate::measure::quantity::Quantity;

const DIRECT: [Column; 9] = [
    Column::text("measure", "measure"),
    Column::number("mean", "mean"),
    Column::number("standard_uncertainty", "").only_in_json(),
    Column::number("degrees_of_freedom", "").only_in_json(),
    Column::number("relative", "u").only_in_text(),
    Column::number("median", "median"),
    Column::number("readings", "readings"),
    Column::text("interval_by", "interval by"),
    Column::number("skewness", "").only_in_json(),
];

const DERIVED: [Column; 7] = [
    Column::text("measure", "measure"),
    Column::number("value", "value"),
    Column::number("standard_uncertainty", "").only_in_json(),
    Column::number("relative", "u").only_in_text(),
    Column::text("above", "").only_in_json(),
    Column::text("below", "").only_in_json(),
    Column::number("together", "counted together"),
];

impl Report<'_> {
    pub(super) fn direct(&self) -> Section {
        let rows = self.choice.quantities.iter().zip(&self.findings.direct);
        let mut rows: Vec<Row> = rows.map(|(quantity, found)| row(quantity, found)).collect();
        for (quantity, why) in &self.choice.refused {
            let mut cells = vec![Cell::text(&*quantity.name), Cell::NotCounted(why.clone())];
            cells.resize(DIRECT.len(), Cell::Empty);
            rows.push(Row::Cells(Tone::Faint, cells));
        }
        let caption = format!(
            "of the readings; ± at {} %, of a median as near as so few allow; u is the relative standard uncertainty",
            100.0 * self.job.coverage.probability()
        );
        let table = Table { columns: DIRECT.to_vec(), rows, text_rows: None };
        section("direct", "MEASURED DIRECTLY", caption, Body::Table(table))
    }

    pub(super) fn derived(&self) -> Section {
        let rows = self.findings.derived.iter().map(|ratio| {
            let interval = ratio.value.interval(self.job.coverage);
            let together = match ratio.together {
                0 => Cell::Word { key: "never", text: "never".into() },
                runs => count(runs as u64),
            };
            let cells = vec![
                Cell::text(&*ratio.name),
                estimate_cell(ratio.value.value, interval, ratio.unit),
                Cell::Number(ratio.value.standard_uncertainty, Unit::Number),
                Cell::text(percent(relative(ratio.value))),
                Cell::text(&*ratio.above),
                Cell::text(&*ratio.below),
                together,
            ];
            Row::Cells(Tone::Plain, cells)
        });
        let rows = rows.collect();
        let caption = "ratios of the means; what was counted together varies together".into();
        let table = Table { columns: DERIVED.to_vec(), rows, text_rows: None };
        section("derived", "DERIVED", caption, Body::Table(table))
    }
}

fn row(quantity: &Quantity, found: &Option<Direct>) -> Row {
    let Some(found) = found else {
        let why = format!("fewer than {READINGS_MIN} runs brought a reading");
        let mut cells = vec![Cell::text(&*quantity.name), Cell::NotCounted(why)];
        cells.resize(DIRECT.len(), Cell::Empty);
        return Row::Cells(Tone::Faint, cells);
    };
    let summary = &found.summary;
    let (key, text) = match summary.method {
        Method::Student => ("student", "Student"),
        Method::Hall => ("hall", "Hall, for skew"),
    };
    let estimate = summary.estimate;
    let finite = |value: f64| match value.is_finite() {
        true => Cell::Number(value, Unit::Number),
        false => Cell::Empty,
    };
    Row::Cells(
        Tone::Plain,
        vec![
            Cell::text(&*quantity.name),
            estimate_cell(estimate.value, summary.interval, quantity.unit()),
            Cell::Number(estimate.standard_uncertainty, Unit::Number),
            finite(estimate.degrees_of_freedom),
            Cell::text(percent(relative(estimate))),
            estimate_cell(found.median.0, found.median.1, quantity.unit()),
            count(found.readings as u64),
            Cell::Word { key, text: text.into() },
            summary.skewness.map_or(Cell::Empty, |s| Cell::Number(s, Unit::Number)),
        ],
    )
}

/// A small mean of counts says more with decimals.
pub(crate) fn estimate_cell(value: f64, interval: Interval, unit: Unit) -> Cell {
    let unit = match unit {
        Unit::Count if value < 100.0 => Unit::Number,
        other => other,
    };
    Cell::Estimate(value, interval, unit)
}

/// A share with two significant digits.
pub(crate) fn percent(share: Option<f64>) -> String {
    match share {
        None => String::new(),
        Some(0.0) => "0 %".into(),
        Some(share) => {
            let percent = 100.0 * share;
            let places = (1.0 - percent.abs().log10().floor()).clamp(0.0, 9.0) as usize;
            format!("{percent:.places$} %")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relative_uncertainties_have_two_digits() {
        let written = [0.0, 0.5, 0.0123, 0.000_123, 1.5e-7].map(|s| percent(Some(s)));
        assert_eq!(written, ["0 %", "50 %", "1.2 %", "0.012 %", "0.000015 %"]);
        assert_eq!(percent(None), "");
    }
}
