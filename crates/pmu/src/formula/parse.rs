//! From text to a tree.

use std::fmt;

use super::{Formula, Node, Operator};

/// Deeper than any formula that a person can read; keeps hostile text off the stack.
const DEEPEST: usize = 60;

/// Text that is no formula, and where it stops being one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FormulaError {
    /// The column, from 1.
    column: usize,
    why: &'static str,
}

impl fmt::Display for FormulaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no formula at column {}: {}", self.column, self.why)
    }
}

impl std::error::Error for FormulaError {}

pub(super) fn parse(text: &str) -> Result<Formula, FormulaError> {
    let mut parser = Parser { text, at: 0, names: Vec::new(), depth: 0 };
    let root = parser.sum()?;
    parser.skip_blanks();
    match parser.peek() {
        None => Ok(Formula { text: text.to_owned(), names: parser.names, root }),
        Some(_) => Err(parser.error("an operator or the end is missing")),
    }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    names: Vec<String>,
    depth: usize,
}

impl Parser<'_> {
    fn rest(&self) -> &str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn skip_blanks(&mut self) {
        let blanks = self.rest().len() - self.rest().trim_start().len();
        self.at += blanks;
    }

    fn error(&self, why: &'static str) -> FormulaError {
        let before = self.text.get(..self.at).unwrap_or_default();
        FormulaError { column: before.chars().count() + 1, why }
    }

    /// Takes one of the operators, if one is next.
    fn operator(&mut self, known: &[(char, Operator)]) -> Option<Operator> {
        self.skip_blanks();
        let next = self.peek()?;
        let (sign, operator) = known.iter().find(|(sign, _)| *sign == next)?;
        self.at += sign.len_utf8();
        Some(*operator)
    }

    fn sum(&mut self) -> Result<Node, FormulaError> {
        self.chain(&[('+', Operator::Plus), ('-', Operator::Minus)], Parser::product)
    }

    fn product(&mut self) -> Result<Node, FormulaError> {
        self.chain(&[('*', Operator::Times), ('/', Operator::Over)], Parser::factor)
    }

    /// `part (operator part)*`, leaning left.
    fn chain(
        &mut self,
        known: &[(char, Operator)],
        part: fn(&mut Self) -> Result<Node, FormulaError>,
    ) -> Result<Node, FormulaError> {
        let mut left = part(self)?;
        let mut length = 0;
        while let Some(operator) = self.operator(known) {
            length += 1;
            if length > DEEPEST {
                return Err(self.error("it is too long"));
            }
            let right = part(self)?;
            left = Node::Binary(operator, Box::new(left), Box::new(right));
        }
        Ok(left)
    }

    fn factor(&mut self) -> Result<Node, FormulaError> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(self.error("it is nested too deeply"));
        }
        self.skip_blanks();
        let node = match self.peek() {
            Some('(') => self.parenthesis(),
            Some('-') => {
                self.at += 1;
                Ok(Node::Negated(Box::new(self.factor()?)))
            }
            Some(c) if c.is_ascii_digit() || c == '.' => self.number(),
            Some(c) if c.is_ascii_alphabetic() || c == '_' => self.name_or_call(),
            Some(_) => Err(self.error("a name or a number is missing")),
            None => Err(self.error("it ends too early")),
        };
        self.depth -= 1;
        node
    }

    fn parenthesis(&mut self) -> Result<Node, FormulaError> {
        self.expect('(', "an opening parenthesis is missing")?;
        let inner = self.sum()?;
        self.expect(')', "a closing parenthesis is missing")?;
        Ok(inner)
    }

    fn expect(&mut self, sign: char, why: &'static str) -> Result<(), FormulaError> {
        self.skip_blanks();
        if self.peek() != Some(sign) {
            return Err(self.error(why));
        }
        self.at += sign.len_utf8();
        Ok(())
    }

    fn number(&mut self) -> Result<Node, FormulaError> {
        let mut length = take(self.rest(), |c| c.is_ascii_digit() || c == '.');
        // An exponent: `1e-9`.
        let tail = self.rest().get(length..).unwrap_or_default();
        if let Some(exponent) = tail.strip_prefix('e') {
            let digits = exponent.strip_prefix('-').unwrap_or(exponent);
            let count = take(digits, |c| c.is_ascii_digit());
            if count > 0 {
                length += 1 + (exponent.len() - digits.len()) + count;
            }
        }
        let value = self.rest().get(..length).and_then(|digits| digits.parse::<f64>().ok());
        let value = value.filter(|value| value.is_finite());
        let value = value.ok_or_else(|| self.error("this is no number"))?;
        self.at += length;
        Ok(Node::Number(value))
    }

    fn name_or_call(&mut self) -> Result<Node, FormulaError> {
        let length = take(self.rest(), |c| c.is_ascii_alphanumeric() || "-_.".contains(c));
        let name = self.rest().get(..length).unwrap_or_default().to_owned();
        if name.ends_with('-') {
            return Err(self.error("a blank is missing before the minus sign"));
        }
        self.at += length;
        let operator = match name.as_str() {
            "min" => Some(Operator::Least),
            "max" => Some(Operator::Most),
            _ => None,
        };
        match operator {
            Some(operator) => self.call(operator),
            None => Ok(Node::Name(self.place_of(name))),
        }
    }

    fn call(&mut self, operator: Operator) -> Result<Node, FormulaError> {
        self.expect('(', "the two values of min and max stand in parentheses")?;
        let first = self.sum()?;
        self.expect(',', "min and max take two values")?;
        let second = self.sum()?;
        self.expect(')', "a closing parenthesis is missing")?;
        Ok(Node::Binary(operator, Box::new(first), Box::new(second)))
    }

    fn place_of(&mut self, name: String) -> usize {
        let known = self.names.iter().position(|other| *other == name);
        known.unwrap_or_else(|| {
            self.names.push(name);
            self.names.len() - 1
        })
    }
}

/// How many bytes at the front fit.
fn take(text: &str, fits: impl Fn(char) -> bool) -> usize {
    text.find(|c| !fits(c)).unwrap_or(text.len())
}
