//! Who listens to a thread.

use model::stream::{Access, BlockId, CoreListener, StaticBlock};

use super::Inside;
use crate::hash::PublishedHash;
use crate::modelled::counting::Counting;
use crate::settings::Listener;
use crate::tally::Tally;
use crate::trace::Recorder;

/// The listener that the settings ask for.
pub fn make(inside: &Inside, thread: u32) -> Box<dyn CoreListener> {
    let results = inside.results.clone();
    match &inside.settings.listener {
        Listener::Tally { .. } => Box::new(Tally::new(results, thread)),
        Listener::Hash => Box::new(PublishedHash::new(results, thread)),
        Listener::Null => Box::new(Null),
        Listener::Model(ask) => {
            crate::modelled::make(ask, results, thread).unwrap_or_else(|| Box::new(Null))
        }
        Listener::Count(ask) => match Counting::new(ask, results, thread) {
            Some(counting) => Box::new(counting),
            None => Box::new(Null),
        },
        Listener::Trace(_) | Listener::Socket(_) => match &inside.trace {
            Some(trace) => Box::new(Recorder::new(trace.clone(), results, thread)),
            None => Box::new(Null),
        },
    }
}

/// Listens to nothing: what remains is the cost of telling.
struct Null;

impl CoreListener for Null {
    fn translated(&mut self, _: BlockId, _: &StaticBlock) {}
    fn executed(&mut self, _: BlockId, _: u16, _: &[Access]) {}
}
