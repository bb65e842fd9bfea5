//! Numbers of which most columns have none.

/// Numbers, each there or not. A column without any takes no room: most rows belong to no process
/// and no time slice.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Maybes {
    rows: usize,
    /// As many as there are rows, or none while no row has a number.
    values: Vec<Option<u64>>,
}

impl Maybes {
    /// Rows without a number.
    pub(crate) fn none(rows: usize) -> Maybes {
        Maybes { rows, values: Vec::new() }
    }

    pub(crate) fn len(&self) -> usize {
        self.rows
    }

    pub(crate) fn is_none(&self) -> bool {
        self.values.is_empty()
    }

    pub(crate) fn push(&mut self, value: Option<u64>) {
        if value.is_some() && self.values.is_empty() {
            self.values = vec![None; self.rows];
        }
        if !self.values.is_empty() || value.is_some() {
            self.values.push(value);
        }
        self.rows += 1;
    }

    pub(crate) fn get(&self, row: usize) -> Option<u64> {
        self.values.get(row).copied().flatten()
    }

    /// Some of the rows.
    pub(crate) fn part(&self, from: usize, to: usize) -> Maybes {
        match self.values.get(from..to) {
            Some(values) => values.iter().copied().collect(),
            None => Maybes::none(to.min(self.rows).saturating_sub(from)),
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = Option<u64>> {
        (0..self.rows).map(|row| self.get(row))
    }
}

impl FromIterator<Option<u64>> for Maybes {
    fn from_iter<I: IntoIterator<Item = Option<u64>>>(values: I) -> Maybes {
        let mut all = Maybes::default();
        values.into_iter().for_each(|value| all.push(value));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_pushed_is_there_and_nothing_takes_no_room() {
        let values = [None, None, Some(7), None, Some(0)];
        let all: Maybes = values.into_iter().collect();
        assert_eq!((all.len(), all.is_none()), (5, false));
        assert_eq!(all.iter().collect::<Vec<_>>(), values);
        assert_eq!((all.get(2), all.get(3), all.get(9)), (Some(7), None, None));
        let none: Maybes = [None; 3].into_iter().collect();
        assert_eq!(none, Maybes::none(3));
        assert!(none.is_none());
        assert_eq!(none.part(1, 3), Maybes::none(2));
        assert_eq!(all.part(0, 2), Maybes::none(2));
        assert_eq!(all.part(1, 3).iter().collect::<Vec<_>>(), values[1..3]);
    }
}
