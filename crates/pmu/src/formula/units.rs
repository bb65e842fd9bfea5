//! What a formula is measured in: cycles minus instructions makes no sense, and is found here.

use std::fmt;

use super::{Formula, Node, Operator};

const BASES: [(&str, &[&str]); 6] = [
    ("cycles", &["cycle", "cycles"]),
    ("instructions", &["instruction", "instructions", "kinstruction", "kinstructions"]),
    ("s", &["s", "seconds", "ns"]),
    ("B", &["B", "bytes", "kB", "MB", "GB"]),
    ("slots", &["slot", "slots"]),
    ("events", &["event", "events"]),
];

/// Powers of the base units; all zero is a plain number.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Dimension([i8; BASES.len()]);

/// Two parts of a formula that do not fit, or a unit that is none.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum UnitError {
    /// Things added or compared that are of different kinds.
    Mixed(Dimension, Dimension),
    /// A name that nobody knows.
    Unknown(String),
    /// No unit is called that.
    NoUnit(String),
}

impl fmt::Display for UnitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            UnitError::Mixed(a, b) => write!(f, "{a} and {b} do not add up"),
            UnitError::Unknown(name) => write!(f, "there is no event or constant '{name}'"),
            UnitError::NoUnit(name) => write!(f, "there is no unit '{name}'"),
        }
    }
}

impl std::error::Error for UnitError {}

impl fmt::Display for Dimension {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let part = |wanted: i8| -> Vec<&str> {
            let named = BASES.iter().zip(self.0).filter(|(_, power)| power.signum() == wanted);
            named
                .flat_map(|((name, _), power)| {
                    std::iter::repeat_n(*name, power.unsigned_abs().into())
                })
                .collect()
        };
        let (above, below) = (part(1), part(-1));
        f.write_str(&if above.is_empty() { "1".to_owned() } else { above.join("*") })?;
        if below.is_empty() { Ok(()) } else { write!(f, "/{}", below.join("/")) }
    }
}

impl Dimension {
    /// A plain number.
    pub const NONE: Dimension = Dimension([0; BASES.len()]);

    /// From its name: `cycles`, `events/kinstruction`, `B/s`, `1`. A multiple of a unit (`kB`) is
    /// of the same kind: the formula itself holds the factor.
    pub fn named(text: &str) -> Result<Dimension, UnitError> {
        let mut whole = Dimension::NONE;
        for (place, part) in text.split('/').enumerate() {
            for name in part.split('*').map(str::trim) {
                let base = Dimension::base(name)?;
                whole = if place == 0 { whole.times(base) } else { whole.over(base) };
            }
        }
        Ok(whole)
    }

    fn base(name: &str) -> Result<Dimension, UnitError> {
        if name == "1" {
            return Ok(Dimension::NONE);
        }
        let place = BASES.iter().position(|(_, names)| names.contains(&name));
        let place = place.ok_or_else(|| UnitError::NoUnit(name.to_owned()))?;
        let mut powers = [0; BASES.len()];
        powers[place] = 1;
        Ok(Dimension(powers))
    }

    fn times(self, other: Dimension) -> Dimension {
        Dimension(std::array::from_fn(|k| self.0[k].saturating_add(other.0[k])))
    }

    fn over(self, other: Dimension) -> Dimension {
        Dimension(std::array::from_fn(|k| self.0[k].saturating_sub(other.0[k])))
    }
}

impl Formula {
    /// What its value is measured in, given what its names are.
    pub fn dimension(
        &self,
        of: &dyn Fn(&str) -> Option<Dimension>,
    ) -> Result<Dimension, UnitError> {
        let known: Vec<Dimension> = self
            .names
            .iter()
            .map(|name| of(name).ok_or_else(|| UnitError::Unknown(name.clone())))
            .collect::<Result<_, _>>()?;
        Ok(dimension(&self.root, &known)?.unwrap_or_default())
    }
}

/// None for a bare number, which fits beside anything: `max(0, cycles - stalls)`.
fn dimension(node: &Node, known: &[Dimension]) -> Result<Option<Dimension>, UnitError> {
    match node {
        Node::Number(_) => Ok(None),
        Node::Name(place) => Ok(Some(known.get(*place).copied().unwrap_or_default())),
        Node::Negated(inner) => dimension(inner, known),
        Node::Binary(operator, left, right) => {
            let (a, b) = (dimension(left, known)?, dimension(right, known)?);
            match (operator, a, b) {
                (Operator::Times, None, other)
                | (Operator::Times | Operator::Over, other, None) => Ok(other),
                (Operator::Times, Some(a), Some(b)) => Ok(Some(a.times(b))),
                (Operator::Over, a, Some(b)) => Ok(Some(a.unwrap_or_default().over(b))),
                (_, Some(a), Some(b)) if a != b => Err(UnitError::Mixed(a, b)),
                (_, a, b) => Ok(a.or(b)),
            }
        }
    }
}
