//! What was read when a slice was over.

/// One slice of one group: how much of everything it counted, from its start to its end.
///
/// A slice that was cut short (by a stop, a read, the end) is a reading like any other: its
/// anchors say how long it was.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Reading {
    /// The group that had the counters.
    pub group: usize,
    /// The round that the slice belongs to.
    pub round: u64,
    /// Counts in the order of the group's events: the anchors first.
    pub counts: Vec<u64>,
}

impl Reading {
    /// The anchors' counts.
    pub fn anchors(&self, anchors: usize) -> &[u64] {
        self.counts.get(..anchors).unwrap_or_default()
    }

    /// Instructions per cycle, where these are the first two anchors.
    pub(crate) fn instructions_per_cycle(&self) -> f64 {
        match self.counts.get(..2) {
            Some(&[cycles, instructions]) if cycles > 0 => instructions as f64 / cycles as f64,
            _ => 0.0,
        }
    }
}
