//! Derived measures as data: a small language of arithmetic on counts.
//!
//! ```text
//! "1000 * branch-misses / instructions" ─parse─► Formula ─units─► events per kiloinstruction
//!                                                   └─evaluate(Inputs)─► Estimate, with ±
//! ```
//!
//! Names are events or constants. A name may hold `-`, so that a subtraction has a blank before
//! its sign: `cycles - stalls`. There are `+ - * /`, parentheses, `min(a, b)` and `max(a, b)`.
//!
//! The same text is shown to the reader, checked for units, and computed.

mod evaluate;
mod parse;
mod units;

pub use evaluate::{Inputs, NotComputed};
pub use parse::FormulaError;
pub use units::{Dimension, UnitError};

/// A parsed formula.
#[derive(Clone, PartialEq, Debug)]
pub struct Formula {
    text: String,
    names: Vec<String>,
    root: Node,
}

#[derive(Clone, PartialEq, Debug)]
enum Node {
    Number(f64),
    /// A place in `Formula::names`.
    Name(usize),
    Negated(Box<Node>),
    Binary(Operator, Box<Node>, Box<Node>),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Operator {
    Plus,
    Minus,
    Times,
    Over,
    Least,
    Most,
}

impl Formula {
    /// From its text.
    pub fn parse(text: &str) -> Result<Formula, FormulaError> {
        parse::parse(text)
    }

    /// As it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// What it needs, each once, in the order of the text.
    pub fn names(&self) -> &[String] {
        &self.names
    }
}

impl<'de> serde::Deserialize<'de> for Formula {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Formula, D::Error> {
        let text = String::deserialize(deserializer)?;
        Formula::parse(&text)
            .map_err(|error| serde::de::Error::custom(format_args!("'{text}': {error}")))
    }
}

#[cfg(test)]
mod tests;
