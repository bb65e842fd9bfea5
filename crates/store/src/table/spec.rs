//! What a table's columns are.

/// What a column holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// An unsigned number.
    Int,
    /// A number, or none.
    MaybeInt,
    /// A text.
    Text,
    /// A text, or none.
    MaybeText,
    /// A list of numbers.
    Ints,
    /// A list of texts, any of which may be missing.
    Texts,
}

/// How a column is packed before it is compressed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Packing {
    /// Each value once, and numbers in its place: for what repeats.
    Dictionary,
    /// Differences: for what rises.
    Delta,
}

/// One column.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ColumnSpec {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) packing: Packing,
    /// Key columns make rows equal; the others add up.
    pub(crate) is_key: bool,
}

/// A column of the key.
pub(crate) const fn key(name: &'static str, kind: Kind, packing: Packing) -> ColumnSpec {
    ColumnSpec { name, kind, packing, is_key: true }
}

/// A column that adds up.
pub(crate) const fn sum(name: &'static str) -> ColumnSpec {
    ColumnSpec { name, kind: Kind::Int, packing: Packing::Dictionary, is_key: false }
}

/// One table: its key columns first, in the order by which rows are sorted.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct Spec {
    /// Part of the file's name.
    pub(crate) name: &'static str,
    pub(crate) columns: &'static [ColumnSpec],
}

impl Spec {
    /// The schema in Parquet's own language.
    pub(crate) fn message(&self) -> String {
        let fields: String = self.columns.iter().map(ColumnSpec::field).collect();
        format!("message {} {{\n{fields}}}", self.name)
    }
}

impl ColumnSpec {
    fn field(&self) -> String {
        let name = self.name;
        let list = |element: &str| {
            format!("  required group {name} (LIST) {{ repeated group list {{ {element} }} }}\n")
        };
        match self.kind {
            Kind::Int => format!("  required int64 {name} (INTEGER(64,false));\n"),
            Kind::MaybeInt => format!("  optional int64 {name} (INTEGER(64,false));\n"),
            Kind::Text => format!("  required binary {name} (UTF8);\n"),
            Kind::MaybeText => format!("  optional binary {name} (UTF8);\n"),
            Kind::Ints => list("required int64 element (INTEGER(64,false));"),
            Kind::Texts => list("optional binary element (UTF8);"),
        }
    }

    /// The column's path in the file, down to the leaf.
    pub(crate) fn path(&self) -> Vec<String> {
        let leaf: &[&str] = match self.kind {
            Kind::Ints | Kind::Texts => &["list", "element"],
            _ => &[],
        };
        std::iter::once(self.name).chain(leaf.iter().copied()).map(str::to_owned).collect()
    }
}
