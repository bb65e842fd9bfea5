//! Rows in memory, column by column.

use std::cmp::Ordering;

use super::{Kind, Maybes, Spec, Symbol, Texts};

/// Lists laid end to end.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Lists<T> {
    pub(crate) ends: Vec<usize>,
    pub(crate) values: Vec<T>,
}

impl<T> Default for Lists<T> {
    fn default() -> Self {
        Lists { ends: Vec::new(), values: Vec::new() }
    }
}

impl<T: Copy> Lists<T> {
    pub(crate) fn push(&mut self, list: &[T]) {
        self.values.extend_from_slice(list);
        self.ends.push(self.values.len());
    }

    fn part(&self, from: usize, to: usize) -> Lists<T> {
        let mut part = Lists::default();
        (from..to).for_each(|row| part.push(self.get(row)));
        part
    }

    pub(crate) fn get(&self, row: usize) -> &[T] {
        let from = row.checked_sub(1).and_then(|before| self.ends.get(before)).copied();
        let to = self.ends.get(row).copied().unwrap_or(0);
        self.values.get(from.unwrap_or(0)..to).unwrap_or(&[])
    }
}

fn some<T: Copy>(values: &[T], from: usize, to: usize) -> Vec<T> {
    values.get(from..to).unwrap_or_default().to_vec()
}

/// One column.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Column {
    Int(Vec<u64>),
    MaybeInt(Maybes),
    /// Texts, present or not.
    Text(Vec<Symbol>),
    Ints(Lists<u64>),
    Texts(Lists<Symbol>),
}

impl Column {
    fn new(kind: Kind) -> Column {
        match kind {
            Kind::Int => Column::Int(Vec::new()),
            Kind::MaybeInt => Column::MaybeInt(Maybes::default()),
            Kind::Text | Kind::MaybeText => Column::Text(Vec::new()),
            Kind::Ints => Column::Ints(Lists::default()),
            Kind::Texts => Column::Texts(Lists::default()),
        }
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Column::Int(values) => values.len(),
            Column::MaybeInt(values) => values.len(),
            Column::Text(values) => values.len(),
            Column::Ints(lists) => lists.ends.len(),
            Column::Texts(lists) => lists.ends.len(),
        }
    }

    fn part(&self, from: usize, to: usize) -> Column {
        match self {
            Column::Int(values) => Column::Int(some(values, from, to)),
            Column::MaybeInt(values) => Column::MaybeInt(values.part(from, to)),
            Column::Text(values) => Column::Text(some(values, from, to)),
            Column::Ints(lists) => Column::Ints(lists.part(from, to)),
            Column::Texts(lists) => Column::Texts(lists.part(from, to)),
        }
    }

    fn compare(&self, row: usize, other: &Column, place: usize, texts: &Texts) -> Ordering {
        match (self, other) {
            (Column::Int(left), Column::Int(right)) => left.get(row).cmp(&right.get(place)),
            (Column::MaybeInt(left), Column::MaybeInt(right)) => {
                left.get(row).cmp(&right.get(place))
            }
            (Column::Text(left), Column::Text(right)) => {
                let symbol = |column: &Vec<Symbol>, row| column.get(row).copied();
                let (left, right) = (symbol(left, row), symbol(right, place));
                texts.compare(left.unwrap_or_default(), right.unwrap_or_default())
            }
            (Column::Ints(left), Column::Ints(right)) => left.get(row).cmp(right.get(place)),
            (Column::Texts(left), Column::Texts(right)) => {
                let (left, right) = (left.get(row), right.get(place));
                let first = left.iter().zip(right).map(|(&l, &r)| texts.compare(l, r));
                first
                    .into_iter()
                    .find(|order| order.is_ne())
                    .unwrap_or(left.len().cmp(&right.len()))
            }
            _ => Ordering::Equal,
        }
    }

    fn push_from(&mut self, other: &Column, row: usize) {
        match (self, other) {
            (Column::Int(to), Column::Int(from)) => to.extend(from.get(row)),
            (Column::MaybeInt(to), Column::MaybeInt(from)) => to.push(from.get(row)),
            (Column::Text(to), Column::Text(from)) => to.extend(from.get(row)),
            (Column::Ints(to), Column::Ints(from)) => to.push(from.get(row)),
            (Column::Texts(to), Column::Texts(from)) => to.push(from.get(row)),
            _ => {}
        }
    }
}

/// Rows of one table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Batch {
    pub(crate) spec: &'static Spec,
    pub(crate) columns: Vec<Column>,
}

impl Batch {
    pub(crate) fn new(spec: &'static Spec) -> Batch {
        Batch { spec, columns: spec.columns.iter().map(|c| Column::new(c.kind)).collect() }
    }

    pub(crate) fn rows(&self) -> usize {
        self.columns.first().map_or(0, Column::len)
    }

    /// Some of the rows.
    pub(crate) fn part(&self, from: usize, to: usize) -> Batch {
        let columns = self.columns.iter().map(|column| column.part(from, to)).collect();
        Batch { spec: self.spec, columns }
    }

    /// A text by column and row.
    pub(crate) fn text(&self, column: usize, row: usize) -> Symbol {
        match self.columns.get(column) {
            Some(Column::Text(values)) => values.get(row).copied().unwrap_or_default(),
            _ => Symbol::NONE,
        }
    }

    /// By key columns.
    pub(crate) fn compare(
        &self,
        row: usize,
        other: &Batch,
        place: usize,
        texts: &Texts,
    ) -> Ordering {
        let keys = self.spec.columns.iter().zip(self.columns.iter().zip(&other.columns));
        for (spec, (ours, theirs)) in keys {
            if !spec.is_key {
                break;
            }
            let order = ours.compare(row, theirs, place, texts);
            if order.is_ne() {
                return order;
            }
        }
        Ordering::Equal
    }

    /// Appends a row of another batch of the same table.
    pub(crate) fn push_from(&mut self, other: &Batch, row: usize) {
        for (to, from) in self.columns.iter_mut().zip(&other.columns) {
            to.push_from(from, row);
        }
    }

    /// Adds a row's sums to our last row.
    pub(crate) fn add_to_last(&mut self, other: &Batch, row: usize) {
        let columns = self.spec.columns.iter().zip(self.columns.iter_mut().zip(&other.columns));
        for (spec, (ours, theirs)) in columns {
            if let (false, Column::Int(ours), Column::Int(theirs)) = (spec.is_key, ours, theirs)
                && let (Some(last), Some(more)) = (ours.last_mut(), theirs.get(row))
            {
                *last = last.saturating_add(*more);
            }
        }
    }

    /// The same rows sorted by key, rows of one key added.
    pub(crate) fn sorted(&self, texts: &Texts) -> Batch {
        let mut order: Vec<usize> = (0..self.rows()).collect();
        order.sort_by(|&left, &right| self.compare(left, self, right, texts));
        let mut sorted = Batch::new(self.spec);
        for row in order {
            let last = sorted.rows().wrapping_sub(1);
            if sorted.rows() > 0 && sorted.compare(last, self, row, texts).is_eq() {
                sorted.add_to_last(self, row);
            } else {
                sorted.push_from(self, row);
            }
        }
        sorted
    }
}
