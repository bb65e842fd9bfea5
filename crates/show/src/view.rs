//! What is shown, before anyone decides how.

use crate::{Cell, Part, Tone};

/// The name and version of a JSON form; a change that breaks readers raises the version.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Schema {
    /// For example `run`; printed as `whither.run`.
    pub name: &'static str,
    /// From 1.
    pub version: u32,
}

/// Everything that one command has to say.
#[derive(Clone, Debug)]
pub struct View {
    /// The JSON form's name and version.
    pub schema: Schema,
    /// One line that says what this is about.
    pub title: String,
    /// In the order in which a person should read them.
    pub sections: Vec<Section>,
}

/// One part of a view.
#[derive(Clone, Debug)]
pub struct Section {
    /// Its name in JSON.
    pub key: &'static str,
    /// Its heading in text; an empty one prints none.
    pub title: String,
    /// What the numbers are and where they come from, beside the heading.
    pub caption: String,
    /// What it holds.
    pub body: Body,
}

/// The shapes a section can have.
#[derive(Clone, Debug)]
pub enum Body {
    /// Named values, one a line. An object in JSON.
    Facts(Vec<Fact>),
    /// Rows under columns. An array of objects in JSON.
    Table(Table),
    /// Several titled tables of one shape. An array of `{title, rows}` in JSON.
    Tables(Vec<(String, Table)>),
    /// Parts of a whole on an axis. An array of `{name, share}` in JSON.
    Stack(Vec<Part>),
    /// Sentences. An array of strings in JSON.
    Prose(Vec<String>),
}

/// A named value.
#[derive(Clone, Debug)]
pub struct Fact {
    /// Its name in JSON.
    pub key: &'static str,
    /// Its name in text.
    pub label: &'static str,
    /// The value.
    pub cell: Cell,
}

impl Fact {
    /// A named value.
    pub fn new(key: &'static str, label: &'static str, cell: Cell) -> Fact {
        Fact { key, label, cell }
    }
}

/// Which way a column leans.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Align {
    /// Text.
    Left,
    /// Numbers.
    Right,
}

/// One column of a table.
#[derive(Clone, Debug)]
pub struct Column {
    /// Its name in JSON.
    pub key: &'static str,
    /// Its heading in text.
    pub heading: &'static str,
    /// Which way it leans.
    pub align: Align,
    /// Which form has it.
    pub shown: Shown,
    /// The narrowest page that has room for it.
    pub page_min: usize,
}

/// Which form of a view has a column.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shown {
    /// Text and JSON.
    Everywhere,
    /// JSON alone: detail that would crowd a screen.
    InJson,
    /// Text alone: what JSON has in other columns, put together for reading.
    InText,
}

impl Column {
    /// A column of text.
    pub const fn text(key: &'static str, heading: &'static str) -> Column {
        Column { key, heading, align: Align::Left, shown: Shown::Everywhere, page_min: 0 }
    }

    /// A column of numbers.
    pub const fn number(key: &'static str, heading: &'static str) -> Column {
        Column { key, heading, align: Align::Right, shown: Shown::Everywhere, page_min: 0 }
    }

    /// The same column, left out of the text form.
    pub const fn only_in_json(self) -> Column {
        Column { shown: Shown::InJson, ..self }
    }

    /// The same column, left out of text that is narrower than this.
    pub const fn on_pages_of(self, page_min: usize) -> Column {
        Column { page_min, ..self }
    }

    /// The same column, left out of JSON.
    pub const fn only_in_text(self) -> Column {
        Column { shown: Shown::InText, ..self }
    }
}

/// One line of a table.
#[derive(Clone, Debug)]
pub enum Row {
    /// Cells in the order of the columns.
    Cells(Tone, Vec<Cell>),
    /// Cells that the text form passes over.
    InJson(Vec<Cell>),
    /// Something was left out here, and what. Absent from JSON.
    Gap(String),
    /// A line between the others that begins under a column, by the column's key. Absent from JSON.
    Aside(Tone, &'static str, String),
}

impl Row {
    /// Whether the text form shows it.
    pub(crate) fn is_in_text(&self) -> bool {
        !matches!(self, Row::InJson(_))
    }
}

/// Rows under columns.
#[derive(Clone, Debug, Default)]
pub struct Table {
    /// The columns.
    pub columns: Vec<Column>,
    /// The rows.
    pub rows: Vec<Row>,
    /// How many further rows the text form leaves out after the first `text_rows`.
    pub text_rows: Option<usize>,
}
