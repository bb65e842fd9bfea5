//! The kernel's own multiplexing: every group is switched on, and the kernel gives them turns by
//! its tick. We only ask now and again how far each group got, so that its rate has a spread.

use std::io;
use std::sync::Arc;

use pmu::Reading;

use crate::bank::Bank;
use crate::engine::Tally;
use crate::layout::Layout;

/// One bank that the kernel rotates.
#[derive(Debug)]
pub(crate) struct Rotation {
    bank: Bank,
    layout: Arc<Layout>,
    /// One list a group: its own slices, and the time in which it waited.
    lanes: Vec<Vec<Reading>>,
    anchors: Vec<Vec<u64>>,
    tally: Tally,
    asked: u64,
    is_on: bool,
}

impl Rotation {
    pub(crate) fn new(bank: Bank, layout: Arc<Layout>) -> Rotation {
        let groups = bank.len();
        Rotation {
            lanes: vec![Vec::new(); groups],
            anchors: vec![vec![0; layout.grouping.anchors]; groups],
            tally: Tally { enabled_ns: vec![0; groups], ..Tally::default() },
            bank,
            layout,
            asked: 0,
            is_on: false,
        }
    }

    pub(crate) fn start(&mut self) -> io::Result<()> {
        self.bank.switch_clock(true)?;
        self.is_on = true;
        (0..self.bank.len()).try_for_each(|group| self.bank.enable(group))
    }

    pub(crate) fn start_on_exec(&mut self) {
        self.is_on = true;
    }

    pub(crate) fn stop(&mut self) -> io::Result<()> {
        if !self.is_on {
            return Ok(());
        }
        self.is_on = false;
        (0..self.bank.len()).try_for_each(|group| self.bank.disable(group))?;
        self.bank.switch_clock(false)?;
        self.credit()
    }

    /// Asks every group how far it got.
    pub(crate) fn credit(&mut self) -> io::Result<()> {
        for group in 0..self.bank.len() {
            let delta = self.bank.take(group)?;
            let (Some(lane), Some(sums)) = (self.lanes.get_mut(group), self.anchors.get_mut(group))
            else {
                continue;
            };
            if let Some(enabled_ns) = self.tally.enabled_ns.get_mut(group) {
                *enabled_ns += delta.enabled_ns;
            }
            let waited_ns = delta.enabled_ns.saturating_sub(delta.running_ns);
            if delta.running_ns > 0 {
                let reading = self.layout.reading(group, self.asked, &delta);
                sums.iter_mut().zip(&reading.counts).for_each(|(s, c)| *s = s.saturating_add(*c));
                lane.push(reading);
            }
            if waited_ns > 0 {
                lane.push(self.layout.gap(self.asked, waited_ns, sums));
            }
        }
        self.asked += 1;
        self.tally.time_ns += self.bank.take_clock()?;
        Ok(())
    }

    pub(crate) fn tally(&self) -> &Tally {
        &self.tally
    }

    pub(crate) fn take_lanes(&mut self) -> Vec<Vec<Reading>> {
        self.lanes.iter_mut().map(std::mem::take).collect()
    }
}
