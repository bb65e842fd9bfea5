//! Records of several rings, in the order in which they happened.
//!
//! Each ring is in order; between rings there is none. A record may be handed on once no ring can
//! still deliver an older one:
//!
//! ```text
//! round 1   ring A: 1 4        ring B: 2 9          latest seen: 9
//! round 2   ring A: 6 7 12     ring B: 11           hand on everything up to 9: 1 2 4 6 7 9
//! round 3   …                                       hand on everything up to 12: 11 12
//! ```
//!
//! A was read before B in round 1, so A's 6 and 7 could be missed there, but not after round 2.

use perf::Record;
use vocab::EventId;

/// Holds back what might still be overtaken.
#[derive(Debug, Default)]
pub struct Merge {
    waiting: InOrder<(EventId, Record)>,
}

impl Merge {
    /// Takes a record of some ring.
    pub fn push(&mut self, event: EventId, record: Record) {
        self.waiting.push(record.time_ns, (event, record));
    }

    /// Every ring has been read once more: hands on what is safe, oldest first.
    pub fn end_round(&mut self, mut each: impl FnMut(EventId, Record)) {
        self.waiting.end_round(|(event, record)| each(event, record));
    }

    /// No ring will deliver any more: hands on the rest.
    pub fn finish(mut self, mut each: impl FnMut(EventId, Record)) {
        self.waiting.sort();
        self.waiting.held.into_iter().for_each(|(_, (event, record))| each(event, record));
    }
}

/// Anything that happened at some time. What one ring gives is in order, so that sorting finds a
/// few long runs and only weaves them together.
#[derive(Debug)]
pub(crate) struct InOrder<T> {
    held: Vec<(u64, T)>,
    latest_ns: u64,
    safe_ns: u64,
}

impl<T> Default for InOrder<T> {
    fn default() -> InOrder<T> {
        InOrder { held: Vec::new(), latest_ns: 0, safe_ns: 0 }
    }
}

impl<T> InOrder<T> {
    pub(crate) fn push(&mut self, time_ns: u64, what: T) {
        self.latest_ns = self.latest_ns.max(time_ns);
        self.held.push((time_ns, what));
    }

    pub(crate) fn end_round(&mut self, mut each: impl FnMut(T)) {
        let safe_ns = std::mem::replace(&mut self.safe_ns, self.latest_ns);
        if self.held.is_empty() {
            return;
        }
        self.sort();
        let safe = self.held.partition_point(|(time_ns, _)| *time_ns <= safe_ns);
        self.held.drain(..safe).for_each(|(_, what)| each(what));
    }

    /// What is held back.
    pub(crate) fn held(&mut self) -> impl Iterator<Item = &mut T> {
        self.held.iter_mut().map(|(_, what)| what)
    }

    /// Stable: records of one ring and nanosecond keep their order.
    fn sort(&mut self) {
        self.held.sort_by_key(|(time_ns, _)| *time_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use perf::RecordBody;

    fn push(merge: &mut Merge, times: &[u64]) {
        for &time_ns in times {
            merge.push(EventId(0), Record { time_ns, body: RecordBody::Ignored });
        }
    }

    fn round(merge: &mut Merge) -> Vec<u64> {
        let mut out = Vec::new();
        merge.end_round(|_, record| out.push(record.time_ns));
        out
    }

    #[test]
    fn the_drawn_example_comes_out_in_order() {
        let mut merge = Merge::default();
        push(&mut merge, &[1, 4, 2, 9]);
        assert_eq!(round(&mut merge), [0; 0]);
        push(&mut merge, &[6, 7, 12, 11]);
        assert_eq!(round(&mut merge), [1, 2, 4, 6, 7, 9]);
        assert_eq!(round(&mut merge), [11, 12]);
    }

    #[test]
    fn whatever_is_left_comes_out_at_the_end() {
        let mut merge = Merge::default();
        push(&mut merge, &[5, 3, 8]);
        let mut out = Vec::new();
        merge.finish(|_, record| out.push(record.time_ns));
        assert_eq!(out, [3, 5, 8]);
    }

    /// Rings are read one after the other while time goes on; whatever the split into rounds, the
    /// output is sorted and complete.
    #[test]
    fn any_interleaving_of_rings_and_rounds_is_sorted() {
        let mut seed = 1_u64;
        let mut next = |below: u64| {
            seed = seed
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) % below
        };
        for _ in 0..200 {
            // Times at which each of three rings got its records.
            let rings: Vec<Vec<u64>> = (0..3)
                .map(|_| {
                    let mut times: Vec<u64> = (0..next(40)).map(|_| next(1000)).collect();
                    times.sort_unstable();
                    times
                })
                .collect();
            let (mut merge, mut read, mut out) = (Merge::default(), [0; 3], Vec::new());
            let mut now = 0;
            for _ in 0..30 {
                for (ring, times) in rings.iter().enumerate() {
                    now += next(30);
                    while read[ring] < times.len() && times[read[ring]] <= now {
                        push(&mut merge, &[times[read[ring]]]);
                        read[ring] += 1;
                    }
                }
                merge.end_round(|_, record| out.push(record.time_ns));
            }
            for (ring, times) in rings.iter().enumerate() {
                push(&mut merge, &times[read[ring]..]);
            }
            merge.finish(|_, record| out.push(record.time_ns));
            assert!(out.is_sorted(), "{out:?}");
            assert_eq!(out.len(), rings.iter().map(Vec::len).sum::<usize>());
        }
    }
}
