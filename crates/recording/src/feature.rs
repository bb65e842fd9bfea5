//! What perf notes about the machine and the events, beside the records.

use vocab::BuildId;

use crate::attr::RecordedEvent;
use crate::bytes::Cursor;

/// Numbers of features, in the header's bit map and in a pipe's records.
pub(crate) const BUILD_ID: u64 = 2;
pub(crate) const HOSTNAME: u64 = 3;
pub(crate) const EVENT_DESC: u64 = 12;

/// perf's own flag on a build-id record: it says how long the id is.
const MISC_BUILD_ID_SIZE: u16 = 1 << 15;

/// What was noted.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Notes {
    pub(crate) host: Option<String>,
    pub(crate) build_ids: Vec<(String, BuildId)>,
    /// Names of events with their ids.
    pub(crate) named: Vec<(String, Vec<u64>)>,
}

impl Notes {
    /// One feature's bytes. What does not parse is no loss: names stay the kernel's.
    pub(crate) fn take(&mut self, feature: u64, bytes: &[u8]) {
        let mut from = Cursor::new(bytes);
        match feature {
            HOSTNAME => self.host = from.counted_text().filter(|host| !host.is_empty()),
            BUILD_ID => while let Some(()) = self.take_build_id(&mut from) {},
            EVENT_DESC => drop(self.take_events(from)),
            _ => {}
        }
    }

    /// A build-id record: header, pid, 24 bytes of id, path.
    fn take_build_id(&mut self, from: &mut Cursor<'_>) -> Option<()> {
        let (_kind, misc, size) = (from.u32()?, from.u16()?, from.u16()?);
        let body = from.take(usize::from(size).checked_sub(8)?)?;
        self.build_id(misc, body)
    }

    pub(crate) fn build_id(&mut self, misc: u16, body: &[u8]) -> Option<()> {
        let mut from = Cursor::new(body);
        let _pid = from.u32()?;
        let id = from.take(24)?;
        let length = if misc & MISC_BUILD_ID_SIZE != 0 { usize::from(*id.get(20)?) } else { 20 };
        let path = from.text();
        if let Some(id) = BuildId::new(id.get(..length.min(20))?) {
            self.build_ids.push((path, id));
        }
        Some(())
    }

    fn take_events(&mut self, mut from: Cursor<'_>) -> Option<()> {
        let (count, attr_size) = (from.u32()?, usize::try_from(from.u32()?).ok()?);
        for _ in 0..count {
            from.take(attr_size)?;
            let ids = from.u32()?;
            let name = from.counted_text()?;
            let ids: Option<Vec<u64>> = (0..ids).map(|_| from.u64()).collect();
            self.named.push((name, ids?));
        }
        Some(())
    }

    /// Gives the events the names that were noted: by id where there are ids, else in order.
    pub(crate) fn name(&self, events: &mut [RecordedEvent]) {
        let in_order = events.len() == self.named.len();
        for (place, event) in events.iter_mut().enumerate() {
            let by_id =
                self.named.iter().find(|(_, ids)| ids.iter().any(|id| event.ids.contains(id)));
            let found = by_id.or_else(|| self.named.get(place).filter(|_| in_order));
            if let Some((name, _)) = found {
                event.rename(name);
            }
        }
    }
}
