//! Who listens to a thread.

use model::stream::{Access, BlockId, CoreListener, StaticBlock};
use tracer::hash::PublishedHash;
use tracer::settings::Listener;
use tracer::tally::Tally;
use tracer::trace::Recorder;

use crate::process::Plugin;

/// The listener that the settings ask for.
pub(crate) fn make(plugin: &'static Plugin, thread: u32) -> Box<dyn CoreListener> {
    let results = plugin.results.clone();
    match &plugin.settings.listener {
        Listener::Tally { .. } => Box::new(Tally::new(results, thread)),
        Listener::Hash => Box::new(PublishedHash::new(results, thread)),
        Listener::Null => Box::new(Null),
        Listener::Model(ask) => {
            tracer::modelled::make(ask, results, thread).unwrap_or_else(|| Box::new(Null))
        }
        Listener::Count(ask) => {
            match tracer::modelled::counting::Counting::new(ask, results, thread) {
                Some(counting) => Box::new(counting),
                None => Box::new(Null),
            }
        }
        Listener::Trace(_) | Listener::Socket(_) => match &plugin.trace {
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
