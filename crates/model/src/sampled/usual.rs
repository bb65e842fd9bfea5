//! How long blocks usually take, as far as they were timed.
//!
//! Which blocks run is known of all that is skipped. What they took so far says how long a stretch
//! should take and how long its window should have: a window that happened upon slow code is known to
//! be no likeness of its stratum.
//!
//! ```text
//! usual cycles of a stretch  =  Σ over blocks: runs × cycles of one run, from windows before it
//! ```
//!
//! What is thought of a block may be wrong, and is at first; that makes the comparison say less, and
//! nothing wrong, as long as the same is thought of it throughout a stratum.

use super::SampledCore;
use crate::core::TICKS;
use crate::event::Event;

/// Instructions at the mean rate that every block is thought to have run besides.
const BESIDES: f64 = 300.0;

impl SampledCore {
    /// Learns from what was timed so far. Only to be called between strata.
    pub(super) fn learn_usual(&mut self) {
        let account = self.core.account();
        let timed = account.totals[Event::Instructions].max(1) as f64;
        let mean = account.ticks_total() as f64 / TICKS as f64 / timed;
        self.usual_rate = mean as f32;
        let runs = account.runs();
        for block in &mut self.blocks {
            let own = block.first as usize..(block.first + block.count) as usize;
            let ran: u64 = runs.get(own.clone()).unwrap_or_default().iter().sum();
            let ticks: u64 = own.map(|place| account.ticks(place)).sum();
            let cycles = ticks as f64 / TICKS as f64;
            let each = (cycles + BESIDES * mean) / (ran as f64 + BESIDES);
            block.usual_cycles = (each * f64::from(block.count)) as f32;
        }
        self.learn_at = self.strata.len() + 4 + self.strata.len() / 8;
    }
}
