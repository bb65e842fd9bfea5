//! A sample trace: every sample of every CPU in order, while something runs.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use perf::{CpuEvent, CpuEventRequest, RecordBody, Ring, Scope, parse_record, wait_for_any};
use vocab::{Cpu, Event, EventCode, Mode, Pc, Pid};

/// One CPU's samples in order.
pub(super) type Trace = Vec<(Pid, Pc)>;

/// What was recorded.
#[derive(Debug, Default)]
pub(super) struct Recorded {
    pub(super) traces: Vec<Trace>,
    /// Samples that found no room in a ring.
    pub(super) lost: u64,
}

/// Records until told to stop, from a thread of its own.
pub(super) fn record(hertz: u64, cpus: u32, stop: &AtomicBool) -> Result<Recorded, String> {
    let mut rings = Vec::new();
    for cpu in 0..cpus {
        let code = EventCode::new(1, 0);
        let request = CpuEventRequest {
            event: Event { name: "cpu-clock".into(), code, mode: Mode::Both },
            period: 1_000_000_000 / hertz,
            scope: Scope::Everyone,
            chains: false,
            maps: false,
        };
        let event = CpuEvent::open(&request, Cpu(cpu))
            .map_err(|refusal| format!("every process cannot be sampled here: {refusal}"))?;
        let ring = event.ring(512).map_err(|refusal| refusal.to_string())?;
        event.enable().map_err(|refusal| refusal.to_string())?;
        rings.push((event, ring));
    }
    let fds: Vec<_> = rings.iter().map(|(event, _)| event.raw_fd()).collect();
    let mut recorded = Recorded { traces: vec![Trace::new(); rings.len()], lost: 0 };
    while !stop.load(Ordering::Relaxed) {
        wait_for_any(&fds, Duration::from_millis(100)).map_err(|e| e.to_string())?;
        for ((_, ring), trace) in rings.iter_mut().zip(&mut recorded.traces) {
            read(ring, trace, &mut recorded.lost);
        }
    }
    Ok(recorded)
}

fn read(ring: &mut Ring, trace: &mut Trace, lost: &mut u64) {
    ring.drain(|bytes| match parse_record(bytes).map(|record| record.body) {
        // Idle samples leave every denominator.
        Some(RecordBody::Sample { pid: Pid(0), .. }) => {}
        Some(RecordBody::Sample { pid, pc, .. }) => trace.push((pid, pc)),
        Some(RecordBody::Lost(count)) => *lost += count.0,
        _ => {}
    });
}
