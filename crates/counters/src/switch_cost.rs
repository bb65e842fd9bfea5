//! What a switch costs on this machine, measured where it is spent.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use perf::{Group, GroupOptions, GroupReading, Target};
use vocab::{Event, EventCode, Mode};

/// A slice is at least so many switches long, so that switching stays below a hundredth.
const SWITCHES_PER_SLICE: u32 = 100;
/// Assumed where it cannot be measured.
const FALLBACK: Duration = Duration::from_micros(5);

/// The time of a switch: one group off and read, the next on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SwitchCost {
    /// The median.
    pub median: Duration,
    /// How many were timed.
    pub switches: usize,
}

impl SwitchCost {
    /// Switches two groups to and fro `times`, from the calling thread.
    pub fn measure(events: &[Event], target: &Target, times: usize) -> Option<SwitchCost> {
        let open = || Group::open(events, target, GroupOptions::default()).ok();
        let groups = [open()?, open()?];
        groups[0].enable().ok()?;
        let mut reading = GroupReading::default();
        let mut taken = Vec::with_capacity(times);
        for k in 0..times {
            let (from, to) = (&groups[k % 2], &groups[(k + 1) % 2]);
            let start = Instant::now();
            from.disable().ok()?;
            from.read(&mut reading).ok()?;
            to.enable().ok()?;
            taken.push(start.elapsed());
        }
        taken.sort_unstable();
        taken.get(times / 2).map(|&median| SwitchCost { median, switches: times })
    }
}

/// The shortest slice that keeps switching below a hundredth of the time, measured once.
pub fn least_slice_ns() -> u64 {
    static LEAST: OnceLock<u64> = OnceLock::new();
    *LEAST.get_or_init(|| {
        let clock =
            Event { name: "task-clock".into(), code: EventCode::new(1, 1), mode: Mode::User };
        let cost = SwitchCost::measure(&[clock], &Target::ThisThread, 64);
        let cost = cost.map_or(FALLBACK, |cost| cost.median);
        (cost * SWITCHES_PER_SLICE).as_nanos() as u64
    })
}
