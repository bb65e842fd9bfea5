//! Records of live rings through the same parser and into the same order.

use vocab::Event;

use crate::Item;
use crate::attr::RecordedEvent;
use crate::bytes::Cursor;
use crate::order::Order;
use crate::records::{self, kind};

/// A recording that is being made.
#[derive(Debug)]
pub struct Live {
    events: Vec<RecordedEvent>,
    order: Order,
}

impl Live {
    /// Of these events, with chains of calls or without.
    pub fn new(events: &[Event], chains: bool) -> Live {
        let live = |event: &Event| RecordedEvent::live(event.clone(), chains);
        Live { events: events.iter().map(live).collect(), order: Order::default() }
    }

    /// One record of the ring of an event, by the event's place; false if it could not be read.
    pub fn push(&mut self, place: usize, bytes: &[u8]) -> bool {
        self.parse(place, bytes).is_some()
    }

    fn parse(&mut self, place: usize, bytes: &[u8]) -> Option<()> {
        let mut from = Cursor::new(bytes);
        let (kind, misc, size) = (from.u32()?, from.u16()?, from.u16()?);
        let body = bytes.get(8..usize::from(size))?;
        let event = self.events.get(place)?;
        let parsed = match kind {
            kind::SAMPLE => Some(records::sample_item(event, misc, body)?),
            _ => records::parse(Some(event), kind, misc, body)?,
        };
        if let Some((time_ns, body)) = parsed {
            self.order.push(Item { time_ns, event: place, body });
        }
        Some(())
    }

    /// Every ring has been read once more: hands on what can no longer be overtaken.
    pub fn end_round(&mut self, mut each: impl FnMut(Item)) {
        self.order.end_round(&mut each);
    }

    /// No ring will deliver any more.
    pub fn finish(mut self, mut each: impl FnMut(Item)) {
        self.order.finish(&mut each);
    }
}
