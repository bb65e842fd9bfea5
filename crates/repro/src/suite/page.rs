//! The rows to regenerate: what each one is, the papers' values and the goals.
//!
//! They are data, apart from the code that measures, so that no row sets its own goal.

use serde::Deserialize;

use super::{SuiteError, sentence};

/// One row of the page.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PageRow {
    /// Its name on the command line.
    pub name: String,
    /// What it regenerates, in a sentence.
    pub regenerates: String,
    /// The papers' values by key, numbers or text.
    #[serde(default)]
    pub paper: toml::Table,
    /// What ours must be, by key.
    #[serde(default)]
    pub goal: std::collections::BTreeMap<String, Bound>,
    /// What is printed whatever it is.
    #[serde(default)]
    pub print: String,
    /// A row of our own, of no paper.
    #[serde(default)]
    pub beside: bool,
    /// What is known of why a goal is missed; printed only where one is.
    #[serde(default)]
    pub shortfall: String,
}

/// What a figure must be to meet its goal; every bound that is given holds.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bound {
    /// Not below.
    pub min: Option<f64>,
    /// Not above.
    pub max: Option<f64>,
}

impl Bound {
    /// Whether `value` meets it; what is not a number meets nothing.
    pub fn holds(&self, value: f64) -> bool {
        value.is_finite()
            && self.min.is_none_or(|min| value >= min)
            && self.max.is_none_or(|max| value <= max)
    }

    /// As a person reads it.
    pub fn text(&self) -> String {
        match (self.min, self.max) {
            (Some(min), Some(max)) if min == max => format!("{min}"),
            (Some(min), Some(max)) => format!("{min} to {max}"),
            (Some(min), None) => format!("≥ {min}"),
            (None, Some(max)) => format!("≤ {max}"),
            (None, None) => "any".to_owned(),
        }
    }
}

/// Every row, in the page's order.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Page {
    /// The rows.
    pub row: Vec<PageRow>,
}

impl Page {
    /// Parses the page; `file` is for messages.
    ///
    /// # Errors
    ///
    /// It does not follow the schema, or names a row twice.
    pub fn parse(file: &str, text: &str) -> Result<Page, SuiteError> {
        let wrong = |what| SuiteError::Schema(file.to_owned(), what);
        let page: Page = toml::from_str(text).map_err(|e| wrong(sentence(text, &e)))?;
        for (place, row) in page.row.iter().enumerate() {
            if page.row.iter().take(place).any(|earlier| earlier.name == row.name) {
                return Err(wrong(format!("row `{}` is there twice", row.name)));
            }
        }
        Ok(page)
    }

    /// The row called `name`.
    pub fn find(&self, name: &str) -> Option<&PageRow> {
        self.row.iter().find(|row| row.name == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_hold_at_their_ends_and_never_for_what_is_no_number() {
        let both = Bound { min: Some(93.0), max: Some(97.0) };
        assert!(both.holds(93.0) && both.holds(97.0) && !both.holds(97.01) && !both.holds(92.9));
        assert!(!Bound { min: None, max: None }.holds(f64::NAN));
        assert_eq!(both.text(), "93 to 97");
        assert_eq!(Bound { min: Some(7.0), max: Some(7.0) }.text(), "7");
    }

    #[test]
    fn a_row_named_twice_is_refused() {
        let text = "[[row]]\nname='a'\nregenerates='x'\n[[row]]\nname='a'\nregenerates='y'\n";
        let error = Page::parse("rows.toml", text).unwrap_err().to_string();
        assert_eq!(error, "rows.toml: row `a` is there twice");
    }
}
