//! Records in the order in which they happened.
//!
//! Each CPU's records are in order, and perf marks when it has read every ring once. As with live
//! rings (see `collect::Merge`) whatever is no newer than the newest of the round before last can
//! no longer be overtaken.

use std::collections::BTreeMap;

use crate::item::Item;

/// Records that wait for their turn.
#[derive(Debug, Default)]
pub(crate) struct Order {
    waiting: BTreeMap<(u64, u64), Item>,
    arrived: u64,
    latest_ns: u64,
    safe_ns: u64,
}

impl Order {
    /// A record without a time happened when the one before it in the file did.
    pub(crate) fn push(&mut self, mut item: Item) {
        if item.time_ns == 0 {
            item.time_ns = self.latest_ns;
        }
        self.latest_ns = self.latest_ns.max(item.time_ns);
        self.waiting.insert((item.time_ns, self.arrived), item);
        self.arrived += 1;
    }

    pub(crate) fn end_round(&mut self, each: &mut impl FnMut(Item)) {
        let safe_ns = std::mem::replace(&mut self.safe_ns, self.latest_ns);
        let later = self.waiting.split_off(&(safe_ns.saturating_add(1), 0));
        std::mem::replace(&mut self.waiting, later).into_values().for_each(each);
    }

    pub(crate) fn finish(&mut self, each: &mut impl FnMut(Item)) {
        std::mem::take(&mut self.waiting).into_values().for_each(each);
    }
}
