//! Each text once.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::sync::Arc;

/// A text by number; 0 is no text.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct Symbol(pub(crate) u32);

impl Symbol {
    /// No text.
    pub(crate) const NONE: Symbol = Symbol(0);
}

/// Paths and names come back in every row; here they are kept once.
#[derive(Debug, Default)]
pub(crate) struct Texts {
    list: Vec<Arc<str>>,
    numbers: HashMap<Arc<str>, Symbol>,
}

impl Texts {
    /// The number of a text, new or known.
    pub(crate) fn number(&mut self, text: &str) -> Symbol {
        if let Some(&known) = self.numbers.get(text) {
            return known;
        }
        let text: Arc<str> = text.into();
        self.list.push(Arc::clone(&text));
        let number = Symbol(self.list.len() as u32);
        self.numbers.insert(text, number);
        number
    }

    /// The text behind a number.
    pub(crate) fn text(&self, symbol: Symbol) -> Option<&str> {
        let place = (symbol.0 as usize).checked_sub(1)?;
        self.list.get(place).map(|text| &**text)
    }

    /// Alphabetical; no text comes first.
    pub(crate) fn compare(&self, left: Symbol, right: Symbol) -> Ordering {
        if left == right {
            return Ordering::Equal;
        }
        self.text(left).cmp(&self.text(right))
    }
}
