//! `whither doctor`: what this machine can measure, and why not.

mod engine;
mod judge;
mod probes;
mod view;

pub(crate) use judge::{Finding, State, judge};
pub(crate) use probes::{Probes, Processor};

use show::View;

/// Asks the machine and judges.
pub(crate) fn doctor() -> View {
    let probes = Probes::with_engines();
    view::view(&probes, &judge(&probes))
}

/// The processor of this machine.
pub(crate) fn this_processor() -> Processor {
    probes::parse_processor(&std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default())
}
